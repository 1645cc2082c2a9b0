"""Checkpoints that are not whole, or no language models, are refused with a remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import tiny
import torch
import transformers
from families import qwen2_5_omni
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter


def copy_without(folder: Path, copy: Path, *names: str) -> Path:
    """Return a copy of a checkpoint that lacks the weights whose names hold one of `names`."""
    shutil.copytree(folder, copy)
    weights = load_file(copy / "model.safetensors")
    kept = {name: w for name, w in weights.items() if not any(part in name for part in names)}
    assert len(kept) < len(weights)
    save_file(kept, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("lm_head",), r"lacks 1 weight\(s\): .*lm_head\.weight\. They would be random"),
        (("projector",), r"lacks 2 weight\(s\): .*projector\.linear\.bias, .*linear\.weight\."),
        (("layers.1",), r"lacks 27 weight\(s\): ([^,]+, ){2}[^,]+ and 24 more\. They"),
    ],
)
def test_a_checkpoint_that_lacks_weights_is_refused(
    qwen2_audio: Path, tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    folder = copy_without(qwen2_audio, tmp_path / "less", *names)
    with pytest.raises(AdapterError, match=f"{folder} {message}"):
        HFAdapter(str(folder), device="cpu")


def test_a_frozen_part_that_lacks_weights_is_refused(
    llama: Path, tmp_path: Path, ctc_speech_lm: Path
) -> None:
    part = copy_without(llama, tmp_path / "less", "norm")
    folder = Path(shutil.copytree(ctc_speech_lm, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"text_model_id": str(part)}))
    with pytest.raises(AdapterError, match=rf"{part} lacks 5 weight\(s\)"):
        HFAdapter(str(folder), device="cpu")


def test_tied_weights_and_buffers_need_not_be_there(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=400,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    assert HFAdapter(str(tmp_path), device="cpu").name == str(tmp_path)


def test_cut_weights_are_said_to_be_cut(qwen2_audio: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(qwen2_audio, tmp_path / "model"))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AdapterError, match=r"cannot be loaded: .*\n.*is cut or damaged"):
        HFAdapter(str(folder), device="cpu")


def test_encoder_decoders_are_no_language_models(tmp_path: Path) -> None:
    for model_type, remedy in (
        ("whisper", "speech-cascade --model_args asr=…,lm=…"),
        ("speech_to_text", "speech-cascade --model_args asr=…,lm=…"),
        ("bart", "give a causal LM or a speech LLM"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        with pytest.raises(AdapterError, match=f"'{model_type}' is an encoder-decoder.*{remedy}"):
            HFAdapter(str(tmp_path), device="cpu")


def test_a_tokenizer_that_knows_no_audio_is_named(qwen2_audio: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(qwen2_audio, tmp_path / "model"))
    tiny.tokenizer().save_pretrained(folder)
    with pytest.raises(AdapterError, match=r"tokenizer of .*model has no '<\|AUDIO\|>'.*Put the"):
        HFAdapter(str(folder), device="cpu")


@pytest.mark.parametrize("name", ["qwen2_audio", "qwen2_5_omni", "llama"])
def test_tokenizer_files_that_are_missing_are_named(tmp_path: Path, name: str) -> None:
    if name == "qwen2_5_omni":
        qwen2_5_omni.save(tmp_path)
    else:
        getattr(tiny, name)(tmp_path)
    for path in tmp_path.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(AdapterError, match=rf"{tmp_path}[^/]*Put the tokenizer files of this"):
        HFAdapter(str(tmp_path), device="cpu")


@pytest.mark.parametrize("form", ["{0}/no", "./no", "~/no", "a/b/c", "ck/no"])
def test_a_folder_that_is_not_there_is_not_sought_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(
        transformers.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("sought")
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ck" / "other").mkdir(parents=True)
    (tmp_path / "ck" / "other" / "config.json").touch()
    given = form.format(tmp_path)
    with pytest.raises(AdapterError, match=f"pretrained={given} cannot be loaded: no such folder"):
        HFAdapter(given, device="cpu")
