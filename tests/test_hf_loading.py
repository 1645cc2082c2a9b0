"""Arguments that users know from lm-eval's `hf`: they reach transformers, and matter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import peft
import pytest
import torch
from scoring import scores
from transformers import Qwen2AudioForConditionalGeneration, Qwen2AudioProcessor

from s2s_tasks.adapters import hf_loading
from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio
from s2s_tasks.models import SpeechHF
from s2s_tasks.prompt import Prompt, Request


@pytest.fixture
def requests(recordings: list[Audio]) -> list[Request]:
    return [Request(Prompt.of("Hm: ", a), e) for a in recordings for e in (" the dog.", "小")]


@pytest.fixture
def lora(qwen2_audio: Path, tmp_path: Path) -> Path:
    """A LoRA on the LM's attention, with weights that matter."""
    model = Qwen2AudioForConditionalGeneration.from_pretrained(qwen2_audio, dtype=torch.float32)
    config = peft.LoraConfig(r=4, target_modules=r".*language_model.*\.(q_proj|v_proj)")
    adapted = peft.get_peft_model(model, config)
    generator = torch.Generator().manual_seed(0)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=generator) * 0.3
    adapted.save_pretrained(tmp_path / "lora")
    return tmp_path / "lora"


def test_a_peft_adapter_scores_as_peft_by_hand(
    qwen2_audio: Path, lora: Path, requests: list[Request]
) -> None:
    plain = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    adapted = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu", peft=str(lora))
    model = Qwen2AudioForConditionalGeneration.from_pretrained(qwen2_audio, dtype=torch.float32)
    by_hand = peft.PeftModel.from_pretrained(model, lora).eval()
    processor = Qwen2AudioProcessor.from_pretrained(qwen2_audio)
    found, before = scores(adapted, requests, 4), scores(plain, requests, 4)
    for request, score in found.items():
        inputs = processor(
            text="Hm: <|audio_bos|><|AUDIO|><|audio_eos|>" + str(request.continuation),
            audio=request.prompt.audio[0].load(16000),
            sampling_rate=16000,
            return_tensors="pt",
        )
        targets = processor.tokenizer(request.continuation, return_tensors="pt").input_ids[0]
        with torch.no_grad():
            logprobs = by_hand(**inputs).logits[0, -len(targets) - 1 : -1].log_softmax(-1)
        expected = logprobs.gather(1, targets[:, None])[:, 0].tolist()
        assert score.token_logprobs == pytest.approx(expected, abs=1e-4)
        assert abs(score[0] - before[request][0]) > 1e-2
    assert adapted.fingerprint != plain.fingerprint


def test_the_self_test_covers_adapted_models(qwen2_audio: Path, lora: Path) -> None:
    assert not SpeechHF(pretrained=str(qwen2_audio), peft=str(lora), device="cpu").exact


def test_device_map_places_the_model_and_changes_no_score(
    qwen2_audio: Path, requests: list[Request]
) -> None:
    plain = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    spread = HFAdapter(str(qwen2_audio), dtype="float32", device_map="auto")
    assert spread.device == torch.device("cpu")
    expected = scores(plain, requests, 4)
    for request, score in scores(spread, requests, 4).items():
        assert score.token_logprobs == pytest.approx(expected[request].token_logprobs, abs=1e-4)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_attention_is_the_one_asked_for(qwen2_audio: Path, attention: str) -> None:
    adapter = HFAdapter(str(qwen2_audio), device="cpu", attn_implementation=attention)
    assert adapter.model.config.get_text_config()._attn_implementation == attention


def test_weights_take_the_dtype_asked_for(qwen2_audio: Path) -> None:
    assert HFAdapter(str(qwen2_audio), device="cpu", dtype="bfloat16").dtype == torch.bfloat16


@pytest.mark.skipif(not importlib.util.find_spec("bitsandbytes"), reason="no bitsandbytes")
def test_quantised_models_score(qwen2_audio: Path, requests: list[Request]) -> None:
    """In 8 bits; a 4-bit layer on a CPU must be wider than these (bitsandbytes 0.50)."""
    plain = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    quantised = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu", load_in_8bit=True)
    assert quantised.fingerprint != plain.fingerprint
    expected = scores(plain, requests, 4)
    found = scores(quantised, requests, 4)
    apart = [abs(found[r].nll - expected[r].nll) for r in requests]
    assert 0 < max(apart) < 10


@pytest.mark.parametrize(
    ("arguments", "package"), [({"load_in_8bit": True}, "bitsandbytes"), ({"peft": "x"}, "peft")]
)
def test_what_is_not_installed_is_named(
    qwen2_audio: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict, package: str
) -> None:
    monkeypatch.setattr(hf_loading, "find_spec", lambda name: None)
    with pytest.raises(AdapterError, match=f"pip install {package}"):
        HFAdapter(str(qwen2_audio), device="cpu", **arguments)


def test_a_peft_adapter_that_is_not_there(qwen2_audio: Path, tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=f"peft={tmp_path}/none cannot be loaded"):
        HFAdapter(str(qwen2_audio), device="cpu", peft=f"{tmp_path}/none")


def test_the_ctc_speech_lm_is_placed_whole(ctc_speech_lm: Path) -> None:
    with pytest.raises(AdapterError, match="placed whole"):
        HFAdapter(str(ctc_speech_lm), device_map="auto")
