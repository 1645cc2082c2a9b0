"""The voting page's store: what is kept, and what comes back of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from arena_page import prepared

from s2s_tasks.arena.page.counts import board
from s2s_tasks.arena.page.preparing import by_system, prepare
from s2s_tasks.arena.page.rows import Progress
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import drafts, votes
from s2s_tasks.arena.page.work import unordered
from s2s_tasks.arena.records import CRITERIA, Answer, Battle, Instruction, Judgement
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError


@pytest.fixture
def instructions(recordings: list[Audio]) -> dict[str, Instruction]:
    return {
        id: Instruction(id, recordings[0], f"Do {id}.", "en", "social", "emotion", 4)
        for id in ("q1", "q2", "q3", "q4")
    }


@pytest.fixture
def answers(
    recordings: list[Audio], instructions: dict[str, Instruction]
) -> dict[str, dict[str, Answer]]:
    return by_system(
        Answer(system, id, "ok", audio)
        for system, audio in zip(("one", "two"), recordings[1:], strict=True)
        for id in instructions
    )


@pytest.fixture
def battles(instructions: dict[str, Instruction]) -> list[Battle]:
    return [Battle(id, "one", "two", 0.5, 7) for id in instructions]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "votes.sqlite")
    yield store
    store.close()


@pytest.fixture
def links(
    store: Store,
    instructions: dict[str, Instruction],
    answers: dict[str, dict[str, Answer]],
    battles: list[Battle],
) -> dict[str, str]:
    return prepared(store, instructions.values(), answers, battles, ["anna", "ben"], share=0.5)


def invited(store: Store, *names: str, **options: Any) -> dict[str, str]:
    with store.invite(names, **options) as links:
        return links


def test_a_pair_in_both_orders_is_one_battle(
    instructions: dict[str, Instruction], answers: dict[str, dict[str, Answer]]
) -> None:
    battle = Battle("q1", "one", "two", 0.5, 7)
    turned = replace(battle, first="two", second="one")
    probe = replace(battle, second="one", probe="itself")
    found = drafts([battle, turned, probe], instructions, answers)
    assert [draft.battle for draft in found.values()] == [battle, probe]
    assert unordered(battle) == unordered(turned) != unordered(probe)


def test_an_answer_without_sound_is_no_battle(
    instructions: dict[str, Instruction],
    answers: dict[str, dict[str, Answer]],
    battles: list[Battle],
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers["two"]["q2"] = replace(answers["two"]["q2"], status="text_only", audio=None)
    del answers["two"]["q3"]
    found = drafts(battles, instructions, answers)
    assert [draft.battle.instruction for draft in found.values()] == ["q1", "q4"]
    assert "2 battles are left out" in caplog.text


def test_a_battle_of_an_unknown_instruction_is_refused(
    instructions: dict[str, Instruction], answers: dict[str, dict[str, Answer]]
) -> None:
    with pytest.raises(S2STasksError, match="q9"):
        drafts([Battle("q9", "one", "two", 0.5, 7)], instructions, answers)


def test_links_are_shown_once_and_kept_as_hashes(
    store: Store, links: dict[str, str], tmp_path: Path
) -> None:
    assert set(links) == {"anna", "ben", "the leaderboard"}
    tokens = {name: path.strip("/").rsplit("/", 1)[1] for name, path in links.items()}
    written = b"".join(path.read_bytes() for path in tmp_path.glob("votes.sqlite*"))
    assert b"anna" in written
    assert not any(token.encode() in written for token in tokens.values())
    assert store.annotator(tokens["anna"]) == "anna"
    assert store.annotator(tokens["the leaderboard"]) is None
    assert store.opens_leaderboard(tokens["the leaderboard"])
    assert not store.opens_leaderboard(tokens["anna"])
    assert invited(store, "anna", "ben") == {}
    renewed = invited(store, renew=["anna"])
    assert set(renewed) == {"anna", "the leaderboard"}
    assert store.annotator(tokens["anna"]) is None
    assert not store.opens_leaderboard(tokens["the leaderboard"])
    assert store.annotator(renewed["anna"].rsplit("/", 1)[1]) == "anna"


def test_someone_must_vote_and_be_known(store: Store) -> None:
    with pytest.raises(S2STasksError, match="--annotators"):
        prepare(store, [], {}, [], [])
    with pytest.raises(S2STasksError, match="carl"):
        invited(store, "anna", renew=["carl"])
    with pytest.raises(S2STasksError, match="link of its own"):
        invited(store, "anna", "the leaderboard")
    assert store.annotators() == []


def test_a_vote_comes_back_as_it_was_heard(
    store: Store, links: dict[str, str], recordings: list[Audio], tmp_path: Path
) -> None:
    sha256 = dict(zip(("instruction", "one", "two"), (a.sha256 for a in recordings), strict=True))
    seconds = {"one": recordings[1].seconds, "two": recordings[2].seconds}
    winners = dict(zip(CRITERIA, ("first", "second", "tie", "both_bad"), strict=True))
    orders: dict[str, bool] = {}
    for name in ("anna", "ben"):
        while assignment := store.next(name):
            orders[f"{name} {assignment.battle}"] = assignment.swapped
            assert store.record(assignment.id, "said", "asked", winners=winners)  # type: ignore[arg-type]
    assert set(orders.values()) == {True, False}
    found = list(votes(tmp_path / "votes.sqlite"))
    assert len(found) == 6  # four battles, two of them twice
    for judgement in found:
        battle = judgement.battle
        swapped = orders[f"{judgement.judge} {unordered(battle)}"]
        assert (battle.first, battle.second) == (("two", "one") if swapped else ("one", "two"))
        assert judgement.winners == winners
        assert judgement.answers == {
            "instruction": sha256["instruction"],
            "first": sha256[battle.first],
            "second": sha256[battle.second],
        }
        assert judgement.features == {
            "first_seconds": seconds[battle.first],
            "second_seconds": seconds[battle.second],
        }
        assert (judgement.level, judgement.reply, judgement.prompt_sha256) == (4, "said", "asked")
        assert judgement == Judgement.from_json(json.loads(json.dumps(judgement.to_json())))
    assert [judgement.time for judgement in found] == sorted(judgement.time for judgement in found)


def test_of_many_votes_on_one_battle_the_first_stays(
    store: Store, links: dict[str, str], tmp_path: Path
) -> None:
    assignment = store.next("anna")
    assert assignment is not None

    def vote(number: int) -> bool:
        winners = dict.fromkeys(CRITERIA, "first" if number % 2 else "second")
        return store.record(assignment.id, str(number), "", winners=winners)  # type: ignore[arg-type]

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(vote, range(32)))
    assert sum(added) == 1
    (kept,) = votes(tmp_path / "votes.sqlite")
    assert kept.reply == str(added.index(True))


def test_of_many_corrections_at_once_the_first_stays(
    store: Store, links: dict[str, str], tmp_path: Path
) -> None:
    assignment = store.next("anna")
    assert assignment is not None
    assert store.last("anna") is None
    store.record(assignment.id, "vote", "", winners=dict.fromkeys(CRITERIA, "tie"))  # type: ignore[arg-type]

    def correct(number: int) -> bool:
        return store.record(assignment.id, str(number), "", skipped="other", revision=1)

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(correct, range(32)))
    assert sum(added) == 1
    last = store.last("anna")
    assert last is not None
    assert (last.assignment, last.skipped, last.winners) == (assignment, "other", {})
    assert (last.reply, last.revision) == (str(added.index(True)), 2)
    assert list(votes(tmp_path / "votes.sqlite")) == []
    assert store.progress("anna") == Progress(voted=0, skipped=1, assigned=3)

    winners = dict.fromkeys(CRITERIA, "first")
    assert not store.record(assignment.id, "late", "", winners=winners, revision=1)  # type: ignore[arg-type]
    assert not store.record(assignment.id, "early", "", winners=winners, revision=3)  # type: ignore[arg-type]
    assert store.record(assignment.id, "last", "", winners=winners, revision=2)  # type: ignore[arg-type]
    (vote,) = votes(tmp_path / "votes.sqlite")
    assert (vote.reply, vote.winners) == ("last", winners)


def test_the_last_is_the_last_in_order_and_not_by_the_clock(
    store: Store, links: dict[str, str]
) -> None:
    for time in ("2030", "2020"):
        assignment = store.next("anna")
        assert assignment is not None
        store.record(assignment.id, time, "", skipped="other")
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE votes SET time = ? WHERE assignment = ?", (time, assignment.id)
            )
    last = store.last("anna")
    assert last is not None and last.reply == "2020"


def test_annotators_vote_at_once(store: Store, links: dict[str, str]) -> None:
    def vote_all(name: str) -> None:
        while assignment := store.next(name):
            store.record(assignment.id, "", "", winners=dict.fromkeys(CRITERIA, "tie"))  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(vote_all, ("anna", "ben")))
    assert {name: store.progress(name) for name in ("anna", "ben")} == {
        "anna": Progress(voted=3, skipped=0, assigned=3),
        "ben": Progress(voted=3, skipped=0, assigned=3),
    }


def test_what_was_looked_at_stays_when_work_is_split_anew(
    store: Store, links: dict[str, str], tmp_path: Path
) -> None:
    before = store.next("anna")
    assert before is not None
    invited(store, "anna", "ben", "carl", share=0.0)
    assert store.next("anna") == before == store.next("anna")
    assigned = [store.progress(name).assigned for name in ("anna", "ben", "carl")]
    assert sum(assigned) == 4 and max(assigned) == 2

    store.record(before.id, "", "", skipped="language")
    invited(store, "ben", share=0.0)  # anna went home, and carl
    assert store.progress("anna") == Progress(voted=0, skipped=1, assigned=1)
    assert store.progress("ben") == Progress(voted=0, skipped=0, assigned=4)
    assert store.next("anna") is None
    assert list(votes(tmp_path / "votes.sqlite")) == []  # to skip is no judgement


def test_an_assignment_and_a_recording_are_found_by_their_ids_alone(
    store: Store, links: dict[str, str]
) -> None:
    assignment = store.next("anna")
    assert assignment is not None
    assert store.assignment("ben", assignment.id) is None
    ids = [*assignment.sounds.values()]
    other = store.next("ben")
    assert other is not None
    assert len({*ids, *other.sounds.values()}) == 6
    for role, id in assignment.sounds.items():
        found = store.sound(id)
        assert found is not None
        assert (found.battle, found.role) == (assignment.battle, role)
    assert store.sound("../votes.sqlite") is None


def test_the_board_counts_what_was_decided(
    store: Store, links: dict[str, str], tmp_path: Path
) -> None:
    outcomes = iter(("first", "second", "tie", "both_bad", "first", "first"))
    expected: Counter[str] = Counter()
    for name in ("anna", "ben"):
        while assignment := store.next(name):
            winner = next(outcomes)
            store.record(assignment.id, "", "", winners=dict.fromkeys(CRITERIA, winner))  # type: ignore[arg-type]
            if winner in ("first", "second"):
                expected["two" if (winner == "first") == assignment.swapped else "one"] += 1
    judgements = list(votes(tmp_path / "votes.sqlite"))
    probe = replace(judgements[0], battle=replace(judgements[0].battle, probe="itself"))
    document = board([*judgements, probe], {"anna": store.progress("anna")})
    table = document.sections[0].blocks[0].frame.set_index("System")  # type: ignore[union-attr]
    assert dict(table["Wins"]) == {"one": expected["one"], "two": expected["two"]}
    assert (table["Votes"] == 6).all() and (table["Ties"] == 1).all()
    assert (table["Wins"] + table["Losses"] == 4).all()
    assert (table["Low"] < table["Win rate"]).any()
