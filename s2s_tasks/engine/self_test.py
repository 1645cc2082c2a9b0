"""Try a model on one item before it is trusted with the rest."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from s2s_tasks.adapters.contract import Adapter, Group
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Prompt
from s2s_tasks.score import Score

log = logging.getLogger(__name__)

REPEATED = 1e-6
"""Nats a token between two runs of one forward; different recordings move scores far more."""
CONTEXT = "Below is a segment of alternating speech and text content: "
ENDINGS = (" the dog ran to the garden.", " He was glad.")
"""Short: a wrong position shows in the first tokens most."""


@dataclass(frozen=True)
class Findings:
    """How far a model may be trusted."""

    shares: bool
    """Reading a prefix once gives the scores of full forwards."""
    batches: bool
    """Full forwards together give the scores of each alone."""


def examine(adapter: Adapter, recordings: Sequence[Audio], *, exact: bool) -> Findings:
    """Compare the ways to a score on two prompts, and warn where they differ.

    Args:
        adapter: the model.
        recordings: three: one, a shorter one, and another as long as the first; none for a model
            that is to be asked text alone.
        exact: only full forwards are to be tried.
    """
    first: list[str | Audio] = [CONTEXT, *recordings[:1]]
    second: list[str | Audio] = [CONTEXT, *recordings[1:2], " She was glad, she said, and"]
    prompts = [Prompt.of(*first), Prompt.of(*second)]
    tolerance = adapter.rounding
    name = adapter.name
    if adapter.keeps_audio:
        adapter.keeps_audio = _keeps(adapter, prompts, tolerance)
    groups = _groups(adapter, prompts)
    # All but the last: three forwards tell as much as four.
    rows = [(group.prefix, ids) for group in groups for ids in group.continuations][:-1]
    plain = [score for row in rows for score in adapter.score([row])]

    batched = _difference(plain, adapter.score(rows))
    if not batched <= tolerance:
        log.warning(
            "%s: full forwards of several rows together differ from single ones by %.3g nats a "
            "token (%.3g allowed): every row goes alone from here on",
            name,
            batched,
            tolerance,
        )
    if exact:
        log.info("%s: exact=true: nothing is shared, every request gets a full forward", name)
    if recordings:
        _warn_if_deaf(adapter, recordings[2], plain[0])
    return Findings(
        shares=not exact and _shares(adapter, groups, plain, tolerance),
        batches=batched <= tolerance,
    )


def _groups(adapter: Adapter, prompts: Sequence[Prompt]) -> list[Group]:
    return [
        Group(prefix, [adapter.encode(prompt, ending) for ending in ENDINGS])
        for prompt, prefix in zip(prompts, adapter.render(prompts), strict=True)
    ]


def _score_first(adapter: Adapter, prompts: Sequence[Prompt]) -> list[Score]:
    """Score the first ending after each prompt, each by its own forward."""
    rows = [(group.prefix, group.continuations[0]) for group in _groups(adapter, prompts)]
    return [score for row in rows for score in adapter.score([row])]


def _keeps(adapter: Adapter, prompts: Sequence[Prompt], tolerance: float) -> bool:
    """Compare encodings of recordings that went through the store with fresh ones."""
    try:
        # Twice: the first time may write what the second reads.
        kept = [score for _ in range(2) for score in _score_first(adapter, prompts)]
    # A model's code may refuse what it was not written for in any way.
    except Exception as error:
        problem = f"fail ({type(error).__name__}: {error})"
    else:
        adapter.keeps_audio = False
        fresh = _score_first(adapter, prompts)
        difference = _difference(kept, [*fresh, *fresh])
        if difference <= tolerance:
            return True
        problem = f"differ by {difference:.3g} nats a token ({tolerance:.3g} allowed)"
    log.warning(
        "%s: scores from encodings that audio_cache keeps %s: recordings are encoded anew",
        adapter.name,
        problem,
    )
    return False


def _shares(
    adapter: Adapter, groups: Sequence[Group], plain: Sequence[Score], tolerance: float
) -> bool:
    """Compare prefixes that are read once, of which one is padded, with full forwards."""
    try:
        shared = list(chain.from_iterable(adapter.score_groups(groups)))
    # A model's code may refuse what it was not written for in any way.
    except Exception as error:
        log.warning(
            "%s cannot go on from a prefix it has read (%s: %s): every request gets a full "
            "forward, which is exact but slower",
            adapter.name,
            type(error).__name__,
            error,
        )
        log.debug("The failed self-test", exc_info=True)
        return False
    difference = _difference(plain, shared[: len(plain)])
    if difference <= tolerance:
        log.info(
            "%s: contexts are read once for all their continuations (self-test: %.1g nats a token "
            "from full forwards)",
            adapter.name,
            difference,
        )
        return True
    log.warning(
        "%s: scores after a prefix that is read once differ from full forwards by %.3g nats a "
        "token (%.3g allowed): every request gets a full forward, which is exact but slower",
        adapter.name,
        difference,
        tolerance,
    )
    return False


def _warn_if_deaf(adapter: Adapter, other: Audio, heard: Score) -> None:
    found = _score_first(adapter, [Prompt.of(CONTEXT, other)])
    if _difference([heard], found) <= REPEATED:
        log.warning(
            "%s gives the same scores after two different recordings: it does not hear them, and "
            "its scores of spoken questions mean nothing. Is its audio part loaded?",
            adapter.name,
        )


def _difference(one: Sequence[Score], other: Sequence[Score]) -> float:
    """Return the mean difference of a token's log-probability, in nats; NaN differs from all.

    The mean tells a wrong position from rounding better than the largest difference does, which
    in half precision may be as large.
    """
    differences = [
        abs(a - b)
        for x, y in zip(one, other, strict=True)
        for a, b in zip(x.token_logprobs, y.token_logprobs, strict=True)
    ]
    return statistics.fmean(differences)
