"""`speech=DIR`: answers written beside the results, whatever speaks them."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import beeper
import lm_eval
import numpy as np
import pytest
import soundfile
import speaking_models
import torch
from lm_eval.api.instance import Instance

from s2s_tasks.adapters.contract import AdapterError, Reply
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.adapters.tts.choosing import load_engine
from s2s_tasks.arena.answers import AnswerError, read_answers, read_entries
from s2s_tasks.arena.elsewhere import models_of
from s2s_tasks.audio import Audio
from s2s_tasks.models import SpeechCascade, SpeechHF
from s2s_tasks.prompt import Prompt
from s2s_tasks.speech_out import SpeechFolder

CPU = torch.device("cpu")
HOW = {"until": ["\n\n"], "max_gen_toks": 6, "do_sample": False}
TASK = "spoken"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return beeper.write(tmp_path)


@pytest.fixture
def command(program: Path) -> str:
    return beeper.command(program)


@pytest.fixture
def cascade(wav2vec2: Path, llama: Path) -> Callable[..., SpeechCascade]:
    def build(**arguments: Any) -> SpeechCascade:
        return SpeechCascade(asr=str(wav2vec2), lm=str(llama), device="cpu", **arguments)

    return build


def ask(recordings: list[Audio], how: dict[str, Any] = HOW, **metadata: Any) -> list[Instance]:
    instances = []
    for number, audio in enumerate(recordings):
        context, media = Prompt.of("Answer: ", audio).to_request()
        instances.append(
            Instance(
                "generate_until",
                {"id": f"Q/{number}"},
                (context, dict(how), {"audio": media}),
                0,
                (TASK, number, metadata.get("repeats", 1)),
            )
        )
    return instances


def test_a_cascade_speaks_into_a_folder(
    cascade: Callable[..., SpeechCascade], command: str, recordings: list[Audio], tmp_path: Path
) -> None:
    texts = cascade().generate_until(ask(recordings))
    model = cascade(tts=command, speech=str(tmp_path / "out"))
    requests = ask(recordings)
    assert model.generate_until(requests) == texts
    folder = tmp_path / "out" / TASK
    answers = read_answers(folder)  # as the arena does, recordings checked
    assert [answer.instruction for answer in answers] == ["Q/0", "Q/1", "Q/2"]
    for request, text, answer, entry in zip(
        requests, texts, answers, read_entries(folder), strict=True
    ):
        assert (answer.status, answer.transcript) == ("ok", text)
        assert answer.audio.frames == 100 * len(text)
        assert (entry.sampling_rate, entry.seed) == (8000, torch.initial_seed())
        assert entry.fingerprint == model.adapter.fingerprint
        assert request.doc["answer"] == {
            "path": answer.audio.path,
            "seconds": entry.seconds,
            "sampling_rate": 8000,
            "status": "ok",
            "transcript": text,
        }
    assert answers[0].system == "out"  # short, and the user's own name for it
    assert models_of(str(folder)) == {model.adapter.name}
    assert "beeper.py" in model.adapter.name
    assert model.adapter.fingerprint != cascade().adapter.fingerprint


def test_only_what_is_missing_is_answered_again(
    cascade: Callable[..., SpeechCascade],
    command: str,
    recordings: list[Audio],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run(how: dict[str, Any] = HOW, tts: str = command) -> list[str]:
        model = cascade(tts=tts, speech=str(tmp_path / "out"))
        with caplog.at_level(logging.INFO, "s2s_tasks"):
            caplog.clear()
            return model.generate_until(ask(recordings, how))

    first = run()
    files = sorted((tmp_path / "out" / TASK).iterdir())
    assert [file.suffix for file in files] == [".json", ".wav"] * 3
    before = {file: file.stat().st_mtime_ns for file in files}

    def changed() -> set[Path]:
        new = {file for file in files if file.stat().st_mtime_ns != before[file]}
        before.update({file: file.stat().st_mtime_ns for file in files})
        return new

    assert run() == first and not changed()
    assert "are made anew" not in caplog.text
    assert "3 ok; 3 of them were there already" in caplog.text
    files[0].unlink()  # killed before the JSON file was written
    files[3].write_bytes(files[3].read_bytes()[:-10])  # cut
    assert run() == first
    assert changed() == set(files[:4])
    assert "3 ok; 1 of them were there already" in caplog.text
    run({**HOW, "max_gen_toks": 4})
    assert changed() == set(files)
    assert "3 answer(s) that failed, or were given to another prompt" in caplog.text
    torch.manual_seed(torch.initial_seed() + 1)
    run({**HOW, "max_gen_toks": 4})
    assert changed() == set(files)
    with pytest.raises(AnswerError, match="another model answered here"):
        run(tts=command.replace(" 1 ", " 2 "))


def test_what_goes_wrong_is_counted_and_tried_again(
    cascade: Callable[..., SpeechCascade],
    command: str,
    recordings: list[Audio],
    program: Path,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    sounds = [*recordings, recordings[2]]
    texts = cascade().generate_until(ask(sounds))
    assert len(set(texts)) == 3
    kinds = dict(zip(dict.fromkeys(texts), ("fails", "nothing", "silent"), strict=True))
    faults = program.with_name("faults.json")
    faults.write_text(json.dumps(kinds))
    model = cascade(tts=command, speech=str(tmp_path / "out"))
    with caplog.at_level(logging.INFO):
        assert model.generate_until(ask(sounds)) == texts
    entries = read_entries(tmp_path / "out" / TASK)
    assert [entry.status for entry in entries] == ["failed", "failed", "silent", "silent"]
    assert "failed (1): no voice for this" in entries[0].error
    assert "wrote no file" in entries[1].error
    assert f"{TASK} Q/0: no speech: CommandError" in caplog.text
    assert "2 failed, 2 silent" in caplog.text
    faults.unlink()
    with caplog.at_level(logging.INFO):
        model.generate_until(ask(sounds))
    assert "2 ok, 2 silent; 2 of them were there already" in caplog.text


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_model_whose_speech_is_no_sound(
    value: float,
    cascade: Callable[..., SpeechCascade],
    recordings: list[Audio],
    tmp_path: Path,
) -> None:
    vits = speaking_models.vits(tmp_path / "vits")
    model = cascade(tts=str(vits), speech=str(tmp_path / "out"))
    engine = model.adapter._tts
    # Weights that overflow, and weights that make silence.
    for weight in engine._model.decoder.conv_post.parameters():
        weight.data.fill_(value)
    requests = ask(recordings[:1])
    model.generate_until(requests)
    (entry,) = read_entries(tmp_path / "out" / TASK)
    if value == 0.0:
        assert entry.status == "silent"
    else:
        assert entry.status == "failed" and "not finite" in entry.error
        assert requests[0].doc["answer"]["path"] is None


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (Reply("text", np.zeros(0, np.float32), 8000, 3), "failed", "the speech has no samples"),
        (Reply("text", np.zeros(9, np.float32), 8000, 3), "silent", ""),
        (Reply("text", error="out of breath"), "failed", "out of breath"),
        (Reply(""), "failed", "the model said nothing"),
        (Reply("", np.ones(9, np.float32).cumsum(), 8000, 3), "ok", ""),
    ],
)
def test_what_is_written_of_a_reply(
    reply: Reply, status: str, error: str, llama: Path, tmp_path: Path
) -> None:
    folder = SpeechFolder(str(tmp_path), HFAdapter(str(llama), device="cpu"))
    request = Instance("generate_until", {"id": "a"}, ("Hello", HOW), 0, (TASK, 0, 1))
    assert folder.begin([request], [Prompt.of("Hello")]) == {}
    assert folder.keep(0, request, reply, str(reply)) == str(reply)
    (entry,) = read_entries(tmp_path / TASK)
    assert (entry.status, entry.error, entry.transcript) == (status, error, str(reply))
    assert request.doc["answer"]["status"] == status


def test_a_model_that_only_writes(
    qwen2_audio: Path, recordings: list[Audio], tmp_path: Path
) -> None:
    model = SpeechHF(pretrained=str(qwen2_audio), device="cpu", speech=str(tmp_path))
    requests = ask(recordings[:2])
    texts = model.generate_until(requests)
    for request, text, entry in zip(requests, texts, read_entries(tmp_path / TASK), strict=True):
        assert (entry.status, entry.transcript, entry.seed) == ("text_only", text, None)
        assert request.doc["answer"]["path"] is None
    assert not list(tmp_path.rglob("*.wav"))


def test_requests_that_would_share_a_file(
    llama: Path, recordings: list[Audio], tmp_path: Path
) -> None:
    model = SpeechHF(pretrained=str(llama), device="cpu", speech=str(tmp_path))
    alike = [
        Instance("generate_until", {"id": 1}, (text, HOW), 0, (TASK, n, 1))
        for n, text in enumerate(("a", "b"))
    ]
    with pytest.raises(AdapterError, match="two different requests are called 1 in spoken"):
        model.generate_until(alike)
    # lm-eval repeats a question where one process has fewer than another.
    assert len(set(model.generate_until([alike[0], alike[0]]))) == 1
    several = [Instance("generate_until", {"id": 1}, ("a", HOW), 0, (TASK, 0, 2))]
    with pytest.raises(AdapterError, match="wants 2 answers a question"):
        model.generate_until(several)
    bare = [Instance("generate_until", {}, (text, HOW), 0) for text in ("a", "b")]
    assert len(model.generate_until(bare)) == 2
    assert len(read_entries(tmp_path / "requests")) == 2


def test_what_is_refused_before_a_run(
    llama: Path, cascade: Callable[..., SpeechCascade], command: str, tmp_path: Path
) -> None:
    with pytest.raises(AdapterError, match="keeps no speech: leave it out"):
        lm_eval.simple_evaluate(
            model="speech-hf",
            model_args={"pretrained": str(llama), "speech": str(tmp_path / "out")},
            device="cpu",
            use_cache=str(tmp_path / "cache"),
            tasks=["s2sbench_mini_sstorycloze_t2t"],
        )
    with pytest.raises(AdapterError, match="name the folder for what it says: speech=DIR"):
        cascade(tts=command)
    with pytest.raises(AdapterError, match=r"add tts=…, or leave them out"):
        cascade(voice="en", speech=str(tmp_path / "out"))
    with pytest.raises(AdapterError, match="no model argument is called 'speaks'"):
        SpeechHF(pretrained=str(llama), speaks=True)
    (tmp_path / "file").touch()
    with pytest.raises(AdapterError, match="no folder can be made there"):
        SpeechHF(pretrained=str(llama), device="cpu", speech=str(tmp_path / "file"))


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="no espeak-ng")
def test_espeak(cascade: Callable[..., SpeechCascade], recordings: list[Audio], tmp_path: Path):
    template = "espeak-ng -v {voice} -s {speed} -w {output} {text}"
    slow, fast = (
        load_engine(template, "en-us", speed, CPU).reply("The dog ran to the garden.")
        for speed in (120, 240)
    )
    assert len(fast.waveform) < 0.7 * len(slow.waveform)
    assert slow.sampling_rate == 22_050
    model = cascade(tts=template, voice="en", speed=150, speech=str(tmp_path))
    model.generate_until(ask(recordings[:1]))
    (answer,) = read_answers(tmp_path / TASK)
    assert soundfile.info(answer.audio.path).samplerate == 22_050
