"""Questions of the shapes of S2SBench's sets, with real speech of the mini set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import soundfile
from lm_eval.api.instance import Instance

from benchmarks.model import LONGEST_SECONDS
from s2s_tasks.audio import Audio, probe
from s2s_tasks.data.rows import Row
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.prompt import Prompt

RATE = 16_000
PREFIX = {
    "en": "Below is a segment of alternating speech and text content: ",
    "zh": "下面是一段语音和文本交错的内容：",
}


@dataclass(frozen=True)
class Question:
    """A context, spoken and written, and its endings."""

    audio: Audio
    text: str
    prefix: str
    endings: tuple[str, ...]


def story_shaped(count: int, folder: Path) -> list[Question]:
    """English stories of 9 to 12 s, two endings of about ten words."""
    return [
        Question(audio, row.context, PREFIX["en"], tuple(f" {ending}" for ending in row.endings))
        for row, audio in _recordings("sstorycloze", count, folder)
    ]


def scmmlu_shaped(count: int, folder: Path) -> list[Question]:
    """Mandarin contexts of 6 to 11 s, four endings of a few words.

    The mini set's own sCMMLU recordings last 2 s: the contexts here are those of its stories.
    """
    recordings = _recordings("zh_sstorycloze", count, folder)
    return [
        Question(audio, story.context, PREFIX["zh"], quiz.endings)
        for (story, audio), quiz in zip(recordings, mini_rows("scmmlu"), strict=False)
    ]


def _recordings(set_name: str, count: int, folder: Path) -> Iterator[tuple[Row, Audio]]:
    """Return stories, and their recordings as WAV files of 16 kHz, the form of S2SBench."""
    rows = [r for r in mini_rows(set_name) if r.context_audio[0].seconds <= LONGEST_SECONDS]
    for row in rows[:count]:
        path = folder / f"{row.id}.wav"
        soundfile.write(path, row.context_audio[0].load(RATE), RATE)
        yield row, probe(path)


def spoken(questions: list[Question]) -> list[Instance]:
    """Return the requests that lm-eval would make of spoken contexts."""
    instances = []
    for number, question in enumerate(questions):
        context, audio = Prompt.of(question.prefix, question.audio).to_request()
        for place, ending in enumerate(question.endings):
            arguments = (context, ending, {"audio": audio})
            instances.append(_instance(arguments, number, place))
    return instances


def written(questions: list[Question]) -> list[Instance]:
    """Return the requests that lm-eval would make of written contexts."""
    return [
        _instance((question.text, ending), number, place)
        for number, question in enumerate(questions)
        for place, ending in enumerate(question.endings)
    ]


def _instance(arguments: tuple, doc_id: int, place: int) -> Instance:
    return Instance("loglikelihood", {}, arguments, place, metadata=("bench", doc_id, 1))
