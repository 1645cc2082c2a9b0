"""`s2s-tasks arena agreement`: judges against people, as a document."""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from s2s_tasks.arena.agreement.measures import (
    agreement,
    consistency,
    first_rate,
    longer_rate,
    merged,
    reliability,
    unit,
)
from s2s_tasks.arena.agreement.sides import Sides, split
from s2s_tasks.arena.contest.probes import failures
from s2s_tasks.arena.contest.probes_report import probe_warnings, probes_section
from s2s_tasks.arena.records import CRITERIA, Judgement
from s2s_tasks.arena.verdicts import HELP, by_rule, read_verdicts
from s2s_tasks.arena.writing import write_with_json
from s2s_tasks.inference import Interval
from s2s_tasks.report.document import Block, Document, Section, Table

EVERYTHING = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=HELP)
    parser.add_argument(
        "--people",
        action="append",
        required=True,
        metavar="NAME",
        help="an annotator as the logs name them; `*` stands for any letters (may be repeated). "
        "All others are judges",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="DIR",
        help="where to write; default: `agreement` beside the first log",
    )


def run(options: argparse.Namespace) -> int:
    """Write the report: HTML, Markdown, CSV and `agreement.json`.

    Raises:
        S2STasksError: when a log is broken, or has no judgement of people.
    """
    sides = split(list(read_verdicts(options.logs)), options.people)
    document = report(sides)
    folder = options.output or options.logs[0].parent / "agreement"
    tables = {
        block.key: block.frame.to_dict("records")
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Table)
    }
    files = write_with_json(document, folder, "agreement.json", tables)
    for sentence in (*document.summary, *document.warnings):
        print(sentence)
    print(f"{files[0]} and {len(files) - 1} more files")
    return 0


def report(sides: Sides) -> Document:
    """Return the document."""
    compared = _compared(sides)
    own = _own(sides)
    among = _among(sides.people)
    probed = failures([*chain.from_iterable(sides.judges.values()), *sides.people])
    return Document(
        "Agreement of judges and people",
        list(_summary(compared, among)),
        [*probe_warnings(probed), *_warnings(sides, compared)],
        [
            Section(
                "judges-people",
                "Judges against people",
                [
                    "On the same recordings of an instruction and two answers (where a file does "
                    "not tell them: of the same systems), whatever the order. Several "
                    "verdicts on these (both orders, several people) are merged into the one that "
                    "most name; where two are named equally often it is a tie. Both bad is a tie.",
                    "Decisive: only where both sides name a winner, which leaves two labels, as in "
                    "published figures of agreement. Kappa: Cohen's. From … to: 95 % intervals, "
                    "of kappa by bootstrap of instructions, of shares likewise, or Wilson's where "
                    "every instruction counts once or all are alike. Blank: one instruction, or "
                    "all alike.",
                ],
                _table("compared", "Agreement", compared),
            ),
            Section(
                "judges-alone",
                "Judges by themselves",
                [
                    "Same in both orders: the same winner, or a tie twice, whichever was heard "
                    "first. First wins: how often a decisive verdict is for the answer heard "
                    "first; longer wins: for the longer one. Without bias, and with both orders "
                    "judged, the former is 50 %; a preference for the longer may have good "
                    "reasons.",
                ],
                _table("judges", "Consistency and preferences", own),
            ),
            Section(
                "people-alone",
                "People among each other",
                [
                    "On answers that two or more have judged. Same: share of pairs of verdicts on "
                    "the same answers that are alike. Alpha: Krippendorff's, nominal."
                    if len(among)
                    else "No answers were judged by two people.",
                ],
                _table("people", "Reliability", among),
            ),
            *([probes_section(probed)] if probed else []),
        ],
    )


def _table(key: str, title: str, frame: pd.DataFrame) -> list[Block]:
    return [Table(key, title, frame, _FORMATS)] if len(frame) else []


_SHARES = ("raw", "same in both orders", "first wins", "longer wins", "same")
_FORMATS = {
    **{f"{name}{end}": "{:.1f}" for name in _SHARES for end in (", %", " from", " to")},
    **{f"{name}{end}": "{:.3f}" for name in ("kappa", "alpha") for end in ("", " from", " to")},
    "first in both, %": "{:.1f}",
    "second in both, %": "{:.1f}",
}


def _share(name: str, interval: Interval) -> dict[str, float]:
    return {
        f"{name}, %": 100 * interval.estimate,
        f"{name} from": 100 * interval.low,
        f"{name} to": 100 * interval.high,
    }


def _number(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.estimate, f"{name} from": interval.low, f"{name} to": interval.high}


