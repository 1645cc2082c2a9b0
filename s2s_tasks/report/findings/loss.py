"""How much was lost, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from tqdm import tqdm

from s2s_tasks.inference import (
    Gap,
    Interval,
    holm,
    mean_interval,
    minimum_detectable_gap,
    paired_gap,
)
from s2s_tasks.report import drawing
from s2s_tasks.report.document import Figure, Section, Table, Theme
from s2s_tasks.report.pairing import Pair

SHOWN = 24
"""Rows of the figure of gaps; the table has all."""
SURE = 0.05
NARROW = 20
"""Clusters below which a bootstrap's intervals are clearly too narrow."""


@dataclass(frozen=True)
class Measure:
    """Something that is measured of each question, read and heard."""

    column: str
    name: str
    scale: float
    """What its values are multiplied by to be shown: 100 for accuracies."""
    chance: float | None
    """None where it depends on the number of endings."""


PAIRS = Measure("pair_acc", "pairwise accuracy", 100, 0.5)
CHOICE = Measure("mc_acc", "all endings beaten", 100, None)
MARGIN = Measure("margin", "margin (nats)", 1, 0.0)
KEYS = {"pair_acc": "gap-pairs", "mc_acc": "gap-choices", "margin": "gap-margins"}


@dataclass(frozen=True)
class Loss:
    """What one model lost on one set by one measure."""

    pair: Pair
    measure: Measure
    reading: Interval
    hearing: Interval
    gap: Gap
    detectable: float
    """The smallest gap that this many questions would show four times out of five."""
    adjusted_p: float = np.nan
    """Holm's, across the sets of a model."""


def losses(pairs: Sequence[Pair]) -> list[Loss]:
    """Measure every pair, and correct the tests of each model for its number of sets."""
    found = []
    asked = [
        (measure, pair)
        for measure in (PAIRS, CHOICE, MARGIN)
        for pair in pairs
        if measure is not CHOICE or endings(pair) > 2
    ]
    measured = [
        _loss(pair, measure) for measure, pair in tqdm(asked, "Comparing", unit="gap", leave=False)
    ]
    for measure in (PAIRS, CHOICE, MARGIN):
        kept = [loss for loss in measured if loss.measure is measure]
        for model in dict.fromkeys(loss.pair.model for loss in kept):
            raw = [loss for loss in kept if loss.pair.model == model]
            adjusted = holm([loss.gap.p_value for loss in raw])
            found += [
                replace(loss, adjusted_p=float(p)) for loss, p in zip(raw, adjusted, strict=True)
            ]
    return found


def endings(pair: Pair) -> int:
    """Return the number of endings of a question."""
    return len(pair.questions[0].endings)


def _loss(pair: Pair, measure: Measure) -> Loss:
    reading, hearing = pair.measure(measure.column)
    chance = 1 / endings(pair) if measure.chance is None else measure.chance
    return Loss(
        pair,
        measure,
        mean_interval(reading, pair.clusters),
        mean_interval(hearing, pair.clusters),
        paired_gap(reading, hearing, pair.clusters, chance),
        minimum_detectable_gap(reading - hearing, pair.clusters),
    )


def summary(found: Sequence[Loss], shown: Sequence[Loss] | None = None) -> list[str]:
    """Say in a sentence or two each what was lost in pairwise accuracy.

    Args:
        found: all that was measured.
        shown: of these, what is told of; by default all.
    """
    margins = {id(loss.pair): loss for loss in found if loss.measure is MARGIN}
    told = [loss for loss in (shown or found) if loss.measure is PAIRS]
    return [_sentence(loss, margins[id(loss.pair)]) for loss in told]


def best(found: Sequence[Loss]) -> list[Loss]:
    """Return, of each set, the loss of the model that hears best."""
    chosen: dict[str, Loss] = {}
    for loss in found:
        name = loss.pair.question_set
        if loss.measure is PAIRS and (
            name not in chosen or loss.hearing.estimate > chosen[name].hearing.estimate
        ):
            chosen[name] = loss
    return list(chosen.values())


def _sentence(loss: Loss, margin: Loss) -> str:
    pair, gap = loss.pair, loss.gap.difference
    points = round(100 * gap.estimate, 1)
    verb = "costs" if points >= 0 else "gains"
    reader = "" if pair.reading.model == pair.model else f" by {pair.reading.model}"
    remarks = [
        *(["as published, with an instruction before the recording alone"] * (not pair.matched)),
        *(["judged by summed log-likelihoods"] * (not pair.per_token)),
    ]
    said = (
        f"{pair.model} on {pair.question_set}: hearing instead of reading {verb} {abs(points):.1f} "
        f"points ({_range(gap)}; {100 * loss.reading.estimate:.1f} % read{reader}, "
        f"{100 * loss.hearing.estimate:.1f} % heard, chance 50 %, {loss.gap.questions:,} questions"
        f"{''.join(f'; {remark}' for remark in remarks)})."
    )
    if loss.adjusted_p < SURE:
        return said
    said += (
        f" Accuracy does not show a difference with so many questions (p = {loss.adjusted_p:.2g}"
    )
    if not np.isnan(loss.detectable):
        said += f"; only gaps of {100 * loss.detectable:.0f} points or more are found reliably"
    said += ")."
    if margin.adjusted_p < SURE and margin.reading.estimate > 0:
        share = margin.gap.difference.estimate / margin.reading.estimate
        verb = "shrinks" if share > 0 else "grows"
        said += (
            f" The margin between true and false endings does: it {verb} by {abs(share):.0%} "
            f"(p = {margin.adjusted_p:.2g})."
        )
    return said


