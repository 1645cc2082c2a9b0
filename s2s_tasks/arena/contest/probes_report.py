"""How judges did on probes, in a document and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from s2s_tasks.arena.contest.probes import Failures
from s2s_tasks.arena.records import Probe
from s2s_tasks.inference import Interval
from s2s_tasks.report.document import Section, Table

POOR = 0.2
"""Share of failures from which a judge is called poor; one that tosses a coin has a half."""
AGAINST: dict[Probe, str] = {
    "itself": "itself",
    "silence": "silence",
    "noise": "noise",
    "other": "that to another question",
}


def probes_section(found: Sequence[Failures]) -> Section:
    """Return the section of a document; there has to be a probe."""
    return Section(
        "probes",
        "Probes of the judges",
        [
            "Battles whose outcome is known, and that are not rated: an answer against itself, "
            "silence, noise, and the answer to another question. A judge fails where it does not "
            "prefer the answer; where it calls both bad it does not fail. Against itself it fails "
            "by naming a winner; one that has to name one cannot fail, and should name the first "
            "half of the time. From … to: 95 % intervals by instruction, blank where all are on "
            "one; where they reach 50 %, tossing a coin would do as well.",
        ],
        [
            Table(
                "probe-failures",
                "Failures by the overall verdict",
                pd.DataFrame(map(_row, found)),
                {
                    **dict.fromkeys(("failed", "first won", "ties"), "{:,.0f}"),
                    **dict.fromkeys(("failed, %", "from", "to"), "{:.1f}"),
                },
            )
        ],
    )


def probe_warnings(found: Iterable[Failures]) -> list[str]:
    """Return a sentence for each judge that does badly on probes, and for what cannot be read."""
    poor: dict[str, list[str]] = {}
    told = []
    for row in found:
        against = AGAINST[row.kind]
        if not row.asked:
            told.append(
                f"{row.judge}: of {row.unreadable:,} probes of an answer against {against} none "
                "has a verdict that can be read."
            )
        elif row.share is None:
            if _is_biased(row.first_share):
                told.append(f"{row.judge}: of an answer against itself, {_first(row)}.")
        elif row.kind != "itself" and not row.failed and row.ties == row.asked > 1:
            told.append(
                f"{row.judge} prefers nothing: it names no winner between an answer and {against} "
                f"({row.asked:,} of {row.asked:,} probes)."
            )
        elif row.failed > 1 and row.share.estimate >= POOR:  # one may be an accident
            poor.setdefault(row.judge, []).append(f"{against} {_failed(row, row.share)}")
    return [
        *(
            f"{judge} is a poor judge by its probes: it fails on an answer against "
            f"{', against '.join(kinds)}."
            for judge, kinds in poor.items()
        ),
        *told,
    ]


def probe_line(row: Failures) -> str:
    """Return a line on one kind of probe."""
    outcome = f"{_first(row)}, half would be fair"
    if row.share is not None:
        outcome = f"failed {_failed(row, row.share)}"
    elif not row.asked:
        outcome = "no verdict"
    unread = f"; {row.unreadable} cannot be read" if row.unreadable else ""
    return f"Probe, an answer against {AGAINST[row.kind]}: {outcome}{unread}"


def _row(row: Failures) -> dict[str, object]:
    itself = row.kind == "itself"
    return {
        "judge": row.judge,
        "an answer against": AGAINST[row.kind],
        "verdicts": row.asked,
        "failed": row.failed if row.share else None,
        "failed, %": 100 * row.share.estimate if row.share else None,
        "from": 100 * row.share.low if row.share else None,
        "to": 100 * row.share.high if row.share else None,
        "first won": row.first if itself else None,
        "ties": row.ties if itself else None,
        "unreadable": row.unreadable,
    }


def _failed(row: Failures, share: Interval) -> str:
    return f"{row.failed:,} of {row.asked:,} times ({_interval(share)})"


def _first(row: Failures) -> str:
    share = f" ({_interval(row.first_share)})" if row.first_share else ""
    return f"the first one won {row.first:,} of {row.asked - row.ties:,}{share}"


def _interval(share: Interval) -> str:
    if math.isnan(share.low):
        return f"{100 * share.estimate:.0f} %"
    return (
        f"{100 * share.estimate:.0f} %, 95 % interval {100 * share.low:.0f} to "
        f"{100 * share.high:.0f} %"
    )


def _is_biased(share: Interval | None) -> bool:
    return share is not None and (share.low > 0.5 or share.high < 0.5)
