"""Story rows joined to pairs by their ids. Pure functions; nothing is paired by position."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from s2s_tasks.data.problems import Kind, Problem


@dataclass(frozen=True, slots=True)
class StoryRow:
    """A context and one ending, as the published jsonl holds them."""

    uttid: str
    number: int
    """The integer that `uttid` starts with: 2i for a true ending, 2i + 1 for its false one."""
    context: str
    ending: str
    where: str
    """File and line."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A true and a false row of one story."""

    true: StoryRow
    false: StoryRow

    @property
    def number(self) -> int:
        """i, where the rows are 2i and 2i + 1."""
        return self.true.number // 2


def id_number(uttid: str) -> int | None:
    """Return the integer before the first underscore (`12_name` is 12), None where there is none.

    >>> id_number("12_name"), id_number("name_12")
    (12, None)
    """
    prefix = uttid.split("_")[0]
    return int(prefix) if prefix.isascii() and prefix.isdigit() else None


def join_pairs(
    rows: Sequence[StoryRow], broken: Iterable[int] = ()
) -> tuple[list[Pair], list[Problem]]:
    """Join rows 2i and 2i + 1.

    Args:
        rows: The sound rows, in any order.
        broken: Numbers of rows that have a problem of their own: their partners are not reported.

    Returns:
        The pairs by rising number, and what keeps other rows from being one.
    """
    by_number: dict[int, list[StoryRow]] = defaultdict(list)
    for row in rows:
        by_number[row.number].append(row)
    problems = [
        Problem(Kind.DUPLICATE, same[0].uttid, ", ".join(row.where for row in same))
        for same in by_number.values()
        if len(same) > 1
    ]
    single = {number: same[0] for number, same in sorted(by_number.items()) if len(same) == 1}
    if shifted := _shifted(single):
        first, second = (single[number] for number in shifted)
        detail = f"{first.where}: these two rows share their `first`, and so do the next"
        problems.append(Problem(Kind.PARITY, f"{first.uttid}, {second.uttid}", detail))
        return [], problems
    excused = {*broken, *(number for number, same in by_number.items() if len(same) > 1)}
    pairs = []
    for number, row in single.items():
        partner = single.get(number ^ 1)
        if partner is None and number ^ 1 not in excused:
            problems.append(Problem(Kind.LONE, row.uttid, f"{row.where}: no row {number ^ 1}"))
        elif partner and number % 2 == 0:
            if row.context == partner.context:
                pairs.append(Pair(row, partner))
            else:
                detail = f"{row.where} and {partner.where}"
                problems.append(Problem(Kind.CONTEXT, f"{row.uttid}, {partner.uttid}", detail))
    return pairs, problems


def _shifted(rows: dict[int, StoryRow]) -> tuple[int, int] | None:
    """Return the first two numbers of rows paired as 2i + 1 and 2i + 2, if the rows are.

    Contexts tell: rows of one story share theirs.
    """

    def alike(parity: int) -> list[int]:
        return [
            number
            for number, row in rows.items()
            if number % 2 == parity
            and (after := rows.get(number + 1))
            and after.context == row.context
        ]

    even, odd = alike(0), alike(1)
    return (odd[0], odd[0] + 1) if len(odd) > len(even) else None