def _range(interval: Interval) -> str:
    if np.isnan(interval.low):
        return "too few questions for an interval"
    return f"95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f}"


def few(pairs: Sequence[Pair]) -> list[str]:
    """Warn of sets with so few independent questions that intervals are too narrow."""
    return [
        f"{pair.model} on {pair.question_set}: only {count} independent questions; its intervals "
        "are too narrow."
        for pair in pairs
        if (count := len(set(pair.clusters))) < NARROW
    ]


def section(found: Sequence[Loss]) -> Section:
    """Show every gap."""
    return Section(
        "loss",
        "How much was lost",
        [
            "Gap: accuracy of reading minus accuracy of hearing, of the same questions, in points. "
            "Relative loss: the gap as a share of what reading has above chance. Detectable: the "
            "smallest true gap that a test at 5 % would find in four of five repetitions with as "
            "many questions as these.",
        ],
        [
            Figure(
                "gaps",
                "Gap by model and set",
                "; ".join(
                    f"{loss.pair.model}, {loss.pair.question_set}: "
                    f"{100 * loss.gap.difference.estimate:.1f} points"
                    for loss in _shown(found)
                ),
                lambda theme: _draw(_shown(found), theme),
                "Points, with 95 % intervals of paired differences. Below zero hearing is better."
                + f" The first {SHOWN} are drawn; the table has all."
                * (sum(loss.measure is PAIRS for loss in found) > SHOWN),
            ),
            *(
                _table(measure, found)
                for measure in (PAIRS, CHOICE, MARGIN)
                if any(loss.measure is measure for loss in found)
            ),
            _accuracies(found),
        ],
    )


def _shown(found: Sequence[Loss]) -> list[Loss]:
    return [loss for loss in found if loss.measure is PAIRS][:SHOWN]


def _draw(shown: Sequence[Loss], theme: Theme) -> Drawing:
    sets = list(dict.fromkeys(loss.pair.question_set for loss in shown))
    several = len({loss.pair.model for loss in shown}) > 1
    lines = sum(1 + several * drawing.wrap(loss.pair.model).count("\n") for loss in shown)
    figure, (axes,) = drawing.canvas(theme, height=1.1 + 0.3 * (lines + several * len(shown)))
    names = []
    for row, loss in enumerate(shown):
        gap, look = loss.gap.difference, drawing.series(theme, sets.index(loss.pair.question_set))
        ends = [[100 * (gap.estimate - gap.low)], [100 * (gap.high - gap.estimate)]]
        axes.errorbar([100 * gap.estimate], [row], xerr=ends, **look.points)
        model = f"{drawing.wrap(loss.pair.model)}\n" * several
        names.append(f"{model}{loss.pair.question_set}")
    axes.axvline(0, color=drawing.COLOURS[theme].muted, linewidth=1)
    axes.set_yticks(range(len(shown)), names)
    axes.invert_yaxis()
    axes.set_xlabel("gap, points")
    return figure


def _table(measure: Measure, found: Sequence[Loss]) -> Table:
    scale = measure.scale
    chosen = [loss for loss in found if loss.measure is measure]
    frame = pd.DataFrame(
        {
            "model": loss.pair.model,
            "set": loss.pair.question_set,
            "words around": "same" if loss.pair.matched else "as published",
            "read by": "itself"
            if loss.pair.reading.model == loss.pair.model
            else loss.pair.reading.model,
            "questions": loss.gap.questions,
            "reading": scale * loss.reading.estimate,
            "hearing": scale * loss.hearing.estimate,
            "gap": scale * loss.gap.difference.estimate,
            "from": scale * loss.gap.difference.low,
            "to": scale * loss.gap.difference.high,
            "p (Holm)": loss.adjusted_p,
            "relative loss, %": 100 * loss.gap.relative_loss.estimate,
            "detectable": scale * loss.detectable,
            "standard error": scale * loss.gap.standard_error,
        }
        for loss in chosen
    )
    number = "{:.1f}" if scale == 100 else "{:.3f}"
    plain = ("model", "set", "words around", "read by")
    formats = {str(column): number for column in frame.columns if column not in plain}
    formats |= {"questions": "{:,.0f}", "relative loss, %": "{:.0f}", "p (Holm)": "{:.2g}"}
    tests = ", ".join(sorted({loss.gap.test for loss in chosen}))
    return Table(
        KEYS[measure.column],
        f"Reading and hearing: {measure.name}",
        frame,
        formats,
        f"{_chance(measure)}From … to: 95 % interval of the gap. p: {tests}, corrected over the "
        "sets of a model.",
        folded=measure is not PAIRS,
    )


def _chance(measure: Measure) -> str:
    if measure is MARGIN:
        return "Nats per token, or summed where losses per token are not known. Chance is 0. "
    return "Percent and points. Chance is " + ("50 %. " if measure is PAIRS else "25 % of four. ")


def _accuracies(found: Sequence[Loss]) -> Table:
    frame = pd.DataFrame(
        {
            "model": loss.pair.model,
            "set": loss.pair.question_set,
            "mode": mode,
            "measure": loss.measure.name,
            "value": loss.measure.scale * interval.estimate,
            "from": loss.measure.scale * interval.low,
            "to": loss.measure.scale * interval.high,
        }
        for loss in found
        for mode, interval in (("reading", loss.reading), ("hearing", loss.hearing))
    )
    formats = dict.fromkeys(("value", "from", "to"), "{:.2f}")
    note = "From … to: 95 % interval of each mode by itself."
    return Table("accuracies", "Each mode by itself", frame, formats, note, folded=True)
