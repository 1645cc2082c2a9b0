"""What a model would not hear as it is, is refused before the run, all of it at once."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from lm_eval.api.instance import Instance
from scoring import scores

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio, probe
from s2s_tasks.models import SpeechHF
from s2s_tasks.prompt import Prompt, Request

RANDOM = np.random.default_rng(0)


def noise(seconds: float) -> np.ndarray:
    return RANDOM.normal(size=int(seconds * 16000)) * 0.1


def write(path: Path, signal: np.ndarray, **options: str) -> Audio:
    soundfile.write(path, signal, 16000, **options)
    return probe(path)


def spoiled(path: Path) -> Audio:
    """A file that changed after it was found."""
    audio = write(path, noise(1))
    soundfile.write(path, noise(2), 16000)
    return audio


def cut(path: Path) -> Audio:
    """A FLAC whose header promises more than there is."""
    with io.BytesIO() as file:
        soundfile.write(file, noise(1), 16000, format="FLAC")
        path.write_bytes(file.getvalue())
    audio = probe(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return audio


def nan(path: Path) -> Audio:
    return write(path, np.append(noise(1), np.nan), subtype="FLOAT")


FAULTS: dict[str, tuple[Callable[[Path], Audio], str]] = {
    "silent": (lambda path: write(path, np.zeros(16000)), "1.00 s of silence"),
    "constant": (lambda path: write(path, np.full(16000, 0.2)), "1.00 s of silence"),
    "short": (lambda path: write(path, noise(0.05)), "50 ms, shorter than the 100 ms"),
    "long": (lambda path: write(path, noise(5)), "5.0 s, longer than the 4 s .*long_audio=chunk"),
    "a frame too long": (
        lambda path: write(path, noise(4 + 1 / 16000)),
        "4.0001 s, longer than the 4 s",
    ),
    "a frame too short": (lambda path: write(path, noise(0.1 - 1 / 16000)), "99.9 ms, shorter"),
    "antiphase": (lambda path: write(path, noise(1)[:, None] * [1, -1]), "channels cancel out"),
    "integers as floats": (
        lambda path: write(path, np.linspace(-13464, 13464, 16000), subtype="FLOAT"),
        "its peak is 13,464, where full scale is 1",
    ),
    "not finite": (nan, "values that are not finite"),
    "changed": (spoiled, "changed since it was indexed"),
    "gone": (lambda path: replace(write(path, noise(1)), path=f"{path}.x"), "cannot read"),
    "cut": (cut, "changed since"),
}


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(qwen2_audio), dtype="float32", device="cpu", batch_size=4)


def instance(audio: Audio, number: int, kind: str = "loglikelihood") -> Instance:
    options = " end" if kind == "loglikelihood" else {"until": ["."], "max_gen_toks": 3}
    arguments = ("<|audio:0|>", options, {"audio": [audio.to_json()]})
    return Instance(kind, {"id": f"q{number}"}, arguments, number, metadata=("task", number, 1))


@pytest.mark.parametrize("kind", ["loglikelihood", "generate_until"])
def test_every_fault_is_named_with_its_question_before_any_work(
    hearing: SpeechHF, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(hearing.adapter, "render", lambda *_: pytest.fail("worked first"))
    good = instance(write(tmp_path / "good.wav", noise(1)), 99, kind)
    loud = instance(write(tmp_path / "loud.wav", 20 * noise(1), subtype="FLOAT"), 98, kind)
    requests = [good, loud]
    for number, (make, _) in enumerate(FAULTS.values()):
        requests.append(instance(make(tmp_path / f"{number}.wav"), number, kind))
    with pytest.raises(AdapterError) as caught:
        getattr(hearing, kind)(requests)
    message = str(caught.value)
    assert message.startswith(f"{len(FAULTS)} recording(s) cannot be asked of this model")
    lines = message.splitlines()[1:-1]
    for number, (line, (_, expected)) in enumerate(zip(lines, FAULTS.values(), strict=True)):
        assert line.startswith(f"task q{number}: {tmp_path}/{number}.wav")
        with pytest.raises(AssertionError, match=expected):
            raise AssertionError(line)


def test_a_long_recording_can_be_heard_in_pieces(qwen2_audio: Path, tmp_path: Path) -> None:
    signal = noise(9).astype(np.float32)
    audio = write(tmp_path / "long.wav", signal, subtype="FLOAT")
    pieces = [
        write(tmp_path / f"{i}.wav", piece, subtype="FLOAT")
        for i, piece in enumerate(np.array_split(signal, 3))
    ]
    chunking = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu", long_audio="chunk")
    assert chunking.longest_audio is None
    whole = Request(Prompt.of("Hm: ", audio, " so"), " he was glad")
    apart = Request(Prompt.of("Hm: ", *pieces, " so"), " he was glad")
    found = scores(chunking, [whole, apart])
    assert found[whole].token_logprobs == pytest.approx(found[apart].token_logprobs, abs=1e-4)


def test_requests_made_by_hand_are_named_by_their_number(hearing: SpeechHF, tmp_path: Path) -> None:
    audio = write(tmp_path / "long.wav", noise(5)).to_json()
    requests = [
        Instance("loglikelihood", {}, ("Hm: ", " end"), 0),
        Instance("loglikelihood", {}, ("<|audio:0|>", " end", {"audio": [audio]}), 0),
    ]
    with pytest.raises(AdapterError, match=r"\nrequest 1: .*long\.wav: 5\.0 s"):
        hearing.loglikelihood(requests)


@pytest.mark.parametrize(
    "media",
    [
        {"audios": ["a.wav"]},
        {"audio": ["a.wav"]},
        {"audio": "a.wav"},
        {"audio": [{"path": "a.wav"}]},
        {"audio": [{"path": "a", "sha256": "", "sampling_rate": 1, "frames": 1, "channels": 1}, 1]},
        ["a.wav"],
    ],
)
def test_what_lies_beside_a_context_is_recordings_or_refused(
    hearing: SpeechHF, media: object
) -> None:
    request = Instance("loglikelihood", {}, ("<|audio:0|>", " end", media), 0)
    with pytest.raises(AdapterError, match=r"request 0: beside .*write {\"audio\": \[s2s_tasks"):
        hearing.loglikelihood([request])


def test_long_audio_is_refuse_or_chunk(qwen2_audio: Path) -> None:
    with pytest.raises(AdapterError, match="give refuse or chunk"):
        HFAdapter(str(qwen2_audio), device="cpu", long_audio="cut")


def test_chunking_is_said_and_needs_ears(
    qwen2_audio: Path, llama: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        HFAdapter(str(qwen2_audio), device="cpu", long_audio="chunk")
    assert "at most 4 s, several recordings a prompt (longer ones are split)" in caplog.text
    with pytest.raises(AdapterError, match="only reads text; leave long_audio out"):
        HFAdapter(str(llama), device="cpu", long_audio="chunk")
