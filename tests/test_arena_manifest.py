"""Manifests of instructions in every form."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_layout import tone

from s2s_tasks.arena.data.manifest import ManifestError, read

ROW = {
    "id": "irony/1",
    "audio": "sounds/1.wav",
    "text": "太好了。",
    "language": "zh",
    "domain": "Social",
    "task": "irony",
    "level": "L2",
    "split": "seed",
    "cue": {"style": "ironic"},
    "target": {"emotion": "amused", "rate": "slow"},
    "evaluation": "Does it notice?",
}
SPARE = {"id": "2", "audio": "sounds/2.wav", "language": "en", "domain": "X", "task": "y"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sounds").mkdir()
    for number in (1, 2):
        (tmp_path / f"sounds/{number}.wav").write_bytes(tone(200.0 * number))
    return tmp_path


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    return path


def test_jsonl_csv_and_parquet_are_read_alike(folder: Path) -> None:
    rows = [ROW, {**SPARE, "level": 4}]
    found = read(write(folder, *rows))
    one = found[0]
    assert (one.id, one.level, one.split, one.text) == ("irony/1", 2, "seed", "太好了。")
    assert one.target == {"emotion": "amused", "rate": "slow"}
    assert one.evaluation == "Does it notice?"
    assert one.audio.path == str(folder / "sounds/1.wav")
    assert (found[1].level, found[1].cue, found[1].text) == (4, {}, "")
    assert read(folder) == found

    with (folder / "m.csv").open("w", encoding="utf-8", newline="") as file:
        flat = [
            {k: json.dumps(v) if isinstance(v, dict) else v for k, v in r.items()} for r in rows
        ]
        del flat[0]["target"]
        flat[0] |= {"target.emotion": "amused", "target.rate": "slow"}
        writer = csv.DictWriter(file, flat[0])
        writer.writeheader()
        writer.writerows(flat)
    assert read(folder / "m.csv") == found

    pq.write_table(
        pa.Table.from_pylist([*[{**r, "level": str(r["level"])} for r in rows]]),
        folder / "m.parquet",
    )
    assert read(folder / "m.parquet") == found


@pytest.mark.parametrize("listed", [True, False])
def test_parquet_may_embed_recordings(folder: Path, listed: bool) -> None:
    sounds = [{"bytes": tone(200.0 + n), "path": f"{n}"} for n in range(5)]
    rows = [
        {**SPARE, "id": str(n), "level": 1, "audio": [sound] if listed else sound}
        for n, sound in enumerate(sounds)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "m.parquet", row_group_size=2)
    for number, instruction in enumerate(read(folder / "m.parquet")):
        assert instruction.audio.read() == tone(200.0 + number)


@pytest.mark.parametrize("written", ["L0", "0", 0, "l0"])
def test_levels_of_the_first_version_need_saying(folder: Path, written: object) -> None:
    path = write(folder, {**SPARE, "level": written})
    assert read(path, old_levels=True)[0].level == 1
    with pytest.raises(ManifestError, match="need --old-levels"):
        read(path)
    write(folder, {**SPARE, "level": "L4"})
    assert read(path)[0].level == 4
    with pytest.raises(ManifestError, match="there are L0 to L3"):
        read(path, old_levels=True)


@pytest.mark.parametrize("written", [2.0, "2.0", " l2 "])
def test_levels_may_be_written_as_fractions(folder: Path, written: object) -> None:
    assert read(write(folder, {**SPARE, "level": written}))[0].level == 2


def test_what_names_a_path_as_the_hub_does_is_read(folder: Path) -> None:
    for audio in ({"path": "sounds/2.wav"}, [{"bytes": None, "path": "sounds/2.wav"}]):
        (one,) = read(write(folder, {**SPARE, "id": 0, "level": 1, "audio": audio}))
        assert (one.id, one.audio.path) == ("0", str(folder / "sounds/2.wav"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"audio": "a\0b"}, r"row 1 \(2\): audio 'a.x00b': embedded null byte"),
        ({"level": "9" * 5000}, r"row 1 \(2\): level '9+\.\.\.9+': there are L1 to L4"),
        ({"level": True}, "level 'True'"),
        ({"level": ["1"]}, "level: .* neither a text nor a number"),
        ({"id": ["2"]}, "id: .* neither a text nor a number"),
        ({"id": " "}, r"row 1 \(no id\): id missing"),
        ({"id": float("nan")}, r"row 1 \(no id\): id missing"),
        ({"cue": "[" * 100_000}, "cue is no JSON object"),
    ],
)
def test_odd_values_are_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        read(write(folder, {**SPARE, "level": 1, **change}))


@pytest.mark.parametrize("end", [", world", ","])
def test_csv_rows_with_more_cells_than_the_header_are_refused(folder: Path, end: str) -> None:
    lines = ["id,audio,language,domain,task,level,text"]
    lines += [f"{n},sounds/2.wav,en,X,y,1,Hello{end if n else ''}" for n in range(2)]
    (folder / "m.csv").write_text("\n".join(lines), "utf-8")
    with pytest.raises(ManifestError, match="row 2 has more cells than the header; put a text"):
        read(folder / "m.csv")


def test_all_that_is_amiss_is_named(folder: Path) -> None:
    path = write(
        folder,
        {**SPARE, "level": "hard"},
        {**SPARE, "id": "b"},
        {**SPARE, "id": "c", "level": 1, "audio": "gone.wav"},
        {**SPARE, "id": "d", "level": 1, "cue": "sad"},
        {**SPARE, "id": "e", "level": 1, "split": "test"},
        {**SPARE, "id": "f", "level": 1},
        {**SPARE, "id": "f", "level": 1},
        {**SPARE, "id": "g", "level": 1, "audio": {"bytes": ""}},
    )
    with pytest.raises(ManifestError) as caught:
        read(path)
    lines = str(caught.value).splitlines()
    assert "7 row(s) cannot be used" in lines[0]
    for line, message in zip(
        lines[1:],
        [
            "row 1 (2): level 'hard'",
            "row 2 (b): level missing",
            "gone.wav: cannot read",
            "cue is no",
            "split 'test'",
            "row 7 (f): the id is taken",
            "neither a path nor one recording",
        ],
        strict=True,
    ):
        assert message in line


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("m.jsonl", "{", "cannot be read"),
        ("m.jsonl", "[" * 100_000, "cannot be read"),
        ("m.jsonl", "\n", "no instructions are in it"),
        ("m.parquet", "x", "cannot be read"),
        ("m.txt", "", "is a .jsonl, .csv or .parquet file"),
    ],
)
def test_files_that_are_no_manifests_are_refused(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ManifestError, match=message):
        read(tmp_path / name)
    with pytest.raises(ManifestError, match="no such manifest"):
        read(tmp_path / "gone")
    with pytest.raises(ManifestError, match=r"needs one of manifest\.jsonl"):
        read(tmp_path)
