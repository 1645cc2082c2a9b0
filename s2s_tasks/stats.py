"""The arithmetic of choosing between endings: pure functions on one question's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

TieRule = Literal["half", "wrong", "right"]
_TIE_CREDIT: dict[TieRule, float] = {"half": 0.5, "wrong": 0.0, "right": 1.0}


def pair_accuracy(losses: Sequence[float], gold: int, ties: TieRule = "half") -> float:
    """Share of false endings whose loss is above the true one's (chance: one half).

    The pairwise protocol of S2SBench (arXiv 2502.17239, section 4.1). A tie counts one half;
    the published scripts count it wrong for stories (eval_story.py) and right for sCMMLU
    (eval_cmmlu4.py).
    """
    credits = [
        _TIE_CREDIT[ties] if loss == losses[gold] else float(losses[gold] < loss)
        for loss in _others(losses, gold)
    ]
    return sum(credits) / len(credits)


def choice_accuracy(losses: Sequence[float], gold: int) -> float:
    """Return 1 when the true ending beats all others, shared among those tied for the best.

    Chance is one over the number of endings, for a model that cannot tell them apart too.
    """
    best = min(losses)
    return float(losses[gold] == best) / losses.count(best)


def tie_rate(losses: Sequence[float], gold: int) -> float:
    """Share of false endings whose loss equals the true one's exactly."""
    others = _others(losses, gold)
    return sum(loss == losses[gold] for loss in others) / len(others)


def mean_false(losses: Sequence[float], gold: int) -> float:
    """Mean loss of the false endings."""
    others = _others(losses, gold)
    return sum(others) / len(others)


def _others(losses: Sequence[float], gold: int) -> list[float]:
    return [loss for index, loss in enumerate(losses) if index != gold]
