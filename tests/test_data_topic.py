"""The topic variant: balanced, deterministic, and never within a cluster."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2s_tasks.audio import Audio
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.rows import Row, place_gold
from s2s_tasks.data.topic import topic_rows

quick = settings(deadline=None, max_examples=40)


def recording(name: str) -> Audio:
    return Audio(f"{name}.wav", name, 16000, 1600, 1)


def row(block: int, item: int, size: int, *, clustered: bool = True) -> Row:
    """Item `item` of a crossed block: its ending is true, the others of the block are false."""
    names = [f"{block}.{(item + step) % size}" for step in range(size)]
    return place_gold(
        Row(
            id=f"r{block}.{item}",
            language="en",
            context=f"context {block}.{item}",
            endings=tuple(f"ending {name}" for name in names),
            gold=0,
            context_audio=(recording(f"c{block}.{item}"),),
            ending_audio=tuple(recording(f"e{name}") for name in names),
            pair_id=str(block) if clustered else None,
            source_ids=tuple(names),
        )
    )


@st.composite
def crossed_rows(draw: st.DrawFn) -> list[Row]:
    size = draw(st.integers(2, 4))
    blocks = draw(st.integers(6, 15))
    rows = [row(block, item, size) for block in range(blocks) for item in range(size)]
    return draw(st.permutations(rows))


@quick
@given(crossed_rows(), st.sampled_from([2, 4, 6]), st.randoms(use_true_random=False))
def test_a_model_without_context_scores_exactly_one_half(
    rows: list[Row], false_endings: int, scores: random.Random
) -> None:
    likelihood = {row.endings[row.gold]: scores.choice([0, 1, 2, 3]) for row in rows}
    points = Fraction(0)
    topic = topic_rows(rows, false_endings)
    for one in topic:
        true = likelihood[one.endings[one.gold]]
        for false in (e for at, e in enumerate(one.endings) if at != one.gold):
            points += Fraction(1 + (true > likelihood[false]) - (true < likelihood[false]), 2)
    assert points / (len(topic) * false_endings) == Fraction(1, 2)


@quick
@given(crossed_rows(), st.sampled_from([2, 4, 6]))
def test_every_ending_is_false_equally_often_and_of_another_cluster(
    rows: list[Row], false_endings: int
) -> None:
    home = {row.endings[row.gold]: row.pair_id for row in rows}
    topic = topic_rows(rows, false_endings)
    false = Counter(e for one in topic for at, e in enumerate(one.endings) if at != one.gold)
    assert false == dict.fromkeys(home, false_endings)
    for one in topic:
        assert len(set(one.endings)) == false_endings + 1
        others = [home[e] for at, e in enumerate(one.endings) if at != one.gold]
        assert home[one.endings[one.gold]] == one.pair_id and one.pair_id not in others


@quick
@given(crossed_rows())
def test_rows_keep_their_context_and_their_endings_their_sound(rows: list[Row]) -> None:
    known = {row.id: row for row in rows}
    topic = topic_rows(rows)
    assert topic == topic_rows(rows)
    assert Counter(one.id for one in topic) == Counter(f"{row.id}-topic" for row in rows)
    for one in topic:
        was = known[one.id.removesuffix("-topic")]
        assert (one.context, one.context_audio) == (was.context, was.context_audio)
        assert one.endings[one.gold] == was.endings[was.gold]
        for ending, audio, source in zip(
            one.endings, one.ending_audio, one.source_ids, strict=True
        ):
            assert (f"ending {source}", f"e{source}.wav") == (ending, audio.path)


def test_rows_without_clusters_are_their_own() -> None:
    rows = [row(block, 0, 2, clustered=False) for block in range(5)]
    assert len(topic_rows(rows)) == 5
    with pytest.raises(DataError, match=r"4 rows in clusters of up to 1 .* use at least 5 rows"):
        topic_rows(rows[:4])


def test_one_recording_of_two_is_taken() -> None:
    both = [
        Row(f"r{n}", "en", "c", (f"t{n}", f"f{n}"), 0, (recording(f"t{n}"), recording(f"f{n}")))
        for n in range(5)
    ]
    for one in topic_rows(list(map(place_gold, both)), 2):
        (audio,) = one.context_audio
        assert audio.sha256 == one.endings[one.gold]
        assert one.ending_audio == () and one.source_ids == ()


@pytest.mark.parametrize("false_endings", [-2, 0, 1, 3])
def test_an_odd_number_of_false_endings_cannot_be_balanced(false_endings: int) -> None:
    with pytest.raises(ValueError, match="even and positive"):
        topic_rows([row(block, 0, 2) for block in range(20)], false_endings)
