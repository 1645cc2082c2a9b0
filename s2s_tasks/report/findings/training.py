"""How it went over a training run, and which checkpoint is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from s2s_tasks.inference import Interval, mean_interval, paired_gap
from s2s_tasks.report import drawing
from s2s_tasks.report.answers import Array
from s2s_tasks.report.document import Block, Figure, Section, Table, Theme
from s2s_tasks.report.findings.models import comparable, holm_among
from s2s_tasks.report.pairing import Pair

MODES = ("read", "heard")


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint on one set."""

    pair: Pair
    step: int
    accuracy: tuple[Interval, Interval]
    """Pairwise, read and heard."""
    gap: Interval
    true_loss: tuple[Interval, Interval]
    """In nats per token, as the two that follow."""
    false_loss: tuple[Interval, Interval]
    margin: tuple[Interval, Interval]
    behind_best: float
    """Corrected p-value of the hypothesis that it hears as well as the best; NaN for that one."""


def section(pairs: Sequence[Pair], *, force: bool) -> tuple[Section | None, list[str]]:
    """Plot every training run against its steps; nothing where there is none."""
    blocks: list[Block] = []
    notes: list[str] = []
    text: list[str] = []
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        if pair.hearing.training is not None and pair.hearing.step is not None:
            groups.setdefault((pair.hearing.training, pair.question_set), []).append(pair)
    for number, ((training, name), chosen) in enumerate(groups.items(), 1):
        if len(chosen) < 2:
            continue
        shared, told = comparable(chosen, force=force)
        notes += told
        found = checkpoints(shared)
        text.append(verdict(training, name, found))
        blocks.append(_figure(number, training, name, found))
        blocks.append(_table(number, training, name, found))
    if not blocks:
        return None, notes
    return Section("training", "Over the training run", text, blocks), notes


def checkpoints(pairs: Sequence[Pair]) -> list[Checkpoint]:
    """Measure the checkpoints of one training run on one set, by their steps."""
    ordered = sorted(pairs, key=lambda pair: pair.hearing.step or 0)
    heard = [pair.measure("pair_acc")[1] for pair in ordered]
    best = int(np.argmax([values.mean() for values in heard]))
    tests = [
        np.nan if place == best else paired_gap(heard[best], values, ordered[best].clusters).p_value
        for place, values in enumerate(heard)
    ]
    adjusted = holm_among(tests, len(ordered))
    return [_checkpoint(pair, float(p)) for pair, p in zip(ordered, adjusted, strict=True)]


def _checkpoint(pair: Pair, behind_best: float) -> Checkpoint:
    def both(column: str) -> tuple[Interval, Interval]:
        reading, hearing = pair.measure(column)
        return _interval(reading, pair.clusters), _interval(hearing, pair.clusters)

    reading, hearing = pair.measure("pair_acc")
    return Checkpoint(
        pair=pair,
        step=pair.hearing.step or 0,
        accuracy=both("pair_acc"),
        gap=mean_interval(reading - hearing, pair.clusters),
        true_loss=both("nll_pos"),
        false_loss=both("nll_neg"),
        margin=both("margin"),
        behind_best=behind_best,
    )


def _interval(values: Array, clusters: Sequence[str]) -> Interval:
    if np.isnan(values).any():
        return Interval(np.nan, np.nan, np.nan)
    return mean_interval(values, clusters)


def verdict(training: str, name: str, found: Sequence[Checkpoint]) -> str:
    """Say which checkpoint hears best, and which cannot be told from it."""
    best = next(one for one in found if np.isnan(one.behind_best))
    alike = [f"{one.step:,}" for one in found if one.behind_best >= 0.05]
    head = (
        f"{training}, {name}: step {best.step:,} hears best "
        f"({100 * best.accuracy[1].estimate:.1f} %, chance 50 %, {len(best.pair.ids):,} questions)"
    )
    if not alike:
        return f"{head}, by more than chance."
    return f"{head}; it cannot be told from {'step' if len(alike) == 1 else 'steps'} " + (
        f"{', '.join(alike)} (paired tests at 5 %, corrected for picking the best)."
    )


def _figure(number: int, training: str, name: str, found: Sequence[Checkpoint]) -> Figure:
    return Figure(
        f"training-{number}",
        f"{training}, {name}: over the steps",
        verdict(training, name, found),
        lambda theme: _draw(found, theme),
        "The losses in the style of a mode are those of true endings. Bands are 95 % intervals of "
        "each step by itself; those of two steps may overlap where the paired difference is sure. "
        "A ring marks the best step when heard; filled marks in the second panel are steps that "
        "cannot be told from it. The best of many looks a little better than it is.",
    )


