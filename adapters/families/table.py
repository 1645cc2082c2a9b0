"""Every architecture that is known to work, and what is particular to it."""

from __future__ import annotations

from s2s_tasks.adapters.families import (
    gemma3n,
    granite_speech,
    musicflamingo,
    qwen2_5_omni_speech,
    switched,
    ultravox,
    voxtral,
)
from s2s_tasks.adapters.families.family import Family

FAMILIES = {
    "qwen2_audio": Family(
        "Qwen2-Audio",
        ("Qwen/Qwen2-Audio-7B", "Qwen/Qwen2-Audio-7B-Instruct"),
        longest_audio=30,
    ),
    "glmasr": Family(
        "GLM-ASR",
        ("zai-org/GLM-ASR-Nano-2512",),
        markup="<|begin_of_audio|><|pad|><|end_of_audio|>",
        longest_audio=630,
        several=False,
    ),
    "voxtral": Family(
        "Voxtral",
        ("mistralai/Voxtral-Mini-3B-2507", "mistralai/Voxtral-Small-24B-2507"),
        load_processor=voxtral.load_processor,
        needs="mistral-common",
        chat_roles=("user",),
    ),
    "granite_speech": Family(
        "Granite Speech",
        ("ibm-granite/granite-speech-3.3-2b", "ibm-granite/granite-speech-3.3-8b"),
        audio_config="encoder_config",
        load_processor=granite_speech.load_processor,
        finish=switched.require_adapter,
        batches_audio=False,
        tower="model.encoder",
        switched_adapter=True,
        needs="peft",
    ),
    "granite_speech_plus": Family(
        "Granite Speech Plus",
        ("ibm-granite/granite-speech-4.1-2b-plus",),
        audio_config="encoder_config",
        load_processor=granite_speech.load_processor,
        finish=switched.require_adapter,
        batches_audio=False,
        tower="model.encoder",
        chat_roles=("user",),
        switched_adapter=True,
    ),
    "phi4_multimodal": Family(
        "Phi-4-multimodal",
        ("microsoft/Phi-4-multimodal-instruct",),
        finish=switched.load_speech_adapter,
        batches_audio=False,
        embedder="model.embed_tokens_extend",
        tower="model.embed_tokens_extend.audio_embed.encoder",
        most_positions=4096,
        switched_adapter=True,
        needs="peft",
        arguments="revision=refs/pr/70",
        remark="at most 4,096 positions; a recording beside a longer one hears its padding, so "
        "few-shot means little",
    ),
    "vibevoice_asr": Family(
        "VibeVoice-ASR",
        ("microsoft/VibeVoice-ASR-HF",),
        audio_config="acoustic_tokenizer_encoder_config",
        options={"sample": False},
        system_option="system_prompt",
        keeps_audio=False,
        remark="draws noise by default; scored without (`sample=False`)",
    ),
    "apertus1p5": Family("Apertus 1.5", ("swiss-ai/Apertus-v1.5-8B",), keeps_audio=False),
    "ultravox": Family(
        "Ultravox",
        ("fixie-ai/ultravox-v0_5-llama-3_2-1b", "fixie-ai/ultravox-v0_5-llama-3_1-8b"),
        load_model=ultravox.load_model,
        load_processor=ultravox.load_processor,
        batches_audio=False,
        needs="peft",
        arguments="trust_remote_code=true",
        remark="its repositories bring their own code, and name others that hold the LM",
        verified="tiny weights, its own code once by hand; tests run an imitation",
    ),
    "kyutai_speech_to_text": Family(
        "Kyutai STT",
        refused="each position is a frame of 80 ms, its text token and its sound together, so that "
        "a text has no likelihood before it is aligned with the frames",
    ),
    "voxtral_realtime": Family(
        "Voxtral Realtime",
        refused="its text goes along with the audio, position by position, and none follows it",
    ),
    "moshi": Family(
        "Moshi",
        refused="it writes a text token or nothing for each frame of 80 ms, so that a text has no "
        "likelihood before it is aligned with the frames",
    ),
    "gemma3n": Family(
        "Gemma 3n",
        ("google/gemma-3n-E2B-it", "google/gemma-3n-E4B-it"),
        adjust_config=gemma3n.leave_vision_out,
        keeps_audio=False,
        longest_audio=30,
    ),
    "gemma4": Family(
        "Gemma 4",
        ("google/gemma-4-E2B-it", "google/gemma-4-E4B-it"),
        keeps_audio=False,
        longest_audio=30,
    ),
    "gemma4_unified": Family("Gemma 4 unified", ("google/gemma-4-12B-it",), keeps_audio=False),
    "qwen3_asr": Family(
        "Qwen3-ASR",
        ("Qwen/Qwen3-ASR-1.7B-hf", "Qwen/Qwen3-ASR-0.6B-hf"),
        several=False,
        chat_roles=("system",),
    ),
    "audioflamingo3": Family(
        "Audio Flamingo 3",
        ("nvidia/audio-flamingo-3-hf",),
        longest_audio=600,
        several=False,
    ),
    "musicflamingo": Family(
        "Music Flamingo",
        ("nvidia/music-flamingo-2601-hf",),
        load_processor=musicflamingo.load_processor,
        longest_audio=1200,
        several=False,
    ),
    "qwen2_5_omni": Family(
        "Qwen2.5-Omni",
        ("Qwen/Qwen2.5-Omni-7B", "Qwen/Qwen2.5-Omni-3B"),
        scored_class="Qwen2_5OmniThinkerForConditionalGeneration",
        speaker=qwen2_5_omni_speech.Talker,
        remark="its Thinker alone is loaded; with `speech=DIR` all of it, and it speaks",
        longest_audio=300,
    ),
    "qwen3_omni_moe": Family(
        "Qwen3-Omni",
        ("Qwen/Qwen3-Omni-30B-A3B-Instruct",),
        scored_class="Qwen3OmniMoeThinkerForConditionalGeneration",
        batches_audio=False,
    ),
}
"""By `model_type`. A model that is not here is treated by transformers' conventions."""
