"""Links, each with a token of its own: of annotators, and of the leaderboard."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from s2s_tasks.arena.page.tables import ANNOTATORS, SETTINGS
from s2s_tasks.errors import S2STasksError

LEADERBOARD = "leaderboard"
"""What the setting is called."""
ITS_LINK = "the leaderboard"
"""What its link is called, among those of annotators."""


def add_links(connection: Connection, names: Sequence[str], renew: Sequence[str]) -> dict[str, str]:
    """Return links that are new, by whom they are for; the arguments are those of `Store.invite`.

    Raises:
        S2STasksError: when there is nobody by a name, or a name cannot be had.
    """
    if ITS_LINK in names:
        raise S2STasksError(f"no annotator can be called {ITS_LINK!r}: it has a link of its own")
    known = set(connection.scalars(select(ANNOTATORS.c.name)))
    if unknown := sorted(set(renew) - known):
        raise S2STasksError(f"there is no annotator {unknown[0]} whose link could be made anew")
    links = _add_annotators(connection, [name for name in names if name not in known])
    links |= _add_annotators(connection, renew)
    if token := _add_leaderboard(connection, anew=bool(renew)):
        links[ITS_LINK] = f"/leaderboard/{token}/"
    return links


def hashed(token: str) -> str:
    """Return what is kept of a token."""
    # Tokens are random enough for a plain hash; a slow one guards what people think of.
    return hashlib.sha256(token.encode()).hexdigest()


def _add_annotators(connection: Connection, names: Iterable[str]) -> dict[str, str]:
    tokens = {name: secrets.token_urlsafe(24) for name in names}
    for name, token in tokens.items():
        row = insert(ANNOTATORS).values(name=name, token=hashed(token))
        change = {"token": row.excluded.token}
        connection.execute(row.on_conflict_do_update(["name"], set_=change))
    return {name: f"/vote/{token}" for name, token in tokens.items()}


def _add_leaderboard(connection: Connection, *, anew: bool) -> str | None:
    """Return the token where it is new."""
    if anew:
        connection.execute(delete(SETTINGS).where(SETTINGS.c.name == LEADERBOARD))
    token = secrets.token_urlsafe(24)
    row = insert(SETTINGS).values(name=LEADERBOARD, value=hashed(token))
    return token if connection.execute(row.on_conflict_do_nothing()).rowcount else None
