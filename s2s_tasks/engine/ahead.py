"""Work done ahead in other threads, while the model computes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = min(4, os.cpu_count() or 1)
"""Decoding and features of a recording take tens of milliseconds: a few threads feed a GPU."""


def ahead(
    items: Iterable[Item], work: Callable[[Item], Result], window: int
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items in order with what `work` made of them; at most `window` wait to be taken.

    Raises:
        Exception: what `work` raised, when its item's turn comes.
    """
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    source = iter(items)
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(THREADS, "s2s-ahead", initializer=_leave_cores_alone) as pool:
        try:
            while True:
                for item in islice(source, window - len(waiting)):
                    waiting.append((item, pool.submit(work, item)))
                if not waiting:
                    return
                item, future = waiting.popleft()
                yield item, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(threads)


def _leave_cores_alone() -> None:
    """Keep this thread's tensor operations on one core.

    A team of helpers for each small operation would wait, spinning, on the cores that the model
    computes on. torch holds the number by thread, so that of the model does not change; only
    threads that start later would inherit it, which is why `ahead` sets it back.
    """
    torch.set_num_threads(1)
