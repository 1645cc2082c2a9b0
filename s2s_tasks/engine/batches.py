"""Requests in batches: no question twice, longest first, smaller when memory runs out."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_batches(
    items: Sequence[Item],
    run: Callable[[list[Item]], list[Result]],
    batch_size: int,
    cost: Callable[[Item], float],
) -> Iterator[tuple[list[Item], list[Result]]]:
    """Yield batches with their results, costliest first, so that memory runs out at once or never.

    When the device is out of memory the batch size halves and the batch is run again.

    Raises:
        torch.OutOfMemoryError: when a single item does not fit.
    """
    waiting = sorted(items, key=cost, reverse=True)
    while waiting:
        batch = waiting[:batch_size]
        try:
            results = run(batch)
        except torch.OutOfMemoryError:
            if batch_size == 1:
                raise
            batch_size = max(1, len(batch) // 2)
        else:
            yield batch, results
            del waiting[: len(batch)]
            continue
        # Outside the handler: the traceback holds the failed batch's tensors.
        gc.collect()
        torch.cuda.empty_cache()
        log.warning("Out of memory: the batch size is %d from here on", batch_size)
