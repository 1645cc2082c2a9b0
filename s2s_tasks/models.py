"""The models that lm-eval knows by name: one class each, which only says which adapter."""

from __future__ import annotations

from s2s_tasks.adapters.cascade import CascadeAdapter
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.demo import SPEECH_DEMO
from s2s_tasks.lm import SpeechLM


class SpeechHF(SpeechLM):
    """`--model speech-hf`: a transformers model that hears, or one that only reads."""

    adapter_class = HFAdapter


def speech_demo(
    *,
    device: str | None = None,
    dtype: str = "auto",
    audio_cache: str | None = None,
    speaks: bool = False,
) -> HFAdapter:
    """Load the checkpoint that comes with the package, which only writes."""
    del speaks
    return HFAdapter(str(SPEECH_DEMO), device=device, dtype=dtype, audio_cache=audio_cache)


class SpeechDemo(SpeechLM):
    """`--model speech-demo`: `speech-hf` on the small speech LLM that comes with the package."""

    adapter_class = speech_demo


class SpeechCascade(SpeechLM):
    """`--model speech-cascade`: an ASR writes down the speech, a text LM answers, a TTS says it."""

    adapter_class = CascadeAdapter
