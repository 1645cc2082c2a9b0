"""`s2s-tasks lm-eval ...`: lm-eval without the start-up hook."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import s2s_tasks


def main(arguments: Sequence[str]) -> int:
    """Register our models and tasks, then run lm-eval's own command with the same arguments."""
    s2s_tasks.register()
    from lm_eval.__main__ import cli_evaluate

    sys.argv = ["lm-eval", *arguments]  # where lm-eval reads them
    cli_evaluate()
    return 0
