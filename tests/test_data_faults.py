"""Everything that can be wrong with a copy of S2SBench is found before anything runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_layout import (
    QUESTIONS,
    STORIES,
    cache,  # noqa: F401
    encode,
    publish,
    question,
    story,
    tone,
    write_jsonl,
)

from s2s_tasks.data.problems import DataError, Kind, Problem, describe
from s2s_tasks.data.published.pairs import StoryRow, id_number, join_pairs
from s2s_tasks.data.sources import load_rows

Rows = list[dict[str, Any]]
TABLES = {
    "sstorycloze": f"{STORIES}/sStory_s2t.jsonl",
    "scmmlu": f"{QUESTIONS}/cmmlu_rewrite_4.jsonl",
}


def error_of(set_name: str, root: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load_rows(set_name, root)
    return caught.value


@dataclass(frozen=True)
class BadRow:
    """A change to one row of a table, and what is said about it."""

    set_name: str
    row: int
    change: dict[str, Any]
    kind: Kind
    item: str
    detail: str


BAD_ROWS = [
    BadRow("sstorycloze", 2, {"first": None}, Kind.FIELD_MISSING, "2", ":3: first"),
    BadRow("sstorycloze", 2, {"last": 7}, Kind.FIELD_TYPE, "2", ":3: last is 7"),
    BadRow("sstorycloze", 3, {"last": " "}, Kind.FIELD_EMPTY, "3", ":4: last"),
    BadRow("sstorycloze", 3, {"first": "Other."}, Kind.CONTEXT, "2, 3", ":3 and .*:4"),
    BadRow("sstorycloze", 0, {"uttid": None}, Kind.FIELD_MISSING, "?", ":1: uttid"),
    BadRow("sstorycloze", 0, {"uttid": 0.0}, Kind.FIELD_TYPE, "0.0", ":1: uttid"),
    BadRow("sstorycloze", 0, {"uttid": True}, Kind.FIELD_TYPE, "True", ":1: uttid"),
    BadRow("sstorycloze", 0, {"uttid": " "}, Kind.FIELD_EMPTY, "' '", ":1: uttid"),
    BadRow("sstorycloze", 0, {"uttid": "a_0"}, Kind.ID, "a_0", ":1"),
    BadRow("sstorycloze", 0, {"uttid": "2_b"}, Kind.DUPLICATE, "2_b", ":1, .*:3"),
    BadRow("sstorycloze", 4, {"uttid": 9}, Kind.LONE, "5", ":6: no row 4"),
    BadRow("scmmlu", 1, {"B": None}, Kind.FIELD_MISSING, "1", ":2: B"),
    BadRow("scmmlu", 1, {"D": ""}, Kind.FIELD_EMPTY, "1", ":2: D"),
    BadRow("scmmlu", 1, {"answer": "E"}, Kind.ANSWER, "1", ":2: answer is 'E'"),
    BadRow("scmmlu", 1, {"answer": None}, Kind.FIELD_MISSING, "1", ":2: answer"),
    BadRow("scmmlu", 1, {"uttid": 2}, Kind.DUPLICATE, "2", ":2"),
]


@pytest.mark.parametrize("bad", BAD_ROWS, ids=lambda bad: f"{bad.kind.name} {bad.change}")
def test_a_bad_row_is_named_with_file_and_remedy(tmp_path: Path, bad: BadRow) -> None:
    root = publish(tmp_path)
    table = root / TABLES[bad.set_name]
    rows: Rows = [json.loads(line) for line in table.read_text().splitlines()]
    rows[bad.row] |= bad.change
    write_jsonl(table, rows)
    error = error_of(bad.set_name, root)
    found = [problem for problem in error.problems if problem.kind is bad.kind]
    assert found[0].item == bad.item
    assert re.search(re.escape(str(table)) + bad.detail, found[0].detail)
    for part in (bad.kind.title, bad.item, str(table), bad.kind.remedy):
        assert part in str(error)


def test_missing_keys_and_malformed_lines(tmp_path: Path) -> None:
    root = publish(tmp_path)
    table = root / TABLES["sstorycloze"]
    lines = table.read_text().splitlines()
    del_last = {key: value for key, value in json.loads(lines[3]).items() if key != "last"}
    lines[1], lines[3], lines[4] = lines[1][:-5], json.dumps(del_last), "[1]"
    table.write_text("\n".join(["", *lines]))
    problems = error_of("sstorycloze", root).problems
    said = {(problem.kind, problem.item, problem.detail.split(": ")[0]) for problem in problems}
    assert (Kind.MALFORMED, "line 3", f"{table}:3") in said
    assert (Kind.MALFORMED, "line 6", f"{table}:6") in said
    assert (Kind.FIELD_MISSING, "3", f"{table}:5") in said


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    root = publish(tmp_path)
    table = root / TABLES["scmmlu"]
    with table.open("ab") as file:
        file.write('{"uttid": 9, "first": "问题"}\n'.encode("gbk"))
    (problem,) = error_of("scmmlu", root).problems
    assert problem.kind is Kind.MALFORMED and f"{table}:5" in problem.detail


BAD_AUDIO: dict[Kind, Callable[[], bytes]] = {
    Kind.AUDIO_EMPTY: lambda: b"",
    Kind.AUDIO_UNREADABLE: lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    Kind.AUDIO_TRUNCATED: lambda: tone()[:-1000],
    Kind.AUDIO_NOT_FINITE: lambda: encode(
        np.array([0.1, np.nan] * 1000, np.float32), 16000, subtype="FLOAT"
    ),
    Kind.AUDIO_SILENT: lambda: encode(np.zeros(16000), 16000),
    Kind.AUDIO_SHORT: lambda: tone(seconds=0.02),
}


@pytest.mark.parametrize("kind", BAD_AUDIO, ids=lambda kind: kind.name)
def test_a_bad_recording_is_named_with_file_and_remedy(tmp_path: Path, kind: Kind) -> None:
    root = publish(tmp_path)
    path = root / QUESTIONS / "cmmlu_rewrite" / "2.wav"
    path.write_bytes(BAD_AUDIO[kind]())
    error = error_of("scmmlu", root)
    (problem,) = error.problems
    assert (problem.kind, problem.item) == (kind, "2")
    for part in (kind.title, f"2: {path}", kind.remedy):
        assert part in str(error)


@pytest.mark.parametrize(
    ("format_", "subtype"),
    [("OGG", "OPUS"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III"), ("FLAC", "PCM_16")],
)
def test_silence_and_cuts_in_other_formats(tmp_path: Path, format_: str, subtype: str) -> None:
    root = publish(tmp_path)
    folder = root / QUESTIONS / "cmmlu_rewrite"
    for number in (0, 1):
        (folder / f"{number}.wav").unlink()
    silence = encode(np.zeros(24000), 24000, format_, subtype)
    (folder / f"0.{format_.lower()}").write_bytes(silence)
    whole = tone(seconds=2, rate=24000, format=format_, subtype=subtype)
    (folder / f"1.{format_.lower()}").write_bytes(whole[: len(whole) * 2 // 3])
    kinds = {problem.item: problem.kind for problem in error_of("scmmlu", root).problems}
    assert kinds["0"] is Kind.AUDIO_SILENT
    assert kinds["1"] in (Kind.AUDIO_TRUNCATED, Kind.AUDIO_UNREADABLE)


def test_a_recording_without_samples_is_empty(tmp_path: Path) -> None:
    root = publish(tmp_path)
    (root / QUESTIONS / "cmmlu_rewrite" / "2.wav").write_bytes(encode(np.zeros(0), 16000))
    (problem,) = error_of("scmmlu", root).problems
    assert problem.kind is Kind.AUDIO_EMPTY and problem.detail.endswith("2.wav: no samples")


def test_a_missing_recording_is_named_with_its_row(tmp_path: Path) -> None:
    root = publish(tmp_path)
    path = root / QUESTIONS / "cmmlu_rewrite" / "3.wav"
    path.unlink()
    error = error_of("scmmlu", root)
    (problem,) = error.problems
    assert problem.kind is Kind.AUDIO_MISSING
    assert problem.detail == f"{root / TABLES['scmmlu']}:4: there is no {path}"
    assert "wav, flac, ogg, opus or mp3" in str(error)


def test_all_problems_come_together(tmp_path: Path) -> None:
    root = publish(tmp_path, questions=40)
    table = root / TABLES["scmmlu"]
    rows = [question(number) | ({"answer": "x"} if number < 13 else {}) for number in range(40)]
    write_jsonl(table, rows)
    for number in range(20, 24):
        (root / QUESTIONS / "cmmlu_rewrite" / f"{number}.wav").write_bytes(b"")
    message = str(error_of("scmmlu", root))
    assert message.startswith(f"scmmlu: 17 problems in {table}; nothing was run.")
    assert "answers that are not A, B, C or D: 13" in message
    assert "... and 3 more" in message
    assert "empty recordings: 4" in message
    assert message.index("answers") < message.index("empty recordings")


def test_pairs_numbered_from_one_are_refused(tmp_path: Path) -> None:
    root = publish(tmp_path)
    rows = [story(number) | {"uttid": number + 1} for number in range(6)]
    write_jsonl(root / TABLES["sstorycloze"], rows)
    (root / STORIES / "s-story-firstspeech" / "6.wav").write_bytes(tone())
    error = error_of("sstorycloze", root)
    (problem,) = error.problems
    assert (problem.kind, problem.item) == (Kind.PARITY, "1, 2")
    assert "true and false would be swapped" in str(error)


def test_a_faulty_file_that_was_mended_is_believed(tmp_path: Path) -> None:
    root = publish(tmp_path)
    path = root / QUESTIONS / "cmmlu_rewrite" / "2.wav"
    whole = path.read_bytes()
    path.write_bytes(b"")
    error_of("scmmlu", root)
    path.write_bytes(whole)
    assert len(load_rows("scmmlu", root)) == 4


@pytest.mark.parametrize(
    ("uttid", "number"), [("12", 12), ("12_a_3", 12), ("a_12", None), ("", None), ("-1", None)]
)
def test_id_numbers(uttid: str, number: int | None) -> None:
    assert id_number(uttid) == number


def story_row(number: int, context: str | None = None) -> StoryRow:
    return StoryRow(str(number), number, context or f"c{number // 2}", "e", f"t:{number}")


def test_pairs_are_joined_by_id_in_any_order() -> None:
    pairs, problems = join_pairs([story_row(n) for n in (7, 2, 0, 6, 3, 1)])
    assert [(pair.number, pair.true.number, pair.false.number) for pair in pairs] == [
        (0, 0, 1),
        (1, 2, 3),
        (3, 6, 7),
    ]
    assert not problems


def test_a_partner_with_a_problem_of_its_own_is_not_reported_again() -> None:
    assert join_pairs([story_row(0)], broken=[1]) == ([], [])
    _, problems = join_pairs([story_row(0), story_row(1), story_row(1)])
    assert [problem.kind for problem in problems] == [Kind.DUPLICATE]


def test_problems_are_grouped_in_the_order_of_their_kinds() -> None:
    lines = describe(
        [Problem(Kind.LONE, "4", "t:4"), Problem(Kind.MALFORMED, "line 1", "t:1: what")]
    )
    assert lines == [
        "  malformed JSON lines: 1",
        "    line 1: t:1: what",
        f"    What to do: {Kind.MALFORMED.remedy}.",
        "  story rows without their partner: 1",
        "    4: t:4",
        f"    What to do: {Kind.LONE.remedy}.",
    ]