def _draw(found: Sequence[Checkpoint], theme: Theme) -> Drawing:
    figure, (accuracy, gap, loss, margin) = drawing.canvas(
        theme, width=8.4, height=6.4, rows=2, columns=2
    )
    for number, mode in enumerate(MODES):
        look = drawing.series(theme, number)
        _curve(accuracy, found, _mode("accuracy", number), look, mode, 100)
        _curve(margin, found, _mode("margin", number), look, mode)
        own = drawing.series(theme, number + 2)
        _curve(loss, found, _mode("true_loss", number), look, mode)
        _curve(loss, found, _mode("false_loss", number), own, f"{mode}, false endings")
    _curve(gap, found, lambda one: one.gap, drawing.series(theme, 4), "gap", 100)
    _mark_best(accuracy, gap, found, theme)
    drawing.chance_line(accuracy, theme)
    drawing.percent_axis(accuracy.yaxis)
    gap.axhline(0, color=drawing.COLOURS[theme].muted, linewidth=1)
    margin.axhline(0, color=drawing.COLOURS[theme].muted, linewidth=1)
    accuracy.set_title("pairwise accuracy")
    gap.set_title("gap, points")
    loss.set_title("loss of endings, nats per token")
    margin.set_title("margin, nats per token")
    for axes in (accuracy, gap, loss, margin):
        axes.set_xlabel("training step")
        drawing.step_axis(axes.xaxis)
    drawing.legend(figure, columns=4)
    return figure


def _mode(name: str, number: int) -> Callable[[Checkpoint], Interval]:
    """Return what picks a measure of mode `number` out of a checkpoint."""

    def pick(one: Checkpoint) -> Interval:
        both: tuple[Interval, Interval] = getattr(one, name)
        return both[number]

    return pick


def _curve(
    axes: Axes,
    found: Sequence[Checkpoint],
    pick: Callable[[Checkpoint], Interval],
    look: drawing.Series,
    label: str,
    scale: float = 1,
) -> None:
    steps = [one.step for one in found]
    values = np.array([[pick(o).estimate, pick(o).low, pick(o).high] for o in found]) * scale
    axes.plot(steps, values[:, 0], label=label, **look.line)
    drawing.fill_band(axes, look, steps, values[:, 1], values[:, 2])


def _mark_best(accuracy: Axes, gap: Axes, found: Sequence[Checkpoint], theme: Theme) -> None:
    best = next(one for one in found if np.isnan(one.behind_best))
    look = drawing.series(theme, 1)
    accuracy.plot(
        [best.step],
        [100 * best.accuracy[1].estimate],
        color=look.colour,
        marker="o",
        markersize=14,
        markerfacecolor="none",
        linestyle="none",
        label="best",
    )
    apart = [one for one in found if one.behind_best < 0.05]
    own = drawing.series(theme, 4)
    gap.plot(
        [one.step for one in apart],
        [100 * one.gap.estimate for one in apart],
        color=own.colour,
        marker=own.marker,
        linestyle="none",
        markerfacecolor=drawing.COLOURS[theme].background,
    )


def _table(number: int, training: str, name: str, found: Sequence[Checkpoint]) -> Table:
    frame = pd.DataFrame(
        {
            "step": one.step,
            "reading, %": 100 * one.accuracy[0].estimate,
            "hearing, %": 100 * one.accuracy[1].estimate,
            "gap": 100 * one.gap.estimate,
            "from": 100 * one.gap.low,
            "to": 100 * one.gap.high,
            "loss true, read": one.true_loss[0].estimate,
            "loss false, read": one.false_loss[0].estimate,
            "loss true, heard": one.true_loss[1].estimate,
            "loss false, heard": one.false_loss[1].estimate,
            "margin, heard": one.margin[1].estimate,
            "p against the best": one.behind_best,
        }
        for one in found
    )
    formats = {str(column): "{:.3f}" for column in frame.columns}
    formats |= dict.fromkeys(("reading, %", "hearing, %", "gap", "from", "to"), "{:.1f}")
    formats |= {"step": "{:,.0f}", "p against the best": "{:.2g}"}
    return Table(
        f"steps-{number}",
        f"{training}, {name}: by step",
        frame,
        formats,
        "The best step when heard has no p value.",
        folded=True,
    )
