"""What all figures share: the page's colours, series that do not need them, axes in percent.

Keep the text in figures Latin: they are set in DejaVu Sans, which matplotlib brings along and which
has no Chinese. Where a font of `CHINESE` is installed, names may be Chinese, too; else they are
boxes. What needs other letters belongs in the title or the note, which the page sets.
"""

from __future__ import annotations

import io
import textwrap
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, StrMethodFormatter
from numpy.typing import ArrayLike

from s2s_tasks.report.document import Figure, Theme

CHINESE = (
    *("Noto Sans CJK", "Noto Sans SC", "Source Han Sans", "WenQuanYi", "Droid Sans Fallback"),
    *("PingFang", "Hiragino Sans GB", "Heiti", "Microsoft YaHei", "SimHei", "Arial Unicode MS"),
)
"""What the names of fonts that have Chinese begin with: of Linux, then of macOS and Windows."""
RESOLUTION = 200
"""Dots per inch of a PNG, and of what a drawer has rasterised in an SVG."""


@dataclass(frozen=True)
class Colours:
    """The colours of one theme; the page takes them from here."""

    background: str
    text: str
    muted: str
    """Of the text that stands back: at tick marks, beside lines."""
    grid: str
    series: tuple[str, ...]
    """Told apart with every colour blindness (checked by simulation: Machado et al. 2009)."""


COLOURS: dict[Theme, Colours] = {
    "light": Colours(
        background="#ffffff",
        text="#1d2126",
        muted="#5a626b",
        grid="#e3e6ea",
        # The palette of Wong, Nature Methods 8:441 (2011), its light colours replaced by dark ones.
        series=("#0072b2", "#d55e00", "#009e73", "#8f2d6d", "#5c4a00", "#8a9199"),
    ),
    "dark": Colours(
        background="#14171b",
        text="#e6e9ec",
        muted="#a4abb3",
        grid="#2b3037",
        series=("#4a9df0", "#f08c28", "#3fc07a", "#e07cb8", "#f3e65c", "#e6e9ed"),
    ),
}

# Lists of different lengths: series share two of the keys long after they shared one.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "++", "oo")


@dataclass(frozen=True)
class Series:
    """How one series looks: its colour is never the only key to it."""

    colour: str
    marker: str
    dashes: Any
    hatch: str
    background: str

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of `Axes.plot` for a line with marks."""
        return {**self.points, "linestyle": self.dashes}

    @property
    def points(self) -> dict[str, Any]:
        """Arguments of `Axes.plot` and `Axes.errorbar` for marks alone."""
        return {"color": self.colour, "marker": self.marker, "linestyle": "none"}

    @property
    def bars(self) -> dict[str, Any]:
        """Arguments of `Axes.bar`, `Axes.barh` and `Axes.hist`."""
        return {"facecolor": self.colour, "edgecolor": self.background, "hatch": self.hatch}


@dataclass(frozen=True)
class Picture:
    """An encoded drawing."""

    data: bytes
    width: float
    """In inches."""
    height: float


def series(theme: Theme, number: int) -> Series:
    """Return the look of series `number`, counted from 0; it is the same in all figures."""
    colours = COLOURS[theme]
    return Series(
        colour=colours.series[number % len(colours.series)],
        marker=_MARKERS[number % len(_MARKERS)],
        dashes=_LINES[number % len(_LINES)],
        hatch=_HATCHES[number % len(_HATCHES)],
        background=colours.background,
    )


def canvas(
    theme: Theme, width: float = 7.0, height: float = 4.0, rows: int = 1, columns: int = 1
) -> tuple[Drawing, tuple[Axes, ...]]:
    """Return an empty drawing and its axes, row by row.

    What is added to it takes the theme's colours by itself where `render` calls the drawer.

    Args:
        theme: whose colours to use.
        width: in inches. The page shows an inch as 108 pixels where there is room, and no less
            than 75 on a telephone, where wide figures scroll.
        height: in inches.
        rows: of axes.
        columns: of axes.
    """
    with matplotlib.style.context(_style(theme)):
        drawing = Drawing(figsize=(width, height), layout="constrained")
        axes = drawing.subplots(rows, columns, squeeze=False)
    return drawing, tuple(axes.flat)


def percent_axis(axis: Axis, low: float | None = None, high: float | None = None) -> None:
    """Label an axis whose values are in percent; `low` and `high` bound it where given."""
    axis.set_major_formatter(StrMethodFormatter("{x:g} %"))
    if low is not None or high is not None:
        (axis.axes.set_ylim if axis is axis.axes.yaxis else axis.axes.set_xlim)(low, high)


def step_axis(axis: Axis) -> None:
    """Label an axis of training steps: 500, 1k, 20k."""
    axis.set_major_formatter(EngFormatter(sep=""))


def chance_line(
    axes: Axes,
    theme: Theme,
    percent: float = 50.0,
    across: Literal["x", "y"] = "y",
    label: bool = True,
) -> None:
    """Draw a line where guessing would be on the x or y axis, and label it outside the axes."""
    colour = COLOURS[theme].muted
    look: dict[str, Any] = {
        "color": colour,
        "linewidth": 1.0,
        "linestyle": (0, (2, 2)),
        "zorder": 1,
    }
    if across == "y":
        axes.axhline(percent, **look)
        outside: Axis = axes.secondary_yaxis("right").yaxis
    else:
        axes.axvline(percent, **look)
        outside = axes.secondary_xaxis("top").xaxis
    # A second axis with one tick: matplotlib keeps titles and neighbours clear of its label.
    space = "\n" if across == "y" else " "
    outside.set_ticks([percent], [f"chance{space}{percent:g} %" if label else ""])
    outside.set_tick_params(length=0, labelcolor=colour)
    outside.axes.spines[:].set_visible(False)


def fill_band(axes: Axes, look: Series, x: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Fill between the ends of intervals `low` and `high`, all `[points]`."""
    axes.fill_between(
        x, low, high, facecolor=look.colour, edgecolor=look.colour, alpha=0.18, linewidth=0.8
    )


