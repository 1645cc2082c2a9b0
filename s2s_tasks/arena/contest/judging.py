"""Battles are put to a judge, several at once; what fails is remembered, and the rest goes on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from s2s_tasks.arena import log
from s2s_tasks.arena.contest.history import History
from s2s_tasks.arena.contest.meeting import Asked, Meeting, asked_in
from s2s_tasks.arena.judges.contract import Judge, JudgeError, Reply
from s2s_tasks.arena.records import CRITERIA, Battle, Criterion, Judgement, Status, Winner
from s2s_tasks.errors import S2STasksError

logger = logging.getLogger(__name__)

BY_RULE = "[by rule]"
"""Head of the replies that no judge gave."""
HOPELESS = 8
"""Failures in a row, on as many instructions where there are, after which nothing more is asked: of
a server that is down or a wrong key. A recording that no judge takes spoils fewer instructions."""


@dataclass(frozen=True)
class Fault:
    """A battle that could not be judged."""

    battle: Battle
    reason: str


@dataclass
class Outcome:
    """What came of a contest."""

    judge: str
    judgements: list[Judgement]
    """Of the whole contest, those found in the log too, probes first."""
    asked: int = 0
    """Verdicts that were not in the log yet, those by rule too."""
    left_out: Counter[tuple[str, Status]] = field(default_factory=Counter)
    """Answers that cannot be heard: by system and why."""
    both_silent: int = 0
    """Battles left out because neither answer has sound, and one has to win."""
    faults: list[Fault] = field(default_factory=list)
    """Battles that are asked when the contest is started again."""


class Judging:
    """Puts battles to the judge, unless the log or a rule decides them."""

    def __init__(
        self,
        judge: Judge,
        path: Path,
        known: dict[Asked, Judgement],
        history: History,
        outcome: Outcome,
        *,
        jobs: int,
        instructions: int,
        may_tie: bool,
    ) -> None:
        """Take whom to ask and what is known.

        Args:
            judge: whom.
            path: of the log.
            known: what it has; what is added to it is added here.
            history: gets what is added, too.
            outcome: gets everything that is judged, and what fails.
            jobs: requests at once, of a judge that takes several.
            instructions: of the contest.
            may_tie: whether two silent answers can both be bad.
        """
        self._judge, self._path, self._known = judge, path, known
        self._history, self._outcome, self._may_tie = history, outcome, may_tie
        self._jobs = jobs if judge.concurrent else 1
        self._most = min(HOPELESS, instructions)
        self._row: list[Fault] = []
        self._pool: ThreadPoolExecutor

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep threads for the judge meanwhile."""
        self._pool = ThreadPoolExecutor(self._jobs, "s2s-judge")
        try:
            yield
        except KeyboardInterrupt:
            logger.warning("stopping as soon as what is under way is judged")
            raise
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def settle(self, meetings: Sequence[Meeting], step: Callable[[], None]) -> None:
        """Have battles judged, and put the judgements into the outcome in the order given.

        Those that are left out or fail are missing.

        Raises:
            JudgeError: when so many fail in a row that the rest would, too, or the judge raises
                what is no `S2STasksError`.
            S2STasksError: when the log cannot be written.
        """
        pending: dict[Future[Judgement | Fault], Meeting] = {}
        for meeting in meetings:
            if meeting.asked(self._outcome.judge) in self._known:
                step()
            elif meeting.first is None or meeting.second is None:
                self._decide(meeting)
                step()
            else:
                pending[self._pool.submit(self._ask, meeting)] = meeting
        for future in as_completed(pending):
            if future.cancelled():
                continue
            result = future.result()
            if isinstance(result, Fault):
                self._outcome.faults.append(result)
                self._row.append(result)
                if self._is_hopeless():
                    # What is under way is paid for, and goes into the log.
                    for waiting in pending:
                        waiting.cancel()
            else:
                self._keep(result)
                if not self._is_hopeless():
                    self._row.clear()
            step()
        keys = (meeting.asked(self._outcome.judge) for meeting in meetings)
        self._outcome.judgements += [self._known[key] for key in keys if key in self._known]
        if self._is_hopeless():
            raise JudgeError(
                f"{len(self._row)} battles in a row could not be judged, so the rest was not "
                f"asked. The last: {self._row[-1].reason}\n{how_to_go_on(self._path)}"
            )

    def _is_hopeless(self) -> bool:
        instructions = {fault.battle.instruction for fault in self._row}
        return len(self._row) >= HOPELESS and len(instructions) >= self._most

    def _ask(self, meeting: Meeting) -> Judgement | Fault:
        """Ask the judge, in a thread of the pool, and write down what it says.

        It is written here, so that whatever happens meanwhile no verdict is lost that was paid for.
        """
        first, second = meeting.first, meeting.second
        assert first is not None and second is not None, "a rule decides where there is no sound"
        try:
            reply = self._judge.judge(meeting.instruction, first, second)
            judgement = meeting.judgement(self._outcome.judge, reply)
        except S2STasksError as error:
            # Half of a character, which an endpoint may send, cannot be printed.
            reason = str(error).encode(errors="backslashreplace").decode()
            return Fault(meeting.battle, reason)
        except Exception as error:
            raise JudgeError(
                f"{self._outcome.judge} failed in a way that was not foreseen, so the rest was not "
                f"asked: {type(error).__name__}: {error}\n{how_to_go_on(self._path)}"
            ) from error
        log.append(self._path, judgement)
        return judgement

    def _decide(self, meeting: Meeting) -> None:
        reply = self._rule(meeting)
        if reply is None:
            self._outcome.both_silent += 1
            return
        try:
            judgement = meeting.judgement(self._outcome.judge, reply)
        except S2STasksError as error:
            self._outcome.faults.append(Fault(meeting.battle, str(error)))
        else:
            log.append(self._path, judgement)
            self._keep(judgement)

    def _rule(self, meeting: Meeting) -> Reply | None:
        """Return the verdict on silence; None where neither can win, and one has to."""
        loud = (meeting.first is not None, meeting.second is not None)
        if not any(loud) and not self._may_tie:
            return None
        winner: Winner = "first" if loud[0] else "second" if loud[1] else "both_bad"
        winners: dict[Criterion, Winner] = dict.fromkeys(CRITERIA, winner)
        lost = "both answers are" if not any(loud) else "the other answer is"
        return Reply(f"{BY_RULE} {lost} silent", winners, prompt_sha256="")

    def _keep(self, judgement: Judgement) -> None:
        self._known[asked_in(judgement)] = judgement
        self._history.add(judgement)
        self._outcome.asked += 1


def how_to_go_on(path: Path) -> str:
    """Return a sentence on where verdicts are, and how to go on."""
    kept = f"What was judged is in {path}" if path.exists() else "Nothing was judged"
    return f"{kept}; start the same command again to go on."
