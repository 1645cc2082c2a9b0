"""Voxtral: https://huggingface.co/docs/transformers/model_doc/voxtral."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
import tiny
import torch
from transformers import (
    VoxtralConfig,
    VoxtralForConditionalGeneration,
    VoxtralProcessor,
    WhisperFeatureExtractor,
)

SAMPLING_RATE = 16000
SPECIAL = {
    0: "<unk>",
    1: "<s>",
    2: "</s>",
    3: "[INST]",
    4: "[/INST]",
    5: "[AVAILABLE_TOOLS]",
    6: "[/AVAILABLE_TOOLS]",
    7: "[TOOL_RESULTS]",
    8: "[/TOOL_RESULTS]",
    9: "[TOOL_CALLS]",
    10: "[IMG]",
    11: "<pad>",
    12: "[IMG_BREAK]",
    13: "[IMG_END]",
    14: "[PREFIX]",
    15: "[MIDDLE]",
    16: "[SUFFIX]",
    17: "[SYSTEM_PROMPT]",
    18: "[/SYSTEM_PROMPT]",
    19: "[TOOL_CONTENT]",
    24: "[AUDIO]",
    25: "[BEGIN_AUDIO]",
    34: "[TRANSCRIBE]",
}
MERGES = (b" t", b"he", b" the", b" a", b"in", b"er", b"ed", b"at", b" s", b" w", b" was", b"ing")


def save(folder: Path) -> None:
    """Write a checkpoint; its tokenizer and its chat template are mistral-common's."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [SPECIAL.get(rank, f"<SPECIAL_{rank}>") for rank in range(40)]
    pieces = [*(bytes([byte]) for byte in range(256)), *MERGES]
    tekken = {
        "config": {
            "pattern": r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+",
            "num_vocab_tokens": len(pieces),
            "default_vocab_size": len(names) + len(pieces),
            "default_num_special_tokens": len(names),
            "version": "v7",
        },
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(names)
        ],
        "vocab": [
            {
                "rank": rank,
                "token_bytes": base64.b64encode(piece).decode(),
                "token_str": piece.decode(errors="replace"),
            }
            for rank, piece in enumerate(pieces)
        ],
        "audio": {
            "sampling_rate": SAMPLING_RATE,
            "frame_rate": 12.5,
            "audio_encoding_config": {"num_mel_bins": 128, "hop_length": 160, "window_size": 400},
            "chunk_length_s": 30.0,
        },
    }
    (folder / "tekken.json").write_text(json.dumps(tekken))
    config = VoxtralConfig(
        audio_config={
            "model_type": "voxtral_encoder",
            "num_mel_bins": 16,
            "hidden_size": 16,
            "intermediate_size": 64,  # four frames in one: always four times the hidden size
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_source_positions": 1500,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(names) + len(pieces),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 131072,
        },
        audio_token_id=24,
    )
    model = VoxtralForConditionalGeneration(config)
    tiny.spread(model)
    model.generation_config.pad_token_id = 11
    model.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=16, processor_class="VoxtralProcessor").save_pretrained(
        folder
    )


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = VoxtralForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), VoxtralProcessor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Put the recording's tokens, as mistral-common writes them in a user's turn, between texts.

    `AudioEncoder._encode_audio_tokens` makes `[BEGIN_AUDIO]` and `[AUDIO]` for each 80 ms of the
    padded waveform; `InstructTokenizerV7` puts parts one after another with nothing between them.
    """
    turn = processor.apply_chat_template([{"role": "user", "content": [_part(waveform)]}])
    assert turn["input_ids"][0, [0, 1, 2, -1]].tolist() == [1, 3, 25, 4]
    begin = torch.tensor(processor.tokenizer.encode(before))
    end = torch.tensor(
        processor.tokenizer.encode(after, add_special_tokens=False), dtype=torch.long
    )
    ids = torch.cat([begin, turn["input_ids"][0, 2:-1], end])[None]
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "input_features": turn["input_features"],
    }


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does; mistral-common refuses a system's turn beside audio."""
    turns = [{"role": "system", "content": system}] if system else []
    user = [_part(waveform), {"type": "text", "text": question}]
    return dict(processor.apply_chat_template([*turns, {"role": "user", "content": user}]))


def _part(waveform: npt.NDArray[np.float32]) -> dict[str, str]:
    # From a path the processor would make 16-bit samples; base64 stays as it is.
    with io.BytesIO() as file:
        soundfile.write(file, waveform, SAMPLING_RATE, format="WAV", subtype="FLOAT")
        return {"type": "audio", "base64": base64.b64encode(file.getvalue()).decode()}
