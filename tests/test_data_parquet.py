"""The canonical form: rows and recordings come back as they went in."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_layout import cache, encode, publish, tone  # noqa: F401

from s2s_tasks.audio import Audio, AudioError, probe
from s2s_tasks.data.card import write_card
from s2s_tasks.data.parquet import read_metadata, read_rows, write_rows
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.rows import Row
from s2s_tasks.data.sources import load_rows


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[Audio]:
    """Recordings of several formats, rates and lengths."""
    folder = tmp_path_factory.mktemp("sounds")
    encoded = {
        "a.wav": tone(200),
        "b.flac": tone(300, rate=8000, format="FLAC"),
        "c.ogg": tone(400, rate=24000, seconds=0.3, format="OGG", subtype="OPUS"),
        "d.wav": tone(500, rate=44100, channels=2),
    }
    for name, data in encoded.items():
        (folder / name).write_bytes(data)
    return [probe(folder / name) for name in encoded]


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@st.composite
def rows_of_indexes(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a row, with indexes in place of recordings."""
    count = draw(st.integers(2, 4))
    sound = st.integers(0, 3)

    def tuples(of: Any, sizes: list[int]) -> Any:
        size = draw(st.sampled_from(sizes))
        return tuple(draw(st.lists(of, min_size=size, max_size=size)))

    return {
        "id": draw(texts),
        "language": draw(st.sampled_from(["en", "zh"])),
        "context": draw(texts),
        "endings": tuples(texts, [count]),
        "gold": draw(st.integers(0, count - 1)),
        "context_audio": tuples(sound, [0, 1, count]),
        "ending_audio": tuples(sound, [0, count]),
        "subject": draw(st.none() | texts),
        "pair_id": draw(st.none() | st.sampled_from(["p", "q"])),
        "source_ids": tuples(texts, [0, 1, count]),
    }


def with_sounds(fields: dict[str, Any], sounds: list[Audio]) -> Row:
    audio = {
        key: tuple(sounds[i] for i in fields[key]) for key in ("context_audio", "ending_audio")
    }
    return Row(**{**fields, **audio})


def placeless(row: Row) -> Row:
    def here(audios: tuple[Audio, ...]) -> tuple[Audio, ...]:
        return tuple(replace(audio, path="", cell=None) for audio in audios)

    return replace(row, context_audio=here(row.context_audio), ending_audio=here(row.ending_audio))


def recordings(rows: list[Row]) -> list[Audio]:
    return [audio for row in rows for audio in (*row.context_audio, *row.ending_audio)]


@given(st.lists(rows_of_indexes(), max_size=12))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
def test_rows_round_trip(sounds: list[Audio], tmp_path: Path, drawn: list[dict[str, Any]]) -> None:
    rows = [with_sounds(fields, sounds) for fields in drawn]
    path = tmp_path / "set.parquet"
    assert write_rows(path, rows, source="a test") == len(rows)
    back = read_rows(path)
    assert list(map(placeless, back)) == list(map(placeless, rows))
    for audio, was in zip(recordings(back), recordings(rows), strict=True):
        assert audio.read() == Path(was.path).read_bytes()


def crossed(count: int, folder: Path, *, cluster: int = 4) -> Iterator[Row]:
    """Rows of noise recordings of 32 kB; the rows of a cluster share their endings' recordings."""
    random = np.random.default_rng(0)

    def sound(name: str) -> Audio:
        path = folder / f"{name}.wav"
        if not path.exists():
            path.write_bytes(encode(random.normal(size=16000) * 0.1, 16000))
        return probe(path)

    for number in range(count):
        block = number // cluster
        endings = tuple(sound(f"{block}-{ending}") for ending in range(cluster))
        names = tuple("abcdefgh"[:cluster])
        yield Row(
            f"r{number}", "en", "c", names, 0, (sound(f"c{number}"),), endings, pair_id=str(block)
        )


