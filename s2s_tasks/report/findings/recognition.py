"""What recognition errors explain of a cascade's loss."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import jiwer
import numpy as np
import pandas as pd

from s2s_tasks.report.answers import Array
from s2s_tasks.report.document import Section, Table
from s2s_tasks.report.pairing import Pair


def section(pairs: Sequence[Pair]) -> Section | None:
    """Show the share of the loss at questions with recognition errors; None without a cascade."""
    rows = [_row(pair) for pair in pairs if _heard(pair).any()]
    if not rows:
        return None
    formats = {"questions": "{:,.0f}"} | dict.fromkeys(
        (
            *("characters wrong, %", "without error, %", "gap"),
            *("gap without error", "gap with errors", "explained, %"),
        ),
        "{:.1f}",
    )
    return Section(
        "recognition",
        "What recognition errors explain",
        [
            "A cascade reads what its recognizer heard. Explained: the part of the lost points "
            "that lies at questions whose transcript has an error, punctuation and letter case "
            "aside. A question may be lost for another reason than its error, so this is an upper "
            "bound; what is lost without any error is due to other things, the words around the "
            "recording among them.",
        ],
        [
            Table(
                "recognition-errors",
                "Loss with and without recognition errors",
                pd.DataFrame(rows),
                formats,
            )
        ],
    )


def error_rates(references: Sequence[str], transcripts: Sequence[str]) -> Array:
    """Return the character error rate of each transcript: [questions].

    Only letters and digits count, without case; jiwer aligns them.
    """
    rates = []
    for reference, transcript in zip(references, transcripts, strict=True):
        expected, found = _letters(reference), _letters(transcript)
        rates.append(jiwer.cer(expected, found) if expected else float(bool(found)))
    return np.array(rates)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def _heard(pair: Pair) -> pd.Series:
    transcripts: pd.Series = pair.hearing.table.loc[list(pair.ids), "transcript"] != ""
    return transcripts


def _row(pair: Pair) -> dict[str, object]:
    transcripts = list(pair.hearing.table.loc[list(pair.ids), "transcript"])
    rates = error_rates([question.context for question in pair.questions], transcripts)
    reading, hearing = pair.measure("pair_acc")
    lost, wrong = reading - hearing, rates > 0
    total = lost.sum()
    return {
        "model": pair.model,
        "set": pair.question_set,
        "questions": len(lost),
        "characters wrong, %": 100 * float(rates.mean()),
        "without error, %": 100 * float(np.mean(~wrong)),
        "gap": 100 * float(lost.mean()),
        "gap without error": 100 * float(lost[~wrong].mean()) if (~wrong).any() else np.nan,
        "gap with errors": 100 * float(lost[wrong].mean()) if wrong.any() else np.nan,
        "explained, %": 100 * float(lost[wrong].sum() / total) if total > 0 else np.nan,
    }
