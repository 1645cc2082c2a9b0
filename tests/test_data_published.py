"""The published layout, however it lies on disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_layout import (
    MAP,
    QUESTIONS,
    STORIES,
    cache,  # noqa: F401
    pair_tone,
    publish,
    question,
    story,
    tone,
    write_audio,
    write_jsonl,
)

from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published import embedded, index
from s2s_tasks.data.published.layout import LayoutError, assign_folders
from s2s_tasks.data.published.records import language_of
from s2s_tasks.data.sets import SETS
from s2s_tasks.data.sources import load_rows

AUDIO = {
    "sstorycloze": f"{STORIES}/s-story-firstspeech",
    "zh_sstorycloze": f"{STORIES}/zh_story",
    "scmmlu": f"{QUESTIONS}/cmmlu_rewrite",
}


def audio_folders(set_name: str, root: Path) -> set[Path]:
    rows = load_rows(set_name, root)
    return {Path(audio.path).parent for row in rows for audio in row.context_audio}


@pytest.mark.parametrize("mapped", [True, False], ids=["eval_s2t.yaml", "by content"])
@pytest.mark.parametrize("set_name", SETS)
def test_every_set_finds_its_own_parts(tmp_path: Path, set_name: str, mapped: bool) -> None:
    root = publish(tmp_path, mapped=mapped)
    rows = load_rows(set_name, root)
    assert len(rows) == {"scmmlu": 4}.get(set_name, 3)
    assert {row.language for row in rows} == {SETS[set_name].language}
    assert audio_folders(set_name, root) == {root / AUDIO[set_name]}


def test_stories_become_rows(tmp_path: Path) -> None:
    rows = load_rows("sstorycloze", publish(tmp_path))
    assert [row.id for row in rows] == ["sstorycloze-0", "sstorycloze-1", "sstorycloze-2"]
    for number, row in enumerate(rows):
        assert row.context == f"Story {number} begins here."
        assert row.endings[row.gold] == "It is the true one."
        assert row.endings[1 - row.gold] == "It is the false one."
        assert row.source_ids[row.gold] == str(2 * number)
        assert row.source_ids[1 - row.gold] == str(2 * number + 1)
        assert row.subject is None and row.pair_id is None


def test_questions_become_rows(tmp_path: Path) -> None:
    root = publish(tmp_path)
    rows = [question(7) | {"subject": "法学"}, question("8_x") | {"answer": " b "}]
    write_jsonl(root / QUESTIONS / "cmmlu_rewrite_4.jsonl", rows)
    write_audio(root / AUDIO["scmmlu"], [7, "8_x"], lambda n: tone(300 + n))
    first, second = load_rows("scmmlu", root)
    assert (first.id, first.subject, first.source_ids) == ("scmmlu-7", "法学", ("7",))
    assert (second.id, second.subject) == ("scmmlu-8_x", None)
    assert first.endings[first.gold] == "选项C。" and second.endings[second.gold] == "选项B。"
    assert len(first.endings) == 4 and len(first.context_audio) == 1


def test_identical_recordings_are_told_from_different_ones(tmp_path: Path) -> None:
    root = publish(tmp_path)
    # Pair 0: other bytes, the same samples. Pair 1: the same bytes. Pair 2: another sound.
    folder = root / AUDIO["sstorycloze"]
    (folder / "1.wav").unlink()
    (folder / "1.flac").write_bytes(tone(200, format="FLAC"))
    (folder / "5.wav").write_bytes(tone(900))
    rows = load_rows("sstorycloze", root)
    assert [len(row.context_audio) for row in rows] == [1, 1, 2]
    assert Path(rows[0].context_audio[0].path).name == "0.wav"
    assert Path(rows[2].audio_for(rows[2].gold).path).name == "4.wav"
    assert Path(rows[2].audio_for(1 - rows[2].gold).path).name == "5.wav"


@pytest.mark.parametrize(
    "form", [int, str, lambda number: f"{number}_name"], ids=["1", "'1'", "1_name"]
)
def test_ids_may_be_numbers_or_text(tmp_path: Path, form: Any) -> None:
    ids = [form(number) for number in range(8)]
    rows = [{**story(number), "uttid": ids[number]} for number in reversed(range(8))]
    write_jsonl(tmp_path / "stories.jsonl", rows)
    write_audio(tmp_path / "speech", ids, pair_tone)
    found = load_rows("sstorycloze", tmp_path)
    assert [row.id for row in found] == [f"sstorycloze-{number}" for number in range(4)]


def test_text_loses_outer_blanks(tmp_path: Path) -> None:
    rows = [story(0), story(1)]
    rows[0] |= {"first": rows[0]["first"] + " ", "last": " " + rows[0]["last"] + "\n"}
    write_jsonl(tmp_path / "stories.jsonl", rows)
    write_audio(tmp_path, range(2), pair_tone)
    (row,) = load_rows("sstorycloze", tmp_path)
    assert row.context == "Story 0 begins here."
    assert row.endings[row.gold] == "It is the true one."


def test_a_folder_with_one_set_only(tmp_path: Path) -> None:
    root = publish(tmp_path, mapped=False)
    shutil.rmtree(root / STORIES)
    assert len(load_rows("scmmlu", root)) == 4
    with pytest.raises(LayoutError, match="sstorycloze: no table with the fields uttid, first"):
        load_rows("sstorycloze", root)


@pytest.mark.parametrize(
    "map_text",
    [
        "root_dir: sub\ndatasets:\n  sstorycloze: {jsonl: t.jsonl, audio_dir: a, language: en}",
        "whatever: {path: sub/t.jsonl, audio_path: sub/a}",
        "datasets: {sStory_s2t: {path: /data/sub/t.jsonl, audio_path: else/where/a, lang: en}}",
    ],
    ids=["root_dir and other keys", "another name", "a path of another tree"],
)
def test_maps_may_vary(tmp_path: Path, map_text: str) -> None:
    write_jsonl(tmp_path / "sub/t.jsonl", map(story, range(2)))
    write_jsonl(tmp_path / "sub/older.jsonl", map(story, range(2)))
    write_audio(tmp_path / "sub/a", range(2), pair_tone)
    write_audio(tmp_path / "sub/b", range(2), pair_tone)
    (tmp_path / "eval_s2t.yaml").write_text(map_text)
    assert audio_folders("sstorycloze", tmp_path) == {tmp_path / "sub/a"}


def test_a_map_may_point_elsewhere(tmp_path: Path) -> None:
    root = publish(tmp_path / "data", mapped=False)
    here = tmp_path / "here"
    here.mkdir()
    (here / "eval_s2t.yaml").write_text(f"root_dir: {root}\n{MAP}")
    assert len(load_rows("zh_sstorycloze", here)) == 3


@pytest.mark.parametrize(
    ("map_text", "message"),
    [
        ("datasets: [", "not a YAML file"),
        ("- a", "expected a mapping"),
        ("datasets: 3", "must map names"),
        ("datasets: {a: 1}", "names no set"),
        ("datasets: {scmmlu: {path: no.jsonl, audio_path: a}}", "there is no no.jsonl"),
        (MAP.replace("/cmmlu_rewrite\n", "/nowhere\n"), "there is no folder S2S/cmmlu/nowhere"),
        ("datasets: {scmmlu: {path: S2S/cmmlu/cmmlu_rewrite_4.jsonl}}", "it names no audio_path"),
        (MAP.replace("lang: zh", "lang: en"), "lang is 'en', but scmmlu is 'zh'"),
    ],
)
def test_a_bad_map_is_named(tmp_path: Path, map_text: str, message: str) -> None:
    root = publish(tmp_path)
    (root / "eval_s2t.yaml").write_text(map_text)
    with pytest.raises(LayoutError, match=message) as caught:
        load_rows("scmmlu", root)
    assert str(root / "eval_s2t.yaml") in str(caught.value)


def test_a_map_may_name_parquet_and_other_sets(tmp_path: Path) -> None:
    root = publish(tmp_path)
    rows = [{**story(n), "audio": {"bytes": pair_tone(n), "path": None}} for n in range(4)]
    for name in ("old", "new"):
        pq.write_table(pa.Table.from_pylist(rows), root / f"{name}.parquet")
    other = {"path": f"{QUESTIONS}/cmmlu_rewrite_4.jsonl", "audio_path": "no matter"}
    entries = {"one": {"path": "new.parquet"}, "two": other}
    (root / "eval_s2t.yaml").write_text(json.dumps({"datasets": entries}))
    assert len(load_rows("sstorycloze", root)) == 2


def test_ambiguous_parts_are_refused_and_explained(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "one.jsonl", map(story, range(2)))
    write_jsonl(tmp_path / "two.jsonl", map(story, range(2)))
    for folder in "ab":
        write_audio(tmp_path / folder, range(2), pair_tone)
    with pytest.raises(LayoutError, match=r"several tables could be it: .*one.jsonl, .*two.jsonl"):
        load_rows("sstorycloze", tmp_path)
    (tmp_path / "two.jsonl").unlink()
    with pytest.raises(LayoutError, match="several folders hold recordings") as caught:
        load_rows("sstorycloze", tmp_path)
    for part in (f"{tmp_path}/a (2 recordings)", f"{tmp_path}/eval_s2t.yaml", "audio_path:"):
        assert part in str(caught.value)
    for folder in "ab":
        shutil.rmtree(tmp_path / folder)
    with pytest.raises(LayoutError, match=r"no folder holds <uttid>\.wav"):
        load_rows("sstorycloze", tmp_path)


def folders_of(uttids: dict[str, set[str]], *folders: str) -> dict[str, list[str]]:
    """What is assigned where every folder holds recordings of every uttid."""
    held = {Path(folder): {"0", "1", "0_en", "1_en", "2"} for folder in folders}
    found = assign_folders(uttids, dict.fromkeys(uttids, "table"), held)
    return {name: [str(folder) for folder in paths] for name, paths in found.items()}


def test_folders_that_fit_several_sets_go_by_name_and_elimination() -> None:
    both = {"sstorycloze": {"0", "1"}, "zh_sstorycloze": {"0", "1"}}
    assert folders_of(both, "x", "zh_story") == {
        "sstorycloze": ["x"],
        "zh_sstorycloze": ["zh_story"],
    }
    assert folders_of(both, "x", "y")["sstorycloze"] == ["x", "y"]


def test_a_folder_that_may_be_another_sets_is_nobodys() -> None:
    both = {"sstorycloze": {"0", "1"}, "zh_sstorycloze": {"0", "1"}}
    assert folders_of(both, "x") == {"sstorycloze": [], "zh_sstorycloze": []}
    assert folders_of(both, "zh_story") == {"sstorycloze": [], "zh_sstorycloze": ["zh_story"]}
    assert folders_of({"sstorycloze": {"0", "1"}}, "zh_story") == {"sstorycloze": []}
    apart = {"sstorycloze": {"0_en", "1_en"}, "zh_sstorycloze": {"0", "1"}}
    assert folders_of(apart, "x") == {"sstorycloze": ["x"], "zh_sstorycloze": ["x"]}


def test_what_is_no_data_is_left_alone(tmp_path: Path) -> None:
    root = publish(tmp_path, mapped=False)
    for folder in ("__MACOSX", ".cache"):
        shutil.copytree(root / STORIES, root / folder)
    (root / STORIES / "._zh_story.jsonl").write_bytes(b"\0\5\26")
    (root / "notes.jsonl").write_text("")
    (root / "loop").symlink_to(root)
    assert len(load_rows("zh_sstorycloze", root)) == 3


@pytest.mark.parametrize("shards", [1, 2])
def test_parquet_with_embedded_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    rows = [{**story(n), "audio": {"bytes": pair_tone(n), "path": f"{n}.wav"}} for n in range(4)]
    for shard in range(shards):
        part = rows[shard * 4 // shards : (shard + 1) * 4 // shards]
        name = f"train-{shard:05}-of-{shards:05}.parquet"
        pq.write_table(pa.Table.from_pylist(part), tmp_path / name)
    found = load_rows("sstorycloze", tmp_path)
    monkeypatch.setattr(embedded, "_unpack", None)  # once is enough
    assert load_rows("sstorycloze", tmp_path) == found and len(found) == 2
    assert [row.context_audio[0].read() for row in found] == [pair_tone(0), pair_tone(2)]


def test_a_row_without_its_embedded_recording(tmp_path: Path) -> None:
    rows = [{**story(n), "audio": {"bytes": pair_tone(n), "path": None}} for n in range(2)]
    rows[1]["audio"]["bytes"] = None
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    with pytest.raises(DataError, match=r"1: .*test\.parquet row 1: there is no embedded"):
        load_rows("sstorycloze", tmp_path)


def test_a_second_start_decodes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,  # noqa: F811
) -> None:
    root = publish(tmp_path)
    looked: list[Any] = []
    look = index._look
    monkeypatch.setattr(index, "_look", lambda place: (looked.append(place), look(place))[1])
    first = load_rows("scmmlu", root)
    assert len(looked) == 4
    (log,) = (cache / "index").iterdir()
    log.write_text(log.read_text() + '{"at": ["half a li')
    assert load_rows("scmmlu", root) == first
    assert len(looked) == 4
    (root / AUDIO["scmmlu"] / "1.wav").write_bytes(tone(999, seconds=0.2))
    assert load_rows("scmmlu", root) != first
    assert len(looked) == 5


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Tom ate.", "en"),
        ("汤姆吃了。", "zh"),
        ("Tom吃了一个苹果", "zh"),
        ("", "en"),
        ("12。", "en"),
    ],
)
def test_languages_are_told_by_script(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_broken_first_line_hides_no_set(tmp_path: Path) -> None:
    root = publish(tmp_path, mapped=False)
    table = root / QUESTIONS / "cmmlu_rewrite_4.jsonl"
    lines = [json.dumps({"uttid": 99}), "{", *table.read_text().splitlines()]
    table.write_text("\n".join(lines))
    with pytest.raises(Exception, match="missing or null fields"):
        load_rows("scmmlu", root)
