"""`s2s-tasks arena serve`: the page from the command line."""

from __future__ import annotations

import argparse
import ipaddress
import json
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import Answers, Measure, drafts, seconds
from s2s_tasks.arena.page.work import DOUBLE, unordered
from s2s_tasks.arena.records import Answer, Battle, Instruction, Judgement
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
    parser.add_argument(
        "--answers",
        nargs="+",
        required=True,
        metavar="DIR|NAME=PATH",
        help="those of each system, as for `arena battle`",
    )
    parser.add_argument(
        "--instructions", type=Path, metavar="PATH", help="manifest; default: the mini set"
    )
    parser.add_argument(
        "--old-levels", action="store_true", help="the manifest has levels L0 to L3, not L1 to L4"
    )
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

    if not 0 <= options.double <= 1:
        raise S2STasksError(f"--double {options.double}: a share lies between 0 and 1")
    battles = read_battles(options.battles)
    instructions = read_instructions(options.instructions, old_levels=options.old_levels)
    ids = [instruction.id for instruction in instructions]
    answers = by_system(chain.from_iterable(read_given(given, ids) for given in options.answers))
    store = Store.open(options.votes)
    links = prepare(
        store,
        instructions,
        answers,
        battles,
        options.annotators,
        share=options.double,
        renew=options.renew,
        measure=_features,
    )
    serve(
        app(instructions, answers, store, ties=not options.strict, leaderboard=_leaderboard),
        links,
        options.host,
        options.port,
    )
    return 0


def _features(audio: Audio) -> dict[str, float]:
    from s2s_tasks.arena.features import features  # only where there are new battles

    return features(audio)


def _leaderboard(judgements: Iterable[Judgement]) -> Document:
    from s2s_tasks.arena.ratings.board import build
    from s2s_tasks.arena.ratings.leaderboard import leaderboard

    return leaderboard(build(judgements))


def by_system(answers: Iterable[Answer]) -> dict[str, dict[str, Answer]]:
    """Return answers by system, then by the instruction's id."""
    found: dict[str, dict[str, Answer]] = {}
    for answer in answers:
        found.setdefault(answer.system, {})[answer.instruction] = answer
    return found


def read_battles(path: Path) -> list[Battle]:
    """Return the battles of JSON lines; where a line is a judgement, the battle that it is of.

    Raises:
        S2STasksError: when the file cannot be read, or a line is neither.
    """
    battles: list[Battle] = []
    try:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            battles.append(Battle(**line.get("battle", line)))
    except OSError as error:
        raise S2STasksError(f"{path}: cannot read battles: {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise S2STasksError(
            f"{path}, line {len(battles) + 1}: neither a battle nor a judgement ({error})"
        ) from error
    return battles


def prepare(
    store: Store,
    instructions: Iterable[Instruction],
    answers: Answers,
    battles: Iterable[Battle],
    annotators: Sequence[str],
    *,
    share: float = DOUBLE,
    renew: Sequence[str] = (),
    measure: Measure = seconds,
) -> dict[str, str]:
    """Put battles and annotators into the store, split the work, and return what links are new.

    Args:
        store: an open one, empty or not.
        instructions: at least those of the battles.
        answers: by system, then by the instruction's id.
        battles: to be judged; one in both orders is one, and those in the store are not added.
        annotators: who shares the work; all that are known by default.
        share: of the battles that two annotators judge.
        renew: annotators who get new links; the leaderboard then gets one too.
        measure: gives the features of an answer, which judgements hold; by default its length.

    Returns:
        Whom a link is for → its path. Links are not kept: show them now.

    Raises:
        S2STasksError: when an instruction or an annotator is missing.
    """
    if unknown := sorted(set(renew) - set(store.annotators())):
        raise S2STasksError(f"there is no annotator {unknown[0]} whose link could be made anew")
    by_id = {instruction.id: instruction for instruction in instructions}
    known = store.battles()
    new = [battle for battle in battles if unordered(battle) not in known]
    store.add_battles(drafts(new, by_id, answers, measure))
    tokens = store.add_annotators(annotators) | store.add_annotators(renew, renew=True)
    if not store.annotators():
        raise S2STasksError("nobody can vote yet; name annotators: --annotators ANNA BEN")
    store.deal(annotators, share)
    links = {name: f"/vote/{token}" for name, token in tokens.items()}
    if admin := store.add_leaderboard(renew=bool(renew)):
        links["the leaderboard"] = f"/leaderboard/{admin}/"
    return links


def serve(application: FastAPI, links: Mapping[str, str], host: str, port: int) -> None:
    """Print the links, and serve until interrupted.

    Raises:
        S2STasksError: when the address cannot be listened at.
    """
    listening = listen(host, port)
    print("\n".join(greeting(links, host, listening.getsockname()[1])), flush=True)
    with suppress(KeyboardInterrupt):  # after the server came to its end
        server(application).run(sockets=[listening])


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
