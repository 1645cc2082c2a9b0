"""Training of the demo speech LLM, on a tiny one: resumable, seeded, honest about its packs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from transformers import AutoTokenizer, LlamaForCausalLM, WhisperModel

from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM, CTCSpeechLMConfig

sys.path.append(str(Path(__file__).parents[1] / "speech_demo"))
import features
import speak
import train
from features import Pack
from speak import Line

TEXTS = ["The dog ran.", "She opened the window.", "It rained at last.", "He looked at the sea."]


@pytest.fixture
def packs(tmp_path: Path) -> list[Pack]:
    """Eight packs of random features, four seconds each."""
    draw = np.random.default_rng(0)
    np.save(tmp_path / "0000.npy", draw.normal(size=(8 * 200, 16)).astype(np.float16))
    return [Pack((n,), TEXTS[n % 4], 0, 200 * n, 200) for n in range(8)]


def training(packs: Sequence[Pack], folder: Path, checkpoint: Path) -> train.Training:
    config = CTCSpeechLMConfig.from_pretrained(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(config.text_model_id)
    heard = sorted({t for pack in packs for t in train.tokens(tokenizer, pack.text)})
    config.vocabulary_size = len(heard)
    torch.manual_seed(0)
    model = CTCSpeechLM(
        config,
        WhisperModel.from_pretrained(config.audio_model_id).encoder,
        LlamaForCausalLM.from_pretrained(config.text_model_id),
    )
    model.projector.vocabulary.copy_(torch.tensor(heard))
    return train.Training(model, packs, folder, tokenizer)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HELD_OUT": 2, "LOG_EVERY": 1, "LOOK_EVERY": 2, "BATCH": 450}.items():
        monkeypatch.setattr(train, name, value)


def curves(work: Path) -> list[list[str]]:
    with (work / "curves.csv").open(newline="") as file:
        return [[row[0], *row[2:]] for row in csv.reader(file)]  # without the seconds


@pytest.mark.usefixtures("small")
def test_a_killed_training_goes_on_as_if_it_had_not_been(
    packs: list[Pack], tmp_path: Path, ctc_speech_lm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    straight = training(packs, tmp_path, ctc_speech_lm)
    train.train(straight, whole, 5)

    killed = training(packs, tmp_path, ctc_speech_lm)
    steps = iter(range(3))  # the state of step 2 is kept, step 3 is lost

    def listen(*arguments: object) -> object:
        if arguments[1] is not None and next(steps, None) is None:
            raise KeyboardInterrupt
        return train.Training.listen(killed, *arguments)

    monkeypatch.setattr(killed, "listen", listen)
    with pytest.raises(KeyboardInterrupt):
        train.train(killed, cut, 5)
    assert len(curves(cut)) == 2
    resumed = training(packs, tmp_path, ctc_speech_lm)
    train.train(resumed, cut, 5)

    first, second = (t.model.projector.state_dict() for t in (straight, resumed))
    for name, weight in first.items():
        assert torch.equal(weight, second[name]), name
    assert curves(cut) == curves(whole)
    assert len(curves(whole)) == 5
    assert not torch.equal(first["to_text.weight"], fresh_weight(packs, tmp_path, ctc_speech_lm))


def fresh_weight(packs: list[Pack], folder: Path, checkpoint: Path) -> torch.Tensor:
    return training(packs, folder, checkpoint).model.projector.to_text.weight


@pytest.mark.usefixtures("small")
def test_a_state_of_another_training_is_refused(
    packs: list[Pack], tmp_path: Path, ctc_speech_lm: Path
) -> None:
    train.train(training(packs, tmp_path, ctc_speech_lm), tmp_path, 2)
    with pytest.raises(ValueError, match=r"state\.pt is of another training"):
        train.train(training(packs, tmp_path, ctc_speech_lm), tmp_path, 3)


def test_a_pack_too_short_for_its_text_is_named(tmp_path: Path, ctc_speech_lm: Path) -> None:
    np.save(tmp_path / "0000.npy", np.zeros((40, 16), np.float16))
    with pytest.raises(ValueError, match="too short for its"):
        training([Pack((7,), TEXTS[3], 0, 0, 8)], tmp_path, ctc_speech_lm)


def test_every_pack_is_in_every_later_epoch_and_short_ones_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train, "SHORT_EPOCHS", 1)
    packs = [Pack((n,), "", 0, 0, frames) for n, frames in enumerate(range(200, 800, 40))]
    batches = train.schedule(packs)
    seen: list[Pack] = []
    while len(seen) < 6 + 2 * len(packs):
        batch = next(batches)
        assert max(pack.frames for pack in batch) * len(batch) <= train.BATCH
        seen += batch
    short = [pack for pack in packs if pack.frames <= train.SHORT]
    assert sorted(seen[:6], key=packs.index) == short
    assert sorted(seen[6:21], key=packs.index) == packs == sorted(seen[21:], key=packs.index)


def test_features_are_those_of_their_lines_and_made_once(
    tmp_path: Path, ctc_speech_lm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "SHARD", 2)
    monkeypatch.setattr(features, "SECONDS", (1.0, 2.0))
    draw = np.random.default_rng(0)
    lines = [
        Line(n, TEXTS[n % 4], "flite", voice, 1.0) for n, voice in enumerate(["slt", "rms"] * 4)
    ]
    speech, made = tmp_path / "speech", tmp_path / "features"
    speech.mkdir()
    for line in lines:
        samples = draw.normal(size=12000) * 0.1
        soundfile.write(speech / line.file, samples, speak.RATE, format="FLAC")
    config = CTCSpeechLMConfig.from_pretrained(ctc_speech_lm)
    encoder = WhisperModel.from_pretrained(config.audio_model_id).encoder.eval()
    packs = features.make(lines, speech, made, encoder)

    assert sorted(number for pack in packs for number in pack.lines) == list(range(8))
    shards = features.open_shards(made)
    for pack in packs:
        assert pack.text == " ".join(lines[number].text for number in pack.lines)
        assert len({lines[number].voice for number in pack.lines}) == 1
        array = shards[pack.shard][pack.start : pack.start + pack.frames]
        assert len(array) == pack.frames >= 37 * len(pack.lines)
        assert np.isfinite(array).all()

    kept = {path.name: path.read_bytes() for path in made.iterdir()}
    (made / "0001.json").unlink()  # as if killed there
    assert [asdict(p) for p in features.make(lines, speech, made, encoder)] == [
        asdict(p) for p in packs
    ]
    assert {path.name: path.read_bytes() for path in made.iterdir()} == kept
    with pytest.raises(ValueError, match="other speech"):
        features.make(lines[1:], speech, made, encoder)


def test_another_voice_or_text_is_another_recording() -> None:
    lines = speak.cast(["The dog ran.", "It rained."])
    assert lines == speak.cast(["The dog ran.", "It rained."])
    assert lines[0].file != speak.cast(["The dog sat.", "It rained."])[0].file
    assert json.dumps([asdict(line) for line in lines])
