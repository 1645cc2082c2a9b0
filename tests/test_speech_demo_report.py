"""The arithmetic and the altered recordings behind docs/speech_demo.md."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.audio import Audio
from s2s_tasks.data.sources import load_rows, mini_rows

sys.path.append(str(Path(__file__).parents[1] / "speech_demo"))
import conditions
import report
import sound


def test_a_block_is_the_mean_of_its_questions() -> None:
    answers = {
        "sstorycloze_s2t": {"a.1": ("a", 1.0), "a.2": ("a", 0.5), "b.1": ("b", 0.0)},
        "tstorycloze_s2t": {"a.1": ("a", 0.25)},
    }
    assert report.blocks(answers, "sstorycloze") == {"a": 0.75, "b": 0.0}
    assert report.blocks(answers, "tstorycloze") == {"a": 0.25}
    assert report.difference({"a": 1.0, "b": 0.5}, {"b": 0.25, "a": 0.5}) == [0.5, 0.25]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=40))
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    mean, low, high = report.interval(values)
    assert low <= mean <= high
    assert mean == pytest.approx(np.mean(values))


def test_an_interval_is_about_four_standard_errors_wide() -> None:
    values = list(np.random.default_rng(0).uniform(size=400))
    _, low, high = report.interval(values)
    assert high - low == pytest.approx(4 * np.std(values) / 20, rel=0.1)


def test_voices_are_compared_on_their_own_blocks() -> None:
    heard, unheard = (
        {"sstorycloze_s2t": questions, "tstorycloze_s2t": questions}
        for questions in (
            {"1": ("en-001", 0.5), "2": ("en-006", 0.25)},  # af_heart was heard, am_fenrir not
            {"1": ("en-001", 1.0), "2": ("en-006", 1.0)},
        )
    )
    rows = report.voice_rows({"clean": heard, "written": unheard})
    assert [cells[:2] for _, cells in rows] == [
        ["50.0 [50.0, 50.0]", "50.0 [50.0, 50.0]"],
        ["25.0 [25.0, 25.0]", "75.0 [75.0, 75.0]"],
    ]


# Altered recordings


@pytest.fixture(scope="module")
def own() -> list[np.ndarray]:
    return [row.context_audio[0].load(conditions.RATE) for row in mini_rows("sstorycloze")[:2]]


def test_babble_is_added_at_its_level(own: list[np.ndarray]) -> None:
    rows = mini_rows("sstorycloze")
    loud, louder = (conditions.in_babble(snr)(0, rows) for snr in (5, -5))
    noise = (loud - own[0]).astype(np.float64)
    assert 10 * np.log10(sound.power(own[0]) / sound.power(noise)) == pytest.approx(5, abs=0.01)
    np.testing.assert_allclose(louder - own[0], (loud - own[0]) * 10**0.5, atol=1e-4)


def test_speed_changes_the_length(own: list[np.ndarray]) -> None:
    fast = conditions.at_speed(1.6)(0, mini_rows("sstorycloze"))
    assert len(fast) == pytest.approx(len(own[0]) / 1.6, rel=0.01)


def test_a_swapped_recording_is_of_another_block() -> None:
    rows = mini_rows("sstorycloze")
    for number in range(len(rows)):
        conditions.swapped(number, rows)


def test_a_condition_is_the_mini_set_with_other_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recordings: list[Audio]
) -> None:
    few = mini_rows("sstorycloze")[:4]
    monkeypatch.setattr(conditions, "mini_rows", lambda name: few)
    folder = conditions.make("speed 2", lambda number, rows: np.full(1600, 0.5), tmp_path)
    made = load_rows("sstorycloze", folder)
    assert [row.endings for row in made] == [row.endings for row in few]
    assert [row.gold for row in made] == [row.gold for row in few]
    assert {row.context_audio[0].seconds for row in made} == {0.1}
