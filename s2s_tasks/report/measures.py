"""One question's scores in one mode, and what is measured of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from s2s_tasks import stats
from s2s_tasks.report.answers import Mode, Question


@dataclass(frozen=True)
class Row:
    """One question's scores in one mode."""

    question: Question
    sums: Sequence[float]
    losses: Sequence[float] | None
    tokens: Sequence[int] | None
    transcripts: Sequence[Sequence[str]] | None

    def measures(self) -> list[Any]:
        """Return a row of `Run.table`."""
        gold = self.question.gold
        costs = [-total for total in self.sums]
        row: list[Any] = [math.nan] * 5
        if self.losses:
            false_loss = stats.mean_false(self.losses, gold)
            row = [
                stats.pair_accuracy(self.losses, gold),
                stats.choice_accuracy(self.losses, gold),
                self.losses[gold],
                false_loss,
                false_loss - self.losses[gold],
            ]
        return [
            *row,
            stats.pair_accuracy(costs, gold),
            stats.choice_accuracy(costs, gold),
            stats.mean_false(costs, gold) - costs[gold],
            float(self.tokens[gold]) if self.tokens else math.nan,
            " ".join(self.transcripts[gold]) if self.transcripts else "",
        ]


def read_row(question: Question, sample: Mapping[str, Any], number: int, mode: Mode | None) -> Row:
    """Return one mode's scores; `mode` is given where the sample has both.

    Raises:
        ValueError: when there are not as many as endings, or they are not finite numbers.
    """
    count = len(question.endings)
    suffix = f"_{mode}" if mode else ""
    answers = sample["filtered_resps"][number * count : (number + 1) * count]
    sums = [float(logprob) for logprob, _ in answers]
    losses, tokens, transcripts = (
        sample["doc"].get(f"{name}{suffix}")
        for name in ("ending_nll", "ending_tokens", "transcripts")
    )
    for values in (sums, losses):
        if values is not None and (len(values) != count or not np.isfinite(values).all()):
            raise ValueError(f"{values} are not the scores of {count} endings")
    return Row(question, sums, losses, tokens, transcripts)
