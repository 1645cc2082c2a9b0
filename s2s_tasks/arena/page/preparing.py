"""What is served is put together: battles and probes, all of which can be heard."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from s2s_tasks.arena import log
from s2s_tasks.arena.page.probing import PROBES, draw_probes
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import Answers, Measure, drafts, recording, seconds
from s2s_tasks.arena.page.work import DOUBLE, unordered
from s2s_tasks.arena.records import Answer, Battle, Instruction
from s2s_tasks.errors import S2STasksError


def by_system(answers: Iterable[Answer]) -> dict[str, dict[str, Answer]]:
    """Return answers by system, then by the instruction's id.

    Raises:
        S2STasksError: when a system answers an instruction twice.
    """
    found: dict[str, dict[str, Answer]] = {}
    for answer in answers:
        own = found.setdefault(answer.system, {})
        if answer.instruction in own:
            raise S2STasksError(
                f"{answer.system} answers {answer.instruction} twice: name every system once"
            )
        own[answer.instruction] = answer
    return found


def read_battles(path: Path) -> list[Battle]:
    """Return the battles of JSON lines, or those that the judgements of a log are of.

    Raises:
        S2STasksError: when the file cannot be read, or a line is not what the first one is.
    """
    try:
        with path.open("rb") as file:  # as text, lines would end elsewhere, too
            lines = file.readlines()
    except OSError as error:
        raise S2STasksError(f"{path}: cannot read battles: {error}") from error
    if not lines or not _is_bare(lines[0]):
        return [judgement.battle for judgement in log.read(path)]
    battles = []
    for number, line in enumerate(lines, 1):
        try:
            battles.append(Battle(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise S2STasksError(f"{path}, line {number}: not a battle ({error})") from error
    return battles


def _is_bare(line: bytes) -> bool:
    try:
        fields = json.loads(line)
    except ValueError:  # the log knows what was left unfinished
        return False
    return isinstance(fields, dict) and "instruction" in fields


def highest_rate(store: Store, instructions: Mapping[str, Instruction], answers: Answers) -> int:
    """Return the highest sampling rate, in Hz, of what the battles in a store are of.

    Raises:
        S2STasksError: when something of it is not given, or has changed.
    """
    made = store.sounds()
    rate = 0
    for draft in store.battles().values():
        for role, sha256 in draft.answers.items():
            audio = recording(draft, role, instructions, answers)
            if audio:
                rate = max(rate, audio.sampling_rate)
            elif sha256 not in made:
                raise S2STasksError(
                    f"{store.engine.url.database}: holds a battle of {draft.battle.first} and "
                    f"{draft.battle.second} on {draft.battle.instruction}, and a recording of it "
                    f"({role}) is not given, or was another one; name the same folders as before, "
                    "or a new file for the votes"
                )
    return rate


def prepare(
    store: Store,
    instructions: Iterable[Instruction],
    answers: Answers,
    battles: Iterable[Battle],
    annotators: Sequence[str],
    *,
    share: float = DOUBLE,
    probes: float = PROBES,
    measure: Measure = seconds,
) -> None:
    """Put battles and probes into the store; `Store.invite` then gives them to annotators.

    Args:
        store: an open one, empty or not.
        instructions: at least those of the battles.
        answers: by system, then by the instruction's id.
        battles: to be judged; one in both orders is one, and those in the store are not added.
            Probes of another judge are passed over.
        annotators: who is to share the work; all that are known by default.
        share: of the battles that two annotators judge.
        probes: for each battle that is dealt, and at least one for each annotator; 0 for none.
        measure: gives the features of an answer, which judgements hold; by default its length.

    Raises:
        S2STasksError: when an instruction is missing, nobody can vote, or what is in the store
            cannot be heard any more.
    """
    names = annotators or store.annotators()
    if not names:
        raise S2STasksError("nobody can vote yet; name annotators: --annotators ANNA BEN")
    by_id = {instruction.id: instruction for instruction in instructions}
    # First: battles that are added with wrong answers would stay.
    highest_rate(store, by_id, answers)
    known = store.battles()
    new = [one for one in battles if not one.probe and unordered(one) not in known]
    store.add_battles(drafts(new, by_id, answers, measure))
    if probes:
        known = store.battles()
        rated = sum(not one.battle.probe for one in known.values())
        dealt = rated + (round(share * rated) if len(names) > 1 else 0)
        count = max(round(probes * dealt), len(names))
        folder = Path(f"{store.engine.url.database}-probes")
        more, sounds = draw_probes(known, by_id, answers, count, measure, folder)
        store.add_sounds(sounds)
        store.add_battles(more)