def test_shared_recordings_are_stored_once_and_groups_stay_small(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    write_rows(path, crossed(160, tmp_path), source="a test")
    distinct = sum(sound.stat().st_size for sound in tmp_path.glob("*.wav"))
    assert path.stat().st_size < 1.05 * distinct
    file = pq.ParquetFile(path)
    assert file.num_row_groups > 5
    for number in range(file.num_row_groups):
        clusters = file.read_row_group(number, columns=["pair_id"])["pair_id"].to_pylist()
        assert len(clusters) == 4 * len(set(clusters))  # none is divided
        assert file.metadata.row_group(number).total_byte_size < 2e6
    back = read_rows(path)
    assert back[150].ending_audio[3].read() == (tmp_path / "37-3.wav").read_bytes()


def test_a_cluster_too_large_for_a_group_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s2s_tasks.data.parquet._GROUP_BYTES", 10_000)
    monkeypatch.setattr("s2s_tasks.data.parquet._GROUP_BYTES_MOST", 200_000)
    path = tmp_path / "set.parquet"
    rows = [replace(row, pair_id="all") for row in crossed(20, tmp_path)]
    write_rows(path, rows, source="a test")
    assert 1 < pq.ParquetFile(path).num_row_groups < 20
    assert len(read_rows(path)) == 20


def test_reading_rows_reads_no_audio(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    write_rows(path, crossed(8, tmp_path), source="a test")
    data = bytearray(path.read_bytes())
    at = data.index((tmp_path / "c0.wav").read_bytes())
    data[at + 100 : at + 110] = b"other data"
    path.write_bytes(data)
    rows = read_rows(path)
    with pytest.raises(AudioError, match=r"set\.parquet#context_audio/0/0: the recording changed"):
        rows[0].context_audio[0].read()
    assert rows[0].ending_audio[0].read()


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out" / "set.parquet"
    write_rows(path, crossed(4, tmp_path), source="the first")

    def broken() -> Iterator[Row]:
        yield from crossed(80, tmp_path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(path, broken(), source="the second")
    assert [entry.name for entry in path.parent.iterdir()] == ["set.parquet"]
    assert read_metadata(path)["source"] == "the first"


def test_a_disk_that_refuses_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"set\.parquet: cannot be written .*name another"):
        write_rows(tmp_path / "file" / "set.parquet", [], source="a test")


def test_metadata_says_what_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    write_rows(path, crossed(1, tmp_path), source="a test", licence="CC-BY-4.0")
    noted = read_metadata(path)
    assert (noted["format"], noted["source"], noted["licence"]) == (1, "a test", "CC-BY-4.0")
    assert noted["version"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(
        DataError, match=r"set\.parquet: not a readable Parquet file .*data prepare"
    ):
        read_rows(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match=r"set\.parquet: .*not one written by `s2s-tasks data prep"):
        read_rows(path)
    newer = json.dumps({"format": 2, "version": "9.0"})
    table = pa.table({"a": [1]}).replace_schema_metadata({"s2s_tasks": newer})
    pq.write_table(table, path)
    with pytest.raises(DataError, match=r"format 2 by s2s-tasks 9\.0; .*What to do: upgrade"):
        read_rows(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A canonical folder of two sets."""
    sounds, folder = tmp_path_factory.mktemp("sounds"), tmp_path_factory.mktemp("canonical")
    for name in ("sstorycloze", "scmmlu"):
        write_rows(folder / f"{name}.parquet", crossed(4, sounds), source="a test")
    write_card(folder, "A test")
    return folder


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        (lambda folder: ("parquet", None, str(folder / "scmmlu.parquet"), "train"), 4),
        (lambda folder: (str(folder), None, None, "test"), 8),
        (lambda folder: (str(folder), "scmmlu", None, "test"), 4),
    ],
    ids=["one file", "the folder", "one set of the folder"],
)
def test_datasets_reads_it(folder: Path, tmp_path: Path, how: Any, rows: int) -> None:
    path, name, files, split = how(folder)
    data = datasets.load_dataset(path, name, data_files=files, split=split, cache_dir=str(tmp_path))
    assert len(data) == rows
    for column in ("context_audio", "ending_audio"):
        assert data.features[column] == datasets.List(datasets.Audio(decode=False))
        cell = data[1][column][0]
        assert cell["path"].endswith(".wav")
        assert soundfile.info(io.BytesIO(cell["bytes"])).frames == 16000


def test_rows_of_a_canonical_folder_are_those_of_its_source(tmp_path: Path) -> None:
    root = publish(tmp_path / "published")
    for name in ("zh_sstorycloze", "scmmlu"):
        rows = load_rows(name, root)
        write_rows(tmp_path / "canonical" / f"{name}.parquet", rows, source="a test")
        back = load_rows(name, tmp_path / "canonical")
        assert list(map(placeless, back)) == list(map(placeless, rows))
        for audio, was in zip(recordings(back), recordings(rows), strict=True):
            assert np.array_equal(audio.load(8000), was.load(8000))
