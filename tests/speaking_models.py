"""Tiny random-weight checkpoints of models that speak, written as `from_pretrained` reads them."""

from __future__ import annotations

import json
from pathlib import Path

import tiny
import torch
from families import qwen2_5_omni
from transformers import (
    CsmConfig,
    CsmForConditionalGeneration,
    CsmProcessor,
    EncodecFeatureExtractor,
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    VitsConfig,
    VitsModel,
    VitsTokenizer,
)

VOICES = ("Chelsie", "Ethan")


def omni(folder: Path) -> Path:
    """Write a Qwen2.5-Omni with all its parts, and two voices."""
    qwen2_5_omni.save(folder)
    config = Qwen2_5OmniConfig.from_pretrained(folder)
    talker = config.talker_config
    talker.tts_codec_pad_token_id = 12
    talker.tts_codec_start_token_id = 13
    talker.tts_codec_end_token_id = 14
    talker.tts_codec_mask_token_id = 15
    talker.tts_text_start_token_id = 21
    talker.tts_text_end_token_id = 22
    talker.tts_text_pad_token_id = 23
    # Every code that the talker may draw has an embedding.
    config.token2wav_config.dit_config.num_embeds = 17
    model = Qwen2_5OmniForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    random = torch.Generator().manual_seed(3)
    voices = {
        name: {
            "bos_token": 30 + index,
            "cond": torch.randn(1, 8, generator=random),
            "ref_mel": torch.randn(1, 20, 8, generator=random),
        }
        for index, name in enumerate(VOICES)
    }
    torch.save(voices, folder / "spk_dict.pt")
    return folder


def vits(folder: Path, speakers: int = 1) -> Path:
    """Write a VITS over letters, as facebook/mms-tts-eng is one."""
    letters = ["<pad>", " ", *"abcdefghijklmnopqrstuvwxyz'"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(letters)}))
    config = VitsConfig(
        vocab_size=len(letters),
        hidden_size=16,
        num_hidden_layers=1,
        ffn_dim=16,
        flow_size=8,
        spectrogram_bins=9,
        upsample_initial_channel=16,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1]],
        depth_separable_num_layers=1,
        duration_predictor_filter_channels=16,
        duration_predictor_num_flows=2,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=1,
        posterior_encoder_num_wavenet_layers=1,
        num_speakers=speakers,
        speaker_embedding_size=4 if speakers > 1 else 0,
    )
    torch.manual_seed(5)
    VitsModel(config).save_pretrained(folder)
    VitsTokenizer(str(folder / "vocab.json"), phonemize=False, unk_token="<pad>").save_pretrained(
        folder
    )
    return folder


def csm(folder: Path) -> Path:
    """Write a CSM with its depth decoder and a Mimi codec."""
    words = tiny.tokenizer("<|AUDIO|>", "<|audio_eos|>", "<|begin_of_text|>")
    audio, end = words.convert_tokens_to_ids(["<|AUDIO|>", "<|audio_eos|>"])
    layers = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    config = CsmConfig(
        num_codebooks=4,
        vocab_size=35,
        text_vocab_size=len(words),
        codebook_pad_token_id=34,
        codebook_eos_token_id=0,
        pad_token_id=audio,
        bos_token_id=words.convert_tokens_to_ids("<|begin_of_text|>"),
        audio_token_id=audio,
        audio_eos_token_id=end,
        depth_decoder_config={
            "num_codebooks": 4,
            "backbone_hidden_size": 16,
            "vocab_size": 35,
            "max_position_embeddings": 5,
            **layers,
        },
        codec_config={
            "model_type": "mimi",
            "hidden_size": 16,
            "num_filters": 4,
            "upsampling_ratios": [4, 4],
            "codebook_size": 64,
            "codebook_dim": 8,
            "num_quantizers": 4,
            "vector_quantization_hidden_dimension": 8,
            "upsample_groups": 16,
            "num_hidden_layers": 1,
            "intermediate_size": 32,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
        },
        **layers,
    )
    model = CsmForConditionalGeneration(config)
    tiny.spread(model)
    random = torch.Generator().manual_seed(4)
    for name, buffer in model.named_buffers():
        if name.endswith("embed_sum"):  # the codebooks, which training fills
            buffer.copy_(torch.randn(buffer.shape, generator=random))
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    extractor = EncodecFeatureExtractor(sampling_rate=24_000)
    CsmProcessor(extractor, words).save_pretrained(folder)
    return folder
