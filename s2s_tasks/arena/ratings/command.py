"""`s2s-tasks arena rate`: from logs of judgements to a leaderboard."""

from __future__ import annotations

import argparse
from pathlib import Path

from s2s_tasks.arena.options import whole
from s2s_tasks.arena.ratings.board import build, to_json
from s2s_tasks.arena.ratings.bradley_terry import RESAMPLES
from s2s_tasks.arena.ratings.covariates import DEFAULT
from s2s_tasks.arena.ratings.leaderboard import leaderboard
from s2s_tasks.arena.records import CRITERIA
from s2s_tasks.arena.verdicts import HELP, read_verdicts
from s2s_tasks.arena.writing import write_with_json
from s2s_tasks.errors import S2STasksError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=HELP)
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="DIR",
        help="where to write; default: `leaderboard` beside the first log",
    )
    parser.add_argument(
        "--criterion", choices=CRITERIA, default="overall", help="which verdicts; default overall"
    )
    parser.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="NAME",
        help="rate the verdicts of this judge (may be repeated); default: of all together",
    )
    parser.add_argument(
        "--covariates",
        nargs="*",
        default=DEFAULT,
        metavar="FEATURE",
        help=f"what to control for beside the position; default: {' '.join(DEFAULT)}",
    )
    parser.add_argument(
        "--inverse-propensity",
        action="store_true",
        help="weight a battle by one over the probability with which its pair was drawn",
    )
    parser.add_argument(
        "--resamples",
        type=whole(100),  # percentiles need as many
        default=RESAMPLES,
        metavar="N",
        help=f"of the bootstrap; default {RESAMPLES}",
    )
    parser.add_argument(
        "--seed", type=whole(0), default=0, help="of resamples and shuffles; default 0"
    )


def run(options: argparse.Namespace) -> int:
    """Write the leaderboard: HTML, Markdown, CSV, PNG and `leaderboard.json`.

    Raises:
        S2STasksError: when a log is broken, or nothing in it can be rated.
    """
    judgements = list(read_verdicts(options.logs))
    known = {judgement.judge for judgement in judgements}
    if unknown := [name for name in options.judge if name not in known]:
        raise S2STasksError(
            f"--judge {unknown[0]}: no such judge; there are {', '.join(sorted(known)) or 'none'}"
        )
    board = build(
        (j for j in judgements if not options.judge or j.judge in options.judge),
        options.criterion,
        covariates=options.covariates,
        weighted=options.inverse_propensity,
        resamples=options.resamples,
        seed=options.seed,
    )
    document = leaderboard(board)
    folder = options.output or options.logs[0].parent / "leaderboard"
    files = write_with_json(document, folder, "leaderboard.json", to_json(board))
    for sentence in (*document.summary, *document.warnings):
        print(sentence)
    print(f"{files[0]} and {len(files) - 1} more files")
    return 0
