"""Arguments that users know from lm-eval's `hf`: they reach transformers, and matter."""

from __future__ import annotations

import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from families import gemma3n
from safetensors.torch import load_file, save_file
from scoring import scores
from transformers import (
    AutoModelForCausalLM,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
)

from s2s_tasks.adapters import hf_loading
from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.families.table import FAMILIES
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
        if "lora_" in name:
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


def test_lora_scaling_is_part_of_the_fingerprint(qwen2_audio: Path, lora: Path) -> None:
    before = HFAdapter(str(qwen2_audio), device="cpu", peft=str(lora)).fingerprint
    config = lora / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"lora_alpha": 64}))
    assert HFAdapter(str(qwen2_audio), device="cpu", peft=str(lora)).fingerprint != before


def test_an_adapter_for_other_modules_is_refused(qwen2_audio: Path, lora: Path) -> None:
    """peft would only warn, and leave the model as it was."""
    path = lora / "adapter_model.safetensors"
    weights = {f"other.{name}": tensor for name, tensor in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(AdapterError, match="cannot be loaded: Found missing adapter keys"):
        HFAdapter(str(qwen2_audio), device="cpu", peft=str(lora))


def test_adapters_of_virtual_tokens_are_refused(llama: Path, tmp_path: Path) -> None:
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = AutoModelForCausalLM.from_pretrained(llama)
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "prompt")
    with pytest.raises(AdapterError, match="virtual tokens are not supported"):
        HFAdapter(str(llama), device="cpu", peft=str(tmp_path / "prompt"))


def test_device_map_and_a_device_contradict(llama: Path) -> None:
    with pytest.raises(AdapterError, match="leave --device cpu out"):
        HFAdapter(str(llama), device="cpu", device_map="auto")


def test_a_spread_model_names_positions_without_a_tensor(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two GPUs a tensor of positions would be on the first, the output layer on the last."""
    adapter = HFAdapter(str(llama), dtype="float32", device="cpu")
    prompts = [Prompt.of("She opened the window"), Prompt.of("It")]
    requests = [Request(p, e) for p in prompts for e in (" and looked at the sea.", " t")]
    expected = scores(adapter, requests, 4, exact=True)
    adapter.model.hf_device_map = {"model": 0, "lm_head": 1}
    spread = CausalLM(adapter.model, 0)
    monkeypatch.setattr(adapter, "_lm", spread)
    kept: list[Any] = []
    adapter.model.register_forward_pre_hook(
        lambda _, __, inputs: kept.append(inputs["logits_to_keep"]), with_kwargs=True
    )
    for request, score in scores(adapter, requests, 4, exact=True).items():
        assert score.token_logprobs == pytest.approx(expected[request].token_logprobs, abs=1e-4)
    assert all(isinstance(positions, int) for positions in kept)


@pytest.mark.parametrize("model_type", ["kyutai_speech_to_text", "voxtral_realtime", "moshi"])
def test_what_has_no_likelihood_is_refused_with_the_reason(tmp_path: Path, model_type: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    with pytest.raises(AdapterError, match="cannot be scored: "):
        HFAdapter(str(tmp_path), device="cpu")


def test_what_is_left_out_on_purpose_is_said_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gemma3n.save(tmp_path)
    with caplog.at_level(logging.INFO):
        HFAdapter(str(tmp_path), device="cpu")
    assert caplog.text.index("vision tower is left out on purpose") < caplog.text.index("Loaded")


def test_a_model_without_a_row_goes_by_the_conventions(
    qwen2_audio: Path, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    others = {key: family for key, family in FAMILIES.items() if key != "qwen2_audio"}
    monkeypatch.setattr(hf_loading, "FAMILIES", others)
    unknown = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    assert scores(unknown, requests, 4) == scores(known, requests, 4)


def test_an_adapter_that_is_cut_is_refused(qwen2_audio: Path, lora: Path) -> None:
    path = lora / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AdapterError, match=r"peft=.* cannot be loaded: .*incomplete metadata"):
        HFAdapter(str(qwen2_audio), device="cpu", peft=str(lora))
