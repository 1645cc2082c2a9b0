"""The arithmetic of choosing, by hand and as properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks import stats

losses = st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0]), min_size=2, max_size=5)
questions = losses.flatmap(lambda x: st.tuples(st.just(x), st.integers(0, len(x) - 1)))


@pytest.mark.parametrize(
    ("values", "gold", "pair", "mc", "ties"),
    [
        ([1.0, 2.0], 0, 1.0, 1.0, 0.0),
        ([1.0, 2.0], 1, 0.0, 0.0, 0.0),
        ([1.0, 1.0], 1, 0.5, 0.5, 1.0),
        ([2.0, 1.0, 3.0, 4.0], 0, 2 / 3, 0.0, 0.0),
        ([1.0, 1.0, 3.0, 4.0], 0, 2.5 / 3, 0.5, 1 / 3),
        ([1.0, 1.0, 1.0, 1.0], 2, 0.5, 0.25, 1.0),
    ],
)
def test_by_hand(values: list[float], gold: int, pair: float, mc: float, ties: float) -> None:
    assert stats.pair_accuracy(values, gold) == pytest.approx(pair)
    assert stats.choice_accuracy(values, gold) == pytest.approx(mc)
    assert stats.tie_rate(values, gold) == pytest.approx(ties)


def test_the_published_tie_rules() -> None:
    assert stats.pair_accuracy([1.0, 1.0], 0, ties="wrong") == 0.0
    assert stats.pair_accuracy([1.0, 1.0], 0, ties="right") == 1.0


def test_mean_false() -> None:
    assert stats.mean_false([9.0, 1.0, 2.0], 0) == 1.5


@given(questions, st.randoms(use_true_random=False))
def test_the_order_of_endings_does_not_matter(question: tuple[list[float], int], random) -> None:
    values, gold = question
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = [values[i] for i in order]
    for measure in (stats.pair_accuracy, stats.choice_accuracy, stats.tie_rate, stats.mean_false):
        assert measure(shuffled, order.index(gold)) == pytest.approx(measure(values, gold))


@given(losses)
def test_over_every_gold_the_mean_is_chance(values: list[float]) -> None:
    count = len(values)
    pair = sum(stats.pair_accuracy(values, gold) for gold in range(count)) / count
    choice = sum(stats.choice_accuracy(values, gold) for gold in range(count)) / count
    assert pair == pytest.approx(0.5)
    assert choice == pytest.approx(1 / count)
