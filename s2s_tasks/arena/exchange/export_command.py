"""`s2s-tasks arena export`: logs of judgements in others' formats."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from s2s_tasks.arena.exchange.import_command import add_manifest, read_manifest
from s2s_tasks.arena.exchange.writing import CHATBOT_ARENA_FIELDS, to_chatbot_arena, to_trace
from s2s_tasks.arena.records import CRITERIA
from s2s_tasks.arena.verdicts import HELP, read_verdicts
from s2s_tasks.arena.writing import replace_with, to_text
from s2s_tasks.errors import S2STasksError

FORMATS = ("trace", "chatbot-arena")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.description = (
        "Write judgements as others read them. Every verdict that could be read is written, those "
        "by rule against silent answers too; probes and verdicts that could not be read are left "
        "out, and counted. Fields of ours (judge, domain, task, level …) stand beside theirs, so "
        "that `import` gets back what there is; replies, probabilities, what was measured and "
        "hashes of recordings are not written."
    )
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=HELP)
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        required=True,
        metavar="FILE",
        help="trace: a .json; chatbot-arena: a .csv or .jsonl",
    )
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument(
        "--criterion",
        choices=CRITERIA,
        default="overall",
        help="which verdicts chatbot-arena has; default overall",
    )
    add_manifest(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file; probes and judgements without a verdict are left out.

    Raises:
        S2STasksError: when a log is broken, or the file cannot be written.
    """
    judgements = list(read_verdicts(options.logs))
    suffix = options.output.suffix.lower()
    if options.format == "trace":
        records = to_trace(judgements, read_manifest(options.manifest))
        suffixes = [".json"]
    else:
        records = to_chatbot_arena(judgements, options.criterion)
        suffixes = [".csv", ".jsonl"]
    if suffix not in suffixes:
        raise S2STasksError(
            f"{options.output}: {options.format} is written as {' or '.join(suffixes)}"
        )
    if suffix == ".json":
        text = to_text(records)
    elif suffix == ".csv":
        text = _csv(records)
    else:
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    replace_with(options.output, text)
    left_out = len(judgements) - len(records)
    print(f"{options.output}: {len(records):,} battles; {left_out:,} probes or without a verdict")
    return 0


def _csv(records: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, CHATBOT_ARENA_FIELDS)
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()
