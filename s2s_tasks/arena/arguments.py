"""Arguments that several commands take: what was asked, and what was answered."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_answers(parser: argparse.ArgumentParser) -> None:
    """Add `--answers`, `--instructions` and `--old-levels`."""
    parser.add_argument(
        "--answers",
        nargs="+",
        required=True,
        metavar="DIR|NAME=PATH",
        help="a folder of answers for each system, as `lm_eval` writes it when a model is given "
        "speech=DIR; or what to call a system, and such a folder or answers made elsewhere: "
        "recordings named by question id, or a CSV or JSONL file with the columns instruction, "
        "path",
    )
    parser.add_argument(
        "--instructions", type=Path, metavar="PATH", help="manifest; default: the mini set"
    )
    parser.add_argument(
        "--old-levels", action="store_true", help="the manifest has levels L0 to L3, not L1 to L4"
    )
