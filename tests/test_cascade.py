"""`CascadeAdapter`: speech scored through a transcript."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import transformers
from scoring import scores

from s2s_tasks.adapters.cascade import CascadeAdapter
from s2s_tasks.adapters.contract import AdapterError, Generation
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Prompt, Request


@pytest.fixture(scope="module")
def cascade(wav2vec2: Path, llama: Path) -> CascadeAdapter:
    return CascadeAdapter(str(wav2vec2), str(llama), device="cpu", dtype="float32")


def test_speech_equals_text_of_the_transcript(
    cascade: CascadeAdapter, wav2vec2: Path, llama: Path, recordings: list[Audio]
) -> None:
    recognizer = transformers.pipeline("automatic-speech-recognition", model=str(wav2vec2))
    requests = [
        Request(Prompt.of("Below: ", audio), ending)
        for audio in recordings
        for ending in (" the dog ran.", " He was glad.")
    ]
    spoken = scores(cascade, requests, 4)
    reader = HFAdapter(str(llama), device="cpu", dtype="float32")
    for request, score in spoken.items():
        (audio,) = request.prompt.audio
        transcript = recognizer({"raw": audio.load(16000), "sampling_rate": 16000})["text"].strip()
        assert score.transcripts == (transcript,)
        written = Request(Prompt.of("Below: " + transcript), request.continuation)
        expected = scores(reader, [written], 1)[written]
        assert score.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-4)


def test_a_recording_is_heard_once(
    cascade: CascadeAdapter, recordings: list[Audio], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    recognize = cascade._pipeline
    cascade._transcripts.clear()

    def count(inputs: list, **options: object) -> list:
        heard.append(len(inputs))
        return recognize(inputs, **options)

    monkeypatch.setattr(cascade, "_pipeline", count)
    requests = [
        Request(Prompt.of("Below: ", audio), ending)
        for audio in recordings
        for ending in (" a.", " b.", " c.")
    ]
    scores(cascade, requests, 2)
    assert sum(heard) == len(recordings)


def test_generation_after_speech_equals_that_after_the_transcript(
    cascade: CascadeAdapter, recordings: list[Audio]
) -> None:
    how = Generation(8)
    (prefix,) = cascade.render([Prompt.of("Below: ", recordings[0])])
    written = cascade.lm.render([Prompt.of("Below: " + prefix.transcripts[0])])
    assert cascade.generate([prefix], how) == cascade.lm.generate(written, how)


def test_an_asr_that_is_none(llama: Path) -> None:
    with pytest.raises(AdapterError, match="asr=no/such-asr cannot be loaded"):
        CascadeAdapter("no/such-asr", str(llama))


def test_one_recording_in_two_languages_is_heard_twice(
    wav2vec2: Path, llama: Path, recordings: list[Audio], monkeypatch: pytest.MonkeyPatch
) -> None:
    cascade = CascadeAdapter(asr=str(wav2vec2), lm=str(llama), device="cpu", dtype="float32")
    cascade._takes_language = True  # as Whisper does
    monkeypatch.setattr(
        cascade, "_recognize", lambda sounds, language: [f"heard in {language}"] * len(sounds)
    )
    prompts = [Prompt.of(replace(recordings[0], language=code)) for code in ("en", "zh")]
    prefixes = cascade.render(prompts, [cascade.prepare(prompt) for prompt in prompts])
    assert [prefix.transcripts for prefix in prefixes] == [("heard in en",), ("heard in zh",)]
