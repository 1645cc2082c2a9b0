"""The sweep: every checkpoint in turn, whatever becomes of the one before."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from s2s_tasks.errors import S2STasksError
from s2s_tasks.sweep import harness
from s2s_tasks.sweep.agreement import Agreement
from s2s_tasks.sweep.ahead import reading_ahead
from s2s_tasks.sweep.checkpoints import Checkpoint
from s2s_tasks.sweep.encodings import Encodings, state_of, used_between
from s2s_tasks.sweep.records import Record, find_answer, read_records, write_record

REFUSES_CACHE = "leave audio_cache out"
"""What the error of a model says whose encodings cannot be kept."""


@dataclass(frozen=True)
class Outcome:
    """What became of a checkpoint."""

    checkpoint: Checkpoint
    results: Path | None = None
    """lm-eval's file, known to the main process; None where the checkpoint failed."""
    error: str | None = None
    """Why it failed, known to all."""
    encodings: Encodings | None = None
    """Of this run; None where there was none, or no cache."""


class Sweep:
    """One call of lm-eval for many checkpoints.

    All processes go through it alike; only the main one speaks and writes.
    """

    def __init__(
        self, call: harness.Call, together: Agreement, audio_cache: Path | None = None
    ) -> None:
        """Prepare a sweep.

        Args:
            call: what is asked of every checkpoint.
            together: the processes.
            audio_cache: folder for encodings, given up when a model refuses it.
        """
        self._call = call
        self._together = together
        self._audio_cache = audio_cache

    def run(self, checkpoints: Sequence[Checkpoint]) -> list[Outcome]:
        """Run those that are not done, and go on when one fails.

        Returns:
            One outcome a checkpoint, in their order.

        Raises:
            S2STasksError: when lm-eval accepts no such call, or one process fails alone.
        """
        with harness.tasks_indexed_once():
            questions = harness.check(self._call.of(checkpoints[0], None))
            arguments = self._call.scores() | {"questions": questions}
            done = self._together.tell(self._done(checkpoints, arguments))
            if done:
                self._say(f"Done before and not run again: {', '.join(done)}")
            todo = [c for c in checkpoints if c.name not in done]
            outcomes = {c.name: Outcome(c, done.get(c.name)) for c in checkpoints}
            with tqdm(
                total=len(checkpoints),
                initial=len(done),
                desc="Checkpoints",
                unit="checkpoint",
                disable=not self._together.main,
            ) as bar:
                for index, checkpoint in enumerate(todo):
                    following = todo[index + 1 : index + 2]
                    bar.set_postfix_str(checkpoint.name)
                    with reading_ahead([path for c in following for path in c.weights()]):
                        outcomes[checkpoint.name] = self._run_one(checkpoint, arguments)
                    bar.update()
        self._together.part()
        return list(outcomes.values())

    def _done(
        self, checkpoints: Sequence[Checkpoint], arguments: dict[str, Any]
    ) -> dict[str, Path]:
        """Return the results of those that need not be run, by name; what the main process finds.

        Files may change meanwhile, or not be seen by all processes at once.
        """
        if not self._together.main:
            return {}
        found = {
            c.name: find_answer(read_records(folder), folder, arguments, c.files())
            for c in checkpoints
            for folder in [self._call.folder(c)]
        }
        return {name: results for name, results in found.items() if results}

    def _run_one(self, checkpoint: Checkpoint, arguments: dict[str, Any]) -> Outcome:
        folder, files = self._call.folder(checkpoint), checkpoint.files()
        self._say(f"{checkpoint.name} (step {checkpoint.step})")
        cache = self._cache_folder()
        before = state_of(cache)
        results, own = self._attempt(checkpoint)
        if own and REFUSES_CACHE in own and self._audio_cache:
            self._audio_cache = None
            self._say(f"Without an audio cache from here on: {own}")
            results, own = self._attempt(checkpoint)
        error = self._together.failure(own)
        if not self._together.main:
            return Outcome(checkpoint, error=error)
        kept = self._cache_folder() and not error
        encodings = used_between(before, state_of(cache)) if kept else None
        self._say(f"{checkpoint.name}: failed: {error}" if error else f"{checkpoint.name}: done")
        if encodings:
            self._say(f"{checkpoint.name}: {encodings}")
        below = str(results.relative_to(folder)) if results and not error else None
        record = Record(arguments, files, below, error)
        write_record(folder, checkpoint.path, checkpoint.step, record)
        return Outcome(checkpoint, None if error else results, error, encodings)

    def _attempt(self, checkpoint: Checkpoint) -> tuple[Path | None, str | None]:
        """Run lm-eval; its results, and why there are none."""
        results, reason = None, None
        try:
            arguments = self._call.of(checkpoint, self._audio_cache)
            results = harness.evaluate(arguments, main=self._together.main)
        except S2STasksError as error:
            reason = str(error)
        except Exception as error:
            traceback.print_exception(error)
            reason = f"{type(error).__name__}: {error}"
        # The next model is to find the memory free: models are full of cycles, and an error holds
        # all that was alive where it was raised until here.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return results, reason

    def _cache_folder(self) -> Path | None:
        if self._audio_cache:
            return self._audio_cache
        given = self._call.arguments.model_args.get("audio_cache")
        return Path(given) if given else None

    def _say(self, line: str) -> None:
        if self._together.main:
            tqdm.write(line)
