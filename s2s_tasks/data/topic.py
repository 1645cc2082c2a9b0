"""The topic variant (tStoryCloze): the false endings are true endings of other stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from s2s_tasks.data.problems import DataError
from s2s_tasks.data.rows import Row, place_gold


def topic_rows(rows: Sequence[Row], false_endings: int = 4) -> list[Row]:
    """Give every row the true endings of other rows as its false ones.

    The rows stand in a circle, clusters (`pair_id`) side by side, and each takes the endings at a
    few fixed distances, as many before it as behind it. So every (true, false) pair of endings
    also occurs the other way round, and a model that ignores the context scores exactly one half
    over all pairs. Distances exceed the largest cluster: no ending comes from the row's own one.

    Args:
        rows: The rows of one set.
        false_endings: How many a row; an even number.

    Returns:
        As many rows, ids ending in `-topic`, in the order of the circle.

    Raises:
        ValueError: when `false_endings` is not a positive even number.
        DataError: when there are too few rows for so many false endings.
    """
    if false_endings < 2 or false_endings % 2:
        raise ValueError(f"false_endings must be even and positive, not {false_endings}")
    circle = _side_by_side(rows)
    distances = _distances(circle, false_endings // 2)
    offsets = [0, *distances, *(-distance for distance in distances)]
    return [
        _topic_row([circle[(at + offset) % len(circle)] for offset in offsets])
        for at in range(len(circle))
    ]


def _side_by_side(rows: Sequence[Row]) -> list[Row]:
    first_seen: dict[str, int] = {}
    for at, row in enumerate(rows):
        first_seen.setdefault(_cluster(row), at)
    return sorted(rows, key=lambda row: first_seen[_cluster(row)])


def _distances(circle: Sequence[Row], count: int) -> list[int]:
    """Spread distances evenly over those at which no cluster meets itself, below half a circle."""
    least = max(Counter(map(_cluster, circle)).values(), default=1)
    beyond = (len(circle) + 1) // 2  # at half a circle, before and behind are the same row
    if beyond - least < count:
        raise DataError(
            f"{len(circle)} rows in clusters of up to {least} are too few for {2 * count} false "
            f"endings from other clusters. What to do: use at least {2 * (least + count) - 1} rows."
        )
    return [least + (beyond - least) * k // count for k in range(count)]


def _cluster(row: Row) -> str:
    return f"pair {row.pair_id}" if row.pair_id is not None else f"row {row.id}"


def _topic_row(rows: Sequence[Row]) -> Row:
    """Build the question of the first row with the true endings of all."""
    first = rows[0]
    spoken = all(row.ending_audio for row in rows)
    named = all(len(row.source_ids) == len(row.endings) for row in rows)
    return place_gold(
        replace(
            first,
            id=f"{first.id}-topic",
            endings=tuple(row.endings[row.gold] for row in rows),
            gold=0,
            context_audio=(first.audio_for(first.gold),) if first.context_audio else (),
            ending_audio=tuple(row.ending_audio[row.gold] for row in rows) if spoken else (),
            source_ids=tuple(row.source_ids[row.gold] for row in rows)
            if named
            else first.source_ids,
        )
    )
