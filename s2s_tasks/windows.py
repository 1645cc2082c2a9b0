"""Texts longer than a model, cut into windows that it can score."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from s2s_tasks.adapters.contract import Prefix

Window = tuple[int, Prefix, list[int]]
"""Index of a text, tokens before the window, tokens of it."""


def windows_of(texts: Sequence[list[int]], first: int, longest: int) -> list[Window]:
    """Return the windows of all texts, longest first.

    Args:
        texts: token ids of each.
        first: id of the token that stands before a text.
        longest: tokens that the model can attend to.
    """
    windows: list[Window] = []
    for index, tokens in enumerate(texts):
        rolling = get_rolling_token_windows(tokens, first, max_seq_len=longest, context_len=1)
        for window in rolling:
            context, continuation = make_disjoint_window(window)
            windows.append((index, Prefix(context), continuation))
    return sorted(windows, key=window_length, reverse=True)


def window_length(window: Window) -> int:
    """Return how many positions a window takes."""
    return len(window[1].ids) + len(window[2])
