"""`s2s-tasks arena`: battles of spoken answers, their ratings, and the page where people vote."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from s2s_tasks.errors import S2STasksError

COMMANDS = {
    "demo": ("s2s_tasks.arena.demo", "go the whole way on the mini set, with small real models"),
    "battle": ("s2s_tasks.arena.contest.battle", "let a judge compare systems' answers"),
    "serve": ("s2s_tasks.arena.page.serve", "serve the page where people compare them"),
    "rate": ("s2s_tasks.arena.ratings.command", "rate the systems from what was judged"),
    "agreement": ("s2s_tasks.arena.agreement.report", "hold a judge against people"),
    "manifest": ("s2s_tasks.arena.data.published", "list the published recordings, to fill in"),
    "import": ("s2s_tasks.arena.exchange.import_command", "read judgements that others published"),
    "export": ("s2s_tasks.arena.exchange.export_command", "write judgements as others read them"),
}
"""Sub-command -> module with `add_arguments` and `run`, and what it does in a few words."""


def main(argv: Sequence[str]) -> int:
    """Run one sub-command; its exit status."""
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="s2s-tasks arena",
        description="S2S-Arena: speech in, speech out, judged in pairs.",
        epilog="commands:\n"
        + "\n".join(f"  {name:{width}}  {what}" for name, (_, what) in COMMANDS.items())
        + "\n\ns2s-tasks arena COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    call = parser.parse_args(argv)
    name, what = COMMANDS[call.command]
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("s2s_tasks"):
            raise
        raise S2STasksError(
            f"the arena needs the package {error.name}: pip install 's2s-tasks[arena]'"
        ) from error
    own = argparse.ArgumentParser(
        prog=f"s2s-tasks arena {call.command}", description=f"{what[0].upper()}{what[1:]}."
    )
    module.add_arguments(own)
    status: int = module.run(own.parse_args(call.arguments))
    return status
