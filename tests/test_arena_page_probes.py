"""Probes among the battles that people judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from arena_page import SYSTEMS, Site, World, build, form, is_louder, prepared, serving

from s2s_tasks.arena.contest.probes import NAMES
from s2s_tasks.arena.page.app import app
from s2s_tasks.arena.page.probing import told
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import votes
from s2s_tasks.arena.ratings.outcomes import select
from s2s_tasks.arena.records import Battle, Judgement
from s2s_tasks.errors import S2STasksError

COUNT = 6
Signal = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("world"), COUNT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "votes.sqlite")
    yield store
    store.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """As many probes as battles, for one annotator."""
    with serving(tmp_path_factory.mktemp("site"), ["anna"], COUNT, probes=1.0) as site:
        yield site


def filled(store: Store, world: World, names: list[str], **options: float) -> list[Battle]:
    """Prepare a store, and return its probes."""
    prepared(store, world.instructions, world.answers, world.battles, names, **options)
    battles = [draft.battle for draft in store.battles().values()]
    assert sum(not battle.probe for battle in battles) == COUNT
    return [battle for battle in battles if battle.probe]


def dealt(store: Store) -> Counter[str]:
    """Return how many probes each annotator has."""
    with store.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT annotator, battle FROM assignments").all()
    battles = store.battles()
    return Counter(name for name, key in rows if battles[key].battle.probe)


def test_a_share_is_drawn_and_everyone_has_as_many(store: Store, world: World) -> None:
    probes = filled(store, world, ["anna", "ben"], probes=2 / 3, share=0.0)
    assert Counter(battle.probe for battle in probes) == dict.fromkeys(
        ("itself", "silence", "noise", "other"), 1
    )
    assert dealt(store) == {"anna": 2, "ben": 2}


def test_everyone_has_one_at_least_and_none_where_none_is_wanted(
    store: Store, world: World
) -> None:
    assert filled(store, world, ["anna", "ben", "carl"], probes=0.0) == []
    filled(store, world, ["anna", "ben", "carl"], probes=0.01)
    assert dealt(store) == {"anna": 1, "ben": 1, "carl": 1}


def test_started_again_it_draws_the_same_and_only_what_is_missing(
    store: Store, world: World, tmp_path: Path
) -> None:
    few = filled(store, world, ["anna"], probes=0.5)
    assert filled(store, world, ["anna"], probes=0.5) == few
    assert filled(store, world, ["anna"], probes=0.0) == few
    more = filled(store, world, ["anna"], probes=1.0)
    assert len(few) == 3 and len(more) == COUNT and set(few) < set(more)
    other = Store.open(tmp_path / "other.sqlite")
    assert set(filled(other, world, ["ben"], probes=1.0)) == set(more)
    other.close()


def test_of_those_who_draw_no_recording_stays(store: Store, world: World, tmp_path: Path) -> None:
    left = tmp_path / "votes.sqlite-probes"
    left.mkdir()
    (left / "noise-1.wav").write_bytes(b"what somebody who was killed left")
    filled(store, world, ["anna"], probes=1.0)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".sqlite", ".sqlite-wal", ".sqlite-shm"}


def test_nobody_gets_an_instruction_twice_who_need_not(store: Store, world: World) -> None:
    probes = filled(store, world, ["anna", "ben"], probes=2 / 3)
    with store.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT annotator, battle FROM assignments").all()
    dealt = [(name, store.battles()[key].battle) for name, key in rows]
    anna = {battle.instruction for name, battle in dealt if name == "anna" and not battle.probe}
    unknown = sum(battle.instruction not in anna for battle in probes)
    twice = len(dealt) - len({(name, battle.instruction) for name, battle in dealt})
    # Both have two probes, so that ben gets one on what he knows.
    assert (unknown, twice) == (3, 1)


def test_probes_of_another_judge_are_not_taken_over(store: Store, world: World) -> None:
    battle = world.battles[0]
    theirs = [
        replace(battle, second=battle.first, probe="itself"),
        replace(battle, second=NAMES["silence"], probe="silence"),
    ]
    prepared(store, world.instructions, world.answers, [*theirs, battle], ["anna"])
    assert [draft.battle for draft in store.battles().values()] == [battle]


def test_nothing_but_its_sound_tells_a_probe(site: Site) -> None:
    link = site.links["anna"]
    pages: set[str] = set()
    headers: set[str] = set()
    files: list[bytes] = []
    kinds: Counter[str | None] = Counter()
    while b"Battle" in (html := site.ask(link)[2]):
        pages.add(_without_what_varies(html.decode()))
        assignment = site.store.next("anna")
        assert assignment is not None
        signals: dict[str, Signal] = {}
        for role, id in assignment.sounds.items():
            _, got, data = site.ask(f"/sound/{id}")
            headers.add(str({**got, "date": "", "content-length": ""}))
            files.append(data)
            signals[role] = soundfile.read(BytesIO(data))[0]
        if assignment.swapped:
            signals["first"], signals["second"] = signals["second"], signals["first"]
        battle = site.store.battles()[assignment.battle].battle
        _check(battle, signals, site.world)
        kinds[battle.probe] += 1
        site.ask(link, form(site, link))
    assert kinds == {None: 6, "itself": 2, "silence": 2, "noise": 1, "other": 1}
    assert len(headers) == 1 and len(pages) == 2  # the first has no battle to go back to
    assert len(set(files)) == len(files)  # an answer that is heard twice is two files
    # Answers all last as long here: only what is added to each tells files apart by size.
    assert len(set(map(len, files))) > len(files) / 2


def _without_what_varies(html: str) -> str:
    html = re.sub(r"<blockquote.*?</blockquote>", "", html, flags=re.DOTALL)
    html = re.sub(r'(/sound/|"assignment" value="|"signature" value=")[^"]*', "", html)
    return re.sub(r"\d+", "", html)


def _check(battle: Battle, signals: dict[str, Signal], world: World) -> None:
    for role, name in (("first", battle.first), ("second", battle.second)):
        signal = signals[role]
        if name == NAMES["silence"]:
            assert not signal.any()
        elif name == NAMES["noise"]:
            assert signal[:4000].std() > 0.01
        else:
            system = name
            ids = [battle.instruction]
            if name == NAMES["other"]:
                system = next(s for s in (battle.first, battle.second) if s in SYSTEMS)
                ids = [one.id for one in world.instructions if one.id != battle.instruction]
            sounds = [world.answers[system][id].audio for id in ids]
            loaded = [one.load(16000) for one in sounds if one]
            assert any(is_louder(signal, one) for one in loaded)


def test_who_fails_probes_is_told_and_no_system_is_rated_by_them(
    store: Store, world: World, tmp_path: Path
) -> None:
    probes = filled(store, world, ["anna", "ben"], probes=1.0, share=1.0)
    assert told(votes(tmp_path / "votes.sqlite")) == []
    battles = store.battles()
    for name in ("anna", "ben"):
        while assignment := store.next(name):
            battle = battles[assignment.battle].battle
            sides = [battle.first, battle.second]
            if assignment.swapped:
                sides.reverse()
            good = "second" if sides[0] in NAMES.values() else "first"
            wrong = "first" if good == "second" else "second"
            winner = "tie" if battle.probe == "itself" else good if name == "anna" else wrong
            store.record(assignment.id, "", "", winners={"overall": winner})  # type: ignore[dict-item]
    found = list(votes(tmp_path / "votes.sqlite"))
    lines = told(found)
    assert {line.split(":")[0] for line in lines} == {"anna", "ben"}
    wrong = [line for line in lines if "failed 0 of" not in line]
    assert wrong and all(line.startswith("ben: ") and "itself" not in line for line in wrong)
    selection = select(found, "overall")
    assert selection.probes == len(probes)
    assert {name for one in selection.judgements for name in _names(one)} == set(SYSTEMS)


def _names(judgement: Judgement) -> tuple[str, str]:
    return judgement.battle.first, judgement.battle.second


def test_the_owner_sees_who_failed(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 4, probes=1.0) as site:
        link, board = site.links["anna"], site.links["the leaderboard"]
        assert b'id="probes"' not in site.ask(board)[2]
        while b"Battle" in site.ask(link)[2]:
            site.ask(link, form(site, link, overall="tie"))
        html = site.ask(board)[2].decode()
        assert "Votes: 8, 4 of them on probes; annotators: 1;" in html
        assert ">Probes</h2>" in html
        found = re.search(r"probe[a-z-]*\.csv", html)
        assert found
        rows = site.ask(board + found[0])[2].decode().splitlines()
        assert len(rows) == 5 and all(row.startswith("anna,") for row in rows[1:])
        systems = site.ask(f"{board}votes-systems.csv")[2].decode()
        assert "<" not in systems


def test_probes_are_heard_again_after_a_start(site: Site) -> None:
    app(site.world.instructions, site.world.answers, site.store)
    with site.store.engine.begin() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM sounds").all()
        connection.exec_driver_sql("DELETE FROM sounds")
    with pytest.raises(S2STasksError, match=r"<silence>|<noise>"):
        app(site.world.instructions, site.world.answers, site.store)
    site.store.add_sounds({row.sha256: row.data for row in kept})
