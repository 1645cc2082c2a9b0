"""Qwen2-Audio of middle size with random weights, and its text LM alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    Qwen2Config,
    Qwen2ForCausalLM,
    WhisperFeatureExtractor,
)

from s2s_tasks.data.sources import mini_rows

LONGEST_SECONDS = 12
"""What the model hears; each recording is padded to it, as the published model pads to 30."""
TOKENS = 2000
"""More would make whole endings, which several questions share, one token: with these an ending
of sCMMLU has 5.5 tokens, about as with the published tokenizer."""
TEXT = {
    "vocab_size": 16_000,
    "hidden_size": 640,
    "intermediate_size": 1728,
    "num_hidden_layers": 10,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "max_position_embeddings": 2048,
}
AUDIO = {
    "model_type": "qwen2_audio_encoder",
    "num_mel_bins": 80,
    "d_model": 384,
    "encoder_layers": 6,
    "encoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "max_source_positions": LONGEST_SECONDS * 50,
}
SMALL_SECONDS = 2
SMALL_TEXT = {"vocab_size": 156_032, "hidden_size": 128, "intermediate_size": 256}
SMALL_TEXT |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
SMALL_AUDIO = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2}
SMALL_AUDIO |= {"encoder_ffn_dim": 64, "max_source_positions": SMALL_SECONDS * 50}


def write_hearing(folder: Path) -> Path:
    """Write the speech LLM."""
    return _write_qwen2_audio(folder, AUDIO, TEXT, LONGEST_SECONDS)


def write_small(folder: Path) -> Path:
    """Write a speech LLM of few layers with the vocabulary of the published one.

    It takes little time, and shows what fills memory: logits that nobody needs, and all that
    grows with the number of questions.
    """
    return _write_qwen2_audio(folder, AUDIO | SMALL_AUDIO, TEXT | SMALL_TEXT, SMALL_SECONDS)


def write_reading(folder: Path) -> Path:
    """Write the speech LLM's text LM."""
    model = Qwen2ForCausalLM(Qwen2Config(**TEXT))
    _spread(model)
    model.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder


def _write_qwen2_audio(
    folder: Path, audio: dict[str, Any], text: dict[str, Any], seconds: int
) -> Path:
    words = _tokenizer()
    config = Qwen2AudioConfig(
        audio_config=audio,
        text_config={"model_type": "qwen2", **text},
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    model = Qwen2AudioForConditionalGeneration(config)
    _spread(model)
    model.save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=80, chunk_length=seconds)
    Qwen2AudioProcessor(feature_extractor=extractor, tokenizer=words).save_pretrained(folder)
    return folder


def _tokenizer() -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sets = ("sstorycloze", "zh_sstorycloze", "scmmlu")
    texts = [text for s in sets for row in mini_rows(s) for text in (row.context, *row.endings)]
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=special[1:],
    )


def _spread(model: torch.nn.Module) -> None:
    """Draw weights large enough that logits differ by nats: else a wrong score would not show."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                gain = 4.0 if "lm_head" in name else 1.0
                scale = gain / weight[0].numel() ** 0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
