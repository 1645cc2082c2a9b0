"""The same recordings: what is compared, what counts once, and how that is told."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from arena_judgements import judged

from s2s_tasks.arena.agreement.measures import agreement, merged, reliability
from s2s_tasks.arena.agreement.report import report
from s2s_tasks.arena.agreement.sides import split
from s2s_tasks.arena.log import append
from s2s_tasks.arena.records import Judgement
from s2s_tasks.arena.verdicts import read_verdicts


def verdicts(judge: str, count: int = 9, *, all_alike: bool = False) -> list[Judgement]:
    return [
        judged(
            *("a", "b", "second" if number % 2 and not all_alike else "first"),
            instruction=f"q{number}",
            judge=judge,
        )
        for number in range(count)
    ]


def anew(judgement: Judgement) -> Judgement:
    return replace(judgement, answers={**judgement.answers, "second": "made anew"})


def imported(judgement: Judgement) -> Judgement:
    return replace(judgement, answers=dict.fromkeys(judgement.answers, ""))


def turned(judgement: Judgement) -> Judgement:
    """Return the same verdict, given after hearing the other answer first."""
    battle, heard = judgement.battle, judgement.answers
    return replace(
        judgement,
        battle=replace(battle, first=battle.second, second=battle.first),
        answers={**heard, "first": heard["second"], "second": heard["first"]},
        winners={k: "second" if v == "first" else "first" for k, v in judgement.winners.items()},
    )


def units(judge: list[Judgement], people: list[Judgement]) -> int:
    sides = split([*judge, *people], ["anna"])
    return agreement(merged(sides.judges["ears"], "overall"), merged(sides.people, "overall")).units


def test_only_the_same_recordings_are_compared() -> None:
    judge, people = verdicts("ears"), verdicts("anna")
    assert units(judge, list(map(turned, people))) == 9
    assert units(judge, [*map(anew, people[:4]), *people[4:]]) == 5
    told = report(split([*judge, *map(anew, people[:4]), *people[4:]], ["anna"])).warnings
    assert any("ears: 4 battles are on other recordings than people heard" in t for t in told)
    assert not any(
        "other recordings" in t for t in report(split([*judge, *people], ["anna"])).warnings
    )


def test_lines_that_do_not_tell_their_recordings_are_compared_by_names() -> None:
    judge, people = verdicts("ears"), verdicts("anna")
    assert units(judge, list(map(imported, people))) == 9
    assert units(list(map(imported, judge)), list(map(turned, people))) == 9
    assert units([*judge, *map(anew, judge)], list(map(imported, people))) == 9
    among = split([*map(imported, verdicts("anna")), *verdicts("ben")], ["anna", "ben"]).people
    assert reliability(among, "overall").units == 9


# What counts once


def test_a_log_that_is_given_twice_counts_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    rows = verdicts("ears")
    append(path, *rows, *map(turned, rows), *map(anew, rows[:2]), *verdicts("anna"))
    kept = list(read_verdicts([path]))
    assert len(kept) == 9 + 9 + 2 + 9 and not caplog.text
    with caplog.at_level(logging.WARNING):
        assert list(read_verdicts([path, path])) == kept
    assert "29 verdicts are left out: the same judge had judged the same rec" in caplog.text


def test_what_two_runs_asked_counts_once_by_the_first_verdict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    first, second = judged("a", "b", "first"), replace(judged("a", "b", "second"), time="later")
    append(path, first, second)
    assert list(read_verdicts([path])) == [first]
    assert "1 verdicts are left out" in caplog.text


def test_votes_of_several_people_under_one_name_all_count(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    votes = [imported(replace(judged("a", "b"), reply=reply)) for reply in ("1", "2", "2")]
    append(path, *votes)
    assert list(read_verdicts([path])) == votes
    again = tmp_path / "again.jsonl"
    append(again, *votes[1:], imported(replace(judged("a", "b"), reply="3")))
    assert [vote.reply for vote in read_verdicts([path, again])] == ["1", "2", "2", "3"]


# How agreement is told


def test_what_is_not_defined_is_said() -> None:
    rows = [*verdicts("ears", all_alike=True), *verdicts("anna", all_alike=True)]
    rows += verdicts("ben", all_alike=True)
    rows = [replace(row, battle=replace(row.battle, instruction="q")) for row in rows[::9]]
    told = report(split(rows, ["anna", "ben"])).summary
    assert "both decide; kappa is not defined: both always say the same." in told[0]
    assert "alpha is not defined: all verdicts are the same." in told[1]
    assert "nan" not in " ".join(told)


def test_an_interval_that_is_not_known_is_left_out() -> None:
    rows = [*verdicts("ears"), *verdicts("anna")]
    told = report(split(rows, ["anna"])).summary
    assert told == [
        "ears agrees with people on 100.0 % of 9 battles that both decide; kappa 1.000."
    ]


def test_people_who_share_no_battle_are_not_counted() -> None:
    rows = [*verdicts("anna"), *verdicts("ben")]
    rows.append(judged("x", "y", instruction="r", judge="cleo"))
    assert reliability(rows, "overall").annotators == 2
    told = report(split([*rows, judged("a", "b", judge="ears")], ["anna", "ben", "cleo"])).summary
    assert told[-1].startswith("2 people give the same overall verdict")


def test_a_name_with_brackets_is_a_name() -> None:
    rows = [*verdicts("anna [phone]"), *verdicts("anna p"), *verdicts("ears")]
    assert {row.judge for row in split(rows, ["anna [phone]"]).people} == {"anna [phone]"}
    assert {row.judge for row in split(rows, ["anna [op]"]).people} == {"anna p"}
