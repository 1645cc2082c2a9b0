"""`s2s-tasks report`: what was lost by listening, from lm-eval's output folders."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from s2s_tasks.report.build import build
from s2s_tasks.report.reading import read_runs
from s2s_tasks.report.writing import write


def main(argv: Sequence[str]) -> int:
    """Read runs, and write the report."""
    options = _parser().parse_args(argv)
    runs, notes = read_runs(options.folders)
    document = build(
        runs, notes, baseline=options.baseline, detail=options.detail, force=options.force
    )
    folder = options.output or options.folders[0] / "report"
    files = write(document, folder)
    for sentence in (*document.summary, *document.warnings):
        print(sentence)
    print(f"{files[0]} and {len(files) - 1} more files")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2s-tasks report",
        description="Say how much of its intelligence a speech LLM loses when it listens, how sure "
        "that is, and where: report.html (one file that needs no other), report.md, and the "
        "tables and figures as CSV and PNG.",
        epilog="The folders are those that lm_eval wrote with --output_path DIR --log_samples, of "
        "any number of models, checkpoints and modes.",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="lm-eval's output")
    parser.add_argument(
        "--output", "-o", type=Path, metavar="DIR", help="where to write; default DIR/report"
    )
    parser.add_argument(
        "--baseline",
        metavar="MODEL",
        help="the model whose reading stands in for models that were only asked to listen",
    )
    parser.add_argument(
        "--detail",
        action="append",
        default=[],
        metavar="MODEL",
        help="look into this model's losses (may be repeated); default: those that hear best",
    )
    parser.add_argument(
        "--force", action="store_true", help="compare runs whose prompts, data or versions differ"
    )
    return parser
