"""Battles as drafts of judgements, and votes as judgements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from s2s_tasks.arena.page.tables import ASSIGNMENTS, BATTLES, VOTES, reading
from s2s_tasks.arena.page.work import unordered
from s2s_tasks.arena.records import Answer, Battle, Instruction, Judgement
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError

log = logging.getLogger(__name__)

Answers = Mapping[str, Mapping[str, Answer]]
"""System → id of the instruction → its answer."""
Measure = Callable[[Audio], Mapping[str, float]]
"""Features of a recording by name, without `first_` or `second_`."""
_OTHER = {"first": "second", "second": "first"}


def seconds(audio: Audio) -> dict[str, float]:
    """Return how long a recording is, in seconds."""
    return {"seconds": audio.seconds}


def votes(database: Path) -> Iterator[Judgement]:
    """Yield what people voted, in the order of time, as judgements whose judge is the annotator.

    Battles are in the order in which that annotator heard the answers: A is `first`. Skipped
    battles are no judgements, and of a vote that was changed only the last counts, at its own
    time. May be called while the page is served.

    Raises:
        S2STasksError: when the file is missing, or is not one that the page wrote.
    """
    table = VOTES.join(ASSIGNMENTS).join(BATTLES)
    query = (
        select(BATTLES.c.draft, ASSIGNMENTS.c.annotator, ASSIGNMENTS.c.swapped, VOTES)
        .select_from(table)
        .where(VOTES.c.winners.is_not(None))
        .order_by(VOTES.c.time, VOTES.c.assignment)
    )
    with reading(database) as connection:
        rows = connection.execute(query).all()
    for row in rows:
        yield replace(
            as_heard(Judgement.from_json(row.draft), row.swapped),
            judge=row.annotator,
            winners=row.winners,
            reply=row.reply,
            prompt_sha256=row.prompt_sha256,
            time=row.time,
            version=row.version,
        )


def as_heard(draft: Judgement, swapped: bool) -> Judgement:
    """Return a draft whose `first` is what is heard first."""
    if not swapped:
        return draft
    battle = replace(draft.battle, first=draft.battle.second, second=draft.battle.first)
    return replace(
        draft,
        battle=battle,
        answers={_OTHER.get(role, role): value for role, value in draft.answers.items()},
        features={_swap(name): value for name, value in draft.features.items()},
    )


def drafts(
    battles: Iterable[Battle],
    instructions: Mapping[str, Instruction],
    answers: Answers,
    measure: Measure = seconds,
) -> dict[str, Judgement]:
    """Return judgements without verdicts of the battles that people can listen to.

    A battle in both orders is one; one with an answer that has no sound is left out, and a warning
    says so.

    Raises:
        S2STasksError: when a battle is of an instruction that is not given.
    """
    found: dict[str, Judgement] = {}
    mute = 0
    for battle in battles:
        instruction = _instruction(battle, instructions)
        first = _answer(battle.instruction, battle.first, answers)
        second = _answer(battle.instruction, battle.second, answers)
        if first is None or second is None:
            mute += 1
        else:
            found.setdefault(unordered(battle), draft(battle, instruction, first, second, measure))
    if mute:
        log.warning("%d battles are left out: an answer has no sound", mute)
    return found


def draft(
    battle: Battle,
    instruction: Instruction,
    first: Audio,
    second: Audio,
    measure: Measure = seconds,
) -> Judgement:
    """Return a judgement without a verdict."""
    sides = {"first": first, "second": second}
    return Judgement(
        battle=battle,
        judge="",
        domain=instruction.domain,
        task=instruction.task,
        level=instruction.level,
        language=instruction.language,
        winners={},
        reply="",
        prompt_sha256="",
        answers={
            "instruction": instruction.audio.sha256,
            **{role: audio.sha256 for role, audio in sides.items()},
        },
        features={
            f"{role}_{name}": value
            for role, audio in sides.items()
            for name, value in measure(audio).items()
        },
        time="",
        version="",
    )


def recording(
    judgement: Judgement,
    role: str,
    instructions: Mapping[str, Instruction],
    answers: Answers,
) -> Audio | None:
    """Return a recording of a battle, or None where it is not given, or has changed.

    Silence and noise are not given.

    Raises:
        S2STasksError: when the instruction is not given.
    """
    battle, sha256 = judgement.battle, judgement.answers[role]
    if role == "instruction":
        audio: Audio | None = _instruction(battle, instructions).audio
    elif battle.probe == "other":
        own = (answers.get(system, {}) for system in (battle.first, battle.second))
        given = (answer.audio for by_instruction in own for answer in by_instruction.values())
        audio = next((one for one in given if one and one.sha256 == sha256), None)
    else:
        system = battle.first if role == "first" else battle.second
        audio = _answer(battle.instruction, system, answers)
    return audio if audio and audio.sha256 == sha256 else None


def _instruction(battle: Battle, instructions: Mapping[str, Instruction]) -> Instruction:
    try:
        return instructions[battle.instruction]
    except KeyError as error:
        raise S2STasksError(
            f"a battle is of the instruction {battle.instruction}, which is not among those given; "
            "name the instructions that the battles were made of"
        ) from error


def _answer(instruction: str, system: str, answers: Answers) -> Audio | None:
    answer = answers.get(system, {}).get(instruction)
    return answer.audio if answer else None


def _swap(name: str) -> str:
    side, _, rest = name.partition("_")
    return f"{_OTHER[side]}_{rest}" if side in _OTHER else name
