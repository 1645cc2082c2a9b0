"""Batches that fit: no more items than asked for, fewer when memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from s2s_tasks.adapters.contract import AdapterError

log = logging.getLogger(__name__)

AUTO_ITEMS = 64
AUTO_POSITIONS = 16_384
"""Where `batch_size=auto` starts; it halves until it fits. More than this makes no GPU faster."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class Budget:
    """How much goes through the model at once; it only ever shrinks."""

    items: int
    """Most prefixes, or other rows."""
    positions: int | None = None
    """Most positions, padding included; None as long as memory has not run out."""

    def fit(self, lengths: Sequence[int]) -> int:
        """Return how many of the first items, each of so many positions, make a batch.

        At least one, even where it alone is over the budget.
        """
        longest = 0
        for count, length in enumerate(lengths[: self.items]):
            longest = max(longest, length)
            if self.positions is not None and count and (count + 1) * longest > self.positions:
                return count
        return min(len(lengths), self.items)

    def halve(self, lengths: Sequence[int]) -> bool:
        """Allow half of what a batch of these lengths took; False when that is nothing."""
        taken = len(lengths) * max(lengths)
        self.positions = (taken if self.positions is None else min(self.positions, taken)) // 2
        return self.positions > 0


def parse_budget(batch_size: int | str, max_batch_size: int | None) -> Budget:
    """Return what lm-eval's `--batch_size` and `--max_batch_size` ask for.

    Raises:
        AdapterError: when that is neither a positive number nor `auto`.
    """
    text = str(batch_size)
    if text.split(":")[0] == "auto":
        return Budget(max_batch_size or AUTO_ITEMS, AUTO_POSITIONS)
    if not text.isdigit() or int(text) < 1:
        raise AdapterError(f"batch_size={batch_size}: give a positive number or auto")
    return Budget(int(text))


def in_batches(
    items: Iterable[Item],
    run: Callable[[list[Item]], Result],
    budget: Budget,
    length: Callable[[Item], int],
) -> Iterator[tuple[list[Item], Result]]:
    """Yield batches, in order, with what `run` returned for each.

    When the device is out of memory the budget halves and the same items are run again.

    Args:
        items: taken as they are needed.
        run: what to do with a batch.
        budget: how large a batch may be.
        length: positions that an item takes.

    Raises:
        RuntimeError: when memory does not suffice for the smallest batch.
    """
    source = iter(items)
    waiting: list[Item] = []
    while True:
        waiting += islice(source, budget.items - len(waiting))
        if not waiting:
            return
        lengths = [length(item) for item in waiting]
        count = budget.fit(lengths)
        try:
            result = run(waiting[:count])
        except RuntimeError as error:
            if not out_of_memory(error) or not budget.halve(lengths[:count]):
                raise
        else:
            yield waiting[:count], result
            del waiting[:count]
            continue
        # Outside the handler: the traceback holds the failed batch's tensors.
        clear_device_cache(garbage_collection=True)
        log.warning(
            "Out of memory with a batch of %d: at most %d positions at once from here on",
            count,
            budget.positions,
        )


def out_of_memory(error: RuntimeError) -> bool:
    """Tell whether a device, or the CPU's allocator, refused memory."""
    return isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error)
