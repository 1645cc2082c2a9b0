"""lm-eval's own command, run for one checkpoint after the other: what knows how it takes them."""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval._cli.run import Run
from lm_eval.api.registry import get_model
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks._index import TaskIndex
from lm_eval.utils import simple_parse_args_string

from s2s_tasks.errors import S2STasksError
from s2s_tasks.sweep.checkpoints import Checkpoint

DEFAULT_MODEL = "speech-hf"
NO_SCORE = (
    *("output_path", "use_cache", "log_samples", "batch_size", "max_batch_size", "device"),
    *("cache_requests", "check_integrity", "write_out", "show_config", "verbosity", "func"),
    *("wandb_args", "wandb_config_args", "trackio_args", "hf_hub_log_args"),
)
"""Arguments of lm-eval that say where and how fast, not what comes out."""
NO_SCORE_OF_MODEL = ("audio_cache", "audio_cache_gb")


@dataclass(frozen=True)
class Call:
    """What is asked of every checkpoint."""

    arguments: argparse.Namespace
    """Of lm-eval's command."""
    checkpoint_argument: str
    """The model argument that takes the folder."""
    output: Path

    @property
    def keeps_audio(self) -> bool:
        """Whether the model may keep encodings of recordings, and is not told where."""
        given = self.arguments
        return given.model == DEFAULT_MODEL and "audio_cache" not in given.model_args

    def folder(self, checkpoint: Checkpoint) -> Path:
        """Return where the results of a checkpoint go."""
        return self.output / checkpoint.name

    def of(self, checkpoint: Checkpoint, audio_cache: Path | None) -> argparse.Namespace:
        """Return the arguments for one checkpoint, which lm-eval may change."""
        arguments = copy.deepcopy(self.arguments)
        arguments.model_args[self.checkpoint_argument] = str(checkpoint.path)
        if audio_cache:
            arguments.model_args["audio_cache"] = str(audio_cache)
        arguments.output_path = str(self.folder(checkpoint))
        arguments.log_samples = True
        if cache := getattr(arguments, "use_cache", None):
            # lm-eval looks answers up by the question alone, also those of what was written over.
            state = hashlib.sha256(repr(checkpoint.files()).encode()).hexdigest()[:8]
            arguments.use_cache = str(Path(cache) / f"{checkpoint.name}-{state}")
        return arguments

    def scores(self) -> dict[str, Any]:
        """Return the arguments that change scores, but for the checkpoint, as plain JSON."""
        given = {k: v for k, v in vars(self.arguments).items() if k not in NO_SCORE}
        model = {k: v for k, v in self.arguments.model_args.items() if k not in NO_SCORE_OF_MODEL}
        plain: dict[str, Any] = json.loads(json.dumps(given | {"model_args": model}, default=str))
        return plain


def command() -> argparse.ArgumentParser:
    """Return the parser of `lm-eval run`; what it parses has its function in `func`."""
    commands = argparse.ArgumentParser(prog="s2s-tasks").add_subparsers()
    Run.create(commands)
    parser: argparse.ArgumentParser = commands.choices["run"]
    return parser


def with_config(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return arguments with those of lm-eval's `--config` where the command has none, and a model.

    Raises:
        S2STasksError: when the file cannot be used.
    """
    given = {name: value for name, value in vars(arguments).items() if value or value == 0}
    if path := given.pop("config", None):
        try:
            given = EvaluatorConfig.load_yaml_config(path) | given
        except (OSError, ValueError, TypeError) as error:
            raise S2STasksError(f"--config {path}: {error}") from error
    model = given.get("model_args") or {}
    given["model_args"] = simple_parse_args_string(model) if isinstance(model, str) else model
    return argparse.Namespace(**({"model": DEFAULT_MODEL} | given))


@contextmanager
def tasks_indexed_once() -> Iterator[None]:
    """Let lm-eval scan folders of tasks once while the block runs: it takes seconds a time."""
    build, known = TaskIndex.build, {}

    def build_once(paths: Any, **options: Any) -> Any:
        key = (tuple(map(str, paths)), tuple(options.items()))
        if key not in known:
            known[key] = build(paths, **options)
        return known[key]

    TaskIndex.build = staticmethod(build_once)
    try:
        yield
    finally:
        TaskIndex.build = staticmethod(build)


def check(arguments: argparse.Namespace) -> dict[str, str | None]:
    """See that there are such a model and such tasks, before any weights are loaded.

    Returns:
        For each task what tells its questions apart from those of another copy of the data; None
        where the task does not say.

    Raises:
        S2STasksError: when lm-eval does not accept them.
    """
    try:
        config = EvaluatorConfig.from_cli(arguments)
        get_model(config.model)
        if not config.tasks:
            raise S2STasksError("--tasks: name at least one")
        tasks = config.process_tasks(config.metadata).load(config.tasks)["tasks"]
    except (ValueError, KeyError, TypeError) as error:
        raise S2STasksError(f"lm-eval: {error}") from error
    return {name: (task.config.metadata or {}).get("data_sha256") for name, task in tasks.items()}


def evaluate(arguments: argparse.Namespace, *, main: bool) -> Path | None:
    """Run lm-eval's command; the file of results that it wrote, None but in the main process.

    Raises:
        S2STasksError: when results or samples are not there afterwards: lm-eval itself
            only warns of a full disk.
        Exception: whatever stops lm-eval.
    """
    folder = Path(arguments.output_path)
    before = set(folder.rglob("results_*.json"))
    arguments.func(arguments)
    if not main:
        return None
    for path in set(folder.rglob("results_*.json")) - before:
        date = path.stem.removeprefix("results_")
        tasks = json.loads(path.read_text(encoding="utf-8"))["configs"]
        if all((path.parent / f"samples_{task}_{date}.jsonl").is_file() for task in tasks):
            return path
    raise S2STasksError(
        f"{folder}: lm-eval could not write its results there; see its warnings above, and whether "
        "the disk is full"
    )
