"""What a sweep found, in one table, and in the files that the published scripts write."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pandas as pd

from s2s_tasks import stats
from s2s_tasks.sweep.run import Outcome

MAIN_METRICS = (("gap", "acc_t2t", "acc_s2t"), ("pair_acc",), ("upstream_acc",), ("acc",))
"""What a table shows of a task: the first of these that it has, else its first metric."""
PUBLISHED = (
    ("upstream_acc", "upstream_posloss", "upstream_negloss"),
    ("pair_acc", "nll_pos", "nll_neg"),
)
MODES = ("t2t", "s2t")
SUMMARY = "results_summary.txt"

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """What the published scripts report of a checkpoint, one question set and one mode."""

    step: int
    accuracy: float
    """Share of pairs, 0 to 1."""
    true_loss: float
    """Mean loss of true endings, in nats per token."""
    false_loss: float

    def __str__(self) -> str:
        return f"{self.step},{self.accuracy:.2%},{self.true_loss:.4f},{self.false_loss:.4f}"


def tables(outcomes: Sequence[Outcome]) -> str:
    """Write a table a task or group: a line a checkpoint, its main metrics in %."""
    found = [_metrics(outcome.results) if outcome.results else {} for outcome in outcomes]
    shown = {task: _main(values) for tasks in found for task, values in tasks.items()}
    return "\n\n".join(
        f"{task}\n{_table(outcomes, [tasks.get(task, {}) for tasks in found], names)}"
        for task, names in shown.items()
    )


def _table(outcomes: Sequence[Outcome], found: Sequence[Metrics], names: Sequence[str]) -> str:
    columns: dict[str, Sequence[object]] = {
        "checkpoint": [outcome.checkpoint.name for outcome in outcomes],
        "step": [outcome.checkpoint.step for outcome in outcomes],
    }
    for name in names:
        columns[name] = [100 * values.get(name, math.nan) for values in found]
    text: str = pd.DataFrame(columns).to_string(
        index=False, na_rep="–", float_format="{:.1f}".format
    )
    return text


def published(outcomes: Sequence[Outcome]) -> dict[str, list[Line]]:
    """Return what the published scripts write into `results_summary.txt`, by set and mode.

    The keys are the tasks' names; of a task that asks in both modes, its name and `_t2t`, `_s2t`.
    The numbers of `…_upstream` tasks are `upstream_acc`, `upstream_posloss` and
    `upstream_negloss`, which count as the scripts do (ties are wrong in stories and right in
    sCMMLU). Those of other tasks are `pair_acc`, in which a tie counts one half, `nll_pos` and
    `nll_neg`, or the same arithmetic over the logged losses where a task asks in both modes. The
    scripts average the true ending's loss in sCMMLU over pairs; each question has three, so the
    mean over questions is the same.
    """
    lines: dict[str, list[Line]] = {}
    for outcome in outcomes:
        if outcome.results is None:
            continue
        for task, values in _metrics(outcome.results).items():
            names = next((names for names in PUBLISHED if values.keys() >= set(names)), None)
            if names:
                line = Line(outcome.checkpoint.step, *(values[name] for name in names))
                lines.setdefault(task, []).append(line)
            elif "gap" in values:
                for mode, line in _by_mode(outcome, task).items():
                    lines.setdefault(f"{task}_{mode}", []).append(line)
    return lines


def write_published(folder: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """Write `<folder>/<set and mode>/results_summary.txt` as the published scripts do.

    A line a checkpoint, sorted by step: step, accuracy, mean loss of true endings, of false ones;
    see `published` for the numbers.
    """
    written = []
    for name, lines in published(outcomes).items():
        path = folder / name / SUMMARY
        path.parent.mkdir(parents=True, exist_ok=True)
        ordered = sorted(lines, key=lambda line: line.step)
        path.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
        written.append(path)
    return written


def _metrics(results: Path) -> dict[str, dict[str, float]]:
    """Return the numbers of each task and group, without lm-eval's names of filters."""
    content = json.loads(results.read_text(encoding="utf-8"))
    return {
        task: {
            name.partition(",")[0]: value
            for name, value in values.items()
            if "," in name and "_stderr," not in name and isinstance(value, int | float)
        }
        for task, values in (content["results"] | content.get("groups", {})).items()
    }


def _main(values: Metrics) -> Sequence[str]:
    known = next((names for names in MAIN_METRICS if values.keys() >= set(names)), None)
    return known or list(values)[:1]


def _by_mode(outcome: Outcome, task: str) -> dict[str, Line]:
    """Return both modes of a task that asks in both, from the losses in its log of samples."""
    assert outcome.results is not None
    date = outcome.results.stem.removeprefix("results_")
    path = outcome.results.with_name(f"samples_{task}_{date}.jsonl")
    if not path.is_file():  # a group
        return {}
    with path.open(encoding="utf-8") as file:
        docs = [json.loads(line)["doc"] for line in file]
    lines = {}
    for mode in MODES:
        asked = [(doc[f"ending_nll_{mode}"], doc["gold"]) for doc in docs]
        lines[mode] = Line(
            outcome.checkpoint.step,
            fmean(stats.pair_accuracy(losses, gold) for losses, gold in asked),
            fmean(losses[gold] for losses, gold in asked),
            fmean(stats.mean_false(losses, gold) for losses, gold in asked),
        )
    return lines
