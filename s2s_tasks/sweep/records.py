"""`sweep.json`: what was asked of a checkpoint, and what came of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from s2s_tasks.errors import S2STasksError
from s2s_tasks.sweep.checkpoints import Files

NAME = "sweep.json"


@dataclass(frozen=True)
class Record:
    """One lm-eval run on a checkpoint."""

    arguments: dict[str, Any]
    """Whatever changes scores: tasks and their data, model, few-shot, limit …; plain JSON."""
    files: Files
    """The checkpoint's, as they were before the run."""
    results: str | None = None
    """lm-eval's file of results, below the checkpoint's folder; None where there is none."""
    error: str | None = None
    """Why it failed; None where it did not."""

    def answers(self, folder: Path, arguments: dict[str, Any], files: Files) -> bool:
        """Tell whether these are the results of such a run on such files, and still there."""
        return (
            self.results is not None
            and (folder / self.results).is_file()
            and (self.arguments, self.files) == (arguments, files)
        )


def read_records(folder: Path) -> list[Record]:
    """Return the runs on a checkpoint, of which the folder holds the results.

    Raises:
        S2STasksError: when the file is not a sweep's.
    """
    path = folder / NAME
    try:
        return [Record(**run) for run in json.loads(path.read_text(encoding="utf-8"))["runs"]]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError) as error:
        raise S2STasksError(
            f"{path} is not a sweep's ({error}); delete it, and the checkpoint is run again"
        ) from error


def read_step(folder: Path) -> int:
    """Return the training step of the checkpoint whose results a folder holds.

    Raises:
        S2STasksError: when the file does not say.
    """
    path = folder / NAME
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["step"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise S2STasksError(
            f"{path} does not say which step it is of ({error!r}); start the sweep again"
        ) from error


def write_record(folder: Path, checkpoint: Path, step: int, record: Record) -> None:
    """Add a run; it takes the place of an earlier one with the same arguments.

    The file holds `checkpoint` (folder), `step`, and `runs`: a list of `Record`.
    """
    others = [run for run in read_records(folder) if run.arguments != record.arguments]
    content = {
        "checkpoint": str(checkpoint),
        "step": step,
        "runs": [asdict(run) for run in (*others, record)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{NAME}.part"
    part.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    os.replace(part, folder / NAME)


def find_answer(
    runs: Sequence[Record], folder: Path, arguments: dict[str, Any], files: Files
) -> Path | None:
    """Return lm-eval's results of such a run, if there are any."""
    found = next((run for run in runs if run.answers(folder, arguments, files)), None)
    return folder / found.results if found and found.results else None
