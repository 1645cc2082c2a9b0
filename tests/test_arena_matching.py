"""Who meets whom."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2s_tasks.arena.contest.matching import Kind, Matching, Matchmaker, Pair, refuse_own_contest
from s2s_tasks.arena.records import Battle, Judgement, Winner
from s2s_tasks.errors import S2STasksError

SYSTEMS = ["a", "b", "c", "d"]
PAIRS: list[Pair] = list(combinations(SYSTEMS, 2))
ratings = st.fixed_dictionaries({name: st.floats(-5000, 8000) for name in SYSTEMS})
meetings = st.dictionaries(st.sampled_from(PAIRS), st.integers(0, 10_000))
DRAWN = tuple(kind for kind in get_args(Kind) if kind != "round_robin")


def judged(first: str, second: str, winner: Winner, instruction: str = "i") -> Judgement:
    battle = Battle(instruction, first, second, 0.5, 0)
    verdict = {"overall": winner}
    return Judgement(battle, "j", "", "", 1, "en", verdict, "", "", {}, {}, "", "")  # type: ignore[arg-type]


@given(st.sampled_from(DRAWN), ratings, meetings, st.integers(1, 9))
def test_chances_sum_to_one(
    kind: Kind, ratings: dict[str, float], met: dict[Pair, int], closest: int
) -> None:
    chances = Matching(kind, closest=closest).probabilities(PAIRS, ratings, met)
    assert math.isclose(math.fsum(chances), 1)
    assert all(0 <= chance <= 1 for chance in chances)


@given(ratings, meetings)
def test_moderate_is_the_formula(ratings: dict[str, float], met: dict[Pair, int]) -> None:
    gaps = [abs(ratings[a] - ratings[b]) for a, b in PAIRS]
    weights = [
        math.exp(-(((gap - 150) / 100) ** 2) / 2) / (1 + met.get(pair, 0))
        for gap, pair in zip(gaps, PAIRS, strict=True)
    ]
    chances = Matching("moderate").probabilities(PAIRS, ratings, met)
    if sum(weights) > 1e-100:
        expected = [weight / sum(weights) for weight in weights]
        assert chances == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(ratings, st.integers(1, 6))
def test_the_closest_share_all(ratings: dict[str, float], count: int) -> None:
    gaps = [abs(ratings[a] - ratings[b]) for a, b in PAIRS]
    chances = Matching("closest_k", closest=count).probabilities(PAIRS, ratings, {})
    for (gap, chance), (other, others) in combinations(zip(gaps, chances, strict=True), 2):
        assert (gap == other) <= math.isclose(chance, others)
        assert (gap < other) <= (chance >= others)
    assert max(chances) <= 1 / count + 1e-12
    inside = [chance for gap, chance in zip(gaps, chances, strict=True) if chance]
    assert len(inside) >= count


def test_before_any_rating_the_closest_are_all_pairs_alike() -> None:
    chances = Matching("closest_k").probabilities(PAIRS, {}, {})
    assert chances == pytest.approx([1 / 6] * 6)


@given(st.integers(), st.sampled_from(get_args(Kind)), st.integers(2, 5), st.booleans())
@settings(max_examples=50)
def test_draws_have_no_system_against_itself_and_none_twice(
    seed: int, kind: Kind, count: int, both: bool
) -> None:
    systems = "abcde"[:count]
    maker = Matchmaker(Matching(kind), seed, both_orders=both)
    battles = [b for _ in range(12) for b in maker.draw("i", systems)]
    pairs = Counter((b.first, b.second) for b in battles)
    assert set(pairs.values()) == {1}
    assert all(b.first != b.second and 0 < b.propensity <= 1 for b in battles)
    met = {frozenset(pair) for pair in pairs}
    assert len(met) == math.comb(count, 2)
    assert len(battles) == len(met) * (2 if both else 1)
    assert maker.draw("i", systems) == []


@given(st.integers(), st.sampled_from(get_args(Kind)))
@settings(max_examples=30)
def test_orders_are_balanced(seed: int, kind: Kind) -> None:
    for both in (True, False):
        maker = Matchmaker(Matching(kind), seed, both_orders=both)
        battles = [b for n in range(40) for b in maker.draw(str(n), "abc")]
        orders = Counter((b.first, b.second) for b in battles)
        for first, second in combinations("abc", 2):
            lead = orders[first, second] - orders[second, first]
            assert lead == 0 if both else abs(lead) <= 1


@given(st.integers(), st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12))
@settings(max_examples=40)
def test_a_seed_draws_alike(seed: int, instructions: list[str]) -> None:
    history = [judged("a", "b", "first"), judged("b", "c", "second"), judged("c", "a", "tie")]

    def drawn() -> list[Battle]:
        maker = Matchmaker(Matching(), seed)
        maker.learn(history)
        return [b for i in instructions for b in maker.draw(i, SYSTEMS)]

    assert drawn() == drawn()


def test_the_propensity_is_how_often_a_pair_is_drawn() -> None:
    history = [judged("a", "b", "first", str(n)) for n in range(8)]
    history += [judged("c", "a", "second", str(n)) for n in range(3)]
    drawn: Counter[Pair] = Counter()
    told: dict[Pair, float] = {}
    for seed in range(4000):
        maker = Matchmaker(Matching(), seed)
        maker.learn(history)
        battle = maker.draw("i", "abc")[0]
        pair = (battle.first, battle.second)
        drawn[pair] += 1
        told[pair] = battle.propensity
    assert sum(told.values()) == pytest.approx(1)
    for pair, chance in told.items():
        spread = math.sqrt(chance * (1 - chance) / 4000)
        assert drawn[pair] / 4000 == pytest.approx(chance, abs=4 * spread)


def test_matching_follows_the_verdicts() -> None:
    def chance(history: list[Judgement]) -> float:
        for seed in range(1000):
            maker = Matchmaker(Matching("moderate", gap=260, width=30), seed)
            maker.learn(history)
            battle = maker.draw("new", "abc")[0]
            if {battle.first, battle.second} == {"a", "b"}:
                return battle.propensity
        raise AssertionError("they never met")

    won = [judged("a", "b", "first", str(n)) for n in range(12)]
    unread = [judged("a", "b", "both_bad", str(n)) for n in range(12)]
    assert chance(won) > 0.9
    assert chance(unread) == pytest.approx((1 / 13) / (1 / 13 + 2))


def test_probes_teach_nothing() -> None:
    battle = Battle("i", "a", "<noise>", 1, 0, "noise")
    probe = Judgement(battle, "j", "", "", 1, "en", {"overall": "first"}, "", "", {}, {}, "", "")
    plain, taught = Matchmaker(Matching(), 0), Matchmaker(Matching(), 0)
    taught.learn([probe] * 9)
    assert plain.draw("i", "abc") == taught.draw("i", "abc")


@pytest.mark.parametrize(
    ("system", "names"),
    [
        ("gemini-2.5-pro", []),
        ("Gemini 2.5 Pro", []),
        ("x", ["google/gemini-2.5-pro@main:bf16:abc"]),
        ("ＧＥＭＩＮＩ 2.5 pro", []),
    ],
)
def test_no_judge_in_its_own_contest(system: str, names: list[str]) -> None:
    with pytest.raises(S2STasksError, match="cannot judge a contest that it is in, as"):
        refuse_own_contest("gemini-2.5-pro", {"other": [], system: names})
    refuse_own_contest("gemini-2.5-flash", {system: names})


@pytest.mark.parametrize(
    ("judge", "system"), [("裁判", "系统一"), ("🎤", "🎧"), ("की", "का"), ("vos/裁判", "vos/评委")]
)
def test_names_in_any_script_are_told_apart(judge: str, system: str) -> None:
    refuse_own_contest(judge, {system: []})
    with pytest.raises(S2STasksError, match="call it otherwise: NAME=PATH"):
        refuse_own_contest(judge, {system: [], judge: []})


def test_where_models_are_known_the_name_does_not_matter() -> None:
    refuse_own_contest("signal", {"signal": ["hub/other"]})
    with pytest.raises(S2STasksError, match="as calm: leave those answers out, or name another"):
        refuse_own_contest("signal", {"calm": ["hub/Signal"]})
