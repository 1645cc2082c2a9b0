"""Ultravox is loaded in parts: none of them may stay empty or random."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from families import ultravox
from safetensors.torch import load_file, save_file
from scoring import scores
from transformers import LlamaForCausalLM, WhisperModel

from s2s_tasks.adapters.contract import AUDIO, AdapterError
from s2s_tasks.adapters.families.ultravox import load_model
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio, probe
from s2s_tasks.prompt import Prompt, Request


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ultravox-published")
    ultravox.save(folder)
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Audio:
    path = tmp_path_factory.mktemp("sound") / "0.wav"
    soundfile.write(path, np.random.default_rng(0).normal(size=32000) * 0.1, 16000)
    return probe(path)


def adapter(folder: Path, **options: str) -> HFAdapter:
    arguments = {"dtype": "float32", "device": "cpu", "trust_remote_code": True, **options}
    return HFAdapter(str(folder), **arguments)


def shard_everything(folder: Path) -> None:
    """Put all weights into the repository, in two files."""
    config = json.loads((folder / "config.json").read_text())
    lm = LlamaForCausalLM.from_pretrained(config["text_model_id"])
    tower = WhisperModel.from_pretrained(config["audio_model_id"]).encoder
    files = {
        "a.safetensors": load_file(folder / "model.safetensors")
        | {f"audio_tower.{name}": tensor for name, tensor in tower.state_dict().items()},
        "b.safetensors": {f"language_model.{k}": tensor for k, tensor in lm.state_dict().items()},
    }
    (folder / "model.safetensors").unlink()
    for name, weights in files.items():
        save_file(weights, folder / name, metadata={"format": "pt"})
    places = {weight: name for name, weights in files.items() for weight in weights}
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config["text_config"] = lm.config.to_dict()
    (folder / "config.json").write_text(json.dumps({**config, "text_model_id": None}))


def test_weights_may_all_be_in_the_repository(
    published: Path, sound: Audio, tmp_path: Path
) -> None:
    whole = Path(shutil.copytree(published, tmp_path / "whole"))
    shard_everything(whole)
    request = Request(Prompt.of("Below: ", sound), " He was glad.")
    expected = scores(adapter(published), [request])[request]
    found = scores(adapter(whole), [request])[request]
    assert found.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-5)


def edit(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


def without_a_norm(folder: Path) -> None:
    edit(folder, lambda weights: weights.pop("multi_modal_projector.ln_mid.weight"))


def with_a_lora(folder: Path) -> None:
    edit(folder, lambda weights: weights.update({"language_model.lora": torch.ones(1)}))


def without_an_lm(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_model_id"] = str(folder / "less")
    shutil.copytree(folder / "llama", folder / "less")
    edit(folder / "less", lambda weights: weights.pop("model.norm.weight"))
    (folder / "config.json").write_text(json.dumps(config))


def with_other_code(folder: Path) -> None:
    code = folder / "ultravox_model.py"
    code.write_text(code.read_text().replace("audio_len", "audio_length"))


def with_other_positions(folder: Path) -> None:
    code = folder / "ultravox_model.py"
    code.write_text(code.read_text().replace("self.layer_norm(hidden)", "hidden[:, 1:]"))


def with_an_older_processor(folder: Path) -> None:
    code = folder / "ultravox_processing.py"
    code.write_text(code.read_text().replace("audios", "audio"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_a_norm, "1 tensors have no weights .*ln_mid"),
        (with_a_lora, "1 weights have no place .*lora"),
        (without_an_lm, r"less lacks 1 weight\(s\): .*norm"),
        (with_other_code, "not the Ultravox that is known here.*audio_len"),
        (with_other_positions, r"returns \(1, 9, 16\) for 20 frames"),
        (with_an_older_processor, "older than the Ultravox that is known here"),
    ],
)
def test_what_cannot_be_right_is_refused(
    published: Path, tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = Path(shutil.copytree(published, tmp_path / f"ultravox-{change.__name__}"))
    change(folder)
    with pytest.raises(AdapterError, match=message):
        adapter(folder)


def loading(folder: Path, **options: object) -> object:
    return load_model(str(folder), dtype="auto", attn_implementation=None, revision=None, **options)


def test_code_runs_only_when_asked_for(published: Path) -> None:
    line = f"pretrained={published} brings its own code: add trust_remote_code=true if you trust it"
    with pytest.raises(AdapterError, match=f"^{line}$"):
        HFAdapter(str(published), device="cpu")
    with pytest.raises(AdapterError, match="add trust_remote_code=true"):
        loading(published, trust_remote_code=False)


def test_it_is_placed_whole(published: Path) -> None:
    with pytest.raises(AdapterError, match="leave device_map and quantisation out"):
        loading(published, trust_remote_code=True, device_map="auto")


def test_dtype_and_attention_are_those_asked_for(published: Path) -> None:
    model = adapter(published, dtype="bfloat16", attn_implementation="eager").model
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert model.language_model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert model.language_model.config._attn_implementation == "eager"


def test_an_end_of_text_in_a_text_is_no_audio(published: Path, sound: Audio) -> None:
    ears = adapter(published)
    prompt = Prompt.of("An end<|eot_id|>", sound, " and<|eot_id|>")
    (prefix,) = ears.render([prompt])
    words = ears.tokenizer
    first = words.encode("An end<|eot_id|>")
    last = words.encode(" and<|eot_id|>", add_special_tokens=False)
    count = len(prefix.ids) - len(first) - len(last)
    assert prefix.ids == [*first, *[AUDIO] * count, *last]
    assert count == int(prefix.features["audio_token_len"].sum())
