"""What a contest learned from its verdicts before each draw, told by the log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from s2s_tasks.arena.contest.meeting import asked_in
from s2s_tasks.arena.records import Battle, Judgement


class History:
    """The verdicts of a contest in the order of the log.

    Who meets whom hangs on the verdicts so far, so a contest that is started again has to learn
    them when it learned them first. Verdicts on what was drawn are before those on what was drawn
    later, but for battles that failed and were asked again. Before a draw, the log is therefore
    read on to the first battle that is not drawn yet, and no further.
    """

    def __init__(self, judgements: Iterable[Judgement], slots: Iterable[str]) -> None:
        """Take what the log has, of one judge and one seed, and the instructions to draw for."""
        once = {asked_in(judgement): judgement for judgement in judgements}
        self._judgements = [j for j in once.values() if j.battle.probe is None]
        self._read = 0
        self._left = Counter(slots)
        self._places: dict[str, int] = {}

    def add(self, judgement: Judgement) -> None:
        """Take what was added to the log."""
        if judgement.battle.probe is None:
            self._judgements.append(judgement)

    def draw(self, slots: Iterable[str], battles: Sequence[Battle]) -> None:
        """Take what was drawn for the next instructions."""
        self._left.subtract(slots)
        for battle in battles:
            self._places.setdefault(battle.key, len(self._places))

    def news(self) -> list[Judgement]:
        """Return what there is to learn before the next draw, in the order of draws.

        That of other contests with the same seed, which nothing will draw any more, comes first.
        """
        start = self._read
        while self._read < len(self._judgements):
            battle = self._judgements[self._read].battle
            if battle.key not in self._places and self._left[battle.instruction] > 0:
                break
            self._read += 1
        # Several requests are under way at once, and the order of their replies is chance.
        return sorted(
            self._judgements[start : self._read],
            key=lambda judgement: self._places.get(judgement.battle.key, -1),
        )
