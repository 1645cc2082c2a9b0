"""What recognition errors explain of a cascade's loss."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import jiwer
import numpy as np
import numpy.typing as npt
import opencc
import pandas as pd

from s2s_tasks.inference import Interval, paired_gap
from s2s_tasks.report.answers import Array
from s2s_tasks.report.document import Section, Table
from s2s_tasks.report.findings.where import FEW
from s2s_tasks.report.pairing import Pair

LEAST = 0.1
"""Share of questions with, and without, an error below which no share of the gap is told."""


def section(pairs: Sequence[Pair]) -> Section | None:
    """Show the share of the loss at questions with recognition errors; None without a cascade."""
    rows = [_row(pair) for pair in pairs if _heard(pair).any()]
    if not rows:
        return None
    columns = (
        *("characters wrong, %", "without error, %", "gap without error", "from", "to"),
        *("gap with errors", "from ", "to ", "share of the gap, %"),
    )
    formats = {"questions": "{:,.0f}"} | dict.fromkeys(columns, "{:.1f}")
    return Section(
        "recognition",
        "What recognition errors explain",
        [
            "A cascade reads what its recognizer heard. What it loses at questions whose "
            "transcript is right has other causes, the words around the recording among them. "
            "Letter case, punctuation and traditional or simplified characters do not count as "
            "errors; numbers in digits do.",
            "The share of the gap is the part of the lost points that lies at questions with an "
            "error. It can exceed 100 % where others are gained without, and is left out where "
            "the gap itself is within chance or nearly all transcripts have errors.",
        ],
        [
            Table(
                "recognition-errors",
                "Loss with and without recognition errors",
                pd.DataFrame(rows),
                formats,
                "From … to: 95 % intervals of the gap, in points of pairwise accuracy.",
            )
        ],
    )


def error_rates(references: Sequence[str], transcripts: Sequence[str]) -> Array:
    """Return the character error rate of each transcript: [questions].

    Only letters and digits count, without case and in simplified characters (OpenCC); jiwer
    aligns them.
    """
    rates = []
    for reference, transcript in zip(references, transcripts, strict=True):
        expected, found = _letters(reference), _letters(transcript)
        rates.append(jiwer.cer(expected, found) if expected else float(bool(found)))
    return np.array(rates)


@cache
def _simplify() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


def _letters(text: str) -> str:
    plain = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())
    simplified: str = _simplify().convert(plain)
    return simplified


def _heard(pair: Pair) -> pd.Series:
    transcripts: pd.Series = pair.hearing.table.loc[list(pair.ids), "transcript"] != ""
    return transcripts


def _row(pair: Pair) -> dict[str, object]:
    transcripts = list(pair.hearing.table.loc[list(pair.ids), "transcript"])
    rates = error_rates([question.context for question in pair.questions], transcripts)
    reading, hearing = pair.measure("pair_acc")
    wrong = rates > 0
    gap = paired_gap(reading, hearing, pair.clusters).difference
    without, with_errors = (_gap(pair, kept) for kept in (~wrong, wrong))
    told = gap.low > 0 and min(wrong.mean(), (~wrong).mean()) >= LEAST
    return {
        "model": pair.model,
        "set": pair.question_set,
        "questions": len(rates),
        "characters wrong, %": 100 * float(rates.mean()),
        "without error, %": 100 * float(np.mean(~wrong)),
        "gap without error": 100 * without.estimate,
        "from": 100 * without.low,
        "to": 100 * without.high,
        "gap with errors": 100 * with_errors.estimate,
        "from ": 100 * with_errors.low,
        "to ": 100 * with_errors.high,
        "share of the gap, %": 100
        * float((reading - hearing)[wrong].sum())
        / float((reading - hearing).sum())
        if told
        else np.nan,
    }


def _gap(pair: Pair, kept: npt.NDArray[np.bool_]) -> Interval:
    """Return the gap of some questions, without an interval where these are too few."""
    if not kept.any():
        return Interval(np.nan, np.nan, np.nan)
    reading, hearing = (values[kept] for values in pair.measure("pair_acc"))
    clusters = [name for name, inside in zip(pair.clusters, kept, strict=True) if inside]
    gap = paired_gap(reading, hearing, clusters).difference
    return gap if len(set(clusters)) >= FEW else Interval(gap.estimate, np.nan, np.nan)
