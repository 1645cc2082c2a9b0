"""Which model is better: paired differences on the questions that all of them answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from s2s_tasks.errors import S2STasksError
from s2s_tasks.inference import Gap, holm, paired_gap
from s2s_tasks.report import drawing
from s2s_tasks.report.answers import Array
from s2s_tasks.report.document import Block, Figure, Section, Table, Theme
from s2s_tasks.report.pairing import Pair

MOST = 12
"""Models of which each is compared with each; of more, only with the best."""
WHAT: dict[str, Callable[[Pair], Array]] = {
    "hearing": lambda pair: pair.measure("pair_acc")[1],
    "gap": lambda pair: np.subtract(*pair.measure("pair_acc")),
}


@dataclass(frozen=True)
class Contrast:
    """One model minus another, on one set."""

    question_set: str
    what: str
    first: str
    second: str
    difference: Gap
    adjusted_p: float


def comparable(pairs: Sequence[Pair], *, force: bool) -> tuple[list[Pair], list[str]]:
    """Restrict pairs of one set to the questions that all of them have.

    Returns:
        The pairs, and what a reader must be told.

    Raises:
        S2STasksError: when they were asked differently; `force` makes a note of it.
    """
    notes = []
    first = pairs[0]
    for other in pairs[1:]:
        faults = first.hearing.asked.differences(other.hearing.asked)
        if first.per_token != other.per_token:
            faults.append("only one has losses per token")
        if faults and not force:
            raise S2STasksError(
                f"{first.question_set}: {first.model} and {other.model} cannot be compared: "
                f"{'; '.join(dict.fromkeys(faults))}. Report them apart, run one of them again, "
                "or compare them all the same with --force"
            )
        if faults:
            notes.append(
                f"{first.question_set}: {first.model} and {other.model} are compared although "
                f"they differ in {'; '.join(dict.fromkeys(faults))}."
            )
    shared = set(first.ids).intersection(*(pair.ids for pair in pairs[1:]))
    common = [id_ for id_ in first.ids if id_ in shared]
    if not common:
        raise S2STasksError(
            f"{first.question_set}: {', '.join(pair.model for pair in pairs)} have no question in "
            "common; report them apart"
        )
    if any(len(pair.ids) != len(common) for pair in pairs):
        notes.append(
            f"{first.question_set}: models were asked different questions; they are compared on "
            f"the {len(common):,} in common."
        )
    return [Pair(pair.reading, pair.hearing, tuple(common)) for pair in pairs], notes


def read_differently(pairs: Sequence[Pair]) -> list[str]:
    """Name what forbids comparing the gaps of pairs whose hearing can be compared."""
    first = pairs[0].reading.asked
    found = [fault for pair in pairs[1:] for fault in first.differences(pair.reading.asked)]
    return list(dict.fromkeys(found))


def contrasts(pairs: Sequence[Pair], kinds: Sequence[str]) -> list[Contrast]:
    """Compare models on one set, and correct the tests of each kind for their number."""
    best = max(pairs, key=lambda pair: float(WHAT["hearing"](pair).mean()))
    couples = (
        list(combinations(pairs, 2))
        if len(pairs) <= MOST
        else [(best, pair) for pair in pairs if pair is not best]
    )
    found = []
    for what in kinds:
        values = WHAT[what]
        gaps = [paired_gap(values(a), values(b), a.clusters) for a, b in couples]
        adjusted = holm_among([gap.p_value for gap in gaps], len(pairs))
        found += [
            Contrast(a.question_set, what, a.model, b.model, gap, float(p))
            for (a, b), gap, p in zip(couples, gaps, adjusted, strict=True)
        ]
    return found


def verdict(name: str, pairs: Sequence[Pair], found: Sequence[Contrast]) -> str:
    """Say which model hears best, and which cannot be told from it."""
    means = {pair.model: float(WHAT["hearing"](pair).mean()) for pair in pairs}
    best = max(means, key=means.__getitem__)
    alike = [
        one.second if one.first == best else one.first
        for one in found
        if one.what == "hearing" and best in (one.first, one.second) and one.adjusted_p >= 0.05
    ]
    head = (
        f"{name}: {best} hears best of {len(pairs)} models ({100 * means[best]:.1f} %, "
        f"chance 50 %, {len(pairs[0].ids):,} questions)"
    )
    if not alike:
        return f"{head}, by more than chance."
    return f"{head}; {', '.join(alike)} cannot be told from it."


def holm_among(p_values: Sequence[float], models: int) -> Array:
    """Correct tests of a model that was picked for being best, as if each met each.

    Against the best alone, Holm's correction would cry wolf: it is the best by chance too. The
    comparisons that were not made count as if nothing were to be seen in them.
    """
    unmade = models * (models - 1) // 2 - int(np.sum(~np.isnan(p_values)))
    return holm([*p_values, *[1.0] * max(0, unmade)])[: len(p_values)]


def section(pairs: Sequence[Pair], *, force: bool) -> tuple[Section | None, list[str]]:
    """Compare the models on each set; nothing where there is one model."""
    blocks: list[Block] = []
    notes: list[str] = []
    rows: list[Contrast] = []
    text: list[str] = []
    for number, name in enumerate(dict.fromkeys(pair.question_set for pair in pairs), 1):
        chosen = [pair for pair in pairs if pair.question_set == name]
        if len(chosen) < 2:
            continue
        chosen, told = comparable(chosen, force=force)
        faults = read_differently(chosen)
        found = contrasts(chosen, ["hearing"] if faults and not force else list(WHAT))
        text.append(verdict(name, chosen, found))
        notes += told
        if faults:
            done = "compared all the same" if force else "not compared (--force does)"
            notes.append(
                f"{name}: gaps are {done}: the models read differently, {'; '.join(faults)}."
            )
        rows += found
        if len(chosen) <= MOST:
            blocks.append(_matrix(number, name, [pair.model for pair in chosen], found))
    if not rows:
        return None, notes
    return Section(
        "models",
        "Which model is better",
        [
            "Differences on the same questions, first minus second: of the accuracy when heard, "
            "and of the gap (a negative one means that the first lost less). p values are "
            "corrected over the comparisons of a set (Holm).",
            *text,
        ],
        [*blocks, _table(rows)],
    ), notes


def _table(rows: Sequence[Contrast]) -> Table:
    frame = pd.DataFrame(
        {
            "set": row.question_set,
            "of": row.what,
            "first": row.first,
            "second": row.second,
            "questions": row.difference.questions,
            "difference": 100 * row.difference.difference.estimate,
            "from": 100 * row.difference.difference.low,
            "to": 100 * row.difference.difference.high,
            "p (Holm)": row.adjusted_p,
        }
        for row in rows
    )
    formats = dict.fromkeys(("difference", "from", "to"), "{:+.1f}")
    formats |= {"questions": "{:,.0f}", "p (Holm)": "{:.2g}"}
    return Table("differences", "Differences between models, in points", frame, formats)


def _matrix(number: int, name: str, models: Sequence[str], found: Sequence[Contrast]) -> Figure:
    heard = [one for one in found if one.what == "hearing"]
    sure = [one for one in heard if one.adjusted_p < 0.05]
    return Figure(
        f"models-{number}",
        f"{name}: accuracy when heard, row minus column",
        "; ".join(
            f"{one.first} and {one.second} differ by "
            f"{100 * one.difference.difference.estimate:+.1f} points"
            for one in sure
        )
        or "No two models can be told apart.",
        lambda theme: _draw(models, heard, theme),
        "In points. A star marks differences that are not within chance (p < 0.05, corrected).",
    )


def _draw(models: Sequence[str], heard: Sequence[Contrast], theme: Theme) -> Drawing:
    count = len(models)
    values = np.full((count, count), np.nan)
    stars = np.zeros((count, count), dtype=bool)
    for one in heard:
        row, column = models.index(one.first), models.index(one.second)
        values[row, column] = 100 * one.difference.difference.estimate
        values[column, row] = -values[row, column]
        stars[row, column] = stars[column, row] = one.adjusted_p < 0.05
    names = [drawing.wrap(model) for model in models]
    lines = max(name.count("\n") + 1 for name in names)
    tall = max(0.45, 0.2 * lines)
    figure, (axes,) = drawing.canvas(
        theme, width=3.2 + max(0.9, 0.25 * lines) * count, height=1.5 + tall * count
    )
    axes.grid(visible=False)
    colours = drawing.COLOURS[theme]
    for row in range(count):
        for column in range(count):
            if row == column:
                continue
            # Not -0.0.
            value, star = round(values[row, column], 1) + 0.0, "*" * bool(stars[row, column])
            look = drawing.series(theme, 0 if value >= 0 else 1)
            strength = min(abs(value) / 25, 1) * 0.45
            axes.add_patch(_cell(column, row, look.colour, strength))
            axes.text(
                column, row, f"{value:+.1f}{star}", ha="center", va="center", color=colours.text
            )
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    axes.set_xticks(range(count), names, rotation=90)
    axes.set_yticks(range(count), names)
    return figure


def _cell(column: int, row: int, colour: str, strength: float) -> Rectangle:
    return Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=strength, linewidth=0)
