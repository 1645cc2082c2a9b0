"""What the LM inside a speech LLM gets in place of audio positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from s2s_tasks.adapters.contract import AUDIO


def embed_recordings(
    model: Any,
    ids: Sequence[int],
    audio_token_id: int,
    features: Mapping[str, Any],
    embedder: str | None = None,
) -> torch.Tensor:
    """Return the embeddings at one prompt's audio positions: [positions, width].

    The model's own `forward` makes them, and is stopped where the LM would begin, so that nothing
    need be known about the parts before it.

    Args:
        model: of transformers.
        ids: of the prompt, `AUDIO` at audio positions: [L].
        audio_token_id: what the model wants there.
        features: what else its `forward` takes.
        embedder: path of the part that returns the embeddings of a whole prompt; None where the
            model hands them to an LM that is a part of its own.
    """
    found: list[torch.Tensor] = []

    def stop_before(_: Any, __: Any, inputs: dict[str, Any]) -> None:
        found.append(inputs["inputs_embeds"][0])
        raise _StopHere

    def stop_after(_: Any, __: Any, output: torch.Tensor) -> None:
        found.append(output[0])
        raise _StopHere

    device = model.get_input_embeddings().weight.device
    prompt = torch.tensor([list(ids)], device=device)
    heard = prompt.eq(AUDIO)
    tokens = prompt.masked_fill(heard, audio_token_id)
    if embedder is None:
        handle = model.get_decoder().register_forward_pre_hook(stop_before, with_kwargs=True)
    else:
        handle = model.get_submodule(embedder).register_forward_hook(stop_after)
    try:
        model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **features)
    except _StopHere:
        pass
    finally:
        handle.remove()
    return found[0][heard[0]]


class _StopHere(Exception):
    """The LM would begin."""
