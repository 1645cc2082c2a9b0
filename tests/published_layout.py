"""A small copy of S2SBench as its authors laid it out, with real recordings."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

STORIES = "S2S/StoryCloze"
QUESTIONS = "S2S/cmmlu"
MAP = """\
datasets:
  cmmlu_write_4:
    path: S2S/cmmlu/cmmlu_rewrite_4.jsonl
    audio_path: S2S/cmmlu/cmmlu_rewrite
    lang: zh
  sStory_s2t:
    path: S2S/StoryCloze/sStory_s2t.jsonl
    audio_path: S2S/StoryCloze/s-story-firstspeech
    lang: en
  zh_story:
    path: S2S/StoryCloze/zh_story.jsonl
    audio_path: S2S/StoryCloze/zh_story
    lang: zh
"""


def tone(
    pitch: float = 220.0,
    *,
    seconds: float = 0.1,
    rate: int = 16000,
    channels: int = 1,
    format: str = "WAV",
    subtype: str | None = None,
) -> bytes:
    """Encode a quiet tone."""
    wave = 0.25 * np.sin(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)
    signal = np.round(wave * 2**15) / 2**15  # what 16 bits hold, in every format alike
    return encode(np.repeat(signal[:, None], channels, axis=1), rate, format, subtype)


def encode(signal: Any, rate: int, format: str = "WAV", subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, signal, rate, format=format, subtype=subtype)
    return file.getvalue()


def story(uttid: Any, *, chinese: bool = False) -> dict[str, Any]:
    """A row of story `number // 2`: its true ending where the number is even."""
    number = int(str(uttid).split("_")[0])
    kind = ("true", "false")[number % 2]
    if chinese:
        endings = {"true": "他很高兴。", "false": "他很难过。"}
        return {"uttid": uttid, "first": f"第{number // 2}个故事开始了。", "last": endings[kind]}
    first = f"Story {number // 2} begins here."
    return {"uttid": uttid, "first": first, "last": f"It is the {kind} one."}


def question(uttid: Any) -> dict[str, Any]:
    options = {letter: f"选项{letter}。" for letter in "ABCD"}
    return {"uttid": uttid, "first": f"问题{uttid}的答案是", **options, "answer": "C"}


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def write_audio(
    folder: Path, uttids: Iterable[Any], sound: Callable[[int], bytes], suffix: str = ".wav"
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for uttid in uttids:
        (folder / f"{uttid}{suffix}").write_bytes(sound(int(str(uttid).split("_")[0])))


def pair_tone(number: int) -> bytes:
    """One sound for both rows of a pair."""
    return tone(200 + number // 2)


def publish(root: Path, *, stories: int = 3, questions: int = 4, mapped: bool = True) -> Path:
    """Write all three sets; the ids of the sets overlap, as they may in the real one."""
    ids = range(2 * stories)
    write_jsonl(root / STORIES / "sStory_s2t.jsonl", map(story, ids))
    write_jsonl(root / STORIES / "zh_story.jsonl", (story(i, chinese=True) for i in ids))
    write_jsonl(root / QUESTIONS / "cmmlu_rewrite_4.jsonl", map(question, range(questions)))
    write_audio(root / STORIES / "s-story-firstspeech", ids, pair_tone)
    write_audio(root / STORIES / "zh_story", ids, lambda n: tone(400 + n))
    write_audio(root / QUESTIONS / "cmmlu_rewrite", range(questions), lambda n: tone(600 + n))
    if mapped:
        (root / "eval_s2t.yaml").write_text(MAP, encoding="utf-8")
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("S2S_TASKS_CACHE", str(folder))
    monkeypatch.delenv("S2SBENCH_DATA", raising=False)
    return folder
