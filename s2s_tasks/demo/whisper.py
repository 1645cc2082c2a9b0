"""Whisper as CTranslate2 keeps it → a Hugging Face folder with model, generation and processor.

It gives what `openai/whisper-base` of the hub gives, stored in float16 as the source is.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperProcessor,
    WhisperTokenizer,
)

from s2s_tasks.demo import ctranslate2

HEAD_WIDTH = 64  # in every Whisper; CTranslate2 does not keep the number of heads
Variables = dict[str, NDArray[np.generic]]


def convert(files: Path, folder: Path) -> None:
    """`files` holds model.bin, config.json and tokenizer.json of faster-whisper."""
    variables = ctranslate2.read(files / "model.bin")
    tokens = _special_tokens(files / "tokenizer.json")
    config = _config(variables, tokens)
    config.save_pretrained(folder)
    state = {name: torch.tensor(array) for name, array in rename(variables, config).items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    source = json.loads((files / "config.json").read_text(encoding="utf-8"))
    _generation(source, tokens).save_pretrained(folder)
    shutil.copy(files / "tokenizer.json", folder)
    tokenizer = WhisperTokenizer.from_pretrained(
        folder, pad_token="<|endoftext|>", model_max_length=1024
    )
    features = WhisperFeatureExtractor(feature_size=config.num_mel_bins)
    WhisperProcessor(features, tokenizer).save_pretrained(folder)


def rename(variables: Variables, config: WhisperConfig) -> dict[str, NDArray[np.float16]]:
    """The variables under transformers' names, the fused projections taken apart."""
    state: Variables = {}
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            _layer(variables, f"{side}/layer_{layer}", state, f"model.{side}.layers.{layer}")
        _norm(variables, f"{side}/layer_norm", state, f"model.{side}.layer_norm")
        positions = variables[f"{side}/position_encodings/encodings"]
        state[f"model.{side}.embed_positions.weight"] = positions
    for conv in ("conv1", "conv2"):
        _linear(variables, f"encoder/{conv}", state, [f"model.encoder.{conv}"])
    state["model.decoder.embed_tokens.weight"] = variables["decoder/embeddings/weight"]
    return {name: array.astype(np.float16) for name, array in state.items()}


def _layer(variables: Variables, source: str, state: Variables, target: str) -> None:
    attentions: list[tuple[str, str, Sequence[str]]] = [
        ("self_attention", "self_attn", ("qkv", "out"))
    ]
    if source.startswith("decoder"):
        attentions.append(("attention", "encoder_attn", ("q", "kv", "out")))
    for theirs, ours, groups in attentions:
        for number, group in enumerate(groups):
            letters = ["out"] if group == "out" else list(group)
            targets = [f"{target}.{ours}.{letter}_proj" for letter in letters]
            _linear(variables, f"{source}/{theirs}/linear_{number}", state, targets)
        _norm(variables, f"{source}/{theirs}/layer_norm", state, f"{target}.{ours}_layer_norm")
    _linear(variables, f"{source}/ffn/linear_0", state, [f"{target}.fc1"])
    _linear(variables, f"{source}/ffn/linear_1", state, [f"{target}.fc2"])
    _norm(variables, f"{source}/ffn/layer_norm", state, f"{target}.final_layer_norm")


def _linear(variables: Variables, source: str, state: Variables, targets: list[str]) -> None:
    """One projection, or several that CTranslate2 fused along the rows."""
    for kind in ("weight", "bias"):
        pieces = np.split(variables[f"{source}/{kind}"], len(targets))
        for target, piece in zip(targets, pieces, strict=True):
            if not (kind == "bias" and target.endswith("k_proj")):  # keys have none: zeros
                state[f"{target}.{kind}"] = piece


def _norm(variables: Variables, source: str, state: Variables, target: str) -> None:
    state[f"{target}.weight"] = variables[f"{source}/gamma"]
    state[f"{target}.bias"] = variables[f"{source}/beta"]


def _special_tokens(tokenizer: Path) -> dict[str, int]:
    added = json.loads(tokenizer.read_text(encoding="utf-8"))["added_tokens"]
    return {token["content"]: token["id"] for token in added}


def _layers(variables: Variables, side: str) -> int:
    return sum(bool(re.fullmatch(rf"{side}/layer_\d+/ffn/layer_norm/gamma", v)) for v in variables)


def _config(variables: Variables, tokens: dict[str, int]) -> WhisperConfig:
    vocabulary, width = variables["decoder/embeddings/weight"].shape
    feed_forward = variables["encoder/layer_0/ffn/linear_0/weight"].shape[0]
    heads = width // HEAD_WIDTH
    end = tokens["<|endoftext|>"]
    return WhisperConfig(
        architectures=["WhisperForConditionalGeneration"],
        dtype="float16",
        vocab_size=vocabulary,
        num_mel_bins=variables["encoder/conv1/weight"].shape[1],
        d_model=width,
        encoder_layers=_layers(variables, "encoder"),
        decoder_layers=_layers(variables, "decoder"),
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=feed_forward,
        decoder_ffn_dim=feed_forward,
        max_source_positions=variables["encoder/position_encodings/encodings"].shape[0],
        max_target_positions=variables["decoder/position_encodings/encodings"].shape[0],
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=tokens["<|startoftranscript|>"],
        begin_suppress_tokens=None,  # the generation configuration has them
    )


def _generation(source: dict[str, Any], tokens: dict[str, int]) -> GenerationConfig:
    """The hub's generation configuration; `source` is faster-whisper's config.json."""
    names = {number: token for token, number in tokens.items()}
    end = tokens["<|endoftext|>"]
    return GenerationConfig(
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=tokens["<|startoftranscript|>"],
        prev_sot_token_id=tokens["<|startofprev|>"],
        no_timestamps_token_id=tokens["<|notimestamps|>"],
        is_multilingual=True,
        task="transcribe",  # unless told otherwise, after the language was detected
        lang_to_id={names[number]: number for number in source["lang_ids"]},
        task_to_id={task: tokens[f"<|{task}|>"] for task in ("transcribe", "translate")},
        suppress_tokens=source["suppress_ids"],
        begin_suppress_tokens=source["suppress_ids_begin"],
        alignment_heads=source["alignment_heads"],
        max_initial_timestamp_index=50,  # 1 s
        max_length=448,  # tokens
        return_timestamps=False,
    )
