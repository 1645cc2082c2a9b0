"""One model's answers to one question set, asked in one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from s2s_tasks.audio import Audio

Mode = Literal["t2t", "s2t"]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """What was asked, whatever the model."""

    id: str
    subject: str | None
    cluster: str
    """Questions of one cluster were written against each other, and are resampled together."""
    context: str
    endings: tuple[str, ...]
    gold: int
    audio: Audio | None
    """The spoken context."""

    @property
    def content(self) -> tuple[object, ...]:
        """What is asked, wherever the recording lies."""
        return (self.context, self.endings, self.gold, self.audio and self.audio.sha256)


@dataclass(frozen=True)
class Asked:
    """How a set was asked. Answers can be compared where all of this is equal, but the mode."""

    question_set: str
    """`sstorycloze`, `mini scmmlu` …"""
    mode: Mode
    wording: str
    """The prompt with `{}` in place of the context."""
    delimiter: str
    """What stands between context and ending."""
    shots: int
    chat: bool
    """Whether the model's chat template was around it."""
    system: str
    """The system instruction, or nothing."""
    version: str
    """Of the task."""
    data: str | None
    """Hash of the questions; None where an older run does not tell."""
    plugin: str | None
    """Version of this package; None where an older run does not tell."""

    def differences(self, other: Asked) -> list[str]:
        """Name what forbids a comparison, in words; what one side does not know forbids none."""
        pairs = {
            "prompt": (self.wording, other.wording),
            "delimiter": (self.delimiter, other.delimiter),
            "few-shot examples": (self.shots, other.shots),
            "chat template": (self.chat, other.chat),
            "system instruction": (self.system, other.system),
            "task version": (self.version, other.version),
            "data": (self.data and self.data[:12], other.data and other.data[:12]),
            "plugin version": (self.plugin, other.plugin),
        }
        return [
            f"{name}: {one!r} and {two!r}"
            for name, (one, two) in pairs.items()
            if one != two and one is not None and two is not None
        ]


@dataclass(frozen=True)
class Run:
    """A model's answers to a set."""

    model: str
    """How it is called in the report."""
    training: str | None
    """The training run that it is a checkpoint of, where several of one were found."""
    step: int | None
    """Of that training run."""
    asked: Asked
    questions: Mapping[str, Question]
    """By id; may hold more than were asked."""
    table: pd.DataFrame
    """One row a question, by id: `MEASURES` and `transcript` (what a cascade heard)."""
    losses: Array
    """Mean negative log-likelihood per token, in nats: [questions, endings], padded with NaN; all
    NaN where they are not known."""
    sums: Array
    """Summed log-likelihoods, in nats, likewise."""
    source: Path
    """lm-eval's file of results."""

    def places(self, ids: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the rows of some questions: [questions]."""
        places: npt.NDArray[np.intp] = self.table.index.get_indexer(pd.Index(ids))
        return places

    @property
    def per_token(self) -> bool:
        """Whether losses per token are known: not of lm-eval's own models."""
        return bool(self.table["nll_pos"].notna().all())


MEASURES = (
    "pair_acc",
    "mc_acc",
    "nll_pos",
    "nll_neg",
    "margin",
    "pair_acc_sum",
    "mc_acc_sum",
    "margin_sum",
    "ending_tokens",
)
"""Columns of numbers: by the loss per token, and `…_sum` by summed log-likelihoods."""
