"""Judges: what they hear, what they are asked, what becomes of their replies."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import chat_server
import numpy as np
import pytest
import soundfile
from arena_sounds import RATE, asked, put, tone
from chat_server import heard, parts, said, serving, verdict
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.arena.features import loudness
from s2s_tasks.arena.judges.contract import Judge, JudgeError
from s2s_tasks.arena.judges.local import LocalJudge
from s2s_tasks.arena.judges.openai_chat import OpenAIChatJudge
from s2s_tasks.arena.judges.presenting import LOUDNESS, PEAK, Presentation, equalise, wav
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.records import CRITERIA, Instruction
from s2s_tasks.audio import Audio


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sounds")


@pytest.fixture(scope="module")
def instruction(folder: Path) -> Instruction:
    return asked(folder)


@pytest.fixture(scope="module")
def low(folder: Path) -> Audio:
    return put(folder, "low", tone(200, 1.2, 0.9))


@pytest.fixture(scope="module")
def high(folder: Path) -> Audio:
    return put(folder, "high", tone(1000, 0.9, 0.01, rate=22050), 22050)


# What a judge hears.


@given(
    st.lists(st.tuples(st.floats(0.001, 15), st.floats(0.1, 1)), min_size=1, max_size=2),
    st.booleans(),
    st.integers(0, 99),
)
def test_answers_get_one_loudness_and_are_never_clipped(
    shapes: list[tuple[float, float]], peaky: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    signals = [
        (level * random.normal(size=round(seconds * RATE))).astype(np.float32)
        for level, seconds in shapes
    ]
    if peaky:
        signals[0][len(signals[0]) // 2] = 40 * np.abs(signals[0]).max()
    made = equalise(signals, RATE)
    levels = [loudness(signal, RATE) for signal in made]
    assert max(levels) - min(levels) < 0.1
    assert max(levels) < LOUDNESS + 0.1
    loudest = max(float(np.abs(signal).max()) for signal in made)
    assert loudest <= PEAK * 1.0001
    assert max(levels) > LOUDNESS - 0.1 or loudest > PEAK * 0.999


def test_silence_stays_silence() -> None:
    silence = np.zeros(RATE, np.float32)
    made = equalise([silence, tone(300)], RATE)
    np.testing.assert_array_equal(made[0], silence)
    assert loudness(made[1], RATE) == pytest.approx(LOUDNESS, abs=0.1)


def test_three_recordings_with_texts_between(
    instruction: Instruction, low: Audio, high: Audio
) -> None:
    question = replace(instruction, evaluation="Is it slow?")
    segments = Presentation(Rubric(), 24000).segments(question, low, high)
    kinds = ["text" if isinstance(segment, str) else "sound" for segment in segments]
    assert kinds == ["text", "text", "sound", "text", "sound", "text", "sound", "text"]
    texts = [segment for segment in segments if isinstance(segment, str)]
    assert texts[1:4] == ["\nThe instruction:\n", "\nThe first answer:\n", "\nThe second answer:\n"]
    assert "Is it slow?" in texts[0] and "secret" not in "".join(texts)
    sounds = [segment for segment in segments if not isinstance(segment, str)]
    for sound, seconds, pitch_hz in zip(sounds, (0.8, 1.2, 0.9), (300, 200, 1000), strict=True):
        assert len(sound) == pytest.approx((seconds + 1) * 24000, abs=2)
        assert not sound[-24000:].any()
        assert chat_server.tone(sound[:-24000], 24000) == pytest.approx(pitch_hz, abs=3)
        assert loudness(sound[:-24000], 24000) == pytest.approx(LOUDNESS, abs=0.1)


def test_one_recording_with_times(instruction: Instruction, low: Audio, high: Audio) -> None:
    presentation = Presentation(Rubric(), together=True)
    text, sound, closing = presentation.segments(instruction, low, high)
    assert isinstance(text, str) and isinstance(closing, str) and not isinstance(sound, str)
    assert "The first answer: 1.8 to 3.0 s. The second answer: 4.0 to 4.9 s." in text
    assert len(sound) == pytest.approx((0.8 + 1.2 + 0.9 + 3) * RATE, abs=3)
    assert chat_server.tone(sound[int(1.9 * RATE) : int(2.9 * RATE)], RATE) == 200
    assert not sound[int(3.05 * RATE) : int(3.95 * RATE)].any()


def test_one_recording_with_spoken_cues(
    instruction: Instruction, low: Audio, high: Audio, tmp_path: Path
) -> None:
    presentation = Presentation(Rubric(), cues=tmp_path)
    with pytest.raises(JudgeError, match=r"needs instruction.wav, first.wav, second.wav"):
        presentation.segments(instruction, low, high)
    for name, hz in (("instruction", 400), ("first", 500), ("second", 600)):
        put(tmp_path, name, tone(hz, 0.5))
    _, sound, _ = Presentation(Rubric(), cues=tmp_path).segments(instruction, low, high)
    assert not isinstance(sound, str)
    starts = np.cumsum([0, 1.5, 1.8, 1.5, 2.2, 1.5])
    found = [
        chat_server.tone(sound[int((s + 0.1) * RATE) : int((s + 0.4) * RATE)], RATE) for s in starts
    ]
    assert found == pytest.approx([400, 300, 500, 200, 600, 1000], abs=4)


def test_what_is_asked_otherwise_has_another_hash(
    instruction: Instruction, low: Audio, high: Audio
) -> None:
    one = Presentation(Rubric())
    others = [Presentation(Rubric("ties")), Presentation(Rubric(), 24000)]
    others.append(Presentation(Rubric(), together=True))
    assert len({p.identity for p in (one, *others)}) == 4
    hashes = {p.prompt_sha256(instruction, low, high) for p in (one, *others)}
    hashes.add(one.prompt_sha256(instruction, high, low))
    hashes.add(one.prompt_sha256(replace(instruction, evaluation="Slow?"), low, high))
    assert len(hashes) == 6
    assert one.prompt_sha256(instruction, low, high) == Presentation(Rubric()).prompt_sha256(
        replace(instruction, text="other"), low, high
    )


def test_a_wav_of_sixteen_bits() -> None:
    signal, rate = soundfile.read(io.BytesIO(wav(tone(300), RATE)), dtype="float32")
    assert rate == RATE
    np.testing.assert_allclose(signal, tone(300), atol=2**-15)


# A chat model behind HTTP.


def chat(url: str, **options: object) -> OpenAIChatJudge:
    return OpenAIChatJudge("ears", Presentation(Rubric()), base_url=url, **options)  # type: ignore[arg-type]


def test_a_chat_model_hears_and_is_read(instruction: Instruction, low: Audio, high: Audio) -> None:
    with serving(chat_server.likes_pitch) as server:
        judge: Judge = chat(server.url)
        one, other = judge.judge(instruction, low, high), judge.judge(instruction, high, low)
    assert one.winners == dict.fromkeys(CRITERIA, "second")
    assert other.winners == dict.fromkeys(CRITERIA, "first")
    assert one.text == verdict("second") and one.prompt_sha256 != other.prompt_sha256
    request = server.requests[0]
    assert (request["model"], request["temperature"]) == ("ears", 0)
    assert [rate for _, rate in heard(request)] == [RATE] * 3
    levels = [loudness(signal[:-RATE], RATE) for signal, _ in heard(request)]
    assert levels == pytest.approx([LOUDNESS] * 3, abs=0.1)
    asked = " ".join(part["text"] for part in parts(request) if part["type"] == "text")
    for secret in ("secret words", "q/1", "low", "high.wav", "Education"):
        assert secret not in asked.replace("slow", "")


@pytest.mark.parametrize("reply", ["I cannot say.", "", None])
def test_a_reply_without_a_verdict_is_kept(
    reply: str | None, instruction: Instruction, low: Audio, high: Audio
) -> None:
    with serving(lambda _: said(reply)) as server:
        found = chat(server.url).judge(instruction, low, high)
    assert (found.text, found.winners) == (reply or "", {})


@pytest.mark.parametrize(
    "body", [{"error": {"message": "overloaded"}}, {"choices": None, "error": "overloaded"}]
)
def test_what_is_no_reply_is_an_error(
    body: dict[str, object], instruction: Instruction, low: Audio, high: Audio
) -> None:
    with serving(lambda _: (200, body, {})) as server, pytest.raises(JudgeError, match="overload"):
        chat(server.url).judge(instruction, low, high)
    page = (200, "<p>overloaded</p>", {"Content-Type": "text/html"})
    with serving(lambda _: page) as server, pytest.raises(JudgeError, match="overload"):  # type: ignore[arg-type, return-value]
        chat(server.url).judge(instruction, low, high)


@pytest.mark.parametrize("choices", [[], [{"index": 0, "message": None}]])
def test_an_empty_reply_is_kept(
    choices: list[object], instruction: Instruction, low: Audio, high: Audio
) -> None:
    with serving(lambda _: (200, {"choices": choices}, {})) as server:
        found = chat(server.url).judge(instruction, low, high)
    assert (found.text, found.winners) == ("", {})


def test_busy_servers_are_asked_again(instruction: Instruction, low: Audio, high: Audio) -> None:
    statuses = iter([429, 503])

    def reply(request: dict[str, object]) -> chat_server.Answer:
        status = next(statuses, 200)
        busy = {"error": {"message": "busy"}}
        return said(verdict("first")) if status == 200 else (status, busy, {"retry-after-ms": "1"})

    with serving(reply) as server:
        assert chat(server.url).judge(instruction, low, high).winners["overall"] == "first"
    assert len(server.requests) == 3


def test_retries_end(instruction: Instruction, low: Audio, high: Audio) -> None:
    busy = (503, {"error": {"message": "busy"}}, {"retry-after-ms": "1"})
    with serving(lambda _: busy) as server, pytest.raises(JudgeError, match=r"ears.*busy"):
        chat(server.url, retries=2).judge(instruction, low, high)
    assert len(server.requests) == 3
    with pytest.raises(JudgeError, match="APIConnectionError"):
        chat(server.url, retries=0).judge(instruction, low, high)  # nobody listens any more


def test_the_key_comes_from_the_environment_and_is_told_to_nobody(
    instruction: Instruction,
    low: Audio,
    high: Audio,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("EARS_KEY", "sk-very-secret")
    wrong = (401, {"error": {"message": "no such key: sk-very-secret"}}, {})
    with serving(lambda _: wrong) as server:
        judge = chat(server.url, key_variable="EARS_KEY")
        with pytest.raises(JudgeError, match="no such key: …") as caught:
            judge.judge(instruction, low, high)
    assert server.keys == ["Bearer sk-very-secret"]
    told = f"{caught.value!r} {caught.value.__cause__!r} {judge!r} {judge.version} {caplog.text}"
    assert "very-secret" not in told


@pytest.mark.parametrize(
    ("model", "variable"), [("gemini-2.5-pro", "GEMINI_API_KEY"), ("gpt-audio", "OPENAI_API_KEY")]
)
def test_without_a_key_the_variable_is_named(
    model: str,
    variable: str,
    instruction: Instruction,
    low: Audio,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(variable, raising=False)
    judge = OpenAIChatJudge(model, Presentation(Rubric()))
    with pytest.raises(JudgeError, match=variable):
        judge.judge(instruction, low, low)


def test_what_a_filter_withholds_is_kept(instruction: Instruction, low: Audio, high: Audio) -> None:
    error = {"error": {"message": "not nice", "code": "content_filter"}}
    with serving(lambda _: (400, error, {})) as server:
        reply = chat(server.url).judge(instruction, low, high)
    assert reply.winners == {} and "not nice" in reply.text


# A model on this computer.


def test_a_local_model_hears_three_recordings(
    qwen2_audio: Path, instruction: Instruction, low: Audio, high: Audio, tmp_path: Path
) -> None:
    adapter = HFAdapter(str(qwen2_audio))
    adapter.model.config.get_text_config().max_position_embeddings = 4096  # it spells bytes
    judge = LocalJudge(adapter, Presentation(Rubric()), longest_reply=4)
    prompt = judge.prompt(instruction, low, high, tmp_path)
    assert [round(audio.seconds, 1) for audio in prompt.audio] == [1.8, 2.2, 1.9]
    assert prompt.text.index("first answer:") < prompt.text.index("second answer:")
    assert "secret words" not in prompt.text
    reply = judge.judge(instruction, low, high)
    assert reply.winners == {} and reply == judge.judge(instruction, low, high)
    assert judge.version.startswith("strict-")


def test_a_model_that_only_reads_cannot_judge(llama: Path) -> None:
    with pytest.raises(JudgeError, match="does not hear"):
        LocalJudge(HFAdapter(str(llama)), Presentation(Rubric()))
