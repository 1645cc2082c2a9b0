"""A contest: battles are drawn, judged where the log has no verdict yet, and written down."""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from s2s_tasks.arena import log
from s2s_tasks.arena.judges.contract import Judge, JudgeError, Reply
from s2s_tasks.arena.matching import Matching, Matchmaker
from s2s_tasks.arena.meeting import Asked, Meeting, asked_in, identity
from s2s_tasks.arena.probes import choose_probes
from s2s_tasks.arena.records import (
    CRITERIA,
    Answer,
    Battle,
    Criterion,
    Instruction,
    Judgement,
    Status,
    Winner,
)
from s2s_tasks.errors import S2STasksError

BLOCK = 16
"""Draws between two looks at the ratings. A whole block is judged before the next one is drawn, so
that what is drawn does not hang on which verdict comes first."""
FEWEST_PROBES = 8
"""Two of each kind."""
BY_RULE = "[by rule]"
"""Head of the replies that no judge gave."""


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


@dataclass
class Outcome:
    """What came of it."""

    judge: str
    judgements: list[Judgement]
    """Of the whole contest, those found in the log too, probes first."""
    asked: int = 0
    """Verdicts that were not in the log yet, those by rule too."""
    left_out: Counter[tuple[str, Status]] = field(default_factory=Counter)
    """Answers that cannot be heard: by system and why."""
    both_silent: int = 0
    """Battles left out because neither answer has sound, and one has to win."""


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
    """Hold a contest; started again, it goes on where it stopped.

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
        S2STasksError: when fewer than two systems answered the same instruction.
        JudgeError: when the judge could not be asked, after all else of the block has been.
    """
    by_id = {instruction.id: instruction for instruction in instructions}
    outcome = Outcome(identity(judge), [])
    entrants = _entrants(by_id, answers, outcome)
    heard = {
        identifier: {s: a for s, a in given.items() if a.status == "ok"}
        for identifier, given in entrants.items()
    }
    slots = _slots(entrants, settings)
    known, earlier = _read(path, outcome.judge, settings.seed)
    matchmaker = Matchmaker(settings.matching, settings.seed, both_orders=settings.both_orders)
    matchmaker.learn(earlier)
    seen = {asked_in(judgement) for judgement in earlier}
    judging = _Judging(judge, path, known, settings.jobs, outcome, may_tie)
    with tempfile.TemporaryDirectory(prefix="s2s-probes-") as folder, judging.open():
        count = max(FEWEST_PROBES, round(settings.probes * len(slots))) if settings.probes else 0
        probes = choose_probes(
            by_id,
            heard,
            count=count,
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
            battles = [
                battle
                for slot in slots[start : start + BLOCK]
                for battle in matchmaker.draw(slot, entrants[slot])
            ]
            meetings = [_meeting(battle, by_id, entrants) for battle in battles]
            judged = judging.settle(meetings, step)
            matchmaker.learn(j for j in judged if asked_in(j) not in seen)
    return outcome


class _Judging:
    """Puts battles to the judge, unless the log or a rule decides them."""

    def __init__(
        self,
        judge: Judge,
        path: Path,
        known: dict[Asked, Judgement],
        jobs: int,
        outcome: Outcome,
        may_tie: bool,
    ) -> None:
        self._judge, self._path, self._known = judge, path, known
        self._jobs = jobs if judge.concurrent else 1
        self._outcome, self._may_tie = outcome, may_tie
        self._pool: ThreadPoolExecutor

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep threads for the judge meanwhile."""
        self._pool = ThreadPoolExecutor(self._jobs, "s2s-judge")
        try:
            yield
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def settle(self, meetings: Sequence[Meeting], step: Callable[[], None]) -> list[Judgement]:
        """Return the judgements in the order of the meetings; those left out are missing."""
        pending: dict[Future[Judgement], Meeting] = {}
        settled: dict[Asked, Judgement] = {}
        for meeting in meetings:
            asked = meeting.asked(self._outcome.judge)
            if asked in self._known:
                settled[asked] = self._known[asked]
            elif meeting.first is None or meeting.second is None:
                reply = self._rule(meeting)
                if reply is None:
                    self._outcome.both_silent += 1
                else:
                    judgement = meeting.judgement(self._outcome.judge, reply)
                    settled[asked] = self._write(judgement)
            else:
                pending[self._pool.submit(self._ask, meeting)] = meeting
                continue
            step()
        faults = []
        for future in as_completed(pending):
            try:
                judgement = future.result()
            except S2STasksError as fault:
                faults.append((pending[future].battle, fault))
            else:
                settled[pending[future].asked(self._outcome.judge)] = self._write(judgement)
                step()
        keys = (meeting.asked(self._outcome.judge) for meeting in meetings)
        judged = [settled[key] for key in keys if key in settled]
        self._outcome.judgements += judged
        if faults:
            battle, error = faults[0]
            raise JudgeError(
                f"{len(faults)} battle(s) could not be judged, such as {battle.first} against "
                f"{battle.second} on {battle.instruction}: {error}\nWhat was judged is in "
                f"{self._path}; start the same command again to go on."
            ) from error
        return judged

    def _ask(self, meeting: Meeting) -> Judgement:
        first, second = meeting.first, meeting.second
        assert first is not None and second is not None, "a rule decides where there is no sound"
        reply = self._judge.judge(meeting.instruction, first, second)
        return meeting.judgement(self._outcome.judge, reply)

    def _write(self, judgement: Judgement) -> Judgement:
        log.append(self._path, judgement)
        self._known[asked_in(judgement)] = judgement
        self._outcome.asked += 1
        return judgement

    def _rule(self, meeting: Meeting) -> Reply | None:
        """Return the verdict on silence; None where neither can win, and one has to."""
        loud = (meeting.first is not None, meeting.second is not None)
        if not any(loud) and not self._may_tie:
            return None
        winner: Winner = "first" if loud[0] else "second" if loud[1] else "both_bad"
        winners: dict[Criterion, Winner] = dict.fromkeys(CRITERIA, winner)
        lost = "both answers are" if not any(loud) else "the other answer is"
        return Reply(f"{BY_RULE} {lost} silent", winners, prompt_sha256="")


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
            f"{_told(outcome.left_out) or 'give answers of two to the same instructions'}"
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


def _read(path: Path, judge: str, seed: int) -> tuple[dict[Asked, Judgement], list[Judgement]]:
    """Return what the log has of a judge: all by what was asked, and those of other seeds."""
    judgements = [j for j in log.read(path) if j.judge == judge] if path.exists() else []
    known = {asked_in(judgement): judgement for judgement in judgements}
    return known, [judgement for judgement in judgements if judgement.battle.seed != seed]


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
