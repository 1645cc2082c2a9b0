"""Who meets whom: pairs of systems, the order in which they are heard, and how likely they were."""

from __future__ import annotations

import math
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from s2s_tasks.arena.records import Battle, Judgement, Winner
from s2s_tasks.errors import S2STasksError

Pair = tuple[str, str]
"""Of systems, by name."""
Kind = Literal["moderate", "uniform", "round_robin", "closest_k"]
START, STEP, SCALE = 1000.0, 32.0, 400.0
"""Of the Elo ratings that pairs are matched by, as published: first rating, K, scale."""
SCORES: Mapping[Winner, float] = {"first": 1.0, "second": 0.0, "tie": 0.5}


@dataclass(frozen=True)
class Matching:
    """How pairs are drawn.

    The paper prefers pairs with a moderate gap of ratings and gives no formula. `moderate`, which
    is ours, weighs a pair by a bell around `gap`, and by 1 / (1 + how often it has met).
    `closest_k` draws evenly from the `closest` pairs with the smallest gaps.
    """

    kind: Kind = "moderate"
    gap: float = 150.0
    """Elo points."""
    width: float = 100.0
    """Standard deviation of the bell, in Elo points."""
    closest: int = 3

    def probabilities(
        self, pairs: Sequence[Pair], ratings: Mapping[str, float], met: Mapping[Pair, int]
    ) -> list[float]:
        """Return how likely each pair is to be drawn; of a round robin, each surely is."""
        gaps = [abs(ratings.get(a, START) - ratings.get(b, START)) for a, b in pairs]
        if self.kind == "round_robin":
            return [1.0] * len(pairs)
        if self.kind == "uniform":
            return [1 / len(pairs)] * len(pairs)
        if self.kind == "closest_k":
            return _closest(gaps, min(self.closest, len(pairs)))
        logs = [
            -(((gap - self.gap) / self.width) ** 2) / 2 - math.log1p(met.get(pair, 0))
            for gap, pair in zip(gaps, pairs, strict=True)
        ]
        # The largest is 1: far from the bell all of them would vanish.
        weights = [math.exp(value - max(logs)) for value in logs]
        return [weight / math.fsum(weights) for weight in weights]


class Matchmaker:
    """Draws battles, and learns from how they ended.

    A draw follows from the seed, the instruction and what was learned before it, so that a run
    that is resumed draws what it drew.
    """

    def __init__(self, matching: Matching, seed: int, *, both_orders: bool = True) -> None:
        """Take how to draw.

        Args:
            matching: how.
            seed: of the run.
            both_orders: let a pair be heard in either order; else in that which it was heard in
                less often, or by a toss.
        """
        self._matching, self._seed, self._both = matching, seed, both_orders
        self._ratings: dict[str, float] = defaultdict(lambda: START)
        self._met: dict[Pair, set[str]] = defaultdict(set)
        self._drawn: dict[str, set[Pair]] = defaultdict(set)
        self._orders: Counter[Pair] = Counter()

    def draw(self, instruction: str, systems: Iterable[str]) -> list[Battle]:
        """Return battles of pairs that have not met on this instruction in this run; maybe none.

        Args:
            instruction: its id.
            systems: that answered it.
        """
        drawn = self._drawn[instruction]
        pairs = [pair for pair in combinations(sorted(set(systems)), 2) if pair not in drawn]
        if not pairs:
            return []
        met = {pair: len(instructions) for pair, instructions in self._met.items()}
        chances = self._matching.probabilities(pairs, self._ratings, met)
        toss = random.Random(f"{self._seed}\x1f{instruction}\x1f{len(drawn)}")
        if self._matching.kind == "round_robin":
            chosen = list(range(len(pairs)))
        else:
            chosen = toss.choices(range(len(pairs)), chances)
        battles = []
        for index in chosen:
            drawn.add(pairs[index])
            self._met[pairs[index]].add(instruction)
            for first, second in self._order(pairs[index], toss):
                battles.append(Battle(instruction, first, second, chances[index], self._seed))
        return battles

    def learn(self, judgements: Iterable[Judgement]) -> None:
        """Take in how battles ended, in this order; of probes and unread verdicts, nothing."""
        for judgement in judgements:
            battle = judgement.battle
            if battle.probe:
                continue
            first, second = battle.first, battle.second
            self._met[min(first, second), max(first, second)].add(battle.instruction)
            score = SCORES.get(judgement.winners.get("overall", "both_bad"))
            if score is None:
                continue
            gap = self._ratings[second] - self._ratings[first]
            change = STEP * (score - 1 / (1 + 10 ** (gap / SCALE)))
            self._ratings[first] += change
            self._ratings[second] -= change

    def _order(self, pair: Pair, toss: random.Random) -> list[Pair]:
        turned = (pair[1], pair[0])
        if self._both:
            return [pair, turned]
        lead = self._orders[pair] - self._orders[turned]
        chosen = turned if lead > 0 or (lead == 0 and toss.random() < 0.5) else pair
        self._orders[chosen] += 1
        return [chosen]


def refuse_own_contest(judge: str, systems: Mapping[str, Iterable[str]]) -> None:
    """Refuse a judge that is one of the systems.

    Args:
        judge: name of its model.
        systems: names of each system's models, as users or fingerprints have them; where there are
            none the system's own name counts.

    Raises:
        S2STasksError: when a name is the judge's, whatever hub it lies on and however it is spelt.
    """
    for system, names in systems.items():
        models = set(names)
        if _bare(judge) in set(map(_bare, models or {system})):
            otherwise = "" if models else "; if it is another model, call it otherwise: NAME=PATH"
            raise S2STasksError(
                f"{judge} cannot judge a contest that it is in, as {system}: leave those answers "
                f"out, or name another judge{otherwise}"
            )


def _bare(name: str) -> str:
    """Return the letters and digits of a model's name, without its hub; all, where it has none."""
    whole = unicodedata.normalize("NFKC", name).casefold()
    last = whole.split("@")[0].rstrip("/").rsplit("/", 1)[-1]
    # A mark belongs to its letter: vowels of Devanagari are marks.
    return "".join(c for c in last if unicodedata.category(c)[0] in "LMN") or whole


def _closest(gaps: Sequence[float], count: int) -> list[float]:
    """Return chances of a draw from the closest pairs; equal ones share the places left."""
    limit = sorted(gaps)[count - 1]
    inside, ties = sum(gap < limit for gap in gaps), gaps.count(limit)
    shared = (count - inside) / ties / count
    return [1 / count if gap < limit else shared if gap == limit else 0.0 for gap in gaps]
