"""What is kept between requests: links, who listens to what, and votes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from s2s_tasks import __version__
from s2s_tasks.arena.page.tables import (
    ANNOTATORS,
    ASSIGNMENTS,
    BATTLES,
    RECORDINGS,
    SETTINGS,
    VOTES,
    open_database,
)
from s2s_tasks.arena.page.work import DOUBLE, deal, draw
from s2s_tasks.arena.records import Criterion, Judgement, Winner

ROLES = ("instruction", "first", "second")
"""Of the recordings of a battle, as heard."""
LEADERBOARD = "leaderboard"


@dataclass(frozen=True)
class Assignment:
    """A battle that an annotator has before them."""

    id: str
    battle: str
    """Its key in the store."""
    swapped: bool
    sounds: Mapping[str, str]
    """Role → the id under which the recording is served."""


@dataclass(frozen=True)
class Sound:
    """What an id stands for."""

    battle: str
    swapped: bool
    role: str


@dataclass(frozen=True)
class Progress:
    """How far an annotator is, in battles."""

    voted: int
    skipped: int
    assigned: int

    @property
    def done(self) -> int:
        """Those that will not be shown again."""
        return self.voted + self.skipped


@dataclass(frozen=True)
class Store:
    """An open file; its methods are transactions, and may be called from any thread."""

    engine: Engine

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open a file, or make it.

        Raises:
            S2STasksError: when it is not a SQLite file, or cannot be written.
        """
        engine = open_database(path, create=True)
        with engine.begin() as connection:
            row = {"name": "form_key", "value": secrets.token_hex(32)}
            connection.execute(insert(SETTINGS).values(row).on_conflict_do_nothing())
        return cls(engine)

    def close(self) -> None:
        """Let go of the file."""
        self.engine.dispose()

    # Before anyone votes

    def add_battles(self, drafts: Mapping[str, Judgement]) -> None:
        """Add the battles that are not there yet."""
        rows = [{"key": key, "draft": draft.to_json()} for key, draft in drafts.items()]
        if rows:
            with self.engine.begin() as connection:
                connection.execute(insert(BATTLES).on_conflict_do_nothing(), rows)

    def add_annotators(self, names: Iterable[str], *, renew: bool = False) -> dict[str, str]:
        """Return name → token of the annotators that are new: what is kept is only a hash.

        Args:
            names: those that are known keep their token.
            renew: make new tokens for those that are known, too; the old ones then end.
        """
        tokens = {name: secrets.token_urlsafe(24) for name in names}
        with self.engine.begin() as connection:
            known = set(connection.scalars(select(ANNOTATORS.c.name)))
            new = {name: token for name, token in tokens.items() if renew or name not in known}
            for name, token in new.items():
                row = insert(ANNOTATORS).values(name=name, token=_hash(token))
                change = {"token": row.excluded.token}
                connection.execute(row.on_conflict_do_update(["name"], set_=change))
        return new

    def add_leaderboard(self, *, renew: bool = False) -> str | None:
        """Return the token of the leaderboard's link where it is new."""
        token = secrets.token_urlsafe(24)
        row = insert(SETTINGS).values(name=LEADERBOARD, value=_hash(token))
        with self.engine.begin() as connection:
            if renew:
                connection.execute(delete(SETTINGS).where(SETTINGS.c.name == LEADERBOARD))
            added = connection.execute(row.on_conflict_do_nothing()).rowcount
        return token if added else None

    def deal(self, names: Sequence[str] = (), share: float = DOUBLE) -> None:
        """Split what nobody has looked at between annotators; what was looked at stays.

        Args:
            names: who shares the work; all that are known by default. Others keep their votes.
            share: of the battles that two annotators judge, in [0, 1].
        """
        with self.engine.begin() as connection:
            names = names or list(connection.scalars(select(ANNOTATORS.c.name)))
            voted = select(VOTES.c.assignment)
            unseen = ASSIGNMENTS.c.shown.is_(None) | ASSIGNMENTS.c.annotator.not_in(names)
            # Recordings go by cascade.
            connection.execute(delete(ASSIGNMENTS).where(unseen, ASSIGNMENTS.c.id.not_in(voted)))
            keys = list(connection.scalars(select(BATTLES.c.key)))
            held, refused = _held(connection)
            for name, battle in deal(keys, names, share, held, refused):
                _assign(connection, name, battle)

    # While they vote

    def annotator(self, token: str) -> str | None:
        """Return whose link a token is."""
        query = select(ANNOTATORS.c.name).where(ANNOTATORS.c.token == _hash(token))
        with self.engine.begin() as connection:
            return connection.scalar(query)

    def opens_leaderboard(self, token: str) -> bool:
        """Tell whether a token is that of the leaderboard's link."""
        return hmac.compare_digest(self._setting(LEADERBOARD), _hash(token))

    def signature(self, token: str, assignment: str) -> str:
        """Return what a form must carry: other pages cannot know it."""
        key = bytes.fromhex(self._setting("form_key"))
        return hmac.digest(key, f"{token}\x1f{assignment}".encode(), "sha256").hex()

    def progress(self, annotator: str) -> Progress:
        """Return how far an annotator is."""
        table = ASSIGNMENTS.outerjoin(VOTES, VOTES.c.assignment == ASSIGNMENTS.c.id)
        query = select(
            func.count(VOTES.c.winners), func.count(VOTES.c.skipped), func.count(ASSIGNMENTS.c.id)
        ).select_from(table)
        with self.engine.begin() as connection:
            mine = query.where(ASSIGNMENTS.c.annotator == annotator)
            voted, skipped, assigned = connection.execute(mine).one()
        return Progress(voted, skipped, assigned)

    def annotators(self) -> list[str]:
        """Return the names of all annotators, sorted."""
        with self.engine.begin() as connection:
            return list(connection.scalars(select(ANNOTATORS.c.name).order_by(ANNOTATORS.c.name)))

    def next(self, annotator: str) -> Assignment | None:
        """Return what an annotator should listen to now; the same until they vote or skip."""
        open_ones = (
            select(ASSIGNMENTS)
            .where(ASSIGNMENTS.c.annotator == annotator)
            .where(ASSIGNMENTS.c.id.not_in(select(VOTES.c.assignment)))
            .order_by(ASSIGNMENTS.c.shown.is_(None), ASSIGNMENTS.c.place)
            .limit(1)
        )
        with self.engine.begin() as connection:
            row = connection.execute(open_ones).one_or_none()
            if row is None:
                return None
            if row.shown is None:
                this = ASSIGNMENTS.c.id == row.id
                connection.execute(update(ASSIGNMENTS).where(this).values(shown=_now()))
            sounds = select(RECORDINGS.c.role, RECORDINGS.c.id)
            mine = connection.execute(sounds.where(RECORDINGS.c.assignment == row.id))
            return Assignment(row.id, row.battle, row.swapped, {role: id for role, id in mine})

    def assignment(self, annotator: str, id: str) -> Assignment | None:
        """Return what an annotator was given under an id, voted or not."""
        query = select(ASSIGNMENTS).where(
            ASSIGNMENTS.c.id == id, ASSIGNMENTS.c.annotator == annotator
        )
        with self.engine.begin() as connection:
            row = connection.execute(query).one_or_none()
        return Assignment(row.id, row.battle, row.swapped, {}) if row else None

    def sound(self, id: str) -> Sound | None:
        """Return what an id of a recording stands for."""
        query = (
            select(ASSIGNMENTS.c.battle, ASSIGNMENTS.c.swapped, RECORDINGS.c.role)
            .join_from(RECORDINGS, ASSIGNMENTS)
            .where(RECORDINGS.c.id == id)
        )
        with self.engine.begin() as connection:
            row = connection.execute(query).one_or_none()
        return Sound(row.battle, row.swapped, row.role) if row else None

    def record(
        self,
        assignment: str,
        reply: str,
        prompt_sha256: str,
        winners: Mapping[Criterion, Winner] | None = None,
        skipped: str | None = None,
    ) -> bool:
        """Keep a vote, or why there is none; False when there was one before, which stays.

        It is on disk when this returns.
        """
        row = {
            "assignment": assignment,
            "winners": dict(winners) if winners else None,
            "skipped": skipped,
            "reply": reply,
            "prompt_sha256": prompt_sha256,
            "time": _now(),
            "version": __version__,
        }
        with self.engine.begin() as connection:
            added = connection.execute(insert(VOTES).values(row).on_conflict_do_nothing())
            return bool(added.rowcount)

    def battles(self) -> dict[str, Judgement]:
        """Return key → draft of every battle."""
        with self.engine.begin() as connection:
            rows = connection.execute(select(BATTLES.c.key, BATTLES.c.draft)).all()
        return {key: Judgement.from_json(draft) for key, draft in rows}

    def _setting(self, name: str) -> str:
        query = select(SETTINGS.c.value).where(SETTINGS.c.name == name)
        with self.engine.begin() as connection:
            return connection.scalar(query) or ""


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


def _hash(token: str) -> str:
    # Tokens are random enough for a plain hash; a slow one guards what people think of.
    return hashlib.sha256(token.encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
