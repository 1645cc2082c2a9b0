"""A document as one HTML file that asks nothing of a network or of other files."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from numbers import Real

import soundfile
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from s2s_tasks.audio import Audio, AudioError
from s2s_tasks.report.document import Clips, Document, Figure, Table, Theme
from s2s_tasks.report.drawing import COLOURS, render
from s2s_tasks.report.markdown import cells, is_numeric

log = logging.getLogger(__name__)

RATE = 16000
"""Of the recordings in the page, in Hz."""
LONGEST = 24.0
"""Seconds of a recording that the page holds."""
SHORT = 32
"""Characters of a text that no cell breaks."""
PIXELS_PER_INCH = 108
"""Of figures, where there is room."""


@dataclass(frozen=True)
class Player:
    """A recording as the page holds it."""

    uri: str
    """Empty for a recording that cannot be read."""
    remark: str
    """What the listener must know: that the recording is cut, or why there is none."""


def page(document: Document, step: Callable[[], object] = lambda: None) -> str:
    """Return the page.

    Args:
        document: what it says.
        step: called once a figure and recording.

    Recordings that cannot be read have no player; the page says why, and so does a warning in
    the log.
    """
    script = _text("page.js")
    players = _players(document, step)
    template = _environment(players, step).get_template("page.html.jinja")
    return template.render(
        document=document,
        colours=COLOURS,
        css=_text("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _environment(players: dict[Audio, Player], step: Callable[[], object]) -> Environment:
    def picture(figure: Figure, theme: Theme) -> _Image:
        image = _picture(figure, theme)
        step()
        return image

    environment = Environment(
        loader=PackageLoader("s2s_tasks.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests.update(
        figure=lambda block: isinstance(block, Figure),
        table=lambda block: isinstance(block, Table),
    )
    environment.filters.update(
        columns=_columns, picture=picture, player=players.__getitem__, rows=_rows
    )
    return environment


def _text(name: str) -> Markup:
    return Markup(files("s2s_tasks.report").joinpath(name).read_text(encoding="utf-8"))


# Tables


def _columns(table: Table) -> list[tuple[str, str]]:
    """Return the headings, each with what stands below it: `number`, `short` or `long` text."""
    texts = cells(table)
    kinds = []
    for place, (name, column) in enumerate(table.frame.items()):
        widest = max((len(row[place]) for row in texts), default=0)
        text = "short" if widest <= SHORT else "long"
        kinds.append((str(name), "number" if is_numeric(column) else text))
    return kinds


def _rows(table: Table) -> list[list[tuple[str, float | None]]]:
    """Return the cells, each with the number to sort by, where it has one."""
    values = table.frame.itertuples(index=False, name=None)
    return [
        [
            (text, float(value) if isinstance(value, Real) and not math.isnan(value) else None)
            for text, value in zip(texts, row, strict=True)
        ]
        for texts, row in zip(cells(table), values, strict=True)
    ]


# Figures


@dataclass(frozen=True)
class _Image:
    uri: str
    width: int
    """In CSS pixels."""
    height: int


def _picture(figure: Figure, theme: Theme) -> _Image:
    drawn = render(figure, theme, "svg")
    return _Image(
        _data_uri("image/svg+xml", drawn.data),
        round(drawn.width * PIXELS_PER_INCH),
        round(drawn.height * PIXELS_PER_INCH),
    )


# Recordings


def recordings(document: Document) -> set[Audio]:
    """Return the recordings that the page plays."""
    return {
        clip.audio
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Clips)
        for clip in block.clips[: block.shown]
        if clip.audio
    }


def _players(document: Document, step: Callable[[], object]) -> dict[Audio, Player]:
    players = {}
    played = recordings(document)
    with ThreadPoolExecutor() as pool:  # the codec lets go of Python's lock
        for audio, player in zip(played, pool.map(_player, played), strict=True):
            players[audio] = player
            step()
    silent = [player.remark for player in players.values() if not player.uri]
    if silent:
        log.warning("the report lacks %d player(s); the first: %s", len(silent), silent[0])
    return players


def _player(audio: Audio) -> Player:
    try:
        signal = audio.load(RATE)
    except AudioError as error:
        return Player("", f"No player: {error}")
    buffer = io.BytesIO()
    soundfile.write(
        buffer, signal[: int(LONGEST * RATE)], RATE, format="MP3", subtype="MPEG_LAYER_III"
    )
    cut = len(signal) > LONGEST * RATE
    return Player(
        _data_uri("audio/mpeg", buffer.getvalue()),
        f"Only the first {LONGEST:g} of {audio.seconds:.1f} s." if cut else "",
    )


def _data_uri(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
