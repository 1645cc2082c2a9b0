"""Prompts rendered batch by batch, prepared ahead in other threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, TypeVar

from accelerate.utils.memory import clear_device_cache

from s2s_tasks.adapters.contract import Adapter, AdapterError, Prefix
from s2s_tasks.engine.ahead import ahead
from s2s_tasks.engine.batches import out_of_memory
from s2s_tasks.errors import S2STasksError
from s2s_tasks.prompt import Prompt

PREPARED_BATCHES = 2
"""Batches whose prompts are prepared ahead; memory holds no more of them."""

Item = TypeVar("Item")


def rendered(
    adapter: Adapter, items: Iterable[Item], prompt_of: Callable[[Item], Prompt], size: int
) -> Iterator[list[tuple[Item, Prefix]]]:
    """Yield items, `size` at a time, with what the model takes for their prompts.

    Raises:
        S2STasksError: when a prompt cannot be used; the message names its recordings.
    """

    def prepare(item: Item) -> Any:
        prompt = prompt_of(item)
        try:
            return adapter.prepare(prompt)
        except S2STasksError:
            raise
        # Processors refuse what they cannot take, each in its own way.
        except Exception as error:
            raise AdapterError(
                f"{describe(prompt)} cannot be made ready for the model: "
                f"{type(error).__name__}: {error}"
            ) from error

    with closing(ahead(items, prepare, PREPARED_BATCHES * size)) as prepared:
        while batch := list(islice(prepared, size)):
            prompts = [prompt_of(item) for item, _ in batch]
            prefixes = _render(adapter, prompts, [made for _, made in batch])
            yield list(zip([item for item, _ in batch], prefixes, strict=True))


def describe(prompt: Prompt) -> str:
    """Name a prompt in a message: by its recordings, else by how it begins."""
    if prompt.audio:
        return ", ".join(audio.name for audio in prompt.audio)
    return f"the prompt {prompt.text[:60]!r}"


def _render(adapter: Adapter, prompts: Sequence[Prompt], prepared: Sequence[Any]) -> list[Prefix]:
    """Render prompts, half of them at a time where hearing all at once takes too much memory."""
    try:
        return adapter.render(prompts, prepared)
    except RuntimeError as error:
        if not out_of_memory(error) or len(prompts) == 1:
            raise
    # Outside the handler: the traceback holds the failed batch's tensors.
    clear_device_cache(garbage_collection=True)
    half = len(prompts) // 2
    return [
        *_render(adapter, prompts[:half], prepared[:half]),
        *_render(adapter, prompts[half:], prepared[half:]),
    ]
