"""Reading beside hearing: the same questions, asked of one model in both modes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.answers import MEASURES, Array, Question, Run


@dataclass(frozen=True)
class Pair:
    """A model's answers to a set, read and heard."""

    reading: Run
    hearing: Run
    ids: tuple[str, ...]
    """The questions that both answered, in one order."""

    @property
    def model(self) -> str:
        """The model that heard."""
        return self.hearing.model

    @property
    def question_set(self) -> str:
        """The set of questions."""
        return self.hearing.asked.question_set

    @property
    def matched(self) -> bool:
        """Whether the words around the context were the same in both modes."""
        read, heard = self.reading.asked, self.hearing.asked
        return (read.wording, read.delimiter) == (heard.wording, heard.delimiter)

    @property
    def per_token(self) -> bool:
        """Whether both sides can be judged by the loss per token; else summed log-likelihoods."""
        return self.reading.per_token and self.hearing.per_token

    @property
    def questions(self) -> list[Question]:
        """The questions, in the order of `ids`."""
        return [self.hearing.questions[id_] for id_ in self.ids]

    @property
    def clusters(self) -> list[str]:
        """What each question is resampled with."""
        return [question.cluster for question in self.questions]

    def table(self) -> pd.DataFrame:
        """Return the measures of both, `…_t2t` and `…_s2t`, one row a question."""
        read, heard = (run.table.loc[list(self.ids)] for run in (self.reading, self.hearing))
        return read.add_suffix("_t2t").join(heard.add_suffix("_s2t"))

    def measure(self, name: str) -> tuple[Array, Array]:
        """Return a measure read and heard: [questions] each.

        Args:
            name: one of `MEASURES` without `_sum`, which is added where losses per token are not
                known on both sides.
        """
        column = name if self.per_token or f"{name}_sum" not in MEASURES else f"{name}_sum"
        read, heard = (
            np.asarray(run.table.loc[list(self.ids), column], dtype=np.float64)
            for run in (self.reading, self.hearing)
        )
        return read, heard


def pair_up(
    runs: Sequence[Run], baseline: str | None = None, *, force: bool = False
) -> tuple[list[Pair], list[str]]:
    """Pair each spoken run with the written one that is most like it.

    A pair with the same words around the context is preferred to the published comparison, where
    the written prompt has none.

    Args:
        runs: of any number of models.
        baseline: the model whose written runs stand in for models without their own.
        force: pair runs whose prompts, data or versions forbid it.

    Returns:
        The pairs, and what a reader must be told about the pairing.

    Raises:
        S2STasksError: when a spoken run has a written one that it must not be compared with, or
            there is no model called `baseline`.
    """
    models = sorted({run.model for run in runs})
    if baseline is not None and baseline not in models:
        raise S2STasksError(f"no model is called {baseline!r}; there are {', '.join(models)}")
    pairs, notes = [], []
    heard = _best(run for run in runs if run.asked.mode == "s2t")
    for hearing in sorted(heard, key=lambda run: (run.training or "", run.step or 0)):
        candidates = [
            run
            for model in dict.fromkeys((hearing.model, baseline))
            for run in runs
            if run.model == model
            and run.asked.mode == "t2t"
            and run.asked.question_set == hearing.asked.question_set
        ]
        if not candidates:
            notes.append(
                f"{hearing.model} {hearing.asked.question_set}: heard but never read; run its _gap "
                "or _t2t task, or name a model that read it (--baseline)."
            )
            continue
        pair, told = _pair(hearing, candidates, force=force)
        pairs.append(pair)
        notes += told
    return pairs, notes


def _best(runs: Iterable[Run]) -> list[Run]:
    """Keep one spoken run a model and set: that with most questions, of these the newest."""
    best: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = (run.model, run.asked.question_set)
        if key not in best or len(run.table) >= len(best[key].table):
            best[key] = run
    return list(best.values())


def _pair(hearing: Run, candidates: Sequence[Run], *, force: bool) -> tuple[Pair, list[str]]:
    name = f"{hearing.model} {hearing.asked.question_set}"
    options = [(forbidding(candidate, hearing), candidate) for candidate in candidates]
    # The shortest list of differences; then own words around the text, then most questions.
    faults, reading = min(
        options,
        key=lambda option: (
            len(option[0]),
            option[1].model != hearing.model,
            option[1].asked.wording != hearing.asked.wording,
            -len(option[1].table),
        ),
    )
    if faults and not force:
        raise S2STasksError(
            f"{name}: reading and hearing cannot be compared: {'; '.join(faults)}. Run both again "
            "alike, or compare them all the same with --force"
        )
    shared = [id_ for id_ in hearing.table.index if id_ in reading.table.index]
    if not shared:
        raise S2STasksError(f"{name}: reading and hearing have no question in common")
    notes = [f"{name}: compared although they differ in {'; '.join(faults)}."] if faults else []
    left_out = len(hearing.table.index.union(reading.table.index)) - len(shared)
    if left_out:
        notes.append(
            f"{name}: {left_out:,} questions were asked in one mode only; the comparison rests on "
            f"the {len(shared):,} in common."
        )
    return Pair(reading, hearing, tuple(shared)), notes


def forbidding(reading: Run, hearing: Run) -> list[str]:
    """Name what forbids comparing the two modes; the published prompts may differ in wording."""
    faults = reading.asked.differences(hearing.asked)
    bare = reading.asked.wording == "{}"
    return [fault for fault in faults if not (bare and fault.startswith("prompt:"))]
