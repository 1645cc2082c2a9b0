"""The leaderboard's page, as the report's other pages are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from s2s_tasks.arena.page.store import Progress, Store
from s2s_tasks.arena.page.votes import votes
from s2s_tasks.arena.records import Judgement

if TYPE_CHECKING:
    from s2s_tasks.report.document import Document

Leaderboard = Callable[[Iterable[Judgement]], "Document"]
"""Ratings of a log."""


class Board:
    """Files of the leaderboard, written anew when there are new votes."""

    def __init__(self, store: Store, leaderboard: Leaderboard | None, folder: Path) -> None:
        """Take where the votes are, what rates them, and where files go."""
        self._store = store
        self._leaderboard = leaderboard
        self._lock = Lock()  # drawings are not made by two threads at once
        self._folder = folder
        self._written: tuple[dict[str, Progress], dict[str, Path]] | None = None

    def files(self) -> dict[str, Path]:
        """Return the files by name; the page is `report.html`."""
        # pandas and matplotlib load slowly, and to vote takes neither.
        from s2s_tasks.arena.page.counts import board
        from s2s_tasks.report.writing import write

        with self._lock:
            progress = {name: self._store.progress(name) for name in self._store.annotators()}
            if self._written is None or self._written[0] != progress:
                judgements = list(votes(Path(str(self._store.engine.url.database))))
                document = board(judgements, progress, self._leaderboard)
                paths = write(document, self._folder)
                self._written = progress, {path.name: path for path in paths}
            return self._written[1]
