"""What a model would not hear as it is, is refused before the run, all of it at once."""

from __future__ import annotations

import io
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
    requests = [good]
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


def test_long_audio_is_refuse_or_chunk(qwen2_audio: Path) -> None:
    with pytest.raises(AdapterError, match="give refuse or chunk"):
        HFAdapter(str(qwen2_audio), device="cpu", long_audio="cut")
