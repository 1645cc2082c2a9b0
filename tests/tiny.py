"""Tiny random-weight checkpoints of real architectures, written as `from_pretrained` reads them.

The weights are scaled up (std 1.5 / sqrt(fan_in), 4 / sqrt(fan_in) for the output layer): with the
usual 0.02 all logits are alike, and a wrong position or a dropped recording would not show.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma4Config,
    Gemma4ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2_5OmniThinkerConfig,
    Qwen2_5OmniThinkerForConditionalGeneration,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    Wav2Vec2Config,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2FeatureExtractor,
    Wav2Vec2ForCTC,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperModel,
)

from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM, CTCSpeechLMConfig

CORPUS = [
    "Below is a segment of alternating speech and text content: the dog ran to the garden.",
    "She opened the window and looked at the sea. He was glad that it rained at last.",
    "下面是一段语音和文本交错的内容：小明去公园散步，天气很好。他高兴地回家了。",
]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer(*special: str) -> PreTrainedTokenizerFast:
    """Train a small byte-level BPE."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *special]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=names,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(special),
    )


def spread(model: torch.nn.Module, seed: int = 0) -> None:
    """Draw every weight anew, large enough that logits differ by nats."""
    generator = _seeded(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                fan_in = weight[0].numel()
                gain = 4.0 if "lm_head" in name else 1.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * gain / fan_in**0.5)
            elif "norm" not in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.1)


def llama(folder: Path, seed: int = 0) -> Path:
    """Write a causal LM that only reads, with a chat template."""
    words = tokenizer()
    words.chat_template = CHAT_TEMPLATE
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=None,
        eos_token_id=0,
    )
    model = LlamaForCausalLM(config)
    spread(model, seed)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def qwen2_audio(folder: Path, seconds: int = 4) -> Path:
    """Write a Qwen2-Audio that hears `seconds` of audio."""
    words = tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
    config = Qwen2AudioConfig(
        audio_config={
            "model_type": "qwen2_audio_encoder",
            "num_mel_bins": 16,
            "d_model": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "max_source_positions": seconds * 50,
        },
        text_config={
            "model_type": "qwen2",
            "vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
        },
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    model = Qwen2AudioForConditionalGeneration(config)
    spread(model)
    model.save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=16, chunk_length=seconds)
    Qwen2AudioProcessor(feature_extractor=extractor, tokenizer=words).save_pretrained(folder)
    return folder


AUDIO_TOKEN = 390
"""Of the two models below, whose vocabulary is 400; special tokens follow."""


def gemma4() -> Gemma4ForConditionalGeneration:
    """Make a Gemma 4 with sliding windows of 8 positions and caches shared between layers."""
    config = Gemma4Config(
        audio_config={
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "subsampling_conv_channels": [16, 8],
            "output_proj_dims": 32,
            "conv_kernel_size": 3,
        },
        vision_config=None,
        text_config={
            "vocab_size": 400,
            "vocab_size_per_layer_input": 400,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "global_head_dim": 8,
            "hidden_size_per_layer_input": 8,
            "sliding_window": 8,
            "num_kv_shared_layers": 2,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "max_position_embeddings": 512,
        },
        audio_token_id=AUDIO_TOKEN,
        image_token_id=AUDIO_TOKEN + 1,
        video_token_id=AUDIO_TOKEN + 2,
        boa_token_id=AUDIO_TOKEN + 3,
        eoa_token_index=AUDIO_TOKEN + 4,
        boi_token_id=AUDIO_TOKEN + 5,
        eoi_token_id=AUDIO_TOKEN + 6,
    )
    model = Gemma4ForConditionalGeneration(config).eval()
    spread(model)
    return model


def omni_thinker() -> Qwen2_5OmniThinkerForConditionalGeneration:
    """Make the thinker of a Qwen2.5-Omni, with multimodal rotary positions."""
    config = Qwen2_5OmniThinkerConfig(
        audio_config={
            "num_mel_bins": 16,
            "d_model": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "max_source_positions": 200,
            "n_window": 20,
            "output_dim": 32,
        },
        vision_config={
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [0],
        },
        text_config={
            "vocab_size": 400,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [1, 1, 2],
            },
        },
        audio_token_index=AUDIO_TOKEN,
        image_token_index=AUDIO_TOKEN + 1,
        video_token_index=AUDIO_TOKEN + 2,
        audio_start_token_id=AUDIO_TOKEN + 3,
        audio_end_token_id=AUDIO_TOKEN + 4,
        vision_start_token_id=AUDIO_TOKEN + 5,
        vision_end_token_id=AUDIO_TOKEN + 6,
    )
    model = Qwen2_5OmniThinkerForConditionalGeneration(config).eval()
    spread(model)
    return model


def wav2vec2(folder: Path) -> Path:
    """Write a CTC speech recognizer over single letters."""
    letters = ["<pad>", "<unk>", "|", *"abcdefghij"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(letters)}))
    config = Wav2Vec2Config(
        vocab_size=len(letters),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        conv_dim=(8, 8),
        conv_kernel=(100, 32),
        conv_stride=(80, 20),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        pad_token_id=0,
    )
    model = Wav2Vec2ForCTC(config)
    spread(model)
    model.save_pretrained(folder)
    words = Wav2Vec2CTCTokenizer(
        str(folder / "vocab.json"), pad_token="<pad>", unk_token="<unk>", word_delimiter_token="|"
    )
    words.save_pretrained(folder)
    Wav2Vec2FeatureExtractor().save_pretrained(folder)
    return folder


def whisper(folder: Path, seconds: int = 4) -> Path:
    """Write a Whisper that hears `seconds` of audio."""
    config = WhisperConfig(
        vocab_size=8,
        num_mel_bins=16,
        d_model=16,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        max_source_positions=seconds * 50,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
    )
    model = WhisperModel(config)
    spread(model)
    model.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=16, chunk_length=seconds).save_pretrained(folder)
    return folder


def ctc_speech_lm(folder: Path, whisper: Path, llama: Path) -> Path:
    """Write a projector between the two, which hears 60 of the LM's tokens."""
    words = tokenizer()
    config = CTCSpeechLMConfig(
        audio_model_id=str(whisper),
        text_model_id=str(llama),
        audio_token_id=len(words),
        vocabulary_size=60,
        projector_hidden_size=16,
        projector_layers=1,
        projector_heads=2,
        projector_intermediate_size=32,
    )
    model = CTCSpeechLM(
        config,
        WhisperModel.from_pretrained(whisper).encoder,
        LlamaForCausalLM.from_pretrained(llama),
    )
    spread(model.projector)
    model.projector.vocabulary.copy_(torch.randperm(len(words), generator=_seeded(1))[:60])
    model.save_pretrained(folder)
    return folder


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