def _parts(judgements: Sequence[Judgement]) -> list[str]:
    levels = sorted({judgement.level for judgement in judgements if judgement.level is not None})
    return [EVERYTHING, *(f"L{level}" for level in levels)]


def _part(judgements: Sequence[Judgement], part: str) -> list[Judgement]:
    return [j for j in judgements if part in (EVERYTHING, f"L{j.level}")]


def _compared(sides: Sides) -> pd.DataFrame:
    rows: list[dict[str, object]] = []
    for name, own in sides.judges.items():
        for criterion in CRITERIA:
            for part in _parts(own):
                judge = merged(_part(own, part), criterion)
                people = merged(_part(sides.people, part), criterion)
                for decisive in (False, True):
                    found = agreement(judge, people, decisive=decisive)
                    if found.units:
                        rows.append(
                            {
                                "judge": name,
                                "criterion": criterion,
                                "part": part,
                                "verdicts": "decisive" if decisive else "all",
                                "units": found.units,
                                **_share("raw", found.raw),
                                **_number("kappa", found.kappa),
                            }
                        )
    return pd.DataFrame(rows)


def _own(sides: Sides) -> pd.DataFrame:
    rows: list[dict[str, object]] = []
    for name, own in sides.judges.items():
        for criterion in CRITERIA:
            if not any(criterion in judgement.winners for judgement in own):
                continue
            swapped = consistency(own, criterion)
            rows.append(
                {
                    "judge": name,
                    "criterion": criterion,
                    "in both orders": swapped.pairs,
                    **_share("same in both orders", swapped.same),
                    "first in both, %": 100 * swapped.first_in_both,
                    "second in both, %": 100 * swapped.second_in_both,
                    **_share("first wins", first_rate(own, criterion)),
                    **_share("longer wins", longer_rate(own, criterion)),
                }
            )
    return pd.DataFrame(rows)


def _among(people: Sequence[Judgement]) -> pd.DataFrame:
    rows: list[dict[str, object]] = []
    for criterion in CRITERIA:
        for part in _parts(people):
            found = reliability(_part(people, part), criterion)
            if found.units:
                rows.append(
                    {
                        "criterion": criterion,
                        "part": part,
                        "annotators": found.annotators,
                        "units": found.units,
                        **_share("same", found.raw),
                        **_number("alpha", found.alpha),
                    }
                )
    return pd.DataFrame(rows)


def _summary(compared: pd.DataFrame, among: pd.DataFrame) -> list[str]:
    told = [
        f"{row['judge']} agrees with people on {row['raw, %']:.1f} % of {row['units']:,} battles "
        f"that both decide; {_coefficient(row, 'kappa', 'both always say the same')}."
        for row in compared.to_dict("records")
        if (row["criterion"], row["part"], row["verdicts"]) == ("overall", EVERYTHING, "decisive")
    ]
    told += [
        f"{row['annotators']} people give the same overall verdict in {row['same, %']:.1f} % of "
        f"pairs, on {row['units']:,} battles; "
        f"{_coefficient(row, 'alpha', 'all verdicts are the same')}."
        for row in among.to_dict("records")
        if (row["criterion"], row["part"]) == ("overall", EVERYTHING)
    ]
    return told


def _coefficient(row: Mapping[Hashable, float], name: str, reason: str) -> str:
    if math.isnan(row[name]):
        return f"{name} is not defined: {reason}"
    low, high = row[f"{name} from"], row[f"{name} to"]
    interval = "" if math.isnan(low) else f" (95 % interval {low:.3f} to {high:.3f})"
    return f"{name} {row[name]:.3f}{interval}"


def _warnings(sides: Sides, compared: pd.DataFrame) -> list[str]:
    met = set(compared["judge"]) if len(compared) else set()
    told = [
        f"{name} and people have judged no answers in common."
        for name in sides.judges
        if name not in met
    ]
    heard = set(map(unit, sides.people))
    by_people = {key[:3] for key in heard}
    for name, own in sides.judges.items():
        units = {unit(j) for j in own if j.battle.probe is None and not by_rule(j)}
        if elsewhere := sum(key[:3] in by_people and key not in heard for key in units):
            told.append(
                f"{name}: {elsewhere:,} battles are on other recordings than people heard, as "
                "answers were made anew, and are not compared. Let people or the judge hear the "
                "present ones."
            )
        battles = [j for j in own if j.battle.probe is None]
        asked = [judgement for judgement in battles if not by_rule(judgement)]
        if rest := len(battles) - len(asked):
            told.append(f"{name}: {rest:,} battles were decided by rule, and are left out.")
        if unreadable := sum(not judgement.winners for judgement in asked):
            told.append(
                f"{name}: {unreadable:,} of {len(asked):,} verdicts could not be read, and are "
                "left out."
            )
    return told
