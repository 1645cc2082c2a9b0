"""The canonical row: what it refuses, and where it puts the true ending."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.audio import Audio
from s2s_tasks.data.rows import Row, place_gold


def audio(name: str) -> Audio:
    return Audio(f"{name}.wav", name, 16000, 1600, 1)


def row(id_: str = "r", count: int = 4, **changes: Any) -> Row:
    names = tuple("abcdefgh"[:count])
    sounds = tuple(map(audio, names))
    return replace(Row(id_, "en", "c", names, 0, sounds, sounds, source_ids=names), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": 4}, "a true one among them"),
        ({"endings": ("a",)}, "two endings"),
        ({"context_audio": (audio("a"), audio("b"))}, "one context recording, or one an ending"),
        ({"ending_audio": (audio("a"),)}, "one recording an ending, or none"),
    ],
)
def test_what_no_question_can_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^r: .*{message}"):
        row(**changes)


@given(st.text(max_size=10), st.integers(2, 6))
def test_placing_moves_everything_alike(id_: str, count: int) -> None:
    placed = place_gold(row(id_, count))
    assert placed.endings[placed.gold] == "a"
    assert place_gold(placed) == placed
    assert [placed.audio_for(ending).sha256 for ending in range(count)] == list(placed.endings)
    assert tuple(sound.sha256 for sound in placed.ending_audio) == placed.endings
    assert placed.source_ids == placed.endings


def test_what_all_endings_share_stays() -> None:
    placed = place_gold(row("4", context_audio=(audio("c"),), source_ids=("q",)))
    assert placed.gold != 0
    assert placed.context_audio == (audio("c"),) and placed.source_ids == ("q",)
    assert {placed.audio_for(ending) for ending in range(4)} == {audio("c")}


def test_positions_are_even_over_many_ids() -> None:
    positions = Counter(place_gold(row(str(number))).gold for number in range(4000))
    assert all(900 < count < 1100 for count in positions.values())
