"""The SQLite file: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    ForeignKey,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
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
VOTES = Table(
    "votes",
    METADATA,
    Column("assignment", ForeignKey("assignments.id"), primary_key=True),
    Column("winners", JSON(none_as_null=True)),
    Column("skipped", String),
    Column("reply", String, nullable=False),
    Column("prompt_sha256", String, nullable=False),
    Column("time", String, nullable=False),
    Column("version", String, nullable=False),
)
"""Winners, or why it was skipped; the key makes a second vote impossible."""


def open_database(path: Path, *, create: bool) -> Engine:
    """Return an engine whose transactions are on disk before they return.

    Raises:
        S2STasksError: when the file is missing and not to be made, or is not a SQLite file.
    """
    if not create and not path.is_file():
        raise S2STasksError(f"{path}: no such file; name one that `s2s-tasks arena serve` wrote")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": WAIT})
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    try:
        with engine.begin() as connection:
            METADATA.create_all(connection)
    except DatabaseError as error:
        raise S2STasksError(
            f"{path}: cannot be used for votes ({error.orig}); name a file that "
            "`s2s-tasks arena serve` wrote, or a new one in a folder that can be written to"
        ) from error
    return engine


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    # SQLAlchemy begins transactions, not the driver, which would let two of them start as readers.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
