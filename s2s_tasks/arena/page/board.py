"""The leaderboard's page, as the report's other pages are written."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from s2s_tasks.arena.page.rows import Progress
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import votes
from s2s_tasks.arena.records import Judgement

if TYPE_CHECKING:
    from s2s_tasks.arena.page.counts import Leaderboard

_Counted = tuple[list[Judgement], dict[str, Progress]]


class Board:
    """Files of the leaderboard, written anew when there are new votes."""

    def __init__(self, store: Store, leaderboard: Leaderboard | None) -> None:
        """Take where the votes are, and what rates them; the files go beside the votes."""
        self._store = store
        self._leaderboard = leaderboard
        self._lock = Lock()  # drawings are not made by two threads at once
        self._votes = Path(str(store.engine.url.database))
        self._written: tuple[_Counted, dict[str, Path]] | None = None

    def files(self) -> dict[str, Path]:
        """Return the files by name; the page is `report.html`."""
        # pandas and matplotlib load slowly, and to vote takes neither.
        from s2s_tasks.arena.page.counts import board
        from s2s_tasks.report.writing import write

        with self._lock:
            progress = {name: self._store.progress(name) for name in self._store.annotators()}
            counted = (list(votes(self._votes)), progress)
            if self._written is None or self._written[0] != counted:
                folder = self._votes.with_name(f"{self._votes.name}-leaderboard")
                paths = write(board(*counted, self._leaderboard), folder)
                self._written = counted, {path.name: path for path in paths}
            return self._written[1]