def legend(drawing: Drawing, columns: int = 3) -> None:
    """Explain the labelled series of all axes above them, where nothing is covered."""
    labelled: dict[str, Any] = {}
    for axes in drawing.axes:
        handles, labels = axes.get_legend_handles_labels()
        labelled.update(zip(labels, handles, strict=True))
    key = drawing.legend(
        list(labelled.values()),
        list(labelled),
        loc="outside upper left",
        ncols=columns,
        frameon=False,
    )
    for mark in key.findobj(Line2D):  # small and faint in a cloud of points, but not here
        mark.set(alpha=1.0, markersize=matplotlib.rcParamsDefault["lines.markersize"])


def wrap(label: str, width: int = 26) -> str:
    """Break a long name into lines, so that it leaves room for what it names.

    A Chinese character is as wide as two Latin letters.
    """
    wide = "".join(c + "\0" * (unicodedata.east_asian_width(c) in "WF") for c in label)
    lines = textwrap.wrap(wide, width, break_on_hyphens=True)
    return "\n".join(lines).replace("\0", "") or label


def render(figure: Figure, theme: Theme, file_format: Literal["svg", "png"]) -> Picture:
    """Draw and encode a figure; the same figure gives the same bytes."""
    in_page = file_format == "svg"
    date = {"Date": None} if in_page else {}
    buffer = io.BytesIO()
    # Ticks are made while the drawing is saved, and are to have the theme's colours too.
    with matplotlib.style.context(_style(theme)):
        drawing = figure.draw(theme)
        drawing.savefig(
            buffer, format=file_format, dpi=RESOLUTION, metadata=date, transparent=in_page
        )
    width, height = drawing.get_size_inches()
    return Picture(buffer.getvalue(), float(width), float(height))


def _style(theme: Theme) -> list[Any]:
    """Return matplotlib's own defaults, whatever the user's are, and on them the page's looks."""
    colours = COLOURS[theme]
    return [
        "default",
        {
            "axes.axisbelow": True,
            "axes.edgecolor": colours.muted,
            "axes.facecolor": colours.background,
            "axes.grid": True,
            "axes.labelcolor": colours.text,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "errorbar.capsize": 3,
            "figure.constrained_layout.h_pad": 0.08,
            "figure.constrained_layout.hspace": 0.06,
            "figure.constrained_layout.wspace": 0.06,
            "figure.facecolor": colours.background,
            "font.family": _fonts(),
            "font.size": 10,
            "grid.color": colours.grid,
            "legend.edgecolor": "none",
            "legend.facecolor": colours.background,
            "legend.fontsize": "medium",
            "legend.handlelength": 2.6,
            "lines.linewidth": 1.8,
            "svg.fonttype": "path",
            "svg.hashsalt": "s2s-tasks",
            "text.color": colours.text,
            "text.parse_math": False,  # a name may have dollar signs
            "xtick.color": colours.muted,
            "ytick.color": colours.muted,
        },
    ]


@cache
def _fonts() -> list[str]:
    """Return the fonts in which a letter is looked for, one after another."""
    installed = sorted(fontManager.get_font_names())
    chinese = [name for start in CHINESE for name in installed if name.startswith(start)]
    return ["DejaVu Sans", *chinese[:1]]
