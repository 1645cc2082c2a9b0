"""From requests to scores: prompts prepared ahead, read once, their continuations scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from s2s_tasks.adapters.contract import Adapter, AdapterError, Group, Prefix
from s2s_tasks.engine.batches import Budget, in_batches
from s2s_tasks.engine.plan import Branches, plan
from s2s_tasks.engine.rendering import describe, rendered
from s2s_tasks.engine.work import Work
from s2s_tasks.prompt import Request
from s2s_tasks.score import Score


@dataclass(frozen=True)
class _Ready:
    """Branches that can go through the model."""

    branches: Branches
    group: Group
    shared: bool
    """Whether the prefix is to be read once for all of them."""

    @property
    def positions(self) -> int:
        """What the branches take, the prefix counted once."""
        return len(self.group.prefix.ids) + sum(map(len, self.group.continuations))

    @property
    def longest(self) -> int:
        return len(self.group.prefix.ids) + max(map(len, self.group.continuations)) - 1

    def count(self, work: Work) -> None:
        prefix, seconds = len(self.group.prefix.ids), self.branches.prompt.seconds
        read = [len(continuation) - 1 for continuation in self.group.continuations]
        if self.shared:
            work.computed.add(1, prefix + sum(read), seconds)
        else:
            work.computed.add(len(read), len(read) * prefix + sum(read), len(read) * seconds)
        for more, indices in zip(read, self.branches.askers.values(), strict=True):
            asked = len(indices)
            work.asked.add(asked, asked * (prefix + more), asked * seconds)


def score_requests(
    adapter: Adapter,
    requests: Sequence[Request],
    budget: Budget,
    work: Work,
    *,
    exact: bool = False,
) -> Iterator[list[tuple[int, Score]]]:
    """Yield scores batch by batch, each with the index of a request that it answers.

    Args:
        adapter: the model.
        requests: what to score.
        budget: how much goes through the model at once.
        work: counts what is asked and computed.
        exact: a full forward for each distinct request, nothing shared.

    Raises:
        AudioError: when a recording cannot be used; the message names it.
    """

    def run(batch: list[_Ready]) -> dict[int, list[Score]]:
        shared = [place for place, ready in enumerate(batch) if ready.shared]
        apart = [place for place, ready in enumerate(batch) if not ready.shared]
        scores: dict[int, list[Score]] = {}
        for places, score in ((shared, _score_shared), (apart, _score_apart)):
            if places:
                found = score(adapter, [batch[place].group for place in places], budget)
                scores |= dict(zip(places, found, strict=True))
        return scores

    ready = _ready(adapter, plan(requests), budget.items, exact)
    for batch, scores in in_batches(ready, run, budget, lambda item: item.positions):
        answers = []
        for place, item in enumerate(batch):
            item.count(work)
            for score, indices in zip(scores[place], item.branches.askers.values(), strict=True):
                answers += [(index, score) for index in indices]
        yield answers


def _ready(
    adapter: Adapter, branches: Iterable[Branches], items: int, exact: bool
) -> Iterator[_Ready]:
    """Render prompts a batch at a time, prepared ahead."""
    for batch in rendered(adapter, branches, lambda found: found.prompt, items):
        for found, prefix in batch:
            yield _group(adapter, found, prefix, exact)


def _group(adapter: Adapter, branches: Branches, prefix: Prefix, exact: bool) -> _Ready:
    continuations = [adapter.encode(branches.prompt, text) for text in branches.askers]
    ready = _Ready(branches, Group(prefix, continuations), shared=not exact)
    if ready.longest <= adapter.max_length:
        return ready
    if branches.prompt.audio:
        raise AdapterError(
            f"{describe(branches.prompt)} and a continuation take {ready.longest} positions, the "
            f"model has {adapter.max_length}, and no recording is cut: leave that question out"
        )
    # How much of a context must go depends on the continuation: such prefixes are not shared.
    return _Ready(branches, ready.group, shared=False)


def _score_shared(adapter: Adapter, groups: Sequence[Group], budget: Budget) -> list[list[Score]]:
    return adapter.score_groups(groups, budget.positions)


def _score_apart(adapter: Adapter, groups: Sequence[Group], budget: Budget) -> list[list[Score]]:
    """Score each continuation by its own full forward."""
    rows = [(group.prefix, ids) for group in groups for ids in group.continuations]
    batches = in_batches(rows, adapter.score, budget, lambda row: len(row[0].ids) + len(row[1]))
    scores = iter([score for _, found in batches for score in found])
    return [[next(scores) for _ in group.continuations] for group in groups]
