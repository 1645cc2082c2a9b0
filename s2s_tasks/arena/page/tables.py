"""The SQLite file: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.exc import DatabaseError

from s2s_tasks.errors import S2STasksError

WAIT = 30.0
"""Seconds that a transaction waits for another one."""

METADATA = MetaData()
SETTINGS = Table(
    "settings",
    METADATA,
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
)
"""`form_key`, which signs forms; `leaderboard`, the hash of the token of its link."""
BATTLES = Table(
    "battles",
    METADATA,
    Column("key", String, primary_key=True),
    Column("draft", JSON, nullable=False),
)
"""By `work.unordered`. The draft is a judgement without a verdict."""
ANNOTATORS = Table(
    "annotators",
    METADATA,
    Column("name", String, primary_key=True),
    Column("token", String, nullable=False, unique=True),
)
"""The token as its SHA-256: whoever reads the file cannot vote."""
ASSIGNMENTS = Table(
    "assignments",
    METADATA,
    Column("id", String, primary_key=True),
    Column("annotator", ForeignKey("annotators.name"), nullable=False),
    Column("battle", ForeignKey("battles.key"), nullable=False),
    Column("swapped", Boolean, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("shown", String),
    UniqueConstraint("annotator", "battle"),
)
"""`swapped`: the draft's second answer is A. `shown`: when first, or never."""
RECORDINGS = Table(
    "recordings",
    METADATA,
    Column("id", String, primary_key=True),
    Column("assignment", ForeignKey("assignments.id", ondelete="CASCADE"), nullable=False),
    Column("role", String, nullable=False),
    UniqueConstraint("assignment", "role"),
)
"""The role is `instruction`, or `first` or `second` as heard. Ids are random, and new for each
assignment: one and the same recording cannot be told by them."""


def _said() -> list[Column[Any]]:
    return [
        Column("winners", JSON(none_as_null=True)),
        Column("skipped", String),
        Column("reply", String, nullable=False),
        Column("prompt_sha256", String, nullable=False),
        Column("time", String, nullable=False),
        Column("version", String, nullable=False),
    ]


VOTES = Table(
    "votes",
    METADATA,
    Column("assignment", ForeignKey("assignments.id"), primary_key=True),
    *_said(),
)
"""Winners, or why it was skipped; the key makes a second vote impossible. Rows are in the order in
which battles were first voted on."""
CORRECTED = Table(
    "corrected",
    METADATA,
    Column("assignment", ForeignKey("assignments.id"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    *_said(),
)
"""What votes were before they were changed, numbered from 0; it counts no more."""
SOUNDS = Table(
    "sounds",
    METADATA,
    Column("sha256", String, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)
"""Silence and noise of probes, encoded: another release of what draws noise may draw another."""


def open_database(path: Path) -> Engine:
    """Open a file for votes, or make it; transactions are on disk before they return.

    Raises:
        S2STasksError: when the file cannot be used, or is somebody else's.
    """
    with _looking(path) as connection:
        if inspect(connection).get_table_names():
            connection.execute(select(VOTES).limit(0))
    engine = _engine(path, _set_up)
    event.listen(engine, "begin", _begin)
    with _usable(path), engine.begin() as connection:
        METADATA.create_all(connection)  # those of an older file that it lacks
    return engine


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """Open a file of votes, and change nothing: it may be an older one, or somebody else's.

    Raises:
        S2STasksError: when the file is missing, or holds no votes.
    """
    if not path.is_file():
        raise S2STasksError(f"{path}: no such file; name one that `s2s-tasks arena serve` wrote")
    with _looking(path) as connection:
        connection.execute(select(VOTES).limit(0))
        yield connection


@contextmanager
def _looking(path: Path) -> Iterator[Connection]:
    engine = _engine(path, _look_only)
    try:
        with _usable(path), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise S2STasksError(
            f"{path}: cannot be used for votes ({error.orig}); name a file that "
            "`s2s-tasks arena serve` wrote, or a new one in a folder that can be written to"
        ) from error


def _engine(path: Path, set_up: Callable[[sqlite3.Connection, Any], None]) -> Engine:
    # No text: what follows a `?` in a name would be options.
    url = URL.create("sqlite", database=str(path.absolute()))
    engine = create_engine(url, connect_args={"timeout": WAIT})
    event.listen(engine, "connect", set_up)
    return engine


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    # SQLAlchemy begins transactions, not the driver, which would let two of them start as readers.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _look_only(connection: sqlite3.Connection, _record: Any) -> None:
    # Not `mode=ro`, which leaves files behind beside one that was written with WAL.
    connection.execute("PRAGMA query_only=ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
