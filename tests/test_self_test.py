"""A model is tried before it is trusted: wrong shortcuts are found, and not taken."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.engine.batches import Budget
from s2s_tasks.models import SpeechCascade, SpeechHF


def load(folder: Path, **arguments: Any) -> SpeechHF:
    return SpeechHF(
        pretrained=str(folder),
        **({"dtype": "float32", "device": "cpu", "batch_size": 4} | arguments),
    )


@pytest.mark.parametrize("name", ["llama", "qwen2_audio", "ctc_speech_lm"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_right_models_pass(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, name: str, dtype: str
) -> None:
    with caplog.at_level(logging.INFO):
        model = load(request.getfixturevalue(name), dtype=dtype)
    assert not model.exact
    assert model.batch_size == 4
    assert f"{model.adapter.name}: contexts are read once for all their cont" in caplog.text


def test_exact_asks_for_full_forwards(
    qwen2_audio: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(HFAdapter, "score_groups", lambda *_: pytest.fail("not exact"))
    with caplog.at_level(logging.INFO):
        assert load(qwen2_audio, exact=True).exact
    assert f"{qwen2_audio}: exact=true: nothing is shared" in caplog.text


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Positions after a prefix are one too high, as where a model counts the padding."""
    positions = CausalLM._positions

    def wrong(self: CausalLM, exact: torch.Tensor) -> dict[str, torch.Tensor]:
        return positions(self, exact + (exact[:, :1] > 0))

    monkeypatch.setattr(CausalLM, "_positions", wrong)
    yield


def test_a_wrong_position_after_the_prefix_is_found(
    qwen2_audio: Path, moved: None, caplog: pytest.LogCaptureFixture
) -> None:
    model = load(qwen2_audio)
    assert model.exact
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.startswith(f"{qwen2_audio}: ")
    assert "differ from full forwards by" in warning


def test_a_model_that_cannot_go_on_gets_full_forwards(
    llama: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError("no cache here")

    monkeypatch.setattr(CausalLM, "extend", refuse)
    assert load(llama).exact
    assert "cannot go on from a prefix it has read (NotImplementedError: no cache here)" in (
        caplog.text
    )


def test_batches_that_change_scores_are_not_made(
    llama: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = CausalLM.full

    def worse_together(self: CausalLM, rows: Any, *rest: Any) -> list[torch.Tensor]:
        return [logits * (1.2 if len(rows) > 1 else 1) for logits in full(self, rows, *rest)]

    monkeypatch.setattr(CausalLM, "full", worse_together)
    model = load(llama)
    assert model.batch_size == 1
    assert model._budget == Budget(1)
    assert "every row goes alone" in caplog.text


def test_a_model_that_does_not_hear_is_named(
    ctc_speech_lm: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with an audio part that is not loaded, or a processor that drops its argument."""

    def deaf(self: CTCSpeechLM, input_features: torch.Tensor, **_: Any) -> list[torch.Tensor]:
        return [torch.ones(3, 32) for _ in input_features]

    monkeypatch.setattr(CTCSpeechLM, "embed_audio", deaf)
    load(ctc_speech_lm)
    assert "gives the same scores after two different recordings" in caplog.text


def test_scores_that_are_no_numbers_do_not_pass(
    llama: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    extend = CausalLM.extend
    monkeypatch.setattr(CausalLM, "extend", lambda *given: extend(*given) * float("nan"))
    assert load(llama).exact
    assert "by nan nats" in caplog.text


def test_a_cascades_lm_is_tried_with_text(
    wav2vec2: Path, llama: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        model = SpeechCascade(asr=str(wav2vec2), lm=str(llama), device="cpu")
    assert not model.exact
    assert "contexts are read once" in caplog.text


def test_an_error_of_padded_rows_alone_is_found(
    qwen2_audio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a model counts the padding on the left as positions."""
    positions = CausalLM._positions

    def wrong(self: CausalLM, exact: torch.Tensor) -> dict[str, torch.Tensor]:
        padded = (exact == 0).sum(-1, keepdim=True) > 1
        return positions(self, exact + padded * torch.arange(exact.shape[1]) ** 2 % 7)

    monkeypatch.setattr(CausalLM, "_positions", wrong)
    assert load(qwen2_audio).exact
