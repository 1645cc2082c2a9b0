"""Others' files as rows: JSON, JSON lines, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from s2s_tasks.arena.cells import csv_rows
from s2s_tasks.errors import S2STasksError

Row = Mapping[str, Any]

KEY = "key"
"""Field that holds the name of a record, in JSON where records are the values of an object."""
_MISSING = object()


def read_rows(path: Path, records: str = "") -> list[Row]:
    """Return the records of a file: `.csv`, `.jsonl`, or else JSON.

    JSON is a list of objects, or an object of objects, whose names become the field `key`.

    Args:
        path: of the file.
        records: where in the JSON they are; a dot goes into an object.

    Raises:
        S2STasksError: when the file cannot be read, or has another form.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise S2STasksError(f"{path}: cannot be read ({error})") from error
    try:
        if path.suffix.lower() == ".csv":
            content: Any = csv_rows(io.StringIO(text, newline=""))
        elif path.suffix.lower() == ".jsonl":
            content = [json.loads(line) for line in text.split("\n") if line.strip()]
        else:
            content = json.loads(text)
    except csv.Error as error:
        raise S2STasksError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise S2STasksError(
            f"{path}: not what its name says ({error}); its name has to end in .json, .jsonl or "
            ".csv, by what is in it"
        ) from error
    if records:
        content = lookup(content, records, _MISSING)
        if content is _MISSING:
            raise S2STasksError(
                f"{path}: nothing is called {records!r} in it; name another part with --records"
            )
    return _rows(content, path)


def lookup(row: Any, name: str, default: Any = None) -> Any:
    """Return a field of a row; a dot in its name, where no field has it, goes into an object."""
    if isinstance(row, Mapping) and name in row:
        return row[name]
    for part in name.split("."):
        if not isinstance(row, Mapping) or part not in row:
            return default
        row = row[part]
    return row


def describe(row: Row) -> str:
    """Return the names of a row's fields, those of objects in it too."""
    names = []
    for name, value in row.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, Mapping) else []
        names += inner or [str(name)]
    return ", ".join(names)


def _rows(content: Any, path: Path) -> list[Row]:
    if isinstance(content, Mapping) and content and _are_rows(list(content.values())):
        return [{KEY: name, **row} for name, row in content.items()]
    if isinstance(content, list) and content and _are_rows(content):
        return content
    raise S2STasksError(
        f"{path}: records are a list of objects or an object of objects, but there is "
        f"{_form(content)}; name the part that holds them with --records"
    )


def _are_rows(values: Sequence[Any]) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _form(content: Any) -> str:
    if isinstance(content, Mapping):
        return f"an object of {', '.join(map(str, list(content)[:10])) or 'nothing'}"
    if isinstance(content, list):
        kinds = sorted({type(value).__name__ for value in content})
        return f"a list of {', '.join(kinds) or 'nothing'}"
    return f"a {type(content).__name__}"
