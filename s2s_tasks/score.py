"""`Score`: what a model says of one continuation."""

from __future__ import annotations

import math
from collections.abc import Sequence

SCORING_VERSION = 1
"""Raised whenever the same model would give the same request another score than before."""


class Score(tuple[float, bool]):
    """Per-token log-probabilities that *are* lm-eval's `(logprob, is_greedy)` pair.

    To lm-eval it is a pair, through filters, metrics and the response cache; tasks that need
    the tokens read them from the same object.
    """

    token_logprobs: tuple[float, ...]
    """Natural-log probability of each token of the continuation, given all before it."""
    transcripts: tuple[str, ...]
    """What a cascade heard in the prompt's recordings; empty for models that hear."""

    def __new__(
        cls,
        token_logprobs: Sequence[float],
        is_greedy: bool,
        transcripts: Sequence[str] = (),
    ) -> Score:
        """Build the pair: the sum of `token_logprobs`, and whether every token was the argmax."""
        score = super().__new__(cls, (math.fsum(token_logprobs), bool(is_greedy)))
        score.token_logprobs = tuple(token_logprobs)
        score.transcripts = tuple(transcripts)
        return score

    def __reduce__(self) -> tuple[type[Score], tuple[tuple[float, ...], bool, tuple[str, ...]]]:
        """Survive pickling, which lm-eval's cache and its process gathering use."""
        return Score, (self.token_logprobs, self[1], self.transcripts)

    @property
    def nll(self) -> float:
        """Mean negative log-likelihood per token, in nats; perplexity is its exponential."""
        return -self[0] / len(self.token_logprobs)
