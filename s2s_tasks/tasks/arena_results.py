"""What can be measured of an answer to a spoken instruction without judging it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import jiwer
import opencc
from transformers import pipeline
from transformers.models.whisper.english_normalizer import (
    BasicTextNormalizer,
    EnglishTextNormalizer,
)

from s2s_tasks.audio import Audio, probe
from s2s_tasks.data.published.records import language_of
from s2s_tasks.errors import S2STasksError

log = logging.getLogger(__name__)

UNSPACED = ("zh", "ja", "th")
"""Languages written without spaces: errors are counted in characters."""
MEASURING = ("pyloudnorm", "speechmos")
"""What the extra `arena` brings: the tasks do without, and measure no sound then."""


def answer_metrics(doc: dict[str, Any], reply: str, asr: str | None = None) -> dict[str, float]:
    """Return the metrics that an answer allows; those of sound only where there is some.

    Args:
        doc: the question; `answer`, where the model speaks, says where the recording is (`path`)
            and whether it holds anything (`status`).
        reply: what the model wrote.
        asr: a recognizer that hears the answer; without it there is no `wer`.
    """
    audio = _recording(doc.get("answer"))
    metrics = {
        "answered": float(bool(reply.strip()) or audio is not None),
        "spoken": float(audio is not None),
        "characters": float(len(reply.strip())),
    }
    if audio is None:
        if doc.get("answer", {}).get("status", "text_only") == "text_only":
            _warn_of_text()
        return metrics
    if all(map(find_spec, MEASURING)):
        metrics |= _sound(audio)
    else:
        _warn_of_missing_packages()
    if asr and reply.strip():
        language = _language(reply, doc["language"])
        doc["answer_heard"] = transcribe(audio, asr, language)
        metrics["wer"] = error_rate(reply, doc["answer_heard"], language)
    return metrics


def _sound(audio: Audio) -> dict[str, float]:
    from s2s_tasks.arena.features import features, speech_quality

    measured = features(audio)
    return {
        "seconds": measured["seconds"],
        "silence_share": measured["silence"],
        "speech_rate": measured["rate"],
        "dnsmos": speech_quality(audio),
    }


def error_rate(said: str, heard: str, language: str) -> float:
    """Return the word error rate of what was heard; of characters in `UNSPACED` languages.

    Case, punctuation, and traditional or simplified characters do not count; a text of nothing
    else is wrong where anything is heard.
    """
    reference, hypothesis = _words(said, language), _words(heard, language)
    if not reference:
        return float(bool(hypothesis))
    if language in UNSPACED:
        return float(jiwer.cer("".join(reference), "".join(hypothesis)))
    return float(jiwer.wer(" ".join(reference), " ".join(hypothesis)))


def _words(text: str, language: str) -> list[str]:
    """Return the words as Whisper's normalisers write them, which leave dots of `…` alone."""
    if language == "zh":
        text = _simplifier().convert(text)
    normalise = EnglishTextNormalizer({}) if language == "en" else BasicTextNormalizer()
    return [word for word in normalise(text).split() if any(map(str.isalnum, word))]


@cache
def _simplifier() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


def transcribe(audio: Audio, asr: str, language: str) -> str:
    """Return what a recognizer hears, decoded greedily; it is told the language where it can be."""
    recognizer = load_recognizer(asr)
    rate = recognizer.feature_extractor.sampling_rate
    generation = getattr(recognizer.model, "generation_config", None)
    # The pipeline's own default is five beams, at five times the cost.
    options: dict[str, Any] = {"num_beams": 1}
    if getattr(generation, "lang_to_id", None):
        options["language"] = language
    sound = {"raw": audio.load(rate), "sampling_rate": rate}
    # Whisper hears 30 s at a time, and goes on by its own time stamps.
    long = audio.seconds > (getattr(recognizer.feature_extractor, "chunk_length", None) or 1e9)
    text: str = recognizer(sound, return_timestamps=long or None, generate_kwargs=options)["text"]
    return text.strip()


@cache
def load_recognizer(asr: str) -> Any:
    """Return a recognizer of transformers, loaded once.

    Raises:
        S2STasksError: when it cannot be loaded.
    """
    try:
        return pipeline("automatic-speech-recognition", model=str(asr))
    # transformers tells of a model that does not fit in many ways, a bare Exception among them.
    except Exception as error:
        raise S2STasksError(
            f"answer_asr={asr} cannot be loaded: {str(error).strip()}\nGive a folder or a hub id "
            "of a speech recognition model that transformers knows, e.g. openai/whisper-base"
        ) from error


def _language(reply: str, asked: str) -> str:
    """Return the language of a reply: of a translation, not that of its question."""
    return language_of(reply) if asked in ("en", "zh") else asked


def _recording(answer: Mapping[str, Any] | None) -> Audio | None:
    """Return the recording of an answer, if there is one with something to hear."""
    if not answer or answer.get("status") != "ok" or not answer.get("path"):
        return None
    return probe(answer["path"])


@cache
def _warn_of_text() -> None:
    log.warning(
        "This model answers in text: metrics of speech (seconds, silence_share, speech_rate, "
        "dnsmos, wer) are left out"
    )


@cache
def _warn_of_missing_packages() -> None:
    log.warning(
        "seconds, silence_share, speech_rate and dnsmos are left out: %s are needed; "
        "pip install 's2s-tasks[arena]'",
        " and ".join(MEASURING),
    )
