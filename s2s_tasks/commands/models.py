"""`s2s-tasks models`: which speech LLMs are known, as the table of docs/models.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

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
    lines = [
        "| model | `model_type` | on the hub | needs | `audio_cache` | verified | remarks |",
        "|---|---|---|---|---|---|---|",
    ]
    refused = []
    for model_type, family in FAMILIES.items():
        if family.refused:
            refused.append(f"- {family.name} (`{model_type}`): {family.refused}.")
            continue
        hub = ", ".join(f"`{name}`" for name in family.hub)
        needs = f"`{family.needs}`" if family.needs else ""
        kept = "no" if family.needs_ids else "where its parts allow"
        cells = (family.name, f"`{model_type}`", hub, needs, kept, family.verified, family.remark)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Refused:", "", *refused])
