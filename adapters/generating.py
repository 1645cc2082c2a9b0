"""Continuing prompts with a model's own `generate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import StoppingCriteria, StoppingCriteriaList

from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.contract import AdapterError, Generation


class Spelled(StoppingCriteria):
    """Ends a row once its reply spells one of the strings it is to end at.

    transformers' own `StopStringCriteria` takes only tokenizers that it knows from inside.
    """

    def __init__(self, tokenizer: Any, until: Sequence[str], start: int) -> None:
        """Take the strings.

        Args:
            tokenizer: decodes token ids.
            until: what ends a reply.
            start: positions before the reply.
        """
        self._tokenizer = tokenizer
        self._start = start
        # Those that are special tokens show only where these are spelled, in which others may hide.
        self._until: dict[bool, list[str]] = {True: [], False: []}
        for string in until:
            ids = tokenizer.encode(string, add_special_tokens=False)
            plain = string in tokenizer.decode(ids, skip_special_tokens=True)
            self._until[plain].append(string)
        # A token that spells anything spells one byte at least.
        self._most = 1 + max(len(string.encode()) for string in until)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Return which rows are done: [rows]."""
        replies = input_ids[:, self._start :][:, -self._most :]
        done = torch.zeros(len(replies), dtype=torch.bool)
        for plain, strings in self._until.items():
            texts = self._tokenizer.batch_decode(replies, skip_special_tokens=plain)
            done |= torch.tensor([any(s in text for s in strings) for text in texts])
        return done.to(input_ids.device)


def continue_rows(
    generate: Callable[..., torch.Tensor],
    lm: CausalLM,
    tokenizer: Any,
    rows: Sequence[Sequence[int]],
    how: Generation,
    **inputs: Any,
) -> list[str]:
    """Continue rows, left-padded, with a model's `generate`; return the replies alone.

    Args:
        generate: of a model of transformers.
        lm: that model.
        tokenizer: decodes replies.
        rows: token ids of each prompt: [T].
        how: to continue them.
        **inputs: what else the model takes, for all rows.

    Raises:
        AdapterError: when `generate` refuses the options.
    """
    flipped = [torch.tensor(row[::-1]) for row in rows]
    ids = pad_sequence(flipped, batch_first=True, padding_value=lm.pad_token_id).flip(1)
    lengths = torch.tensor([len(row) for row in flipped])
    places = torch.arange(ids.shape[1]).flip(0)
    until = [string for string in how.until if string]
    stops = [Spelled(tokenizer, until, ids.shape[1])] if until else []
    try:
        output = generate(
            input_ids=lm.tokens(ids).to(lm.device),
            attention_mask=(places < lengths[:, None]).long().to(lm.device),
            max_new_tokens=how.max_new_tokens,
            pad_token_id=lm.pad_token_id,
            stopping_criteria=StoppingCriteriaList(stops),
            **how.options,
            **inputs,
        )
    except (TypeError, ValueError) as error:
        if not how.options:
            raise
        raise AdapterError(
            f"{type(lm.model).__name__}'s generate refuses the generation arguments "
            f"{dict(how.options)}: {error}"
        ) from error
    new = output[:, ids.shape[1] :]
    return cast(list[str], tokenizer.batch_decode(new, skip_special_tokens=True))
