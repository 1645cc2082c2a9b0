"""lm-eval's output folders to runs."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError
from s2s_tasks.prompt import placeholder
from s2s_tasks.report.answers import MEASURES, Array, Asked, Mode, Question, Run
from s2s_tasks.report.measures import Row, read_row
from s2s_tasks.report.names import ModelName, name_models
from s2s_tasks.sweep.records import NAME, read_records, read_step

log = logging.getLogger(__name__)

CONTEXT = ("context", "{{context}}", "{{ context }}", placeholder(0))
"""What stands for a question's context in a task's `doc_to_text`."""


@dataclass(frozen=True)
class Output:
    """One task in one of lm-eval's files of results."""

    path: Path
    """`results_….json`."""
    results: Mapping[str, Any]
    task: str

    @property
    def config(self) -> Mapping[str, Any]:
        """The task's configuration."""
        config: Mapping[str, Any] = self.results["configs"][self.task]
        return config

    @property
    def count(self) -> int:
        """How many questions were asked."""
        counts = self.results.get("n-samples", {}).get(self.task, {})
        return int(counts.get("effective", 0))

    @property
    def samples(self) -> Path:
        """The task's file of samples."""
        moment = self.path.stem.removeprefix("results_")
        return self.path.with_name(f"samples_{self.task}_{moment}.jsonl")


