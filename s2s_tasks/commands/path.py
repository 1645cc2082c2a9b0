"""`s2s-tasks path`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import s2s_tasks


def main(arguments: Sequence[str]) -> int:
    """Print the folder of the task files."""
    argparse.ArgumentParser(
        prog="s2s-tasks path",
        description="Print the folder of the task files, "
        'as in: lm_eval ls tasks --include_path "$(s2s-tasks path)"',
    ).parse_args(arguments)
    print(s2s_tasks.TASK_CONFIGS)
    return 0
