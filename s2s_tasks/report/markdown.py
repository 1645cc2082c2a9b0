"""A document as GitHub-flavoured Markdown, and the text of its tables' cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from s2s_tasks.report.document import Block, Clips, Document, Figure, Table

MISSING = "–"


def markdown(document: Document) -> str:
    """Return the document; it links the figures as `<key>.png` and the tables as `<key>.csv`."""
    return "\n\n".join(_parts(document)) + "\n"


def is_numeric(column: pd.Series) -> bool:
    """Tell whether a column holds numbers, beside missing values."""
    values = column.dropna()
    return len(values) > 0 and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in values
    )


def cells(table: Table) -> list[list[str]]:
    """Return the text of every cell, row by row, as the table's formats have it."""
    columns = []
    for name, column in table.frame.items():
        numeric, pattern = is_numeric(column), table.formats.get(str(name))
        columns.append([_cell(value, pattern, numeric) for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def clips_frame(clips: Clips) -> pd.DataFrame:
    """Return the clips as rows, with where their recordings are."""
    return pd.DataFrame(
        [
            (
                *(clip.question, clip.where, clip.context, clip.true_ending, clip.false_ending),
                *(clip.margin_t2t, clip.margin_s2t, clip.transcript),
                clip.audio.name if clip.audio else None,
                clip.audio.seconds if clip.audio else None,
            )
            for clip in clips.clips
        ],
        columns=[
            *("question", "where", "context", "true ending", "false ending"),
            *("margin when read", "margin when heard", "transcript", "recording", "seconds"),
        ],
    )


def escaped(text: str) -> str:
    """Return text as Markdown that shows it, on one line."""
    line = " ".join(text.split())
    line = re.sub(r"[\\`*\[\]<>|~$&]", r"\\\g<0>", line)
    # Within a word an underscore is only that; elsewhere it may be emphasis.
    line = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", line)
    # What would open a list, a heading or a rule.
    return re.sub(r"^(\d*)([-+#.)])(?=[\s#-]|$)", r"\1\\\2", line)


def _parts(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    if document.summary:
        yield "\n".join(f"- {escaped(sentence)}" for sentence in document.summary)
    if document.warnings:
        warnings = (f"> - {escaped(warning)}" for warning in document.warnings)
        yield "\n".join(["> [!WARNING]", *warnings])
    for section in document.sections:
        yield f"## {escaped(section.title)}"
        yield from map(escaped, section.text)
        for block in section.blocks:
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    title = escaped(block.title)
    if isinstance(block, Figure):
        yield f"**{title}**"
        yield f"![{escaped(block.alt)}]({block.key}.png)"
    elif isinstance(block, Table) and block.folded:
        yield f"<details><summary>{title}</summary>"
        yield _table(block)
    else:
        yield f"**{title}**"
        yield _table(block if isinstance(block, Table) else _clips_table(block))
    if block.note:
        yield escaped(block.note)
    if not isinstance(block, Figure):
        yield f"[{block.key}.csv]({block.key}.csv)"
    if isinstance(block, Table) and block.folded:
        yield "</details>"


def _table(table: Table) -> str:
    aligned = ["--:" if is_numeric(column) else "---" for _, column in table.frame.items()]
    names = [escaped(str(name)) for name in table.frame.columns]
    rows = [[escaped(cell) for cell in row] for row in cells(table)]
    return "\n".join(_row(row) for row in (names, aligned, *rows))


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _clips_table(clips: Clips) -> Table:
    frame = clips_frame(clips).drop(columns=["recording", "seconds"]).head(clips.shown)
    if not frame["transcript"].any():
        frame = frame.drop(columns="transcript")
    margins = ("margin when read", "margin when heard")
    return Table(clips.key, clips.title, frame, dict.fromkeys(margins, "{:+.3f}"))


def _cell(value: Any, pattern: str | None, numeric: bool) -> str:
    if pd.isna(value):
        return MISSING
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    default = "{:.6g}" if numeric and not isinstance(value, Integral) else "{}"
    text = (pattern or default).format(value)
    return re.sub(r"-(?=[\d.])", "\N{MINUS SIGN}", text) if numeric else text
