"""Our log lines beside lm-eval's: its set-up knows its own loggers only."""

from __future__ import annotations

import logging


def follow_lm_eval() -> None:
    """Write where lm-eval writes, from the same level on, unless the program has its own set-up."""
    theirs, ours = logging.getLogger("lm_eval"), logging.getLogger("s2s_tasks")
    if logging.getLogger().handlers or ours.handlers:
        return
    for handler in theirs.handlers:
        ours.addHandler(handler)
    ours.setLevel(theirs.level)
