"""Where it was lost: by subject, length of recording and ending, and confidence in reading."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from s2s_tasks.inference import Gap, paired_gap
from s2s_tasks.report import drawing
from s2s_tasks.report.answers import Array
from s2s_tasks.report.document import Block, Figure, Section, Table, Theme
from s2s_tasks.report.pairing import Pair

BINS = 4
LEAST = 15
"""Groups of alike numbers of questions; fewer groups where these would have less than `LEAST`."""
FEW = 10
"""Clusters below which a group gets no interval."""
FACTORS = ("recording, seconds", "ending, tokens", "confidence in reading, nats")


def section(pairs: Sequence[Pair]) -> Section:
    """Show the gap of each pair within groups of its questions."""
    blocks: list[Block] = []
    for number, pair in enumerate(pairs, 1):
        name = f"{pair.model}, {pair.question_set}"
        groups = pd.concat([_groups(pair, factor) for factor in FACTORS])
        if len(groups):
            blocks.append(_figure(number, name, groups))
            blocks.append(_table(f"groups-{number}", f"{name}: by length and confidence", groups))
        subjects = _subjects(pair)
        if len(subjects):
            blocks.append(_table(f"subjects-{number}", f"{name}: by subject", subjects))
    return Section(
        "where",
        "Where it was lost",
        [
            "Pairwise accuracy within groups of the questions. Confidence in reading is by how "
            "much the losses of the true and the false endings differ when read, whichever is "
            "lower. Many groups are looked at here, and their intervals are not corrected for "
            f"that: take a group that stands out as a question for new data. Groups of fewer than "
            f"{FEW} independent questions have no interval.",
        ],
        blocks,
    )


def factor_values(pair: Pair, factor: str) -> Array:
    """Return what questions are grouped by: [questions], NaN where it is not known."""
    if factor == FACTORS[0]:
        return np.array([q.audio.seconds if q.audio else np.nan for q in pair.questions])
    if factor == FACTORS[1]:
        return np.asarray(pair.hearing.table.loc[list(pair.ids), "ending_tokens"], dtype=float)
    return np.abs(pair.measure("margin")[0])


def _groups(pair: Pair, factor: str) -> pd.DataFrame:
    values = factor_values(pair, factor)
    bins = min(BINS, len(values) // LEAST)
    if np.isnan(values).any() or bins < 2 or len(np.unique(values)) < 2:
        return pd.DataFrame()
    places = pd.qcut(values, bins, labels=False, duplicates="drop")
    rows = []
    for place in np.unique(places):
        inside = places == place
        low, high = values[inside].min(), values[inside].max()
        digits = {FACTORS[0]: 1, FACTORS[1]: 0}.get(factor, 2)
        label = f"{low:.{digits}f} to {high:.{digits}f}"
        rows.append({"by": factor, "group": label, **_lost(pair, inside)})
    return pd.DataFrame(rows)


def _subjects(pair: Pair) -> pd.DataFrame:
    subjects = np.array([question.subject or "" for question in pair.questions])
    names = [name for name in np.unique(subjects) if name]
    if len(names) < 2:
        return pd.DataFrame()
    rows = [{"subject": name, **_lost(pair, subjects == name)} for name in names]
    return pd.DataFrame(rows).sort_values("gap", ascending=False, ignore_index=True)


def _lost(pair: Pair, inside: np.ndarray) -> dict[str, float]:
    reading, hearing = (values[inside] for values in pair.measure("pair_acc"))
    clusters = [name for name, kept in zip(pair.clusters, inside, strict=True) if kept]
    gap: Gap = paired_gap(reading, hearing, clusters)
    known = len(set(clusters)) >= FEW
    return {
        "questions": int(inside.sum()),
        "independent": len(set(clusters)),
        "reading, %": 100 * float(reading.mean()),
        "hearing, %": 100 * float(hearing.mean()),
        "gap": 100 * gap.difference.estimate,
        "from": 100 * gap.difference.low if known else np.nan,
        "to": 100 * gap.difference.high if known else np.nan,
    }


def _table(key: str, title: str, frame: pd.DataFrame) -> Table:
    columns = ("reading, %", "hearing, %", "gap", "from", "to")
    formats = dict.fromkeys(columns, "{:.1f}")
    formats |= dict.fromkeys(("questions", "independent"), "{:,.0f}")
    return Table(key, title, frame, formats, "From … to: 95 % interval of the gap.", folded=True)


def _figure(number: int, name: str, groups: pd.DataFrame) -> Figure:
    told = [f"{row['by']} {row['group']}: {row['gap']:.1f} points" for _, row in groups.iterrows()]
    return Figure(
        f"where-{number}",
        f"{name}: the gap by length and confidence",
        "; ".join(told),
        lambda theme: _draw(groups, theme),
        "Points of pairwise accuracy, with 95 % intervals. Groups are as alike in size as equal "
        "values allow.",
    )


def _draw(groups: pd.DataFrame, theme: Theme) -> Drawing:
    factors = list(dict.fromkeys(groups["by"]))
    figure, panels = drawing.canvas(theme, width=8.4, height=3.4, columns=len(factors))
    ends = groups[["gap", "from", "to"]].to_numpy(float)
    low, high = min(0.0, float(np.nanmin(ends))), max(0.0, float(np.nanmax(ends)))
    room = 0.06 * (high - low) or 1.0
    for number, (axes, factor) in enumerate(zip(panels, factors, strict=True)):
        rows = groups[groups["by"] == factor]
        lengths = [rows["gap"] - rows["from"], rows["to"] - rows["gap"]]
        look = drawing.series(theme, number)
        axes.errorbar(range(len(rows)), rows["gap"], yerr=lengths, **look.points)
        axes.axhline(0, color=drawing.COLOURS[theme].muted, linewidth=1)
        axes.set_xticks(range(len(rows)), [g.replace(" to ", "\nto ") for g in rows["group"]])
        axes.set_xlim(-0.5, len(rows) - 0.5)
        axes.set_xlabel(factor)
        axes.set_ylim(low - room, high + room)
    panels[0].set_ylabel("gap, points")
    return figure
