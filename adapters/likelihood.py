"""Scores of continuations: by a full forward over each row, or by reading each prefix once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from s2s_tasks.adapters.causal_lm import CausalLM, Features, fork
from s2s_tasks.adapters.contract import Group
from s2s_tasks.score import Score

CACHED_POSITION = 0.25
"""What a position in a forked cache costs in memory, next to one that is being computed."""
Tokens = tuple[torch.Tensor, torch.Tensor]
"""Log-probabilities of tokens [T], and whether each was the likeliest [T]."""


def score_rows(
    lm: CausalLM, rows: Sequence[tuple[Sequence[int], Sequence[int]]], features: Features
) -> list[tuple[list[float], bool]]:
    """Score continuations [T] after prefixes [L] by one full forward over each row.

    The last token is only predicted, never read. Only the positions that predict a continuation's
    tokens go through the output layer, where the model allows that.
    """
    sequences = [[*prefix, *continuation][:-1] for prefix, continuation in rows]
    kept = [
        range(len(sequence) - len(continuation), len(sequence))
        for sequence, (_, continuation) in zip(sequences, rows, strict=True)
    ]
    logits = lm.full(sequences, kept, features)
    return _to_host([token_logprobs(row, ids) for row, (_, ids) in zip(logits, rows, strict=True)])


def score_groups(
    lm: CausalLM,
    groups: Sequence[Group],
    features: Features,
    most_positions: int | None = None,
) -> list[list[Score]]:
    """Score several continuations after each prefix, which is read once.

    The first token of a continuation is scored by what the model expects after the prefix, so that
    single tokens need no second forward.

    Args:
        lm: the model.
        groups: prefixes, each with its continuations.
        features: what else the model takes, for all prefixes together.
        most_positions: how much to compute at once after the prefixes; None for all of it.
    """
    state = lm.prefill([group.prefix.ids for group in groups], features)
    rows = [(index, ids) for index, group in enumerate(groups) for ids in group.continuations]
    parts = [[token_logprobs(state.logits[index][None], ids[:1])] for index, ids in rows]
    longer = sorted(
        (row for row, (_, ids) in enumerate(rows) if len(ids) > 1),
        key=lambda row: len(rows[row][1]),
        reverse=True,
    )
    prefix_length = state.mask.shape[1]
    chunks = list(_chunks([len(rows[row][1]) for row in longer], prefix_length, most_positions))
    for chunk in chunks:
        chosen = [longer[place] for place in chunk]
        forked = fork(state, [rows[row][0] for row in chosen], last=chunk is chunks[-1])
        logits = lm.extend(forked, [rows[row][1][:-1] for row in chosen])
        for place, row in enumerate(chosen):
            ids = rows[row][1]
            parts[row].append(token_logprobs(logits[place, : len(ids) - 1], ids[1:]))
    answers = iter(_to_host([_join(part) for part in parts]))
    return [
        [Score(*next(answers), group.prefix.transcripts) for _ in group.continuations]
        for group in groups
    ]


def token_logprobs(logits: torch.Tensor, targets: Sequence[int]) -> Tokens:
    """Return the log-probability of each target, and whether it was the likeliest token.

    The softmax is taken in fp32 whatever the weights' dtype: rounded sums make ties that
    are not there.

    Args:
        logits: [T, vocabulary].
        targets: token ids: [T].
    """
    index = torch.tensor(targets, device=logits.device)
    logprobs = logits.float().log_softmax(dim=-1)
    chosen = logprobs.gather(-1, index[:, None])[:, 0]
    return chosen, logprobs.argmax(dim=-1) == index


def _chunks(
    lengths: Sequence[int], prefix_length: int, most_positions: int | None
) -> Iterator[range]:
    """Cut rows, longest first, such that a chunk's positions are few enough; at least one row."""
    start = 0
    while start < len(lengths):
        count = len(lengths) - start
        if most_positions is not None:
            row = lengths[start] + prefix_length * CACHED_POSITION
            count = max(1, min(count, int(most_positions // row)))
        yield range(start, start + count)
        start += count


def _join(parts: Sequence[Tokens]) -> Tokens:
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _to_host(rows: Sequence[Tokens]) -> list[tuple[list[float], bool]]:
    """Fetch all rows in one transfer: each by itself would wait for the device."""
    logprobs = iter(torch.cat([row[0] for row in rows]).tolist())
    greedy = iter(torch.cat([row[1] for row in rows]).tolist())
    return [
        (list(islice(logprobs, len(row))), all(list(islice(greedy, len(row))))) for row, _ in rows
    ]
