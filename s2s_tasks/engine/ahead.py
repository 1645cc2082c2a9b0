"""Work done ahead in other threads, while the model computes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = min(4, os.cpu_count() or 1)
"""Decoding and features of a recording take tens of milliseconds: a few threads feed a GPU."""


def ahead(
    items: Iterable[Item], work: Callable[[Item], Result], window: int
) -> Iterator[tuple[Item, Result]]:
    """Yield items in order with what `work` made of them; at most `window` wait to be taken.

    Raises:
        Exception: what `work` raised, when its item's turn comes.
    """
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    source = iter(items)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="s2s-ahead") as pool:
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
