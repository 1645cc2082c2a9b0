"""The embedded mini set: what the README promises of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from s2s_tasks.data.rows import Row
from s2s_tasks.data.sets import SETS
from s2s_tasks.data.sources import mini_rows, topic_rows
from s2s_tasks.stats import pair_accuracy

TEXTS = Path(__file__).parents[1] / "mini_set"


def context_free_accuracy(rows: list[Row]) -> float:
    """Return `pair_acc` of a scorer that sees only the endings, here their length."""
    return sum(pair_accuracy([len(e) for e in row.endings], row.gold) for row in rows) / len(rows)


@pytest.mark.parametrize("name", SETS)
def test_it_is_the_texts_that_a_person_reads(name: str) -> None:
    blocks = yaml.safe_load((TEXTS / f"{name}.yaml").read_text(encoding="utf-8"))
    written = {(item["context"], item["ending"]) for block in blocks for item in block["items"]}
    rows = mini_rows(name)
    assert {(row.context, row.endings[row.gold]) for row in rows} == written
    assert len(rows) == 80
    for row in rows:
        assert len(row.context_audio) == 1
        assert len(row.ending_audio) == len(row.endings)


@pytest.mark.parametrize("name", SETS)
def test_endings_alone_tell_nothing(name: str) -> None:
    assert context_free_accuracy(mini_rows(name)) == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["sstorycloze", "zh_sstorycloze"])
def test_neither_do_those_of_the_topic_variant(name: str) -> None:
    rows = topic_rows(mini_rows(name), 4)
    assert {len(row.endings) for row in rows} == {5}
    assert context_free_accuracy(rows) == pytest.approx(0.5)


@pytest.mark.parametrize("name", SETS)
def test_every_position_holds_the_true_ending(name: str) -> None:
    rows = mini_rows(name)
    counts = Counter(row.gold for row in rows)
    assert len(counts) == len(rows[0].endings)
    assert min(counts.values()) >= 80 / len(counts) / 2


def test_scmmlu_covers_subjects() -> None:
    counts = Counter(row.subject for row in mini_rows("scmmlu"))
    assert len(counts) >= 8
    assert None not in counts


@pytest.mark.parametrize("name", SETS)
def test_every_recording_is_heard(name: str) -> None:
    rows = mini_rows(name)
    for audio in {a for row in rows for a in (*row.context_audio, *row.ending_audio)}:
        signal = audio.load(16000)
        assert abs(len(signal) / 16000 - audio.seconds) < 0.01
        assert 0.05 < abs(signal).max() <= 1.0
        assert audio.seconds < 30


def test_it_is_small() -> None:
    folders = {Path(mini_rows(name)[0].context_audio[0].path).parent for name in SETS}
    (folder,) = folders
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
