"""Others' battle files: read, written, and refused where they do not fit."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import soundfile
from arena_judgements import judged
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.arena.exchange import export_command, import_command
from s2s_tasks.arena.exchange.formats import PRESETS
from s2s_tasks.arena.exchange.reading import to_judgements
from s2s_tasks.arena.exchange.rows import read_rows
from s2s_tasks.arena.exchange.writing import to_chatbot_arena, to_trace
from s2s_tasks.arena.log import append, read
from s2s_tasks.arena.ratings.board import build
from s2s_tasks.arena.records import Criterion, Judgement, Winner
from s2s_tasks.errors import S2STasksError

TRACE = [
    {
        "index": 0,
        "instruction_path": "input/pause/pause_3.wav",
        "instruction_text": "Read this slowly. [style: calm]",
        "model_a": "Reader",
        "model_b": "Talker",
        "audio1_path": "output/Reader/pause/pause_3.wav",
        "audio2_path": "output/Talker/pause/pause_3.wav",
        "label": {
            "content": "1",
            "voice_quality": "2",
            "paralinguistics": "both_bad",
            "overall": "both_good",
        },
        "instruction_id": "pause_3",
    }
]


def run(module: ModuleType, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return int(module.run(parser.parse_args([str(argument) for argument in arguments])))


def saved(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def imported(tmp_path: Path, file: Path, *arguments: object) -> list[Judgement]:
    log = tmp_path / "log.jsonl"
    assert run(import_command, file, "-o", log, *arguments) == 0
    return list(read(log))


# Formats


def test_trace_is_read(tmp_path: Path) -> None:
    (found,) = imported(tmp_path, saved(tmp_path / "t.json", TRACE), "--format", "trace")
    battle = found.battle
    assert (battle.instruction, battle.first, battle.second) == ("pause_3", "Reader", "Talker")
    assert found.winners == {
        "instruction": "first",
        "quality": "second",
        "expression": "both_bad",
        "overall": "tie",
    }
    assert (found.task, found.judge, found.level, found.domain) == (
        "pause",
        "people",
        None,
        "Education",  # where the taxonomy has that task
    )
    assert json.loads(found.reply) == TRACE[0]


def test_chatbot_arena_is_read_and_rated(tmp_path: Path) -> None:
    text = "question_id,model_a,model_b,winner,judge,language,tstamp\n"
    for number in range(4):
        text += f"{number},x,y,model_a,ann,English,1700000000.5\n"
    text += "4,x,y,tie (bothbad),ann,English,\n5,y,x,model_a,bob,English,\n6,y,x,tie,,English,\n"
    file = saved(tmp_path / "b.csv", text)
    found = imported(tmp_path, file, "--format", "chatbot-arena")
    assert [row.winners["overall"] for row in found[3:]] == ["first", "both_bad", "first", "tie"]
    assert found[0].time == "2023-11-14T22:13:20.500000+00:00"
    assert [row.judge for row in found[4:]] == ["ann", "bob", "people"]
    fit = build(found, covariates=(), resamples=100).everything.fit
    assert [(rating.system, rating.wins) for rating in fit.ratings] == [("x", 4), ("y", 1)]
    assert (fit.battles, fit.instructions) == (7, 7)


def test_any_file_is_read_by_its_fields(tmp_path: Path) -> None:
    content = {
        "meta": {"of": "people"},
        "votes": {
            "v1": {"pair": {"l": "甲", "r": "乙"}, "better": "甲", "q": "x/y.wav", "hard": "L3"},
            "v2": {"pair": {"l": "甲", "r": "乙"}, "better": "右", "q": "x/z.wav", "hard": "1"},
            "v3": {"pair": {"l": "甲", "r": "乙"}, "better": None, "q": "x/z.wav", "hard": ""},
        },
    }
    found = imported(
        tmp_path,
        saved(tmp_path / "human_evaluate_result.json", content),
        *("--records", "votes", "--verdicts", "右=second", "--judge", "crowd", "--fields"),
        *("first=pair.l", "second=pair.r", "winner=better", "id=q", "path=q", "level=hard"),
    )
    assert [row.winners for row in found] == [{"overall": "first"}, {"overall": "second"}, {}]
    assert [row.level for row in found] == [3, 1, None]
    assert {(row.task, row.judge) for row in found} == {("x", "crowd")}
    assert [row.battle.instruction for row in found] == ["x/y.wav", "x/z.wav", "x/z.wav"]


def test_rows_without_ids_are_instructions_of_their_own(tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": 1}] * 2
    lines = "".join(json.dumps(row) + "\n\n" for row in rows)
    fields = {key: value for key, value in PRESETS["chatbot-arena"].items() if key != "id"}
    read_back = read_rows(saved(tmp_path / "rows.jsonl", lines))
    found = to_judgements(read_back, fields, "rows.jsonl", judge="people")
    assert [row.battle.instruction for row in found] == ["rows-1", "rows-2"]


def test_a_manifest_says_what_ids_stand_for(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(1600), 16000)
    manifest = saved(
        tmp_path / "manifest.jsonl",
        json.dumps(
            {
                "id": "pause_3",
                "audio": "a.wav",
                "text": "Read this.",
                "language": "en",
                "domain": "education",
                "task": "pause",
                "level": 3,
                "cue": {"style": "calm"},
            }
        ),
    )
    file = saved(tmp_path / "t.json", TRACE)
    (found,) = imported(tmp_path, file, "--format", "trace", "--manifest", manifest)
    assert (found.domain, found.level, found.language) == ("education", 3, "en")
    out = tmp_path / "out.json"
    arguments = (tmp_path / "log.jsonl", "-o", out, "--format", "trace", "--manifest", manifest)
    assert run(export_command, *arguments) == 0
    text = "Read this. [style: calm]"
    ours = {"judge": "people", "domain": "education", "task": "pause", "level": 3}
    ours |= {"language": "en", "time": ""}
    assert json.loads(out.read_text()) == [TRACE[0] | {"instruction_text": text} | ours]


@pytest.mark.parametrize("written", [1700000000, 1700000000000, "1.7e15", "1700000000000000000"])
def test_times_in_milliseconds_or_finer_are_read(tmp_path: Path, written: object) -> None:
    row = {"question_id": 1, "model_a": "x", "model_b": "y", "winner": "tie", "tstamp": written}
    (found,) = imported(tmp_path, saved(tmp_path / "t.json", [row]), "--format", "chatbot-arena")
    assert found.time == "2023-11-14T22:13:20+00:00"


def test_what_is_no_number_is_missing(tmp_path: Path) -> None:
    text = (
        '[{"question_id": 7.0, "model_a": " x ", "model_b": "y", "winner": NaN, "tstamp": NaN, '
        '"level": "2.0", "judge": null}]'
    )
    (found,) = imported(tmp_path, saved(tmp_path / "t.json", text), "--format", "chatbot-arena")
    assert (found.battle.instruction, found.battle.first, found.level) == ("7", "x", 2)
    assert (found.winners, found.time, found.judge) == ({}, "", "people")


# There and back

VERDICTS = st.dictionaries(
    st.sampled_from(["instruction", "expression", "quality", "overall"]),
    st.sampled_from(["first", "second", "tie", "both_bad"]),
)


@given(st.lists(VERDICTS, min_size=1, max_size=5))
def test_what_is_exported_is_imported_again(verdicts: list[dict[Criterion, Winner]]) -> None:
    rows = [
        replace(judged("a", "b", instruction=f"q{number}", judge="ann"), winners=winners)
        for number, winners in enumerate(verdicts)
    ]
    rows.append(judged("a", "a", probe="itself"))
    readable = [row for row in rows[:-1] if row.winners]
    trace = to_trace(rows)
    if readable:
        found = to_judgements(trace, PRESETS["trace"], "t.json", judge="ann")
        assert [row.winners for row in found] == [row.winners for row in readable]
        assert [row.battle for row in found] == [row.battle for row in readable]
        assert {row.task for row in found} == {"pause"}
    overall = [row for row in readable if "overall" in row.winners]
    records = to_chatbot_arena(rows)
    if overall:
        found = to_judgements(records, PRESETS["chatbot-arena"], "t.csv", judge="")
        assert [row.winners["overall"] for row in found] == [r.winners["overall"] for r in overall]
        assert [row.battle for row in found] == [row.battle for row in overall]
        assert {(row.judge, row.time) for row in found} == {("ann", rows[0].time)}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_export_writes_files_that_import_reads(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "a.jsonl", tmp_path / f"out.{suffix}"
    append(log, judged("a", "b"), judged("b", "a", None), judged("a", "a", probe="itself"))
    assert run(export_command, log, "-o", out, "--format", "chatbot-arena") == 0
    assert "1 battles; 2 probes or without a verdict" in capsys.readouterr().out
    (found,) = imported(tmp_path, out, "--format", "chatbot-arena")
    assert found.winners == {"overall": "first"}
    with pytest.raises(S2STasksError, match=r"trace is written as \.json"):
        run(export_command, log, "-o", out, "--format", "trace")


# What does not fit


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ([{"a": 1}], [], "which field holds first, second; say so with --fields, of a"),
        ([{"a": 1}], ["--fields", "first=a", "second=b"], "holds the winner"),
        ([{"a": 1}], ["--format", "trace"], "record 1: no field 'model_a'; say --fields first="),
        ([TRACE[0] | {"label": {}}], ["--format", "trace"], "no field 'label.content'"),
        ([TRACE[0] | {"model_b": "Reader"}], ["--format", "trace"], "Reader meets itself"),
        (
            [TRACE[0] | {"label": dict.fromkeys(TRACE[0]["label"], "better")}],  # type: ignore[call-overload]
            ["--format", "trace"],
            "record 1: the verdict 'better' is not understood; say what it means",
        ),
        ([TRACE[0] | {"l": 5}], ["--format", "trace", "--fields", "level=l"], "level '5'"),
        (TRACE, ["--fields", "winer=x"], "'winer' is not known; there are id, path"),
        (TRACE, ["--fields", "winner"], "two names with = between"),
        (TRACE, ["--verdicts", "x=third"], "a verdict is one of first, second"),
        ({"a": 1, "b": []}, [], "there is an object of a, b; name the part"),
        ([1, "x"], [], "there is a list of int, str"),
        ([], [], "there is a list of nothing"),
        ("{", [], "not what its name says"),
        (TRACE, ["--records", "data"], "nothing is called 'data' in it"),
        ("[" * 100_000, [], "not what its name says"),
        *(
            ([TRACE[0] | {name: value}], ["--format", "trace"], f"record 1: .*{name}.*{told}")
            for name in ("model_a", "model_b", "instruction_id")
            for value, told in (
                (None, "fill it in"),
                (" ", "fill it in"),
                (["x"], "neither a"),
                ("\ud83d", "half a character"),
            )
        ),
        ([TRACE[0] | {"time": "inf"}], ["--format", "trace"], "record 1: time 'inf'"),
        ([TRACE[0] | {"time": -5}], ["--format", "trace"], "record 1: time '-5'"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, content: object, arguments: list[str], message: str
) -> None:
    file = saved(tmp_path / "file.json", content)
    with pytest.raises(S2STasksError, match=message):
        run(import_command, file, "-o", tmp_path / "log.jsonl", *arguments)
    assert not (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q1,x\nq2,x,y,model_a\n", "record 1: nothing is in 'model_b'.*fill it in"),
        ("q1,x,y,tie\nq2,x,y,tie,\n", "row 2 has more cells than the header.*double quotes"),
    ],
)
def test_csv_rows_of_another_length_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    file = saved(tmp_path / "f.csv", f"question_id,model_a,model_b,winner\n{rows}")
    with pytest.raises(S2STasksError, match=message):
        imported(tmp_path, file, "--format", "chatbot-arena")


def test_a_log_is_not_imported_into_twice(tmp_path: Path) -> None:
    file = saved(tmp_path / "t.json", TRACE)
    imported(tmp_path, file, "--format", "trace")
    with pytest.raises(S2STasksError, match="exists, and would hold these battles twice"):
        imported(tmp_path, file, "--format", "trace")
