"""`s2s-tasks arena serve`: the page from the command line."""

from __future__ import annotations

import argparse
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from s2s_tasks.arena.arguments import add_answers
from s2s_tasks.arena.page.preparing import by_system, prepare, read_battles
from s2s_tasks.arena.page.probing import PROBES, told
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import votes
from s2s_tasks.arena.page.work import DOUBLE
from s2s_tasks.arena.records import Judgement
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from s2s_tasks.report.document import Document

HOST, PORT = "127.0.0.1", 8765


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.description = (
        "Serve a page where people listen to two answers and vote, without knowing whose they are. "
        "Each annotator has a link of their own, which is printed when they are new and never "
        "again. Started again on the same file, it goes on: votes stay, and battles that nobody "
        "has looked at are split anew between the annotators that are named."
    )
    parser.add_argument(
        "--battles",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON lines: battles, or a log of judgements, whose battles people then judge too",
    )
    add_answers(parser)
    parser.add_argument(
        "--votes",
        type=Path,
        default=Path("votes.sqlite"),
        metavar="FILE",
        help="SQLite file that keeps everything (default: votes.sqlite)",
    )
    parser.add_argument(
        "--annotators",
        nargs="+",
        default=[],
        metavar="NAME",
        help="who shares the work; default: all that are known. New ones get a link",
    )
    parser.add_argument(
        "--renew",
        nargs="+",
        default=[],
        metavar="NAME",
        help="make new links for these annotators, and for the leaderboard; the old ones end",
    )
    parser.add_argument(
        "--double",
        type=float,
        default=DOUBLE,
        metavar="SHARE",
        help=f"of the battles, that two annotators judge (default: {DOUBLE})",
    )
    parser.add_argument(
        "--probes",
        type=float,
        default=PROBES,
        metavar="SHARE",
        help="battles of known outcome for each battle that is judged, which look like all others "
        "and show how far an annotator can be trusted: one for each annotator at least "
        f"(default: {PROBES}; 0 for no more than the file has)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="one answer has to win: no ties, and no 'both bad'"
    )
    parser.add_argument("--host", default=HOST, help=f"where to listen (default: {HOST})")
    parser.add_argument("--port", type=int, default=PORT, help=f"0 for any (default: {PORT})")


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted.

    Raises:
        S2STasksError: when something is amiss.
    """
    from s2s_tasks.arena.data.manifest import read as read_instructions
    from s2s_tasks.arena.elsewhere import read_given
    from s2s_tasks.arena.page.app import app

    for name in ("double", "probes"):
        if not 0 <= (share := getattr(options, name)) <= 1:
            raise S2STasksError(f"--{name} {share}: a share lies between 0 and 1")
    battles = read_battles(options.battles)
    instructions = read_instructions(options.instructions, old_levels=options.old_levels)
    ids = [instruction.id for instruction in instructions]
    answers = by_system(chain.from_iterable(read_given(given, ids) for given in options.answers))
    # All that can fail comes first: a start that fails makes no links, and deals nothing anew.
    with listen(options.host, options.port) as listening:
        store = Store.open(options.votes)
        prepare(
            *(store, instructions, answers, battles, options.annotators),
            share=options.double,
            probes=options.probes,
            measure=_features,
        )
        ready = server(
            app(instructions, answers, store, ties=not options.strict, leaderboard=_leaderboard)
        )
        with store.invite(options.annotators, options.double, options.renew) as links:
            print(*greeting(links, options.host, listening.getsockname()[1]), sep="\n", flush=True)
        _say(told(votes(options.votes)))
        with suppress(KeyboardInterrupt):  # after the server came to its end
            ready.run(sockets=[listening])
        _say(told(votes(options.votes)))
    return 0


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _features(audio: Audio) -> dict[str, float]:
    from s2s_tasks.arena.features import features  # only where there are new battles

    return features(audio)


def _leaderboard(judgements: Iterable[Judgement]) -> Document:
    from s2s_tasks.arena.ratings.board import build
    from s2s_tasks.arena.ratings.leaderboard import leaderboard

    return leaderboard(build(judgements))


def greeting(links: Mapping[str, str], host: str, port: int) -> list[str]:
    """Return the lines to print when the page is served: where, and links that are new."""
    lines = []
    if not _is(host, "is_loopback"):
        lines.append(
            f"Beware: {host} is not this machine alone. Whoever sees a link can vote by it, and "
            "nothing is encrypted: put a proxy with TLS in front, or use an SSH tunnel."
        )
    name = socket.gethostname() if _is(host, "is_unspecified") else host
    where = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    lines.append(f"Serving at {where} (Ctrl-C ends it)")
    if links:
        lines.append("New links, printed this once:")
    return lines + [f"  {whom}: {where}{path}" for whom, path in links.items()]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        S2STasksError: when the address cannot be listened at.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise S2STasksError(
            f"cannot listen at {host}, port {port} ({error}); choose others with --host and --port"
        ) from error


def server(application: FastAPI) -> uvicorn.Server:
    """Return a server that keeps no log of requests: their paths hold the tokens of links."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(application, log_level="warning", access_log=False, server_header=False)
    )


def _is(host: str, what: Literal["is_loopback", "is_unspecified"]) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host), what))
    except ValueError:  # a name
        return host == "localhost" and what == "is_loopback"
