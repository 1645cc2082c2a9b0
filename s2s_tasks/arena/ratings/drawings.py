"""The figures of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Drawing

from s2s_tasks.arena.ratings.bradley_terry import Rating
from s2s_tasks.arena.ratings.outcomes import Array
from s2s_tasks.report import drawing
from s2s_tasks.report.document import Theme

LINE = 0.17
"""Inches between two lines of a name."""
READ = 30
"""Systems up to which the heat map has numbers in its cells: those of more would not be read, and
are thousands of drawings in a page."""


def draw_ratings(ratings: Sequence[Rating], theme: Theme) -> Drawing:
    """Draw ratings with their intervals, from the top; the mark of one without is hollow."""
    names = [drawing.wrap(rating.system) for rating in ratings]
    figure, (axes,) = drawing.canvas(theme, height=1.1 + _row(names, 0.3) * len(names))
    for row, rating in enumerate(ratings):
        interval = rating.rating
        look = drawing.series(theme, rating.group - 1)
        if np.isfinite(interval.low):
            ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
            axes.errorbar([interval.estimate], [row], xerr=ends, **look.points)
        else:
            axes.plot([interval.estimate], [row], fillstyle="none", **look.points)
    axes.axvline(1000, color=drawing.COLOURS[theme].muted, linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.margins(x=0.1)
    axes.set_xlabel("rating")
    return figure


def draw_win_rates(systems: Sequence[str], rates: Array, theme: Theme) -> Drawing:
    """Draw the heat map of win rates in percent, row against column; nan is blank.

    Columns have the numbers of the rows: names of any length fit. Of more systems than `READ`
    cells are small, and only their colours tell.
    """
    many = len(systems) > READ
    names = [drawing.wrap(f"{number}  {name}") for number, name in enumerate(systems, 1)]
    longest = max(len(line) for name in names for line in name.split("\n"))
    width = (0.2 if many else 0.5) * len(names)
    height = _row(names, *((0.2, 0.03) if many else (0.4, 0.12))) * len(names)
    figure, (axes,) = drawing.canvas(
        theme, width=max(5.0, 1.6 + 0.1 * longest + width), height=max(2.0, 0.8 + height)
    )
    # An image would be scaled in memory, to gigabytes for many systems.
    edges = np.arange(len(names) + 1) - 0.5
    shown = axes.pcolormesh(edges, edges, rates, cmap="PuOr_r", vmin=0, vmax=100, rasterized=True)
    axes.invert_yaxis()
    for row, column in np.argwhere(np.isfinite(rates) & (not many)):
        rate = rates[row, column]
        # Luma of what is behind the figure: the scale is darker at one end than at the other.
        light = np.dot(shown.to_rgba(rate)[:3], (0.299, 0.587, 0.114))
        colour = "black" if light > 0.5 else "white"
        axes.text(column, row, f"{rate:.0f}", ha="center", va="center", color=colour, fontsize=9)
    # Every fifth of narrow columns: their numbers have up to three digits.
    numbered = range(0, len(names), 5 if many else 1)
    axes.set_xticks(numbered, [str(number + 1) for number in numbered])
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    axes.set_xlabel("against")
    bar = figure.colorbar(shown, ax=axes)
    drawing.percent_axis(bar.ax.yaxis, 0, 100)
    return figure


def _row(names: Sequence[str], least: float, space: float = 0.12) -> float:
    """Return the height of a row in inches that the longest of wrapped names fits into."""
    lines = max(1 + name.count("\n") for name in names)
    return max(least, space + LINE * lines)