def read_runs(folders: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Read every run of our tasks below some folders.

    Returns:
        The runs, and what a reader of the report must be told about the reading.

    Raises:
        S2STasksError: when a folder is missing or holds no run, or a file cannot be read.
    """
    notes: list[str] = []
    outputs = [output for folder in folders for output in _outputs(folder, notes)]
    if not outputs:
        raise S2STasksError(
            f"{', '.join(map(str, folders))}: no results of S2SBench tasks. Give folders that "
            "lm_eval wrote with --output_path DIR --log_samples."
        )
    names = name_models([(output.results, _swept_step(output.path)) for output in outputs])
    latest = _fullest(zip(outputs, names, strict=True), notes)
    questions: dict[str, dict[str, Question]] = {}
    runs: list[Run] = []
    for output, name in tqdm(latest, desc="Reading", unit="run", leave=False):
        runs += _runs(output, name, questions)
    return runs, notes


def _outputs(folder: Path, notes: list[str]) -> Iterator[Output]:
    """Yield our tasks' outputs; add to `notes` what is left out."""
    if not folder.is_dir():
        raise S2STasksError(f"{folder}: no such folder; give one that lm_eval wrote")
    for path in sorted(folder.rglob("results_*.json")):
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
            tasks = [task for task, config in results["configs"].items() if _is_ours(config)]
            results["config"]["model"], results["versions"], results["n-shot"]
        except (OSError, ValueError, LookupError, AttributeError, TypeError):
            notes.append(f"Left out, for it is not a file of lm-eval's results: {path}.")
            continue
        swept = _sweep_of(path)
        if tasks and swept and path not in {swept.parent / r for r in _valid_results(swept)}:
            notes.append(f"Left out, for the sweep has no such result any more: {path}.")
            continue
        yield from (Output(path, results, task) for task in tasks)


def _sweep_of(path: Path) -> Path | None:
    """Return the notes of the sweep that some results are from, if one made them."""
    notes = [folder / NAME for folder in (path.parent, path.parent.parent)]
    return next((note for note in notes if note.exists()), None)


def _valid_results(notes: Path) -> list[str]:
    return [record.results for record in read_records(notes.parent) if record.results]


def _swept_step(path: Path) -> int | None:
    """Return the step that a sweep noted beside its results, if one did."""
    return read_step(notes.parent) if (notes := _sweep_of(path)) else None


def _is_ours(config: Mapping[str, Any]) -> bool:
    """Tell whether a task asks a set of ours in our own way, not in the published scripts'."""
    kwargs = config.get("dataset_kwargs") or {}
    return (
        "set" in kwargs
        and config.get("doc_to_choice") == "endings"
        and not str(config["task"]).endswith("_upstream")
    )


def _fullest(
    outputs: Iterable[tuple[Output, ModelName]], notes: list[str]
) -> list[tuple[Output, ModelName]]:
    """Keep, of several runs of one task by one model, that of most questions, then the newest."""
    found: dict[tuple[str, str], list[tuple[Output, ModelName]]] = {}
    for output, name in outputs:
        found.setdefault((name.label, output.task), []).append((output, name))
    kept, repeated = [], []
    for (label, task), several in found.items():
        several.sort(key=lambda pair: (pair[0].count, pair[0].results.get("date", 0)))
        kept.append(several[-1])
        if len(several) > 1:
            counts = " and ".join(f"{output.count:,}" for output, _ in several)
            repeated.append(f"{label} {task} ({counts} questions)")
    if repeated:
        notes.append(
            "Run several times; of these the run of most questions counts, or the newest of "
            f"them: {', '.join(repeated)}."
        )
    return kept


def _runs(
    output: Output, name: ModelName, questions: dict[str, dict[str, Question]]
) -> Iterator[Run]:
    """Read one file of samples: one run, or two where a task asks in both modes."""
    if not output.samples.exists():
        raise S2STasksError(
            f"{output.samples}: missing beside {output.path.name}; run lm_eval with --log_samples"
        )
    both = any(key.startswith("gap,") for key in output.results["results"][output.task])
    modes: tuple[Mode, ...] = ("t2t", "s2t") if both else (_mode(output.config),)
    question_set = _set_name(output.config)
    known = questions.setdefault(question_set, {})
    rows: dict[Mode, dict[str, Row]] = {mode: {} for mode in modes}
    for sample in _samples(output.samples):
        try:
            question = _question(sample["doc"])
            for number, mode in enumerate(modes):
                rows[mode][question.id] = read_row(question, sample, number, mode if both else None)
        except (LookupError, TypeError, ValueError) as error:
            raise S2STasksError(
                f"{output.samples}: question {sample.get('doc', {}).get('id', '?')} cannot be read "
                f"({error!r}); run the task again"
            ) from error
        if known.setdefault(question.id, question).content != question.content:
            raise S2STasksError(
                f"{output.samples}: question {question.id} differs from that of another run; "
                "the runs used different data: report them apart"
            )
    for mode in modes:
        if not rows[mode]:
            raise S2STasksError(f"{output.samples}: holds no questions; run the task again")
        yield Run(
            model=name.label,
            training=name.training,
            step=name.step,
            asked=_asked(output, question_set, mode),
            questions=known,
            table=pd.DataFrame.from_dict(
                {id_: row.measures() for id_, row in rows[mode].items()},
                orient="index",
                columns=[*MEASURES, "transcript"],
            ),
            losses=_stack([row.losses or [math.nan] for row in rows[mode].values()]),
            sums=_stack([row.sums for row in rows[mode].values()]),
            source=output.path,
        )


def _samples(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise S2STasksError(
                    f"{path}: line {number} is not JSON ({error}); was the run killed while it "
                    "wrote? Run it again"
                ) from error


def _question(doc: Mapping[str, Any]) -> Question:
    heard = doc["context_audio"]
    return Question(
        id=doc["id"],
        subject=doc["subject"],
        cluster=doc["pair_id"] or doc["id"],
        context=doc["context"],
        endings=tuple(doc["endings"]),
        gold=doc["gold"],
        audio=Audio.from_json(heard[doc["gold"] if len(heard) > 1 else 0]) if heard else None,
    )


def _stack(rows: Sequence[Sequence[float]]) -> Array:
    width = max(map(len, rows))
    return np.array([[*row, *[math.nan] * (width - len(row))] for row in rows])


def _asked(output: Output, question_set: str, mode: Mode) -> Asked:
    config, results = output.config, output.results
    metadata = config.get("metadata") or {}
    alone = mode == "t2t" and (config.get("dataset_kwargs") or {}).get("text_alone")
    wording = "{}" if alone else str(config["doc_to_text"])
    for name in CONTEXT:
        wording = wording.replace(name, "{}") if name != "context" else wording
    return Asked(
        question_set=question_set,
        mode=mode,
        wording="{}" if wording == "context" else wording,
        delimiter=str(config.get("target_delimiter", " ")),
        shots=int(results["n-shot"].get(output.task) or 0),
        chat=bool(results.get("chat_template")),
        system=results.get("system_instruction") or "",
        version=str(results["versions"].get(output.task)),
        data=metadata.get("data_sha256"),
        plugin=metadata.get("s2s_tasks"),
    )


def _mode(config: Mapping[str, Any]) -> Mode:
    return "s2t" if config.get("doc_to_audio") else "t2t"


def _set_name(config: Mapping[str, Any]) -> str:
    kwargs = config["dataset_kwargs"]
    topic = " topic" if kwargs.get("topic_endings") else ""
    return f"{'mini ' if kwargs.get('mini') else ''}{kwargs['set']}{topic}"
