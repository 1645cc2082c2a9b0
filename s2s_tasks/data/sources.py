"""Rows of a set, from wherever it lies: a folder, the hub, or this package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from s2s_tasks.data.parquet import read_rows
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published.index import AudioIndex
from s2s_tasks.data.published.reader import locate, read_parts
from s2s_tasks.data.rows import Row
from s2s_tasks.data.sets import set_spec
from s2s_tasks.data.topic import topic_rows

__all__ = ["load_rows", "mini_rows", "topic_rows"]

HUB_DATASET = "undobug/S2SBench"
DATA_VARIABLE = "S2SBENCH_DATA"


def load_rows(set_name: str, data_dir: str | Path | None = None) -> list[Row]:
    """Return the rows of one set.

    Args:
        set_name: A name in `sets.SETS`.
        data_dir: A folder written by `s2s-tasks data prepare`, or one that holds the published
            files; None stands for the folder that S2SBENCH_DATA names, else for the hub.

    Raises:
        DataError: when the set cannot be found, or anything in it is wrong; all problems at once.
    """
    set_spec(set_name)
    folder = data_folder(data_dir)
    canonical = folder / f"{set_name}.parquet"
    if canonical.exists():
        return read_rows(canonical)
    reading = read_parts(locate(folder, [set_name])[set_name], AudioIndex(folder))
    table = reading.parts.table[0]
    if reading.problems:
        raise DataError(
            f"{set_name}: {len(reading.problems)} problems in {table}; nothing was run.",
            reading.problems,
        )
    if not reading.rows:
        raise DataError(f"{set_name}: {table} holds no questions")
    return reading.rows


def mini_rows(set_name: str) -> list[Row]:
    """Return the rows of one set of the embedded mini set.

    Raises:
        DataError: when there is no such set, or it was not installed.
    """
    set_spec(set_name)
    path = Path(str(files("s2s_tasks.data") / "mini" / f"{set_name}.parquet"))
    if not path.exists():
        raise DataError(
            f"{path}: the mini set is missing. What to do: install s2s-tasks again; in a checkout, "
            "build it with mini_set/build.py."
        )
    return read_rows(path)


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Return the folder of the data: the one given, that of S2SBENCH_DATA, or a hub snapshot.

    Raises:
        DataError: when the folder does not exist or the hub cannot be reached.
    """
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if not named:
        return _snapshot()
    folder = Path(str(named)).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder. What to do: set {DATA_VARIABLE} or the task's metadata "
            "`data_dir` to the folder that holds S2SBench."
        )
    return folder


def _snapshot() -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(HUB_DATASET, repo_type="dataset"))
    except OSError as error:  # what huggingface_hub's own errors are
        raise DataError(
            f"cannot download {HUB_DATASET} from the hub ({error}).\n"
            "What to do: name a folder that holds it, with the environment variable "
            f'{DATA_VARIABLE} or with --metadata \'{{"data_dir": "/path/to/S2SBench"}}\'; or use '
            "the s2sbench_mini tasks, whose data comes with s2s-tasks."
        ) from error
