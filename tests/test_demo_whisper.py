"""The reader of CTranslate2's Whisper, on small files written here."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import WhisperConfig, WhisperForConditionalGeneration

from s2s_tasks.demo import ctranslate2, whisper
from s2s_tasks.errors import S2STasksError


def ctranslate2_bytes(
    variables: dict[str, NDArray[np.float16]], aliases: dict[str, str], version: int = 6
) -> bytes:
    def string(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    out = struct.pack("<I", version) + string("WhisperSpec") + struct.pack("<I", 3)
    out += struct.pack("<I", len(variables))
    for name, array in variables.items():
        out += string(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        out += struct.pack("<BI", 4, array.nbytes) + array.tobytes()
    out += struct.pack("<I", len(aliases))
    return out + b"".join(string(alias) + string(name) for alias, name in aliases.items())


def test_ctranslate2_variables_and_aliases(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    path = tmp_path / "model.bin"
    path.write_bytes(ctranslate2_bytes({"a/weight": array}, {"b/weight": "a/weight"}))
    found = ctranslate2.read(path)
    assert set(found) == {"a/weight", "b/weight"}
    np.testing.assert_array_equal(found["b/weight"], array)


def test_ctranslate2_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(ctranslate2_bytes({}, {}, version=5))
    with pytest.raises(S2STasksError, match="version 5"):
        ctranslate2.read(path)


def test_whisper_survives_the_way_through_ctranslate2(tmp_path: Path) -> None:
    config = WhisperConfig(
        vocab_size=7, num_mel_bins=5, d_model=128, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=6,
        decoder_ffn_dim=6, max_source_positions=4, max_target_positions=3,
        pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=1,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).half()
    for weight in model.parameters():  # also the biases, which start as zeros
        torch.nn.init.normal_(weight)
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    path = tmp_path / "model.bin"
    path.write_bytes(ctranslate2_bytes(as_ctranslate2(state, config), {}))
    back = whisper.rename(ctranslate2.read(path), config)
    del state["proj_out.weight"]  # tied to the embeddings
    assert set(back) == set(state)
    for name, array in state.items():
        np.testing.assert_array_equal(back[name], array, err_msg=name)


def as_ctranslate2(
    state: dict[str, NDArray[np.float16]], config: WhisperConfig
) -> dict[str, NDArray[np.float16]]:
    """CTranslate2's names, its attention projections stacked: queries, keys, values."""
    out: dict[str, NDArray[np.float16]] = {}

    def put(target: str, *sources: str) -> None:
        for kind in ("weight", "bias"):
            blank = np.zeros(config.d_model, np.float16)
            out[f"{target}/{kind}"] = np.concatenate(
                [state[f"{source}.{kind}"] if not (kind == "bias" and source.endswith("k_proj"))
                 else blank for source in sources]
            )  # fmt: skip

    def norm(target: str, source: str) -> None:
        out[f"{target}/gamma"], out[f"{target}/beta"] = (
            state[f"{source}.weight"], state[f"{source}.bias"],
        )  # fmt: skip

    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        out[f"{side}/position_encodings/encodings"] = state[f"model.{side}.embed_positions.weight"]
        norm(f"{side}/layer_norm", f"model.{side}.layer_norm")
        for layer in range(layers):
            ours, theirs = f"model.{side}.layers.{layer}", f"{side}/layer_{layer}"
            attention = f"{ours}.self_attn"
            put(f"{theirs}/self_attention/linear_0", *(f"{attention}.{x}_proj" for x in "qkv"))
            put(f"{theirs}/self_attention/linear_1", f"{attention}.out_proj")
            norm(f"{theirs}/self_attention/layer_norm", f"{attention}_layer_norm")
            if side == "decoder":
                attention = f"{ours}.encoder_attn"
                put(f"{theirs}/attention/linear_0", f"{attention}.q_proj")
                put(f"{theirs}/attention/linear_1", *(f"{attention}.{x}_proj" for x in "kv"))
                put(f"{theirs}/attention/linear_2", f"{attention}.out_proj")
                norm(f"{theirs}/attention/layer_norm", f"{attention}_layer_norm")
            put(f"{theirs}/ffn/linear_0", f"{ours}.fc1")
            put(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
            norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
    put("encoder/conv1", "model.encoder.conv1")
    put("encoder/conv2", "model.encoder.conv2")
    out["decoder/embeddings/weight"] = state["model.decoder.embed_tokens.weight"]
    return out
