"""The demo speech LLM: what it was trained on, and what it hears."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scoring import scores

from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.demo import SPEECH_DEMO
from s2s_tasks.models import SpeechDemo
from s2s_tasks.prompt import Prompt, Request

REPOSITORY = Path(__file__).parents[1]
sys.path.append(str(REPOSITORY / "speech_demo"))
import sound  # noqa: E402
import voices  # noqa: E402

NGRAM = 5


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def ngrams(text: str) -> set[tuple[str, ...]]:
    run = words(text)
    return {tuple(run[start : start + NGRAM]) for start in range(len(run) - NGRAM + 1)}


def test_training_text_shares_no_five_words_in_a_row_with_the_mini_set() -> None:
    lines = (REPOSITORY / "speech_demo" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 5000
    asked = set().union(
        *(
            ngrams(f"{row.context} {ending}")
            for row in mini_rows("sstorycloze")
            for ending in row.endings
        )
    )
    assert len(asked) > 2000
    assert not asked & set().union(*map(ngrams, lines))


def test_half_of_the_mini_sets_voices_were_never_heard() -> None:
    blocks = yaml.safe_load((REPOSITORY / "mini_set" / "voices.yaml").read_text(encoding="utf-8"))
    english = {voice for block, voice in blocks.items() if voice[0] in "ab"}
    assert english == {*voices.MINI_SET_HEARD, *voices.MINI_SET_UNHEARD}
    assert not set(voices.MINI_SET_UNHEARD) & set(voices.KOKORO)
    assert len(voices.MINI_SET_UNHEARD) == 6


def test_the_checkpoint_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in SPEECH_DEMO.iterdir()}
    assert sizes.keys() == {"README.md", "config.json", "model.safetensors"}
    assert 8e6 < sum(sizes.values()) < 10e6


# Sound


@given(st.floats(-10, 40), st.integers(0, 99))
def test_noise_is_as_loud_as_it_was_asked_for(snr: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    speech, noise = sound.white(4000, draw) * 0.1, sound.white(4000, draw)
    added = sound.mix(speech, noise, snr).astype(np.float64) - speech
    assert 10 * np.log10(sound.power(speech) / sound.power(added)) == pytest.approx(snr, abs=0.1)


def test_every_talker_of_a_babble_is_as_loud() -> None:
    draw = np.random.default_rng(0)
    quiet, loud = sound.white(3000, draw) * 0.01, sound.white(5000, draw)
    both = sound.babble(8000, [quiet, loud], draw)
    assert len(both) == 8000
    assert sound.power(both) == pytest.approx(2, rel=0.1)


def test_a_room_keeps_the_length_and_the_direct_sound() -> None:
    response = sound.room(0.3, 16000, np.random.default_rng(0), direct=6)
    assert response[0] == 1
    assert 10 * np.log10(1 / np.sum(response[1:] ** 2)) == pytest.approx(6, abs=0.01)
    click = np.zeros(8000, np.float32)
    click[100] = 1
    heard = sound.reverberate(click, response)
    assert len(heard) == len(click)
    assert heard[100] == pytest.approx(1, abs=1e-4)
    assert np.abs(heard[:100]).max() < 1e-4
    late = slice(100 + 2400, 100 + 4800)
    assert sound.power(heard[late]) < sound.power(heard[101:2500]) / 100


# The real model


@pytest.fixture(scope="module")
def demo(real: Callable[[str], Path]) -> SpeechDemo:
    for part in ("whisper-base", "smollm2-135m-instruct"):
        real(part)
    return SpeechDemo(device="cpu", dtype="float32")


@pytest.mark.weights
def test_it_hears_most_words(demo: SpeechDemo) -> None:
    model = demo.adapter.model
    missed, total = 0, 0
    for row in mini_rows("sstorycloze")[::20]:
        (audio,) = row.context_audio
        inputs = demo.adapter.processor(
            text=[""], audio=[audio.load(16000)], sampling_rate=16000, return_tensors="pt"
        )
        table = model.heard_embeddings()
        soft = model.embed_audio(inputs["input_features"], inputs["feature_lengths"])[0]
        nearest = torch.cdist(soft, table).argmin(-1)
        heard = words(demo.tokenizer.decode(model.projector.vocabulary[nearest]))
        missed += sum(word not in heard for word in words(row.context))
        total += len(words(row.context))
    assert missed < 0.3 * total


@pytest.mark.weights
def test_its_own_context_makes_an_ending_likelier_than_anothers(demo: SpeechDemo) -> None:
    rows = mini_rows("sstorycloze")[::16]
    spoken = {
        (row.id, other.id): Request(Prompt.of(other.context_audio[0]), " " + row.endings[row.gold])
        for row in rows
        for other in rows
    }
    found = scores(demo.adapter, list(spoken.values()), 8)
    own = [found[spoken[row.id, row.id]][0] for row in rows]
    other = [
        np.mean([found[spoken[row.id, o.id]][0] for o in rows if o is not row]) for row in rows
    ]
    assert np.mean(own) > np.mean(other) + 3  # nats


@pytest.mark.weights
def test_the_folder_loads_as_any_other(demo: SpeechDemo) -> None:
    other = HFAdapter(str(SPEECH_DEMO), device="cpu", dtype="float32")
    row = mini_rows("sstorycloze")[0]
    request = Request(Prompt.of("Below: ", row.context_audio[0]), " " + row.endings[0])
    found, expected = (scores(adapter, [request])[request] for adapter in (other, demo.adapter))
    assert found.token_logprobs == expected.token_logprobs
