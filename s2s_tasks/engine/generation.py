"""From prompts to replies, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from s2s_tasks.adapters.contract import Adapter, Generation, Prefix, Reply
from s2s_tasks.engine.batches import Budget, in_batches
from s2s_tasks.engine.plan import text_length
from s2s_tasks.engine.rendering import rendered
from s2s_tasks.prompt import Prompt


def generate(
    adapter: Adapter,
    prompts: Sequence[Prompt],
    indices: Sequence[int],
    budget: Budget,
    how: Generation,
) -> Iterator[tuple[list[int], list[Reply]]]:
    """Yield indices of prompts with the replies to them, longest prompts first."""
    order = sorted(indices, key=lambda index: text_length(prompts[index]), reverse=True)

    def render() -> Iterator[tuple[int, Prefix]]:
        for batch in rendered(adapter, order, lambda index: prompts[index], budget.items):
            yield from batch

    def run(batch: list[tuple[int, Prefix]]) -> list[Reply]:
        return adapter.generate([prefix for _, prefix in batch], how)

    def length(item: tuple[int, Prefix]) -> int:
        return len(item[1].ids) + how.max_new_tokens

    for batch, replies in in_batches(render(), run, budget, length):
        yield [index for index, _ in batch], replies
