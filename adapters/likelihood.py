"""Scores of continuations: by a full forward over each row, or by reading each prefix once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch

from s2s_tasks.adapters.causal_lm import CausalLM, Features, fork
from s2s_tasks.adapters.contract import Group
from s2s_tasks.score import Score

CACHED_POSITION = 0.25
"""What a position in a forked cache costs in memory, next to one that is being computed."""
FORWARD_COST = {"cpu": 64.0, "cuda": 1024.0}
"""What one more forward costs by itself, in positions. A CPU reads all weights in the time that it
computes some thirty, and copies the cache in another thirty (benchmarks/, two cores); a GPU
launches kernels in that of about a thousand (estimated, not measured)."""
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
    state, logits_after = lm.prefill([group.prefix.ids for group in groups], features)
    rows = [(index, ids) for index, group in enumerate(groups) for ids in group.continuations]
    parts = [[token] for token in _first_tokens(logits_after, rows)]
    longer = sorted(
        (row for row, (_, ids) in enumerate(rows) if len(ids) > 1),
        key=lambda row: len(rows[row][1]),
        reverse=True,
    )
    prefix_length = state.mask.shape[1]
    lengths = [len(rows[row][1]) - 1 for row in longer]
    cost = FORWARD_COST.get(lm.device.type, FORWARD_COST["cuda"])
    chunks = _chunks(lengths, prefix_length, most_positions, cost) if longer else []
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


def _first_tokens(logits: torch.Tensor, rows: Sequence[tuple[int, Sequence[int]]]) -> list[Tokens]:
    """Score the first token of each row (prefix, token ids) under logits [prefixes, vocabulary]."""
    logprobs = logits.float().log_softmax(dim=-1)
    prefixes = torch.tensor([index for index, _ in rows], device=logits.device)
    tokens = torch.tensor([ids[0] for _, ids in rows], device=logits.device)
    chosen, greedy = logprobs[prefixes, tokens], logprobs.argmax(dim=-1)[prefixes] == tokens
    return [(chosen[row, None], greedy[row, None]) for row in range(len(rows))]


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
    lengths: Sequence[int], prefix_length: int, most_positions: int | None, forward_cost: float
) -> list[range]:
    """Cut rows, longest first, into chunks that together cost least; at least one row each.

    A chunk costs the positions of its rows, padded to the longest, and one forward.

    Args:
        lengths: positions of each row, in falling order.
        prefix_length: positions in the cache before each row.
        most_positions: that a chunk may take, cached ones counted as `CACHED_POSITION`.
        forward_cost: what a forward costs by itself, in positions.
    """
    starts = [0] + [i for i in range(1, len(lengths)) if lengths[i] < lengths[i - 1]]
    ends = [*starts[1:], len(lengths)]
    best: list[tuple[float, list[range]]] = [(0.0, [])]
    for place, end in enumerate(ends):
        options = []
        for first in range(place + 1):
            chunk = range(starts[first], end)
            cost = best[first][0] + len(chunk) * lengths[chunk[0]] + forward_cost
            options.append((cost, [*best[first][1], chunk]))
        best.append(min(options, key=lambda option: option[0]))
    return [
        piece
        for chunk in best[-1][1]
        for piece in _pieces(chunk, lengths[chunk[0]], prefix_length, most_positions)
    ]


def _pieces(
    chunk: range, length: int, prefix_length: int, most_positions: int | None
) -> list[range]:
    """Cut a chunk that takes too many positions."""
    if most_positions is None:
        return [chunk]
    row = length + prefix_length * CACHED_POSITION
    rows = max(1, int(most_positions // row))
    return [chunk[start : start + rows] for start in range(0, len(chunk), rows)]


def _join(parts: Sequence[Tokens]) -> Tokens:
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _to_host(rows: Sequence[Tokens]) -> list[tuple[list[float], bool]]:
    """Fetch all rows in one transfer: each by itself would wait for the device."""
    logprobs = iter(torch.cat([row[0] for row in rows]).tolist())
    greedy = iter(torch.cat([row[1] for row in rows]).tolist())
    return [
        (list(islice(logprobs, len(row))), all(list(islice(greedy, len(row))))) for row, _ in rows
    ]
