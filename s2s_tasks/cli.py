"""The `s2s-tasks` command: a table of sub-commands, imported when called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from s2s_tasks import __version__
from s2s_tasks.errors import S2STasksError

COMMANDS = {
    "arena": ("s2s_tasks.commands.arena:main", "battles of spoken answers, ratings, voting page"),
    "data": ("s2s_tasks.commands.data:main", "check or convert a copy of S2SBench"),
    "demo": ("s2s_tasks.commands.demo:main", "score the embedded mini set with small real models"),
    "lm-eval": ("s2s_tasks.commands.lm_eval:main", "lm-eval with our models and tasks registered"),
    "models": ("s2s_tasks.commands.models:main", "print the speech LLMs that speech-hf knows"),
    "path": ("s2s_tasks.commands.path:main", "print the folder of the task files"),
    "report": ("s2s_tasks.commands.report:main", "what was lost by listening, from lm-eval runs"),
    "sweep": ("s2s_tasks.commands.sweep:main", "lm-eval on every checkpoint of a training run"),
}
"""Sub-command -> function (its arguments -> exit status), and what it does in a few words."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; its exit status, or 2 where it raised an `S2STasksError`."""
    call = _parser().parse_args(argv)
    module, _, function = COMMANDS[call.command][0].partition(":")
    try:
        status: int = getattr(import_module(module), function)(call.arguments)
    except S2STasksError as error:
        print(f"s2s-tasks: {error}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="s2s-tasks",
        description="Speech tasks and speech models for lm-evaluation-harness.",
        epilog="commands:\n"
        + "\n".join(f"  {name:{width}}  {what}" for name, (_, what) in COMMANDS.items())
        + "\n\ns2s-tasks COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"s2s-tasks {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    return parser


if __name__ == "__main__":
    sys.exit(main())
