"""How well a judge agrees with people, people with each other, and a judge with itself.

Two verdicts are on the same thing when they are on the same recordings, whatever the order in
which these were heard; where some do not tell theirs, as those of others' files, when they are on
the same systems' answers to one instruction. Several verdicts on the same thing, of a judge in both
orders or of several people, are merged into the one that most name; where two are named equally
often it is a tie. A verdict that both are bad is a tie.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from s2s_tasks.arena.agreement.statistics import (
    Array,
    alpha_interval,
    kappa_interval,
    same_interval,
)
from s2s_tasks.arena.records import Criterion, Judgement
from s2s_tasks.arena.verdicts import by_rule
from s2s_tasks.inference import Interval, mean_interval

Side = Literal["left", "right", "tie"]
"""By answers, not by order: a hash says which of two systems is left, so that labels are about
balanced, as kappa's chance agreement depends on what is called what."""
SIDES: tuple[Side, ...] = ("left", "right", "tie")

Names = tuple[str, str, str]
"""Instruction, and the systems whose answers are left and right."""
Unit = tuple[str, str, str, str]
"""The names, and a hash of the recordings; nothing where these are not told."""

_UNKNOWN = Interval(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Agreement:
    """Of a judge with people, on the units that both have judged."""

    units: int
    raw: Interval
    kappa: Interval
    """Cohen's; nan where there is but one kind of verdict."""


@dataclass(frozen=True)
class Consistency:
    """Of a judge that hears the same answers in both orders."""

    pairs: int
    """Units heard in both orders."""
    same: Interval
    """Share of them with the same verdict in both."""
    first_in_both: float
    """Share where whichever is heard first wins."""
    second_in_both: float


@dataclass(frozen=True)
class Reliability:
    """Of people among each other."""

    annotators: int
    """Who share a unit with another one."""
    units: int
    """Judged by two or more."""
    raw: Interval
    """Share of pairs of verdicts on one unit that are the same."""
    alpha: Interval
    """Krippendorff's, for nominal values."""


def names(judgement: Judgement) -> Names:
    """Return which systems' answers were judged, whatever the order."""
    battle = judgement.battle
    one, other = sorted((battle.first, battle.second))
    left, right = (one, other) if _digest(battle.instruction, one, other)[0] % 2 else (other, one)
    return battle.instruction, left, right


def unit(judgement: Judgement) -> Unit:
    """Return what was judged, whatever the order."""
    instruction, left, right = names(judgement)
    turned = judgement.battle.first != left
    roles = ("instruction", *(("second", "first") if turned else ("first", "second")))
    heard = [judgement.answers.get(role, "") for role in roles]
    return instruction, left, right, _digest(*heard).hex() if all(heard) else ""


def comparable(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return judgements of which all on the same names, or none, tell their recordings."""
    untold = {names(j) for j in judgements if not by_rule(j) and not unit(j)[3]}
    return [
        replace(judgement, answers={})
        if names(judgement) in untold and not by_rule(judgement)
        else judgement
        for judgement in judgements
    ]


def side(judgement: Judgement, criterion: Criterion) -> Side:
    """Return a readable verdict by answers."""
    winner = judgement.winners[criterion]
    if winner not in ("first", "second"):
        return "tie"
    battle = judgement.battle
    name = battle.first if winner == "first" else battle.second
    return "left" if name == names(judgement)[1] else "right"


def merge(sides: Sequence[Side]) -> Side:
    """Return the verdict that most of several name; where two are named alike often, a tie."""
    counts = {name: sides.count(name) for name in SIDES}
    best = max(counts.values())
    named = [name for name in SIDES if counts[name] == best]
    return named[0] if len(named) == 1 else "tie"


def merged(judgements: Iterable[Judgement], criterion: Criterion) -> dict[Unit, Side]:
    """Return one verdict on each unit, of those with a readable one.

    Probes do not count, nor what a rule decided.
    """
    found: dict[Unit, list[Side]] = defaultdict(list)
    for judgement in _readable(judgements, criterion):
        found[unit(judgement)].append(side(judgement, criterion))
    return {key: merge(sides) for key, sides in found.items()}


def agreement(
    judge: Mapping[Unit, Side], people: Mapping[Unit, Side], *, decisive: bool = False
) -> Agreement:
    """Compare two merged sides, with bootstrap intervals by instruction.

    Args:
        judge: from `merged`.
        people: from `merged`.
        decisive: whether to leave out units that either calls a tie.
    """
    shared = [
        key
        for key in judge
        if key in people and not (decisive and "tie" in (judge[key], people[key]))
    ]
    if not shared:
        return Agreement(0, _UNKNOWN, _UNKNOWN)
    one = np.array([SIDES.index(judge[key]) for key in shared])
    other = np.array([SIDES.index(people[key]) for key in shared])
    clusters = [key[0] for key in shared]
    return Agreement(
        len(shared), mean_interval(one == other, clusters), kappa_interval(one, other, clusters)
    )


def consistency(judgements: Sequence[Judgement], criterion: Criterion) -> Consistency:
    """Return how a judge's verdicts in one order go with those in the other."""
    orders: dict[Unit, dict[str, Side]] = defaultdict(dict)
    for judgement in _readable(judgements, criterion):
        orders[unit(judgement)][judgement.battle.first] = side(judgement, criterion)
    both = {key: sides for key, sides in orders.items() if len(sides) == 2}
    if not both:
        return Consistency(0, _UNKNOWN, np.nan, np.nan)
    heard_left_first = [(sides[key[1]], sides[key[2]]) for key, sides in both.items()]
    same = [one == other for one, other in heard_left_first]
    return Consistency(
        len(both),
        mean_interval(same, [key[0] for key in both]),
        heard_left_first.count(("left", "right")) / len(both),
        heard_left_first.count(("right", "left")) / len(both),
    )


def first_rate(judgements: Sequence[Judgement], criterion: Criterion) -> Interval:
    """Return how often a decisive verdict is for the answer heard first."""
    decisive = _decisive(judgements, criterion)
    return _share([judgement.winners[criterion] == "first" for judgement in decisive], decisive)


def longer_rate(judgements: Sequence[Judgement], criterion: Criterion) -> Interval:
    """Return how often a decisive verdict is for the longer of answers that differ in length."""
    different = []
    longer = []
    for judgement in _decisive(judgements, criterion):
        first, second = (
            judgement.features.get(f"{place}_seconds", np.nan) for place in ("first", "second")
        )
        if abs(first - second) > 0:
            different.append(judgement)
            longer.append((judgement.winners[criterion] == "first") == (first > second))
    return _share(longer, different)


def reliability(judgements: Iterable[Judgement], criterion: Criterion) -> Reliability:
    """Return how far several annotators agree; each has one, merged, verdict on a unit."""
    by_annotator: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in judgements:
        by_annotator[judgement.judge].append(judgement)
    verdicts: list[dict[Unit, Side]] = []
    counts: dict[Unit, Array] = defaultdict(lambda: np.zeros(len(SIDES)))
    for own in by_annotator.values():
        verdicts.append(merged(own, criterion))
        for key, verdict in verdicts[-1].items():
            counts[key][SIDES.index(verdict)] += 1
    several = {key: count for key, count in counts.items() if count.sum() > 1}
    if not several:
        return Reliability(0, 0, _UNKNOWN, _UNKNOWN)
    clusters = [key[0] for key in several]
    table = np.array(list(several.values()))
    return Reliability(
        sum(not several.keys().isdisjoint(own) for own in verdicts),
        len(several),
        same_interval(table, clusters),
        alpha_interval(table, clusters),
    )


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\x1f".join(parts).encode()).digest()


def _readable(judgements: Iterable[Judgement], criterion: Criterion) -> list[Judgement]:
    return [
        judgement
        for judgement in judgements
        if criterion in judgement.winners
        and judgement.battle.probe is None
        and not by_rule(judgement)
    ]


def _decisive(judgements: Iterable[Judgement], criterion: Criterion) -> list[Judgement]:
    readable = _readable(judgements, criterion)
    return [j for j in readable if j.winners[criterion] in ("first", "second")]


def _share(hits: Sequence[bool], judgements: Sequence[Judgement]) -> Interval:
    if not hits:
        return _UNKNOWN
    return mean_interval(hits, [judgement.battle.instruction for judgement in judgements])
