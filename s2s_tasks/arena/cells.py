"""Cells of others' tables, taken as they are or refused."""

from __future__ import annotations

import csv
import reprlib
from collections.abc import Iterable

_REST = "beyond the header"


def csv_rows(lines: Iterable[str]) -> list[dict[str, str | None]]:
    """Return the rows of a CSV file by its header; cells that a row lacks at its end are None.

    Args:
        lines: of the file, their ends as they are (`newline=""`).

    Raises:
        csv.Error: when a row has more cells than the header, or quotes do not match.
    """
    rows = []
    for number, row in enumerate(csv.DictReader(lines, restkey=_REST, strict=True), 1):
        if _REST in row:
            raise csv.Error(
                f"row {number} has more cells than the header; put a text that has commas in it "
                "between double quotes, and end no line with a comma"
            )
        rows.append(row)
    return rows


def text_of(value: object) -> str:
    """Return what a cell says; nothing for None and for NaN, which stands for it in tables.

    Numbers lose a fraction of zero: a whole column becomes fractional where one cell is empty.

    Raises:
        ValueError: when it is neither a text nor a number, or a text that no file can hold.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise ValueError(f"{reprlib.repr(value)} is neither a text nor a number")
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{reprlib.repr(text)} has half a character in it") from error
    return text
