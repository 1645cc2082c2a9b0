"""What is kept between requests: links, who listens to what, and votes."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select, text, update
from sqlalchemy.dialects.sqlite import insert

from s2s_tasks import __version__
from s2s_tasks.arena.page.dealing import deal_anew
from s2s_tasks.arena.page.links import LEADERBOARD, add_links, hashed
from s2s_tasks.arena.page.rows import Assignment, Progress, Said, Sound
from s2s_tasks.arena.page.tables import (
    ANNOTATORS,
    ASSIGNMENTS,
    BATTLES,
    CORRECTED,
    RECORDINGS,
    SETTINGS,
    SOUNDS,
    VOTES,
    open_database,
)
from s2s_tasks.arena.page.work import DOUBLE
from s2s_tasks.arena.records import Criterion, Judgement, Winner


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
        engine = open_database(path)
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

    def add_sounds(self, sounds: Mapping[str, bytes]) -> None:
        """Keep recordings that are no system's, by their SHA-256."""
        rows = [{"sha256": sha256, "data": data} for sha256, data in sounds.items()]
        if rows:
            with self.engine.begin() as connection:
                connection.execute(insert(SOUNDS).on_conflict_do_nothing(), rows)

    @contextmanager
    def invite(
        self, names: Sequence[str] = (), share: float = DOUBLE, renew: Sequence[str] = ()
    ) -> Iterator[dict[str, str]]:
        """Split what nobody has looked at between annotators; what was looked at stays.

        Gives the links that are new, as whom each is for → its path. Show them inside the context:
        only hashes are kept, and nothing is kept of a context that is left by an exception.

        Args:
            names: who shares the work; all that are known by default. Others keep their votes.
            share: of the battles that two annotators judge, in [0, 1].
            renew: annotators whose links are made anew, and the leaderboard's then, too; the old
                ones end.

        Raises:
            S2STasksError: when there is nobody by a name, or a name cannot be had.
        """
        with self.engine.begin() as connection:
            links = add_links(connection, names, renew)
            deal_anew(connection, names, share)
            yield links

    # While they vote

    def annotator(self, token: str) -> str | None:
        """Return whose link a token is."""
        query = select(ANNOTATORS.c.name).where(ANNOTATORS.c.token == hashed(token))
        with self.engine.begin() as connection:
            return connection.scalar(query)

    def opens_leaderboard(self, token: str) -> bool:
        """Tell whether a token is that of the leaderboard's link."""
        return hmac.compare_digest(self._setting(LEADERBOARD), hashed(token))

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
            return _assignment(connection, row)

    def last(self, annotator: str) -> Said | None:
        """Return what an annotator voted on or skipped last, whether or not it was changed."""
        query = (
            select(VOTES, ASSIGNMENTS)
            .join_from(VOTES, ASSIGNMENTS)
            .where(ASSIGNMENTS.c.annotator == annotator)
            .order_by(text("votes.rowid DESC"))  # clocks may go back
            .limit(1)
        )
        with self.engine.begin() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            assignment = _assignment(connection, row)
            revision = _revision(connection, row.id)
        return Said(assignment, row.winners or {}, row.skipped, row.reply, revision)

    def assignment(self, annotator: str, id: str) -> Assignment | None:
        """Return what an annotator was given under an id, voted or not."""
        query = select(ASSIGNMENTS).where(
            ASSIGNMENTS.c.id == id, ASSIGNMENTS.c.annotator == annotator
        )
        with self.engine.begin() as connection:
            row = connection.execute(query).one_or_none()
            return _assignment(connection, row) if row else None

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
        *,
        revision: int = 0,
    ) -> bool:
        """Keep a vote, or why there is none; it is on disk when this returns.

        Args:
            assignment: which battle.
            reply: what was sent.
            prompt_sha256: of what was asked.
            winners: the vote.
            skipped: or why there is none.
            revision: how often it was said before, as the annotator knows it. What was said then
                counts no more.

        Returns:
            Whether it counts; it does not where something else was said meanwhile, which stays.
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
        mine = VOTES.c.assignment == assignment
        with self.engine.begin() as connection:
            if _revision(connection, assignment) != revision:
                return False
            if not revision:
                connection.execute(insert(VOTES).values(row))
                return True
            before = connection.execute(select(VOTES).where(mine)).mappings().one()
            connection.execute(insert(CORRECTED).values(**before, revision=revision - 1))
            connection.execute(update(VOTES).where(mine).values(row))
            return True

    def battles(self) -> dict[str, Judgement]:
        """Return key → draft of every battle."""
        with self.engine.begin() as connection:
            rows = connection.execute(select(BATTLES.c.key, BATTLES.c.draft)).all()
        return {key: Judgement.from_json(draft) for key, draft in rows}

    def sounds(self) -> set[str]:
        """Return the SHA-256 of the recordings that are no system's."""
        with self.engine.begin() as connection:
            return set(connection.scalars(select(SOUNDS.c.sha256)))

    def made(self, sha256: str) -> bytes | None:
        """Return a recording that is no system's, encoded."""
        query = select(SOUNDS.c.data).where(SOUNDS.c.sha256 == sha256)
        with self.engine.begin() as connection:
            return connection.scalar(query)

    def _setting(self, name: str) -> str:
        query = select(SETTINGS.c.value).where(SETTINGS.c.name == name)
        with self.engine.begin() as connection:
            return connection.scalar(query) or ""


def _assignment(connection: Connection, row: Any) -> Assignment:
    sounds = select(RECORDINGS.c.role, RECORDINGS.c.id).where(RECORDINGS.c.assignment == row.id)
    given = {role: id for role, id in connection.execute(sounds)}
    return Assignment(row.id, row.battle, row.swapped, given)


def _revision(connection: Connection, assignment: str) -> int:
    """Return how often a battle was voted on or skipped."""
    counts = (
        select(func.count()).select_from(table).where(table.c.assignment == assignment)
        for table in (VOTES, CORRECTED)
    )
    return sum(connection.scalar(count) or 0 for count in counts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
