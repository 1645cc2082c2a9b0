"""A contest: battles are drawn, judged where the log has no verdict yet, and written down."""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from s2s_tasks.arena import log
from s2s_tasks.arena.contest.history import History
from s2s_tasks.arena.contest.judging import Judging, Outcome
from s2s_tasks.arena.contest.matching import Matching, Matchmaker
from s2s_tasks.arena.contest.meeting import Asked, Meeting, asked_in, identity
from s2s_tasks.arena.contest.probes import choose_probes
from s2s_tasks.arena.judges.contract import Judge
from s2s_tasks.arena.records import Answer, Battle, Instruction, Judgement, Status
from s2s_tasks.errors import S2STasksError

BLOCK = 16
"""Draws between two looks at the ratings. A whole block is judged before the next one is drawn, so
that what is drawn does not hang on which verdict comes first."""
FEWEST_PROBES = 8
"""Two of each kind."""


@dataclass(frozen=True)
class Settings:
    """What a contest is like."""

    matching: Matching = field(default_factory=Matching)
    seed: int = 0
    draws: int = 1
    """Pairs an instruction; a round robin has them all."""
    both_orders: bool = True
    probes: float = 0.1
    """Probes for each draw, `FEWEST_PROBES` at least; 0 for none."""
    jobs: int = 8
    """Requests at once, of judges that take several."""


def hold(
    instructions: Iterable[Instruction],
    answers: Iterable[Answer],
    judge: Judge,
    path: Path,
    settings: Settings,
    *,
    may_tie: bool,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Outcome:
    """Hold a contest; started again, it goes on where it stopped, and asks again what failed.

    Answers without sound are not sent to the judge: those of models that only write, or that
    failed, are left out and counted; one that is silent loses. Probes come first: a judge that
    fails them is known before the rest is paid for.

    Args:
        instructions: what was asked.
        answers: of all systems.
        judge: who judges.
        path: of the log.
        settings: how.
        may_tie: whether two silent answers can both be bad; else their battle is left out.
        progress: called with the battles done and all.

    Raises:
        S2STasksError: when fewer than two systems answered the same instruction, or another process
            holds a contest with this judge and log.
        JudgeError: when the judge could not be asked so many times in a row that it is of no use.
    """
    by_id = {instruction.id: instruction for instruction in instructions}
    outcome = Outcome(identity(judge), [])
    entrants = _entrants(by_id, answers, outcome)
    heard = {
        identifier: {s: a for s, a in given.items() if a.status == "ok"}
        for identifier, given in entrants.items()
    }
    slots = _slots(entrants, settings)
    with log.alone(path, outcome.judge):
        known, own, earlier = _read(path, outcome.judge, settings.seed)
        matchmaker = Matchmaker(settings.matching, settings.seed, both_orders=settings.both_orders)
        matchmaker.learn(earlier)
        history = History(own, slots)
        judging = Judging(
            *(judge, path, known, history, outcome),
            jobs=settings.jobs,
            instructions=len(set(slots)),
            may_tie=may_tie,
        )
        with tempfile.TemporaryDirectory(prefix="s2s-probes-") as folder, judging.open():
            count = (
                max(FEWEST_PROBES, round(settings.probes * len(slots))) if settings.probes else 0
            )
            probes = choose_probes(
                by_id,
                heard,
                count=count if settings.probes else 0,
                seed=settings.seed,
                folder=Path(folder),
                both_orders=settings.both_orders,
            )
            total = len(probes) + _battles(entrants, settings)
            done = 0

            def step() -> None:
                nonlocal done
                done += 1
                progress(done, total)

            judging.settle(probes, step)
            for start in range(0, len(slots), BLOCK):
                block = slots[start : start + BLOCK]
                matchmaker.learn(history.news())
                battles = [b for slot in block for b in matchmaker.draw(slot, entrants[slot])]
                history.draw(block, battles)
                judging.settle([_meeting(battle, by_id, entrants) for battle in battles], step)
    return outcome


def _entrants(
    instructions: Mapping[str, Instruction], answers: Iterable[Answer], outcome: Outcome
) -> dict[str, dict[str, Answer]]:
    """Return the answers that can be heard or lose, by instruction and system."""
    entrants: dict[str, dict[str, Answer]] = defaultdict(dict)
    for answer in answers:
        if answer.instruction not in instructions:
            continue
        if answer.status in ("text_only", "failed"):
            outcome.left_out[answer.system, answer.status] += 1
        elif answer.system in entrants[answer.instruction]:
            raise S2STasksError(
                f"{answer.system} answers {answer.instruction} twice: name every system once"
            )
        else:
            entrants[answer.instruction][answer.system] = answer
    if all(len(given) < 2 for given in entrants.values()):
        raise S2STasksError(
            "no instruction was answered by two systems, so that none can meet: "
            f"{_told(outcome.left_out) or 'give answers of two to the same instructions'} "
            "(those of the mini set, unless --instructions names others)"
        )
    return entrants


def _slots(entrants: Mapping[str, Mapping[str, Answer]], settings: Settings) -> list[str]:
    """Return ids of instructions, in the order in which pairs are drawn for them."""
    asked = sorted(identifier for identifier, given in entrants.items() if len(given) > 1)
    slots = []
    for turn in range(1 if settings.matching.kind == "round_robin" else settings.draws):
        random.Random(f"{settings.seed}\x1fslots\x1f{turn}").shuffle(asked)
        slots += asked
    return slots


def _battles(entrants: Mapping[str, Mapping[str, Answer]], settings: Settings) -> int:
    """Return how many battles there will be."""
    pairs = [len(given) * (len(given) - 1) // 2 for given in entrants.values()]
    every = settings.matching.kind == "round_robin"
    draws = sum(count if every else min(count, settings.draws) for count in pairs)
    return draws * (2 if settings.both_orders else 1)


def _read(
    path: Path, judge: str, seed: int
) -> tuple[dict[Asked, Judgement], list[Judgement], list[Judgement]]:
    """Return what the log has of a judge: all by what was asked, those of a seed, and the rest."""
    judgements = [j for j in log.read(path) if j.judge == judge] if path.exists() else []
    known = {asked_in(judgement): judgement for judgement in judgements}
    own = [judgement for judgement in judgements if judgement.battle.seed == seed]
    earlier = [judgement for judgement in judgements if judgement.battle.seed != seed]
    return known, own, earlier


def _meeting(
    battle: Battle,
    instructions: Mapping[str, Instruction],
    entrants: Mapping[str, Mapping[str, Answer]],
) -> Meeting:
    given = entrants[battle.instruction]
    sounds = [
        answer.audio if answer.status == "ok" else None
        for answer in (given[battle.first], given[battle.second])
    ]
    return Meeting(battle, instructions[battle.instruction], *sounds)


def _told(left_out: Counter[tuple[str, Status]]) -> str:
    return ", ".join(f"{count} of {system} are {why}" for (system, why), count in left_out.items())
