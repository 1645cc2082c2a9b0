"""The voting page's SQLite file: which is opened, and what reading leaves as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from arena_judgements import judged

from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import votes
from s2s_tasks.arena.page.work import unordered
from s2s_tasks.arena.records import CRITERIA
from s2s_tasks.arena.verdicts import read_verdicts
from s2s_tasks.errors import S2STasksError

WINNERS = dict.fromkeys(CRITERIA, "first")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """With a vote of anna's."""
    store = Store.open(tmp_path / "votes.sqlite")
    vote(store)
    yield store
    store.close()


def vote(store: Store) -> str:
    """Let anna vote on a battle; its assignment."""
    draft = judged("one", "two", None, judge="")
    store.add_battles({unordered(draft.battle): draft})
    with store.invite(["anna"]):
        pass  # nobody opens the link
    assignment = store.next("anna")
    assert assignment is not None
    assert store.record(assignment.id, "vote", "", winners=WINNERS)  # type: ignore[arg-type]
    return assignment.id


def test_links_that_could_not_be_shown_are_not_kept(store: Store) -> None:
    more = judged("one", "three", None, judge="")
    store.add_battles({unordered(more.battle): more})
    with store.invite(["anna", "ben"], 1.0) as links:
        token = links["ben"].removeprefix("/vote/")
    before = [store.progress(name) for name in ("anna", "ben")]
    with pytest.raises(BrokenPipeError), store.invite(["anna", "carl"], 0.0, ["ben"]) as new:
        raise BrokenPipeError
    assert set(new) == {"carl", "ben", "the leaderboard"}
    assert store.annotators() == ["anna", "ben"]
    assert store.annotator(token) == "ben"
    assert [store.progress(name) for name in ("anna", "ben")] == before


def content(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_reading_leaves_a_file_of_somebody_else_as_it_is(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = content(tmp_path)
    for read in (lambda: list(read_verdicts([path])), lambda: Store.open(path)):
        with pytest.raises(S2STasksError, match="no such table: votes"):
            read()
    assert content(tmp_path) == before


def test_reading_leaves_an_older_file_as_it_is(store: Store, tmp_path: Path) -> None:
    with store.engine.begin() as connection:
        for table in ("corrected", "sounds"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    store.close()
    path = tmp_path / "votes.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    before = content(tmp_path)
    (one,) = read_verdicts([path])
    assert one.winners == WINNERS
    assert content(tmp_path) == before
    again = Store.open(path)  # the page makes what it lacks
    said = again.last("anna")
    assert said is not None
    assert again.record(said.assignment.id, "corrected", "", winners=WINNERS, revision=1)  # type: ignore[arg-type]
    (one,) = votes(path)
    assert one.reply == "corrected"
    again.close()


@pytest.mark.parametrize("name", ["votes?1.sqlite", "50%41#.sqlite", "file:x?mode=ro", ":memory:"])
def test_a_file_has_the_name_that_it_was_given(tmp_path: Path, name: str) -> None:
    store = Store.open(tmp_path / name)
    vote(store)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert len(list(read_verdicts([tmp_path / name]))) == 1


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to be looked at " * 9)
    with pytest.raises(S2STasksError, match=r"notes\.txt"):
        Store.open(path)
    with pytest.raises(S2STasksError, match="no such file"):
        next(votes(tmp_path / "missing.sqlite"))
    with pytest.raises(S2STasksError, match="written to"):
        Store.open(tmp_path / "no folder" / "votes.sqlite")
