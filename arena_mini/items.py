"""The questions as instructions.yaml has them: what is asked, and how it is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from s2s_tasks.arena.data.taxonomy import taxonomy

HERE = Path(__file__).parent
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Piece:
    """A part of what is said in one go."""

    text: str
    delivery: str
    pause: float
    """Seconds of silence after it."""


@dataclass(frozen=True)
class Clip:
    """One recording."""

    id: str
    language: str
    voice: str
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """What is said in all."""
        return (" " if self.language == "en" else "").join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class Item:
    """One question in one language."""

    id: str
    language: str
    domain: str
    task: str
    level: int
    cue: Mapping[str, str]
    target: Mapping[str, str]
    evaluation: str
    clip: Clip
    contrast: Clip | None
    """The same words without the cue; None where there is no cue."""


@cache
def items() -> tuple[Item, ...]:
    """Return all questions, in the order of the file, English before Chinese."""
    entries = yaml.safe_load((HERE / "instructions.yaml").read_text("utf-8"))
    return tuple(_item(entry, language) for entry in entries for language in LANGUAGES)


def clips() -> Iterator[Clip]:
    """Yield all recordings that are needed."""
    for item in items():
        yield item.clip
        if item.contrast:
            yield item.contrast


def _item(entry: Mapping, language: str) -> Item:
    spoken = entry[language]
    identifier = f"mini-{entry['id']}-{language}"
    said, voice = spoken["say"], spoken["voice"]
    parts = [{"text": said}] if isinstance(said, str) else said
    usual = entry.get("delivery", "neutral")
    pieces = tuple(
        Piece(part["text"], part.get("delivery", usual), part.get("pause", 0.0)) for part in parts
    )
    clip = Clip(identifier, language, voice, pieces)
    neutral = Piece(spoken.get("plain", clip.text), "neutral", 0.0)
    other = spoken.get("contrast", voice)
    return Item(
        id=identifier,
        language=language,
        domain=taxonomy().tasks[entry["task"]].domain,
        task=entry["task"],
        level=int(entry["id"].split("-")[1].removeprefix("l")),
        cue=entry.get("cue", {}),
        target=entry.get("target", {}),
        evaluation=spoken["evaluation"],
        clip=clip,
        contrast=Clip(f"{identifier}-contrast", language, other, (neutral,))
        if entry.get("cue")
        else None,
    )
