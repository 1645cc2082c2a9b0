"""The models that lm-eval knows by name: one class each, which only says which adapter."""

from __future__ import annotations

from s2s_tasks.adapters.cascade import CascadeAdapter
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.lm import SpeechLM


class SpeechHF(SpeechLM):
    """`--model speech-hf`: a transformers model that hears, or one that only reads."""

    adapter_class = HFAdapter


class SpeechCascade(SpeechLM):
    """`--model speech-cascade`: an ASR writes down the speech, a text LM answers."""

    adapter_class = CascadeAdapter
