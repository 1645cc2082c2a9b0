"""How the preference for the true ending moves, and whether the model knows how sure it may be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from scipy.stats import gaussian_kde

from s2s_tasks.inference import Calibration, calibration
from s2s_tasks.report import drawing
from s2s_tasks.report.answers import Array, Run
from s2s_tasks.report.document import Block, Figure, Section, Table, Theme
from s2s_tasks.report.pairing import Pair

MODES = ("reading", "hearing")
BINS = 10
LEAST = 15
"""Bins of calibration; fewer where these would have less than `LEAST` choices."""


def pair_probabilities(pair: Pair, run: Run) -> Array:
    """Return the probability of each true ending against each false one, given equal priors.

    That is the logistic function of the difference of their summed log-likelihoods: [questions,
    false endings], padded with NaN.
    """
    places = run.places(pair.ids)
    sums = run.sums[places]
    gold = np.array([question.gold for question in pair.questions])
    true = np.take_along_axis(sums, gold[:, None], axis=1)
    false = np.array([np.delete(row, place) for row, place in zip(sums, gold, strict=True)])
    with np.errstate(over="ignore"):
        probabilities: Array = 1 / (1 + np.exp(false - true))
    return probabilities


def section(pairs: Sequence[Pair]) -> Section:
    """Show margins and calibration, read and heard."""
    blocks: list[Block] = []
    rows = []
    for number, pair in enumerate(pairs, 1):
        name = f"{pair.model}, {pair.question_set}"
        reading, hearing = pair.measure("margin")
        blocks.append(_margin_figure(number, name, reading, hearing, pair.per_token))
        both = tuple(_calibration(pair, run) for run in (pair.reading, pair.hearing))
        blocks.append(_calibration_figure(number, name, both))
        for mode, one in zip(MODES, both, strict=True):
            rows.append(
                {
                    "model": pair.model,
                    "set": pair.question_set,
                    "mode": mode,
                    "choices": sum(part.count for part in one.bins),
                    "mean confidence, %": 100
                    * float(np.average([p.confidence for p in one.bins], weights=_counts(one))),
                    "right, %": 100
                    * float(
                        np.average([p.accuracy.estimate for p in one.bins], weights=_counts(one))
                    ),
                    "calibration error, points": 100 * one.expected_error,
                }
            )
    formats = {"choices": "{:,.0f}"} | dict.fromkeys(
        ("mean confidence, %", "right, %", "calibration error, points"), "{:.1f}"
    )
    blocks.append(Table("calibration", "Calibration", pd.DataFrame(rows), formats))
    return Section(
        "margins",
        "How preferences move",
        [
            "Margin: mean loss of the false endings minus that of the true one. Above zero the "
            "true ending is preferred on average. In the scatter each question is a point; below "
            "the diagonal its margin has shrunk by hearing.",
            "Calibration asks of each pair of endings how probable the model holds the likelier "
            "one, by summed log-likelihoods and equal priors, and how often it is the true one. "
            "The calibration error is the mean distance between the two over bins of equal counts.",
        ],
        blocks,
    )


def _counts(one: Calibration) -> list[int]:
    return [part.count for part in one.bins]


def _calibration(pair: Pair, run: Run) -> Calibration:
    probabilities = pair_probabilities(pair, run).ravel()
    choices = probabilities[~np.isnan(probabilities)]
    return calibration(choices, max(1, min(BINS, len(choices) // LEAST)))


def _margin_figure(
    number: int, name: str, reading: Array, hearing: Array, per_token: bool
) -> Figure:
    unit = "nats per token" if per_token else "nats, summed"
    shrunk = np.mean(hearing < reading)
    return Figure(
        f"margins-{number}",
        f"{name}: margins, read and heard",
        f"The margin of {shrunk:.0%} of the questions is smaller when they are heard; its median "
        f"is {np.median(reading):.2f} read and {np.median(hearing):.2f} heard ({unit}).",
        lambda theme: _draw_margins(reading, hearing, unit, theme),
    )


def _draw_margins(reading: Array, hearing: Array, unit: str, theme: Theme) -> Drawing:
    figure, (scatter, density) = drawing.canvas(theme, width=8.4, height=4.0, columns=2)
    colours = drawing.COLOURS[theme]
    low, high = np.quantile(np.concatenate([reading, hearing]), [0.001, 0.999])
    room = 0.08 * (high - low or 1)
    span = (float(low - room), float(high + room))
    look = drawing.series(theme, 0)
    faint = float(np.clip(40 / np.sqrt(len(reading)), 0.15, 0.7))
    scatter.plot(
        reading,
        hearing,
        "o",
        color=look.colour,
        markersize=3.5,
        alpha=faint,
        rasterized=True,
        markeredgewidth=0,
    )
    scatter.plot(span, span, color=colours.muted, linewidth=1)
    for line in (scatter.axhline, scatter.axvline):
        line(0, color=colours.muted, linewidth=0.8, linestyle=":")
    scatter.set(xlim=span, ylim=span, xlabel=f"read, {unit}", ylabel=f"heard, {unit}")
    scatter.set_aspect("equal")
    for place, (mode, values) in enumerate(zip(MODES, (reading, hearing), strict=True)):
        _density(density, values, span, drawing.series(theme, place), mode)
    density.axvline(0, color=colours.muted, linewidth=0.8, linestyle=":")
    density.set(xlim=span, ylim=(0, None), xlabel=f"margin, {unit}", ylabel="density of questions")
    drawing.legend(figure)
    return figure


def _density(
    axes: Axes, values: Array, span: tuple[float, float], look: drawing.Series, mode: str
) -> None:
    grid = np.linspace(*span, 300)
    # A kernel needs spread; without any there is one value to show.
    if len(np.unique(values)) > 1:
        axes.plot(
            grid, gaussian_kde(values)(grid), color=look.colour, linestyle=look.dashes, label=mode
        )
    else:
        axes.axvline(float(values[0]), color=look.colour, linestyle=look.dashes, label=mode)


def _calibration_figure(number: int, name: str, both: Sequence[Calibration]) -> Figure:
    told = [
        f"{mode}: calibration error {100 * one.expected_error:.1f} points"
        for mode, one in zip(MODES, both, strict=True)
    ]
    return Figure(
        f"calibration-{number}",
        f"{name}: calibration",
        "; ".join(told),
        lambda theme: _draw_calibration(both, theme),
        "On the line the model is right as often as it is sure; below it, it is too sure.",
    )


def _draw_calibration(both: Sequence[Calibration], theme: Theme) -> Drawing:
    figure, (axes,) = drawing.canvas(theme, width=4.6, height=4.0)
    axes.plot([50, 100], [50, 100], color=drawing.COLOURS[theme].muted, linewidth=1)
    for place, (mode, one) in enumerate(zip(MODES, both, strict=True)):
        accuracy = np.array([100 * part.accuracy.estimate for part in one.bins])
        low = np.array([100 * part.accuracy.low for part in one.bins])
        high = np.array([100 * part.accuracy.high for part in one.bins])
        axes.errorbar(
            [100 * part.confidence for part in one.bins],
            accuracy,
            yerr=[accuracy - low, high - accuracy],
            label=mode,
            **drawing.series(theme, place).line,
        )
    drawing.percent_axis(axes.xaxis, 49, 101)
    drawing.percent_axis(axes.yaxis)
    axes.set(xlabel="probability of the likelier ending", ylabel="how often it is the true one")
    drawing.legend(figure)
    return figure
