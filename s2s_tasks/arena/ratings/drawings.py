"""The figures of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Drawing

from s2s_tasks.arena.ratings.bradley_terry import Rating
from s2s_tasks.arena.ratings.outcomes import Array
from s2s_tasks.report import drawing
from s2s_tasks.report.document import Theme


def draw_ratings(ratings: Sequence[Rating], theme: Theme) -> Drawing:
    """Draw ratings with their intervals, from the top."""
    names = [drawing.wrap(rating.system) for rating in ratings]
    lines = sum(1 + name.count("\n") for name in names)
    figure, (axes,) = drawing.canvas(theme, height=1.1 + 0.3 * lines)
    for row, rating in enumerate(ratings):
        interval = rating.rating
        ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
        look = drawing.series(theme, rating.group - 1)
        axes.errorbar([interval.estimate], [row], xerr=np.nan_to_num(ends), **look.points)
    axes.axvline(1000, color=drawing.COLOURS[theme].muted, linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("rating")
    return figure


def draw_win_rates(systems: Sequence[str], rates: Array, theme: Theme) -> Drawing:
    """Draw the heat map of win rates in percent, row against column; nan is blank."""
    names = [drawing.wrap(name, 16) for name in systems]
    size = 2.2 + 0.62 * len(systems)
    figure, (axes,) = drawing.canvas(theme, width=max(5.0, size + 1.2), height=size)
    shown = axes.imshow(rates, cmap="PuOr_r", vmin=0, vmax=100)
    for row, column in np.argwhere(np.isfinite(rates)):
        rate = rates[row, column]
        # Luma of what is behind the figure: the scale is darker at one end than at the other.
        light = np.dot(shown.to_rgba(rate)[:3], (0.299, 0.587, 0.114))
        colour = "black" if light > 0.5 else "white"
        axes.text(column, row, f"{rate:.0f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    bar = figure.colorbar(shown, ax=axes, shrink=0.8)
    drawing.percent_axis(bar.ax.yaxis, 0, 100)
    return figure
