"""`Row`: one question in the canonical form, whatever it was read from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from s2s_tasks.audio import Audio

Language = Literal["en", "zh"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A context, its candidate endings, and which of them is true."""

    id: str
    language: Language
    context: str
    """Text of the context."""
    endings: tuple[str, ...]
    """Two endings for the stories, four for sCMMLU, five for the topic variant, in the order they
    are asked."""
    gold: int
    """Index of the true ending in `endings`."""
    context_audio: tuple[Audio, ...]
    """One recording when all endings share it, else one an ending, in the order of `endings`."""
    ending_audio: tuple[Audio, ...] = ()
    """One recording an ending, or none."""
    subject: str | None = None
    """CMMLU subject, where the data names it."""
    pair_id: str | None = None
    """Questions with one `pair_id` were written against each other: a cluster for statistics."""
    source_ids: tuple[str, ...] = ()
    """The ids of the source rows, in the order of `endings`."""

    def __post_init__(self) -> None:
        """Refuse what no question can be."""
        count = len(self.endings)
        if count < 2 or not 0 <= self.gold < count:
            raise ValueError(f"{self.id}: needs two endings and a true one among them")
        if len(self.context_audio) not in (0, 1, count):
            raise ValueError(f"{self.id}: one context recording, or one an ending")
        if len(self.ending_audio) not in (0, count):
            raise ValueError(f"{self.id}: one recording an ending, or none")

    def audio_for(self, ending: int) -> Audio:
        """Return the recording of the context that goes with one ending."""
        return self.context_audio[ending if len(self.context_audio) > 1 else 0]


def place_gold(row: Row) -> Row:
    """Rotate the endings so that the true one's position follows from the id alone.

    A model that always prefers one position then gains nothing, and every run asks alike.
    """
    count = len(row.endings)
    target = int.from_bytes(hashlib.sha256(row.id.encode()).digest()[:8]) % count
    shift = (row.gold - target) % count
    return replace(
        row,
        endings=_rotate(row.endings, shift),
        gold=target,
        context_audio=_rotate(row.context_audio, shift)
        if len(row.context_audio) > 1
        else row.context_audio,
        ending_audio=_rotate(row.ending_audio, shift),
        source_ids=_rotate(row.source_ids, shift)
        if len(row.source_ids) == count
        else row.source_ids,
    )


def digest(rows: Iterable[Row]) -> str:
    """Return a hash of what rows ask, wherever their recordings lie: hexadecimal SHA-256."""
    total = hashlib.sha256()
    for row in rows:
        heard = [audio.sha256 for audio in row.context_audio]
        total.update(repr((row.id, row.context, row.endings, row.gold, heard)).encode())
    return total.hexdigest()


def _rotate(items: Sequence[T], shift: int) -> tuple[T, ...]:
    return (*items[shift:], *items[:shift])
