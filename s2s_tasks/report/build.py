"""From lm-eval's folders to a document."""

from __future__ import annotations

from collections.abc import Sequence

from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.answers import Run
from s2s_tasks.report.document import Document, Section
from s2s_tasks.report.findings import (
    loss,
    lost,
    margins,
    methods,
    models,
    published,
    recognition,
    training,
    where,
)
from s2s_tasks.report.pairing import Pair, pair_up

DETAILED = 3
"""Models whose losses are looked into, where the user names none: those that hear best, one of
each training run."""
SENTENCES = 8
"""Gaps in the summary."""


def build(
    runs: Sequence[Run],
    told: Sequence[str],
    *,
    baseline: str | None = None,
    detail: Sequence[str] = (),
    force: bool = False,
) -> Document:
    """Return the report on some runs.

    Args:
        runs: of any number of models, modes and checkpoints.
        told: what a reader must be told about the reading of the runs.
        baseline: see `pair_up`.
        detail: models to look into; by default the `DETAILED` that hear best.
        force: compare what was asked differently.

    Raises:
        S2STasksError: when something cannot be compared, or a model is not there.
    """
    pairs, notes = pair_up(runs, baseline, force=force)
    chosen = _detailed(pairs, detail)
    compared, told_models = models.section(pairs, force=force)
    trained, told_training = training.section(pairs, force=force)
    gaps = loss.losses(pairs)
    sections: list[Section | None] = []
    if pairs:
        sections += [loss.section(gaps), trained, compared]
        sections += [where.section(chosen), lost.section(chosen)]
        sections += [recognition.section(pairs), margins.section(chosen)]
    sections += [published.section(), methods.section(runs)]
    names = list(dict.fromkeys(pair.model for pair in pairs))
    verdicts = list(trained.text if trained else compared.text[1:] if compared else [])
    summary = loss.summary(gaps)
    if len(verdicts) + len(summary) > SENTENCES:
        summary = loss.summary(gaps, loss.best(gaps))
    summary = [*verdicts, *summary]
    notes += loss.few(pairs)
    if len(chosen) < len(pairs):
        notes.append(
            f"{len(names)} models were compared; where and which questions were lost is shown of "
            f"{', '.join(dict.fromkeys(pair.model for pair in chosen))} (--detail names others)."
        )
    if not pairs:
        notes.append("No model was asked both ways, so there is no gap to show.")
    warnings = dict.fromkeys([*told, *notes, *told_models, *told_training])
    return Document(
        "What is lost by listening" + (f": {names[0]}" if len(names) == 1 else ""),
        summary,
        list(warnings),
        [section for section in sections if section is not None],
    )


def _detailed(pairs: Sequence[Pair], detail: Sequence[str]) -> list[Pair]:
    names = {pair.model for pair in pairs}
    if missing := [name for name in detail if name not in names]:
        raise S2STasksError(
            f"--detail {missing[0]}: no such model; there are {', '.join(sorted(names))}"
        )
    if not detail:
        sets = [{pair.question_set for pair in pairs if pair.model == name} for name in names]
        shared = set.intersection(*sets) or set.union(*sets) if sets else set()

        def hearing(name: str) -> float:
            own = [p for p in pairs if p.model == name and p.question_set in shared]
            return -sum(float(p.measure("pair_acc")[1].mean()) for p in own) / max(1, len(own))

        ranked = sorted(names, key=lambda name: (hearing(name), name))
        # Checkpoints of one training run lose alike: one of them is looked into.
        of = {pair.model: pair.hearing.training or pair.model for pair in pairs}
        first = {of[name]: name for name in reversed(ranked)}
        detail = sorted(first.values(), key=ranked.index)[:DETAILED]
    return [pair for pair in pairs if pair.model in detail]
