"""What was run, and how the numbers were made."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from s2s_tasks import __version__
from s2s_tasks.inference import mean_interval
from s2s_tasks.report.answers import Run
from s2s_tasks.report.document import Section, Table


def section(runs: Sequence[Run]) -> Section:
    """List every run, with its own accuracy."""
    rows = []
    for run in runs:
        column = "pair_acc" if run.per_token else "pair_acc_sum"
        clusters = [run.questions[str(id_)].cluster for id_ in run.table.index]
        accuracy = mean_interval(run.table[column].to_numpy(float), clusters)
        rows.append(
            {
                "model": run.model,
                "set": run.asked.question_set,
                "mode": {"t2t": "read", "s2t": "heard"}[run.asked.mode],
                "prompt": run.asked.wording,
                "examples": run.asked.shots,
                "chat": "yes" if run.asked.chat else "no",
                "judged by": "loss per token" if run.per_token else "summed log-likelihood",
                "questions": len(run.table),
                "accuracy, %": 100 * accuracy.estimate,
                "from": 100 * accuracy.low,
                "to": 100 * accuracy.high,
                "task": run.asked.version,
                "plugin": run.asked.plugin or "not noted",
                "data": (run.asked.data or "not noted")[:12],
                "file": run.source.name,
            }
        )
    formats = {"questions": "{:,.0f}", "examples": "{:.0f}"}
    formats |= dict.fromkeys(("accuracy, %", "from", "to"), "{:.1f}")
    return Section(
        "methods",
        "How it was measured",
        [
            "A question is a context, one true ending and one or three false ones. An ending's "
            "loss is its mean negative log-likelihood per token after the context (S2SBench, arXiv "
            "2505.14438). Pairwise accuracy: the share of false endings whose loss is above that "
            "of the true one, a tie counting one half; guessing gives 50 %.",
            "Where a model of lm-eval's own read, only summed log-likelihoods are known, and both "
            "modes are judged by these.",
            "Intervals of 95 %: Wilson's for shares of right questions, else a bootstrap (BCa) of "
            "questions, those written against each other drawn together. Tests of two-choice "
            "questions: McNemar's, exact; all others flip the signs of paired differences at "
            "random. Families of tests are corrected by Holm's method.",
            f"Written by s2s-tasks {__version__}.",
        ],
        [Table("runs", "The runs", pd.DataFrame(rows), formats, folded=True)],
    )
