"""The plain path: one full forward over prompt and continuation for each distinct request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from s2s_tasks.adapters.contract import Adapter
from s2s_tasks.engine.batches import in_batches
from s2s_tasks.prompt import Request, move_boundary
from s2s_tasks.score import Score

AUDIO_SECOND_IN_CHARACTERS = 75
"""About 25 positions a second of audio against 3 characters a token: for sorting only."""


def score_requests(
    adapter: Adapter, requests: Sequence[Request], batch_size: int
) -> Iterator[tuple[Request, Score]]:
    """Yield each distinct request with its score, batch by batch.

    Raises:
        AudioError: when a recording cannot be used; the message names it.
    """

    def run(batch: list[Request]) -> list[Score]:
        bounded = [move_boundary(request) for request in batch]
        prompts = list(dict.fromkeys(request.prompt for request in bounded))
        prefixes = dict(zip(prompts, adapter.render(prompts), strict=True))
        return adapter.score(
            [
                (prefixes[request.prompt], adapter.encode(request.prompt, request.continuation))
                for request in bounded
            ]
        )

    distinct = list(dict.fromkeys(requests))
    for batch, scores in in_batches(distinct, run, batch_size, _cost):
        yield from zip(batch, scores, strict=True)


def _cost(request: Request) -> float:
    continuation = request.continuation
    characters = len(request.prompt.text) + (
        len(continuation)
        if isinstance(continuation, str)
        else continuation.seconds * AUDIO_SECOND_IN_CHARACTERS
    )
    return characters + request.prompt.seconds * AUDIO_SECOND_IN_CHARACTERS
