"""Shared small things: real sound in files, tiny checkpoints of real architectures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"
# What librosa has compiled crashed a process that read it while another wrote it.
os.environ["NUMBA_CACHE_DIR"] = str(
    Path(__file__).parents[1] / "build" / "numba" / os.environ.get("PYTEST_XDIST_WORKER", "alone")
)

import tiny
from browser import launched
from playwright.sync_api import Browser

from s2s_tasks.audio import Audio, probe
from s2s_tasks.data.parquet import write_rows
from s2s_tasks.data.rows import Language, Row, place_gold
from s2s_tasks.demo import weights

# A busy machine is not a failure, and no run may draw examples that the last one did not.
settings.register_profile("any machine", deadline=None, derandomize=True)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Weights and sounds drawn without a generator are the same in every order of the tests."""
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser, or the test is skipped."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal LM that only reads."""
    return tiny.llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def qwen2_audio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2-Audio that hears 4 s; the published one hears 30."""
    return tiny.qwen2_audio(tmp_path_factory.mktemp("qwen2_audio"), seconds=4)


@pytest.fixture(scope="session")
def wav2vec2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A speech recognizer."""
    return tiny.wav2vec2(tmp_path_factory.mktemp("wav2vec2"))


@pytest.fixture(scope="session")
def ctc_speech_lm(tmp_path_factory: pytest.TempPathFactory, llama: Path) -> Path:
    """A Whisper encoder that hears 4 s, a CTC projector, and the LM `llama`."""
    whisper = tiny.whisper(tmp_path_factory.mktemp("whisper"), seconds=4)
    return tiny.ctc_speech_lm(tmp_path_factory.mktemp("ctc_speech_lm"), whisper, llama)


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Audio]:
    """Three recordings: two equally long ones that differ, and a longer one at another rate."""
    folder = tmp_path_factory.mktemp("recordings")
    random = np.random.default_rng(0)
    handles = []
    for index, (rate, seconds) in enumerate([(16000, 1.0), (16000, 1.0), (24000, 1.7)]):
        path = folder / f"{index}.wav"
        soundfile.write(path, random.normal(size=int(rate * seconds)) * 0.1, rate)
        handles.append(probe(path))
    return handles


@pytest.fixture(scope="session")
def s2sbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small S2SBench in the canonical form: 4 + 4 stories, 3 questions over two subjects."""
    folder = tmp_path_factory.mktemp("s2sbench")
    random = np.random.default_rng(1)

    def sound(name: str, frames: int) -> Audio:
        path = folder / f"{name}.wav"
        soundfile.write(path, random.normal(size=frames) * 0.1, 16000)
        return probe(path)

    def rows(name: str, language: Language, texts: list[str], endings: int) -> list[Row]:
        return [
            place_gold(
                Row(
                    id=f"{name}-{i}",
                    language=language,
                    context=text,
                    endings=tuple(f"{text[: 4 + i]} {ending}." for ending in range(endings)),
                    gold=0,
                    # One story has a recording for each ending, as the published files may.
                    context_audio=tuple(
                        sound(f"{name}-{i}-{k}", 9000 + 500 * i)
                        for k in range(endings if (i, endings) == (1, 2) else 1)
                    ),
                    subject=["astronomy", "nutrition"][i % 2] if endings == 4 else None,
                )
            )
            for i, text in enumerate(texts)
        ]

    english = ["The dog ran.", "She opened the window.", "He looked at the sea.", "It rained."]
    chinese = ["小明去公园。", "天气很好。", "他回家了。", "下雨了。"]
    for name, questions in {
        "sstorycloze": rows("sstorycloze", "en", english, 2),
        "zh_sstorycloze": rows("zh_sstorycloze", "zh", chinese, 2),
        "scmmlu": rows("scmmlu", "zh", chinese[:3], 4),
    }.items():
        write_rows(folder / f"{name}.parquet", questions, source="tests")
    return folder


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """`model_folder`, in the user's own cache: a conversion takes seconds to a minute."""

    def folder(name: str) -> Path:
        if not weights.is_installed(weights.MODELS[name]):
            pytest.skip(f"{name} is not installed: {weights.MODELS[name].install}")
        return weights.model_folder(name)

    return folder
