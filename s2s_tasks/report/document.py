"""What a report says, before it is written in any format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd
from matplotlib.figure import Figure as Drawing

from s2s_tasks.audio import Audio

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Table:
    """Numbers under headings; becomes a CSV file too."""

    key: str
    """Names its file and its place in the page: small letters, digits and hyphens."""
    title: str
    frame: pd.DataFrame
    """Numbers as numbers; the columns are the headings, the index is not shown."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """By column, as `str.format` takes them: `{:.1f}`, `{:+.1f} points`. A missing value is
    written as a dash."""
    note: str = ""
    """One sentence or two below it."""
    folded: bool = False
    """Whether the page shows it only when asked."""


@dataclass(frozen=True)
class Figure:
    """A drawing; becomes a PNG file too."""

    key: str
    title: str
    alt: str
    """What is to be seen, for those who cannot see it."""
    draw: Callable[[Theme], Drawing]
    note: str = ""


@dataclass(frozen=True)
class Clip:
    """A question whose recording can be listened to."""

    question: str
    where: str
    """Model and question set."""
    context: str
    true_ending: str
    false_ending: str
    """The one that won when the context was heard."""
    margin_t2t: float
    """Loss of the false ending minus that of the true one, in nats per token."""
    margin_s2t: float
    transcript: str
    """What a cascade heard; empty for a model that hears by itself."""
    audio: Audio | None
    """The spoken context, where it is known."""


@dataclass(frozen=True)
class Clips:
    """Questions with players; becomes a CSV file too."""

    key: str
    title: str
    clips: Sequence[Clip]
    note: str = ""
    unit: str = "nats per token"
    """Of margins."""
    shown: int = 20
    """How many the page and the Markdown show, from the first; the CSV file has all."""


Block = Table | Figure | Clips


@dataclass(frozen=True)
class Section:
    """A heading, a few sentences, and what shows them."""

    key: str
    title: str
    text: Sequence[str]
    """Paragraphs of plain text."""
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    summary: Sequence[str]
    """What it found, one sentence each."""
    warnings: Sequence[str]
    """What a reader must know before believing it."""
    sections: Sequence[Section]
