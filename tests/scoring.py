"""Scores of requests, by the engine."""

from __future__ import annotations

from collections.abc import Sequence

from s2s_tasks.adapters.contract import Adapter
from s2s_tasks.engine.batches import Budget
from s2s_tasks.engine.run import score_requests
from s2s_tasks.engine.work import Work
from s2s_tasks.prompt import Request
from s2s_tasks.score import Score


def scores(
    adapter: Adapter, requests: Sequence[Request], batch_size: int = 1, *, exact: bool = False
) -> dict[Request, Score]:
    """Score requests; with `exact` by a full forward over each."""
    batches = score_requests(adapter, requests, Budget(batch_size), Work(), exact=exact)
    return {requests[index]: score for batch in batches for index, score in batch}
