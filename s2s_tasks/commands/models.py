"""`s2s-tasks models`: which speech LLMs are known, as the table of docs/models.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from s2s_tasks.adapters.families.family import Family
from s2s_tasks.adapters.families.table import FAMILIES


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    argparse.ArgumentParser(
        prog="s2s-tasks models", description="Print the speech LLMs that speech-hf knows."
    ).parse_args(argv)
    print(table())
    return 0


def table() -> str:
    """Return every known architecture as a Markdown table, and why some are refused."""
    columns = (
        *("model", "on the hub", "arguments", "longest recording", "recordings a prompt"),
        *("texts in a chat", "`audio_cache`", "pip install", "verified", "remarks"),
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    refused = []
    for model_type, family in FAMILIES.items():
        name = f"{family.name} (`{model_type}`)"
        if family.refused:
            refused.append(f"- {name}: {family.refused}.")
        else:
            lines.append(f"| {name} | {' | '.join(_abilities(family))} |")
    return "\n".join([*lines, "", "Refused:", "", *refused])


def _abilities(family: Family) -> tuple[str, ...]:
    return (
        ", ".join(f"`{name}`" for name in family.hub),
        f"`{family.arguments}`" if family.arguments else "",
        f"{family.longest_audio:g} s" if family.longest_audio else "any",
        "several" if family.several else "one",
        ", ".join(family.chat_roles),
        "yes" if family.keeps_audio else "no",
        f"`{family.needs}`" if family.needs else "",
        family.verified,
        family.remark,
    )
