"""Ratings: published arithmetic, maximum likelihood, intervals that cover, biases found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from arena_judgements import contest, judged
from arena_likelihood import all_met, held_by_powers, likeliest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.arena.ratings.board import build
from s2s_tasks.arena.ratings.bradley_terry import (
    Fit,
    Rating,
    bradley_terry,
    hold,
    many_ratings,
    ratings,
)
from s2s_tasks.arena.ratings.elo import elo
from s2s_tasks.arena.ratings.outcomes import Outcomes, select, tally
from s2s_tasks.arena.records import Judgement, Winner
from s2s_tasks.errors import S2STasksError

PUBLISHED = {
    "Qwen2.5-Omni": (1246.1, 134, 93),
    "GPT-4o-realtime": (1239.2, 140, 73),
    "Doubao": (1231.9, 133, 63),
    "GLM-4-Voice": (1148.2, 119, 85),
    "FunAudioLLM": (1088.3, 128, 123),
    "Kimi-Audio": (1056.7, 142, 146),
    "LLaMA-Omni": (908.7, 68, 85),
    "Mini-Omni2": (727.4, 59, 119),
    "SpeechGPT": (677.1, 42, 112),
    "Mini-Omni": (676.4, 36, 102),
}
"""Rating, wins and losses (arXiv 2503.05085v2). Who beat whom is not published."""
VERDICTS: tuple[Winner, ...] = ("first", "second", "tie", "both_bad")

BATTLES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 5), st.sampled_from(VERDICTS)),
    min_size=1,
    max_size=60,
).map(
    lambda rows: [
        judged(f"s{one}", f"s{(one + step) % 6}", verdict, instruction=f"q{number % 7}")
        for number, (one, step, verdict) in enumerate(rows)
    ]
)


def published_battles() -> list[Judgement]:
    """Return battles with the published totals: the losses turned by half against the wins."""
    winners = [name for name, (_, wins, _) in PUBLISHED.items() for _ in range(wins)]
    losers = [name for name, (_, _, losses) in PUBLISHED.items() for _ in range(losses)]
    losers = losers[500:] + losers[:500]
    return [
        judged(*((one, other) if number % 2 else (other, one)), "first" if number % 2 else "second")
        for number, (one, other) in enumerate(zip(winners, losers, strict=True))
    ]


def by_name(fit: Fit) -> dict[str, Rating]:
    return {rating.system: rating for rating in fit.ratings}


# What is published


def test_the_published_table() -> None:
    assert sum(wins for _, wins, _ in PUBLISHED.values()) == 1001
    assert sum(losses for _, _, losses in PUBLISHED.values()) == 1001
    assert round(sum(rating for rating, _, _ in PUBLISHED.values()), 6) == 10000.0
    outcomes = tally(select(published_battles()).judgements)
    rated = elo(outcomes, shuffles=20)
    assert rated.published.sum() == pytest.approx(10000.0, abs=1e-6)
    assert rated.mean.sum() == pytest.approx(10000.0, abs=1e-6)
    found = by_name(bradley_terry(outcomes, resamples=100))
    assert {name: (r.wins, r.losses, r.ties) for name, r in found.items()} == {
        name: (wins, losses, 0) for name, (_, wins, losses) in PUBLISHED.items()
    }
    assert found["Doubao"].win_rate == pytest.approx(133 / 196)
    assert found["Mini-Omni"].win_rate == pytest.approx(36 / 138)


@given(BATTLES)
def test_elo_is_as_published_and_its_sum_stays(judgements: list[Judgement]) -> None:
    outcomes = tally(judgements)
    expected = dict.fromkeys(outcomes.systems, 1000.0)
    ties = 0
    for judgement in judgements:
        a, b = judgement.battle.first, judgement.battle.second
        winner = judgement.winners["overall"]
        if winner in ("tie", "both_bad"):
            ties += 1
            continue
        chance = 1 / (1 + 10 ** ((expected[b] - expected[a]) / 400))
        gain = 32 * ((winner == "first") - chance)
        expected[a] += gain
        expected[b] -= gain
    rated = elo(outcomes, shuffles=3)
    assert rated.ties == ties
    assert rated.published == pytest.approx(np.array(list(expected.values())), abs=1e-9)
    for values in (rated.published, rated.mean):
        assert values.sum() == pytest.approx(1000 * len(values), abs=1e-6)


def test_the_order_of_battles_matters_to_elo_alone() -> None:
    judgements = contest([1100, 1000, 900], 200, seed=1)
    one, other = (tally(order) for order in (judgements, judgements[::-1]))
    assert np.abs(elo(one).published - elo(other).published).max() > 1
    assert elo(one).spread.min() > 10
    for first, second in zip(
        bradley_terry(one, 100).ratings, bradley_terry(other, 100).ratings, strict=True
    ):
        assert first.system == second.system
        assert first.rating.estimate == pytest.approx(second.rating.estimate, abs=1e-3)


# Bradley–Terry


WINS = st.integers(2, 6).flatmap(
    lambda systems: st.lists(
        st.lists(st.integers(0, 5), min_size=systems, max_size=systems),
        min_size=systems,
        max_size=systems,
    )
)


@given(WINS)
def test_ratings_are_of_maximum_likelihood(rows: list[list[int]]) -> None:
    drawn = np.array(rows, dtype=float) * (1 - np.eye(len(rows)))
    pairs = all_met(drawn)
    one, other = pairs.one, pairs.other
    wins, held = hold(pairs, pairs.wins)
    dense = np.zeros_like(drawn)
    dense[one, other], dense[other, one] = wins[0]
    expected, expected_held = held_by_powers(drawn, np.ones_like(drawn, dtype=bool))
    np.testing.assert_array_equal(dense, expected * (1 - np.eye(len(rows))))
    np.testing.assert_array_equal(held[0], expected_held)
    likely = likeliest(dense)
    assert ratings(pairs, wins[0]) == pytest.approx(likely, abs=0.05)
    start = np.full(len(rows), 1000.0)
    both = np.concatenate([wins, wins[:, ::-1]])
    assert many_ratings(pairs, both, start)[0] == pytest.approx(likely, abs=0.05)
    assert many_ratings(pairs, both, start)[1] == pytest.approx(2000 - likely, abs=0.05)


def test_ties_are_half_a_win_for_both() -> None:
    won = [judged("a", "b", "first", instruction=f"q{n}") for n in range(30)]
    lost = [judged("a", "b", "second", instruction=f"q{n}") for n in range(10)]
    tied = [judged("b", "a", "tie", instruction=f"q{n}") for n in range(10)]
    bad = [judged("a", "b", "both_bad", instruction=f"q{n}") for n in range(10)]
    found = by_name(bradley_terry(tally([*won, *lost, *tied, *bad])))
    assert found["a"].rating.estimate - found["b"].rating.estimate == pytest.approx(
        400 * math.log10(40 / 20), abs=1e-3
    )
    assert found["a"].ties == found["b"].ties == 20
    assert found["a"].win_rate == pytest.approx(40 / 60)


def test_intervals_cover_known_strengths() -> None:
    truth = np.array([1150.0, 1080.0, 1000.0, 930.0, 840.0])
    covered = []
    ranked = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        first = rng.integers(5, size=400)
        second = (first + rng.integers(1, 5, size=400)) % 5
        chance = 1 / (1 + 10 ** ((truth[second] - truth[first]) / 400))
        outcomes = Outcomes(
            systems=tuple("01234"),
            first=first,
            second=second,
            score=(rng.random(400) < chance).astype(float),
            weight=np.ones(400),
            cluster=np.arange(400),
        )
        for rating in bradley_terry(outcomes, resamples=200, seed=seed).ratings:
            place = int(rating.system)
            covered.append(rating.rating.low <= truth[place] <= rating.rating.high)
            ranked.append(rating.rank_low <= place + 1 <= rating.rank_high)
    assert 0.90 <= np.mean(covered) <= 0.99
    assert np.mean(ranked) >= 0.95


def test_battles_on_one_instruction_are_not_more_evidence_than_one() -> None:
    once = contest([1100, 1000, 900], 300, seed=3)
    swapped: dict[Winner, Winner] = {"first": "second", "second": "first"}
    again = [
        replace(
            judgement,
            battle=replace(
                judgement.battle, first=judgement.battle.second, second=judgement.battle.first
            ),
            winners={"overall": swapped[judgement.winners["overall"]]},
        )
        for judgement in once
    ]
    one, both = (bradley_terry(tally(rows)) for rows in (once, once + again))
    for single, double in zip(one.ratings, both.ratings, strict=True):
        assert double.battles == 2 * single.battles
        for bound in ("low", "estimate", "high"):
            assert getattr(double.rating, bound) == pytest.approx(
                getattr(single.rating, bound), abs=0.01
            )


def test_a_system_that_never_won_is_held_and_said() -> None:
    rows = contest([1050, 1000, 950], 300, seed=5)
    rows += [judged("s0", "loser", instruction=f"z{number}") for number in range(10)]
    board = build(rows, covariates=())
    found = by_name(board.everything.fit)
    assert [rating.system for rating in board.everything.fit.ratings][-1] == "loser"
    assert [name for name, rating in found.items() if rating.held] == ["loser"]
    # 10.5 : 0.5 with the made-up tie.
    gap = found["s0"].rating.estimate - found["loser"].rating.estimate
    assert gap == pytest.approx(400 * math.log10(10.5 / 0.5), abs=0.1)
    assert any("loser: wins go from some of these to others" in note for note in board.notes)
    assert found["loser"].few
    # The others are as they were without it.
    before = by_name(bradley_terry(tally(rows[:300])))
    assert found["s0"].rating.estimate - found["s2"].rating.estimate == pytest.approx(
        before["s0"].rating.estimate - before["s2"].rating.estimate, abs=0.01
    )


def test_one_that_always_wins_against_one_that_never_does() -> None:
    fit = bradley_terry(tally([judged("a", "b", instruction=f"q{n}") for n in range(5)]))
    assert [rating.held for rating in fit.ratings] == [True, True]
    assert fit.ratings[0].rating.estimate < 1300


def test_groups_that_never_met_are_rated_apart_and_said() -> None:
    rows = contest([1100, 1000, 900], 200, seed=2)
    others = [
        replace(row, battle=replace(row.battle, first=f"x{row.battle.first}", second="y"))
        for row in contest([1100, 1000], 50, seed=4)
    ]
    board = build([*rows, *others], covariates=())
    fit = board.everything.fit
    assert [rating.group for rating in fit.ratings] == [1, 1, 1, 2, 2, 2]
    assert next(rating.rank for rating in fit.ratings if rating.group == 2) == 1
    for group in (1, 2):
        estimates = [r.rating.estimate for r in fit.ratings if r.group == group]
        assert np.mean(estimates) == pytest.approx(1000)
    assert fit.groups == 2
    assert any("No chain of battles links 2 groups" in note for note in board.notes)
    assert set(board.control.ratings) == {"s0", "s1", "s2"}


def test_one_instruction_gives_no_interval() -> None:
    fit = bradley_terry(tally([judged("a", "b"), judged("b", "a"), judged("a", "b")]))
    for rating in fit.ratings:
        assert math.isnan(rating.rating.low) and math.isnan(rating.rating.high)
        assert rating.rank_low is rating.rank_high is None


def test_inverse_propensity_counts_rare_pairs_more() -> None:
    rows = [
        replace(row, battle=replace(row.battle, propensity=0.25 if number % 3 else 0.5))
        for number, row in enumerate(contest([1100, 1000, 900], 300, seed=6))
    ]
    twice = rows + [row for row in rows if row.battle.propensity == 0.25]
    weighted, repeated = bradley_terry(tally(rows, weighted=True)), bradley_terry(tally(twice))
    for one, other in zip(weighted.ratings, repeated.ratings, strict=True):
        assert one.rating.estimate == pytest.approx(other.rating.estimate, abs=0.01)
    assert 200 < weighted.effective < 300 == weighted.battles
    assert bradley_terry(tally(rows)).effective == pytest.approx(300)


# What is not rated


def test_probes_and_unreadable_verdicts_do_not_count() -> None:
    rows = [
        judged("a", "b"),
        judged("a", "a", "first", probe="itself"),
        judged("a", "b", None),
        judged("a", "b", winners={"quality": "first"}),
    ]
    selection = select(rows)
    assert (len(selection.judgements), selection.probes, selection.unreadable) == (1, 1, 2)
    assert len(select(rows, "quality").judgements) == 1
    with pytest.raises(S2STasksError, match="a met itself on instruction q"):
        select([judged("a", "a")])
    with pytest.raises(S2STasksError, match="no battle has a readable verdict on 'expression'"):
        build(rows, "expression")
