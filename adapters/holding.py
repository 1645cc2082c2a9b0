"""Where transformers offers no way in: an attribute that has another value for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def holding(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Let an attribute have a value meanwhile."""
    missing = object()
    old = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if old is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, old)
