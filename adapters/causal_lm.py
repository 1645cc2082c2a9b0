"""Run a causal LM of transformers: whole rows, or a context once and then what follows it.

Reading a context once takes three steps: `prefill` it, `fork` what the model keeps of it, `extend`
the forks. This steps around what differs between models and versions of transformers: the cache's
name changed (5.24), `Cache.crop` means other things in other versions and fails on sliding windows,
not every model can leave out logits that nobody needs, and a model that extends a cache without
being told positions guesses them from the mask, each family in its own way.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.nn.utils.rnn import pad_sequence

from s2s_tasks.adapters.contract import AUDIO

Features = Mapping[str, Any]
"""What a model takes beside token ids, for all rows together."""


@dataclass(frozen=True)
class State:
    """What a model keeps of the prefixes that it has read."""

    cache: Any
    """The model's own, of `rows` prefixes."""
    mask: torch.Tensor
    """1 where a prefix has a position; padding is on the left: [rows, positions]."""


class CausalLM:
    """A model, and what its `forward` takes."""

    def __init__(self, model: Any, pad_token_id: int, audio_token_id: int | None = None) -> None:
        """Look at what `forward` takes.

        Args:
            model: a causal LM of transformers, or one that calls one as its `language_model`.
            pad_token_id: of a text token; it is masked wherever it stands.
            audio_token_id: what the model wants at audio positions; None for one that only reads.
        """
        self.model = model
        self.pad_token_id = pad_token_id
        self._audio = audio_token_id
        parameters = inspect.signature(model.forward).parameters
        inner = inspect.signature(getattr(model, "language_model", model).forward).parameters
        names = parameters.keys() | inner.keys()
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._takes_positions = "position_ids" in names
        self._keeps_logits = "logits_to_keep" in parameters
        self._embeds = "audio_embeds" not in parameters
        self._spread = len(set(getattr(model, "hf_device_map", {}).values())) > 1

    @property
    def device(self) -> torch.device:
        """Where token ids go in."""
        return cast(torch.device, self.model.get_input_embeddings().weight.device)

    def full(
        self, rows: Sequence[Sequence[int]], kept: Sequence[range], features: Features
    ) -> list[torch.Tensor]:
        """Read whole rows at once, right-padded; return logits of the positions `kept` of each.

        Args:
            rows: token ids of each: [T].
            kept: the positions whose logits are wanted, of each row; one range a row.
            features: what else the model takes.

        Returns:
            For each row [kept, vocabulary].
        """
        ids, mask = self._pad_right(rows)
        wanted = sorted({position for span in kept for position in span})
        column = {position: position for position in wanted}
        inputs = self._inputs(ids, features)
        options: dict[str, Any] = {}
        if self._keeps_logits and self._spread:
            # Positions in a tensor would be on the first device, the output layer is on the last.
            options["logits_to_keep"] = ids.shape[1] - wanted[0]
            column = {position: position - wanted[0] for position in wanted}
        elif self._keeps_logits:
            options["logits_to_keep"] = torch.tensor(wanted, device=self.device)
            column = {position: index for index, position in enumerate(wanted)}
        output = self.model(attention_mask=mask, use_cache=False, **inputs, **options)
        return [
            logits[column[span[0]] : column[span[-1]] + 1]
            for logits, span in zip(output.logits, kept, strict=True)
        ]

    def prefill(
        self, prefixes: Sequence[Sequence[int]], features: Features
    ) -> tuple[State, torch.Tensor]:
        """Read prefixes [T] once, left-padded, so that all end at the same position.

        Returns what the model keeps, and the logits after each prefix: [rows, vocabulary].
        """
        flipped = [torch.tensor(ids[::-1]) for ids in prefixes]
        ids = pad_sequence(flipped, batch_first=True, padding_value=self.pad_token_id).flip(1)
        lengths = torch.tensor([len(row) for row in flipped])
        mask = (torch.arange(ids.shape[1]).flip(0) < lengths[:, None]).long().to(self.device)
        with nullcontext() if self._keeps_logits else self._only_last_position():
            output = self.model(
                attention_mask=mask,
                use_cache=True,
                **self._positions((mask.cumsum(-1) - 1).clamp(min=0)),
                **({"logits_to_keep": 1} if self._keeps_logits else {}),
                **self._inputs(ids.to(self.device), features),
            )
        cache = output.cache if "cache" in output else output.past_key_values
        return State(cache, mask), output.logits[:, -1]

    def extend(self, state: State, continuations: Sequence[Sequence[int]]) -> torch.Tensor:
        """Read a continuation [T] after each prefix; what stands behind its end means nothing.

        The state is used up. Returns logits [rows, longest T, vocabulary].
        """
        ids, mask = self._pad_right(continuations)
        steps = torch.arange(ids.shape[1], device=self.device)
        output = self.model(
            input_ids=ids,
            attention_mask=torch.cat([state.mask, mask], dim=1),
            use_cache=True,
            **self._positions(state.mask.sum(-1, keepdim=True) + steps),
            **{self._cache_name: state.cache},
        )
        return cast(torch.Tensor, output.logits)

    def tokens(self, ids: torch.Tensor) -> torch.Tensor:
        """Return ids with what the model wants at audio positions, in the same shape."""
        return ids if self._audio is None else ids.masked_fill(ids.eq(AUDIO), self._audio)

    def _inputs(self, ids: torch.Tensor, features: Features) -> dict[str, Any]:
        """Return tokens and features, or embeddings where soft tokens are there already."""
        heard = ids.eq(AUDIO)
        soft = features.get("audio_embeds")
        if soft is None or not self._embeds:
            return {"input_ids": self.tokens(ids), **features}
        embedded = self.model.get_input_embeddings()(ids.masked_fill(heard, self.pad_token_id))
        return {"inputs_embeds": embedded.masked_scatter(heard[..., None], soft.to(embedded))}

    def _pad_right(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        tensors = [torch.tensor(row) for row in rows]
        ids = pad_sequence(tensors, batch_first=True, padding_value=self.pad_token_id)
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
        return ids.to(self.device), mask.to(self.device)

    def _positions(self, positions: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"position_ids": positions} if self._takes_positions else {}

    @contextmanager
    def _only_last_position(self) -> Iterator[None]:
        """Let the output layer see the last position alone.

        The logits of a whole prefix over a large vocabulary are more than all else together.
        """
        layer = self.model.get_output_embeddings()
        handle = layer.register_forward_pre_hook(lambda _, inputs: (inputs[0][:, -1:], *inputs[1:]))
        try:
            yield
        finally:
            handle.remove()


def fork(state: State, rows: Sequence[int], *, last: bool = False) -> State:
    """Return the state of the prefixes `rows`, some repeated.

    `reorder_cache` is what beam search calls, so every kind of cache has it. With `last` the old
    state is used up, which spares a copy of the cache.
    """
    index = torch.tensor(rows, device=state.mask.device)
    cache = state.cache if last else copy.deepcopy(state.cache)
    cache.reorder_cache(index)
    return State(cache, state.mask[index])
