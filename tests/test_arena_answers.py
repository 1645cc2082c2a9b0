"""Folders of answers: written whole, read with care, and those of others joined."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.arena.answers import (
    AnswerError,
    file_stem,
    is_answered,
    read_answers,
    read_entries,
    write_answer,
)
from s2s_tasks.arena.elsewhere import models_of, read_elsewhere, read_given
from s2s_tasks.audio import Waveform

RATE = 16000
IDS = [
    "plain",
    "Plain",
    "a/b",
    "a_b",
    "a.b",
    "../up",
    "故事/1",
    "故事/2",
    "x" * 300,
    "con",
    ".",
    "",
]


def tone(pitch: float = 220.0, seconds: float = 0.5) -> Waveform:
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.2 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def answer(folder: Path, instruction: str, waveform: Waveform | None = None) -> None:
    wave = tone() if waveform is None else waveform
    write_answer(folder, system="s", instruction=instruction, waveform=wave, sampling_rate=RATE)


@given(st.lists(st.text(), unique=True, max_size=20))
def test_distinct_ids_have_distinct_safe_names(ids: list[str]) -> None:
    stems = [file_stem(identifier) for identifier in ids]
    assert len({stem.casefold() for stem in stems}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9_~-]{1,100}", stem) for stem in stems)


def test_answers_come_back_as_they_were_given(tmp_path: Path) -> None:
    for number, identifier in enumerate(IDS):
        write_answer(
            tmp_path,
            system="s",
            instruction=identifier,
            waveform=tone(200 + number),
            sampling_rate=RATE,
            transcript=f"我说 {number}",
            seed=7,
            fingerprint="model@1",
            model="hub/model",
        )
    found = {a.instruction: a for a in read_answers(tmp_path)}
    assert set(found) == set(IDS)
    for number, identifier in enumerate(IDS):
        one = found[identifier]
        assert (one.system, one.status, one.transcript) == ("s", "ok", f"我说 {number}")
        assert one.audio is not None
        np.testing.assert_allclose(one.audio.load(RATE), tone(200 + number), atol=2**-15)
    entry = read_entries(tmp_path)[0]
    assert (entry.seconds, entry.sampling_rate, entry.seed) == (0.5, RATE, 7)
    for place in (str(tmp_path), f"t={tmp_path}"):
        assert models_of(place) == {"hub/model"}
    renamed = read_given(f"t={tmp_path}", IDS)
    assert renamed == [replace(answer, system="t") for answer in read_answers(tmp_path)]


def test_the_status_says_what_an_answer_lacks(tmp_path: Path) -> None:
    silence = np.zeros(RATE, np.float32)
    write_answer(tmp_path, system="s", instruction="a", waveform=silence, sampling_rate=RATE)
    write_answer(tmp_path, system="s", instruction="b", waveform=None, transcript="only text")
    write_answer(tmp_path, system="s", instruction="c", waveform=None, error="out of memory")
    statuses = {a.instruction: (a.status, a.audio is None) for a in read_answers(tmp_path)}
    assert statuses == {"a": ("silent", False), "b": ("text_only", True), "c": ("failed", True)}
    with pytest.raises(AnswerError, match="neither sound nor text"):
        write_answer(tmp_path, system="s", instruction="d", waveform=None)
    with pytest.raises(AnswerError, match="not finite"):
        answer(tmp_path, "e", np.full(9, np.nan, np.float32))


def test_loud_samples_are_kept(tmp_path: Path) -> None:
    answer(tmp_path, "a", 8 * tone())
    audio = read_answers(tmp_path)[0].audio
    assert audio is not None
    np.testing.assert_array_equal(audio.load(RATE), 8 * tone())


def test_a_run_goes_on_with_what_is_missing_or_failed(tmp_path: Path) -> None:
    assert not is_answered(tmp_path, "a", "")
    answer(tmp_path, "a")
    write_answer(tmp_path, system="s", instruction="b", waveform=None, error="no memory")
    (tmp_path / "c.wav").write_bytes((tmp_path / "a.wav").read_bytes())  # killed before its JSON
    (tmp_path / ".d.wav.1.part").write_bytes(b"RIFF")
    assert [is_answered(tmp_path, i, "") for i in "abcd"] == [True, False, False, False]
    assert [a.instruction for a in read_answers(tmp_path)] == ["a", "b"]
    answer(tmp_path, "b")
    assert is_answered(tmp_path, "b", "")
    with pytest.raises(AnswerError, match=r"another model answered here \(, not other\)"):
        is_answered(tmp_path, "a", "other")


def test_an_answer_that_becomes_text_loses_its_recording(tmp_path: Path) -> None:
    answer(tmp_path, "a")
    write_answer(tmp_path, system="s", instruction="a", waveform=None, transcript="text")
    assert not (tmp_path / "a.wav").exists()


def test_what_is_amiss_is_named(tmp_path: Path) -> None:
    for name in "abcde":
        answer(tmp_path, name, tone(200 + ord(name)))
    (tmp_path / "a.wav").unlink()
    (tmp_path / "b.wav").write_bytes((tmp_path / "b.wav").read_bytes()[:-100])
    (tmp_path / "c.wav").write_bytes((tmp_path / "e.wav").read_bytes())
    answer(tmp_path, "d", np.zeros(RATE, np.float32))
    path = tmp_path / "d.json"
    path.write_text(path.read_text("utf-8").replace('"silent"', '"ok"'), "utf-8")
    with pytest.raises(AnswerError) as caught:
        read_answers(tmp_path)
    lines = str(caught.value).splitlines()
    assert "4 answer(s)" in lines[0]
    assert "a.wav: the recording is missing" in lines[1]
    assert "b.wav: the recording is truncated" in lines[2]
    assert "c.wav: the recording is not the one" in lines[3]
    assert "d.wav: the recording is silent" in lines[4]


def test_json_files_that_are_no_answers_are_named(tmp_path: Path) -> None:
    answer(tmp_path, "a")
    whole = (tmp_path / "a.json").read_text("utf-8")
    for text, message in (
        (whole[:50], "not the JSON file of an answer"),
        (whole.replace('"ok"', '"fine"'), "status 'fine'"),
        (whole.replace('"a"', '"b"'), "was it renamed"),
        (json.dumps({"system": "s"}), "not the JSON file of an answer"),
    ):
        (tmp_path / "a.json").write_text(text, "utf-8")
        with pytest.raises(AnswerError, match=message):
            read_answers(tmp_path)
    with pytest.raises(AnswerError, match="no such folder"):
        read_answers(tmp_path / "gone")
    with pytest.raises(AnswerError, match="no answers are here"):
        (tmp_path / "empty").mkdir()
        read_answers(tmp_path / "empty")


@pytest.mark.parametrize(
    "change",
    [
        {"instruction": 5},
        {"fingerprint": None},
        {"system": None},
        {"system": ""},
        {"sha256": 5},
        {"seconds": "1"},
        {"status": []},
        {"transcript": None},
        {"instruction": "\ud83d"},
    ],
)
def test_values_of_another_type_are_named(tmp_path: Path, change: dict[str, object]) -> None:
    answer(tmp_path, "a")
    path = tmp_path / "a.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    (name,) = change
    told = "surrogates" if name == "instruction" and change[name] != 5 else name
    with pytest.raises(AnswerError, match=rf"a\.json: .*{told}"):
        read_answers(tmp_path)


def test_what_is_too_short_to_be_heard_is_silent(tmp_path: Path) -> None:
    brief = np.array([0.5, -0.5, 0.5], np.float32)
    one = dict(system="s", waveform=brief, sampling_rate=192000)
    assert write_answer(tmp_path / "own", instruction="a", **one).status == "silent"  # type: ignore[arg-type]
    (tmp_path / "theirs").mkdir()
    soundfile.write(tmp_path / "theirs/a.wav", brief, 192000)
    (found,) = read_elsewhere(tmp_path / "theirs", "them", ["a"])
    assert found.status == "silent"


def test_channels_that_cancel_out_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.wav", np.stack([tone(), -tone()], 1))
    with pytest.raises(AnswerError, match=r"the answer to a: .*its channels cancel out"):
        read_elsewhere(tmp_path, "them", ["a"])


def test_one_folder_is_one_system(tmp_path: Path) -> None:
    answer(tmp_path, "a")
    write_answer(tmp_path, system="t", instruction="b", waveform=tone(), sampling_rate=RATE)
    with pytest.raises(AnswerError, match="answers of s, t"):
        read_answers(tmp_path)


def put(path: Path, waveform: Waveform | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if waveform is None else waveform, RATE)


@pytest.mark.parametrize(
    "path",
    ["irony/irony1.wav", "irony1.flac", "irony/irony1/irony1.wav", "output/gpt/irony/irony1.wav"],
)
@pytest.mark.parametrize("identifier", ["irony1", "irony/irony1"])
def test_recordings_named_by_id_join(tmp_path: Path, path: str, identifier: str) -> None:
    if path == "irony1.flac" and identifier == "irony/irony1":
        path = f"{file_stem(identifier)}.flac"
    put(tmp_path / path)
    put(tmp_path / "story/other.v2.wav", np.zeros(RATE, np.float32))
    put(tmp_path / "story/not_asked.wav")
    found = read_elsewhere(tmp_path, "them", [identifier, "other.v2", "unanswered"])
    assert [(a.system, a.instruction, a.status) for a in found] == [
        ("them", identifier, "ok"),
        ("them", "other.v2", "silent"),
    ]
    assert read_given(f"them={tmp_path}", [identifier, "other.v2", "unanswered"]) == found


@pytest.mark.parametrize("name", ["00", "22", "audio_12", "7_pred", "A1-A2/03"])
def test_recordings_numbered_by_position_are_refused(tmp_path: Path, name: str) -> None:
    put(tmp_path / "irony1.wav")
    put(tmp_path / f"{name}.wav")
    with pytest.raises(AnswerError, match="numbered by position"):
        read_elsewhere(tmp_path, "them", ["irony1"])


def test_ids_may_be_numbers_themselves(tmp_path: Path) -> None:
    for name in ("irony_1", "irony_2", "17", "18"):
        put(tmp_path / f"{name}.wav")
    found = read_elsewhere(tmp_path, "them", ["irony_1", "x/17"])
    assert [a.instruction for a in found] == ["irony_1"]
    assert len(read_elsewhere(tmp_path, "them", ["irony_1", "17"])) == 2


def test_what_is_missing_or_stray_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path / "theirs/q0.wav")
    put(tmp_path / "theirs/typo.wav")
    answer(tmp_path / "ours", "q0")
    answer(tmp_path / "ours", "old")
    for given_as, stray in ((f"b={tmp_path}/theirs", "typo.wav"), (f"c={tmp_path}/ours", "old")):
        caplog.clear()
        read_given(given_as, ["q0", "q1", "q2"])
        missing, left_out = caplog.messages
        assert missing == f"{given_as[0]}: 2 of 3 instructions have no answer: q1, q2"
        assert left_out.startswith(f"{given_as[0]}: 1 answer(s) left out")
        assert left_out.endswith(stray)
    caplog.clear()
    read_given(f"c={tmp_path}/ours", ["q0", "old"])
    assert not caplog.messages


def test_two_recordings_for_one_question_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a/x.wav")
    put(tmp_path / "b/x.wav")
    with pytest.raises(AnswerError, match="2 recordings would answer x"):
        read_elsewhere(tmp_path, "them", ["x"])
    assert len(read_elsewhere(tmp_path, "them", ["a/x", "b/x"])) == 2


def test_manifests_join(tmp_path: Path) -> None:
    put(tmp_path / "out/00.wav")
    put(tmp_path / "out/01.wav")
    (tmp_path / "m.csv").write_text(
        "instruction,path,transcript\na/1,out/00.wav,yes\nb,out/01.wav,\n", "utf-8"
    )
    rows = [{"instruction": "a/1", "path": "out/00.wav", "transcript": "yes"}]
    rows.append({"instruction": "b", "path": "out/01.wav"})
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for name in ("m.csv", "m.jsonl"):
        found = read_given(f"x={tmp_path / name}", ["a/1", "b", "c"])
        assert [(a.instruction, a.transcript) for a in found] == [("a/1", "yes"), ("b", "")]


def test_ids_in_json_may_be_numbers(tmp_path: Path) -> None:
    put(tmp_path / "x.wav")
    (tmp_path / "m.jsonl").write_text('{"instruction": 0, "path": "x.wav"}\n', "utf-8")
    (found,) = read_given(f"x={tmp_path / 'm.jsonl'}", ["0"])
    assert (found.instruction, found.transcript) == ("0", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"instruction": "a", "path": "a\\u0000b"}', "the answer to a: .*embedded null byte"),
        ('{"instruction": "a", "path": ["x.wav"]}', "row 1: .* neither a text nor a number"),
        ("[" * 100_000, "not a manifest of answers"),
    ],
)
def test_odd_manifests_in_json_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.jsonl").write_text(text, "utf-8")
    with pytest.raises(AnswerError, match=message):
        read_elsewhere(tmp_path / "m.jsonl", "them", ["a"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instruction,path\na,x.wav,yes\n", "row 1 has more cells than the header"),
        ("instruction,path\na,gone.wav\n", "the answer to a: .*gone.wav: cannot read"),
        ("instruction,path\na,x.wav\na,x.wav\n", "row 2: a is answered twice"),
        ("question,path\na,x.wav\n", "row 1: needs instruction and path"),
        ("instruction,path\nz,x.wav\n", "none is the answer to a question that is asked"),
    ],
)
def test_manifests_that_cannot_be_used_are_refused(tmp_path: Path, text: str, message: str) -> None:
    put(tmp_path / "x.wav")
    (tmp_path / "m.csv").write_text(text, "utf-8")
    with pytest.raises(AnswerError, match=message):
        read_elsewhere(tmp_path / "m.csv", "them", ["a"])


def test_what_names_no_answers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("[]\n", "utf-8")
    with pytest.raises(AnswerError, match="line 1 is not a JSON object"):
        read_elsewhere(tmp_path / "m.jsonl", "them", ["a"])
    with pytest.raises(AnswerError, match="neither a folder"):
        read_given(f"x={tmp_path / 'gone'}", ["a"])
    with pytest.raises(AnswerError, match="name the system before the ="):
        read_given(f"={tmp_path}", ["a"])
