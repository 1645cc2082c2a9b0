"""Battles are dealt to annotators, in the SQLite file."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from s2s_tasks.arena.page.rows import ROLES
from s2s_tasks.arena.page.tables import ANNOTATORS, ASSIGNMENTS, BATTLES, RECORDINGS, VOTES
from s2s_tasks.arena.page.work import deal, deal_apart, draw


def deal_anew(connection: Connection, names: Sequence[str], share: float) -> None:
    """Split what nobody has looked at; the arguments are those of `Store.invite`."""
    names = names or list(connection.scalars(select(ANNOTATORS.c.name)))
    voted = select(VOTES.c.assignment)
    unseen = ASSIGNMENTS.c.shown.is_(None) | ASSIGNMENTS.c.annotator.not_in(names)
    # Recordings go by cascade.
    connection.execute(delete(ASSIGNMENTS).where(unseen, ASSIGNMENTS.c.id.not_in(voted)))
    battles, probes = _instructions(connection)
    held, refused = _held(connection)
    dealt = deal(battles.keys(), names, share, _only(held, battles), refused)
    topics = battles | probes
    met = defaultdict(set)
    for name, key in [*dealt, *_pairs(held), *_pairs(refused)]:
        met[name].add(topics[key])
    # By themselves, so that each annotator has as many probes as others have.
    dealt += deal_apart(probes, names, met, _only(held, probes), refused)
    for name, key in dealt:
        _assign(connection, name, key)


def _instructions(connection: Connection) -> tuple[dict[str, str], dict[str, str]]:
    """Return battle → instruction, and probe → instruction."""
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for key, draft in connection.execute(select(BATTLES.c.key, BATTLES.c.draft)):
        battle = draft["battle"]
        found[bool(battle["probe"])][key] = battle["instruction"]
    return found


def _only(names: Mapping[str, list[str]], keys: Collection[str]) -> dict[str, list[str]]:
    return {key: found for key, found in names.items() if key in keys}


def _pairs(names: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((name, key) for key, found in names.items() for name in found)


def _held(connection: Connection) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return battle → who has it or voted on it, and battle → who skipped it."""
    held: dict[str, list[str]] = defaultdict(list)
    refused: dict[str, list[str]] = defaultdict(list)
    columns = (ASSIGNMENTS.c.battle, ASSIGNMENTS.c.annotator, VOTES.c.skipped)
    table = ASSIGNMENTS.outerjoin(VOTES, VOTES.c.assignment == ASSIGNMENTS.c.id)
    for battle, name, skipped in connection.execute(select(*columns).select_from(table)):
        (held if skipped is None else refused)[battle].append(name)
    return held, refused


def _assign(connection: Connection, name: str, battle: str) -> None:
    id = secrets.token_urlsafe(16)
    connection.execute(
        insert(ASSIGNMENTS).values(
            id=id,
            annotator=name,
            battle=battle,
            swapped=bool(draw("order", battle, name) & 1),
            place=draw("place", battle, name),
        )
    )
    rows = [{"id": secrets.token_urlsafe(16), "assignment": id, "role": role} for role in ROLES]
    connection.execute(insert(RECORDINGS), rows)
