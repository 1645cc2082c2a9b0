"""`s2s-tasks data check` and `s2s-tasks data prepare`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from s2s_tasks.data.check import Report, check_set
from s2s_tasks.data.prepare import prepare
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published.index import AudioIndex
from s2s_tasks.data.sets import SETS
from s2s_tasks.data.sources import DATA_VARIABLE, data_folder


def main(arguments: Sequence[str]) -> int:
    """Check or convert a copy of S2SBench; 1 when something is wrong with it."""
    call = _parser().parse_args(arguments)
    if call.action == "check":
        return _check(data_folder(call.folder), call.sets, call.json)
    prepare(data_folder(call.source), call.target, call.sets, call.licence)
    print(
        "Use it with:\n"
        f"  export {DATA_VARIABLE}={call.target.resolve()}\n"
        "  lm_eval --model speech-hf --model_args pretrained=MODEL --tasks s2sbench_s2t"
    )
    return 0


def _check(folder: Path, names: Sequence[str], as_json: bool) -> int:
    index = AudioIndex(folder)
    reports: list[Report] = []
    errors: dict[str, str] = {}
    for name in names:
        try:
            reports.append(check_set(folder, name, index))
        except DataError as error:
            errors[name] = str(error)
    if as_json:
        sets = {report.name: report.to_json() for report in reports}
        print(json.dumps({"sets": sets, "errors": errors}, ensure_ascii=False, indent=2))
    else:
        for report in reports:
            print("\n".join(report.lines()))
        for name, message in errors.items():
            print(f"{name}: {message}")
        if errors and reports:
            print(f"To check only what is there: --sets {' '.join(r.name for r in reports)}")
    return int(bool(errors) or any(report.problems for report in reports))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2s-tasks data", description="Check or convert a copy of S2SBench."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="report on a copy: counts, sound, texts, problems")
    check.add_argument("folder", type=Path, help="the published files, or a converted copy")
    check.add_argument("--json", action="store_true", help="print a JSON object")
    convert = actions.add_parser("prepare", help="write one Parquet file a set, audio embedded")
    convert.add_argument("source", type=Path, help="the published files")
    convert.add_argument("target", type=Path, help="the folder to write to")
    convert.add_argument("--licence", default="unknown", help="noted in the files")
    for action in (check, convert):
        action.add_argument(
            "--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them"
        )
    return parser
