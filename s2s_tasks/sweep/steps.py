"""Training steps out of the names of checkpoints: pure functions on names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from s2s_tasks.errors import S2STasksError

LABELS = (
    ("step", "steps"),
    ("iter", "iters", "iteration", "iterations"),
    ("checkpoint", "checkpoints", "ckpt"),
)
"""What the word before a step ends with; the first that every name has decides."""
_NUMBER = re.compile(
    r"(?P<label>[a-z]*)[-_=. ]*(?P<digits>[0-9]+(?:\.[0-9]+)*)(?=(?P<unit>[a-z]*))"
)
_MULTIPLES = ("k", "m", "b")


class StepError(S2STasksError):
    """Names that do not say which step each checkpoint is of."""


@dataclass(frozen=True)
class _Number:
    label: str
    """The letters before it, small."""
    digits: str
    unit: str
    """The letters right after it, small."""

    @property
    def is_whole(self) -> bool:
        """Whether it says a step by itself: neither 0.5 nor 10k."""
        return self.digits.isdigit() and self.unit not in _MULTIPLES


def natural(name: str) -> list[tuple[str, int]]:
    """Return a sort key under which `step10` follows `step9`."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", name)
    return [(text, int(digits or -1)) for text, digits in parts]


def find_steps(names: Sequence[str]) -> list[int]:
    """Return the step in each name.

    The step is the number that varies between the names: where all have equally many numbers, the
    one at the place whose value is not the same in all of them. Where several vary, or the names
    are not built alike, it is the number after a word that ends with `step`, else with `iter` or
    `iteration`, else with `checkpoint` or `ckpt`, if each name has exactly one such. A single
    name must have one number only, or one after such a word. Numbers that would have to be
    interpreted (`0.5`, `10k`) are not steps.

    Raises:
        StepError: when that does not single out one number in each name, or two are equal.
    """
    rows = [_numbers(name) for name in names]
    varying = _varying(rows)
    chosen = _only(varying) or _labelled(varying)
    if chosen is None or not all(number.is_whole for number in chosen):
        raise StepError(
            f"which number is the step of these checkpoints? {', '.join(names)}. Say it with "
            f"--steps, in this order: --steps 100,200 …; or by name: --steps {names[0]}=100,…"
        )
    return _all_different(names, [int(number.digits) for number in chosen])


def parse_steps(given: str, names: Sequence[str]) -> list[int]:
    """Return the steps that were given for names, as a list in their order or as `name=step`.

    Raises:
        StepError: when they are not numbers, not those of these names, or two are equal.
    """
    items = [item.strip() for item in given.split(",")]
    named = any("=" in item for item in items)
    pairs = [item.rpartition("=") for item in items]
    if not all(re.fullmatch("[0-9]+", step) for _, _, step in pairs):
        raise StepError(
            f"--steps {given}: give whole numbers, as 100,200, or pairs, as {names[0]}=100"
        )
    if named:
        steps = {name: int(step) for name, _, step in pairs}
        if len(steps) != len(pairs) or steps.keys() != set(names):
            raise StepError(
                f"--steps {given}: give one step for each of the checkpoints {', '.join(names)}"
            )
        return _all_different(names, [steps[name] for name in names])
    if len(items) != len(names):
        raise StepError(
            f"--steps {given}: {len(items)} steps for {len(names)} checkpoints, which are in this "
            f"order: {', '.join(names)}"
        )
    return _all_different(names, [int(item) for item in items])


def _numbers(name: str) -> list[_Number]:
    found = _NUMBER.finditer(name.lower())
    return [_Number(match["label"], match["digits"], match["unit"]) for match in found]


def _varying(rows: Sequence[Sequence[_Number]]) -> list[list[_Number]]:
    """Return the numbers of each name that are not the same in all, where names can be compared."""
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return [list(row) for row in rows]
    columns = [column for column in zip(*rows, strict=True) if _differ(column)]
    return [[column[index] for column in columns] for index in range(len(rows))]


def _differ(column: Sequence[_Number]) -> bool:
    return len({number.digits.lstrip("0") + number.unit for number in column}) > 1


def _only(rows: Sequence[Sequence[_Number]]) -> list[_Number] | None:
    return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else None


def _labelled(rows: Sequence[Sequence[_Number]]) -> list[_Number] | None:
    for words in LABELS:
        chosen = _only([[n for n in row if n.label.endswith(words)] for row in rows])
        if chosen:
            return chosen
    return None


def _all_different(names: Sequence[str], steps: list[int]) -> list[int]:
    count = Counter(steps)
    twice = [f"{name} ({step})" for name, step in zip(names, steps, strict=True) if count[step] > 1]
    if twice:
        raise StepError(
            f"checkpoints of the same step: {', '.join(twice)}. Leave all but one of each out, or "
            "tell them apart with --steps"
        )
    return steps
