"""Judges against people: kappa and alpha by hand and by libraries, orders, and merged votes."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path

import evalica
import numpy as np
import pandas as pd
import pytest
from arena_judgements import judged
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from s2s_tasks.arena.agreement import report as agreement_report
from s2s_tasks.arena.agreement.measures import (
    Side,
    agreement,
    consistency,
    first_rate,
    longer_rate,
    merge,
    merged,
    reliability,
    side,
    unit,
)
from s2s_tasks.arena.agreement.statistics import (
    alpha,
    alpha_interval,
    coincidences,
    kappa,
    kappa_interval,
    same_interval,
)
from s2s_tasks.arena.log import append
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.work import unordered
from s2s_tasks.arena.records import Judgement, Winner
from s2s_tasks.arena.verdicts import read_verdicts
from s2s_tasks.errors import S2STasksError

# Statistics


def test_the_published_kappa() -> None:
    # 179 of 216 agree; margins of 118 and 115 make a chance agreement of 0.503.
    table = np.array([[98.0, 20.0], [17.0, 81.0]])
    assert np.trace(table) / table.sum() == pytest.approx(0.8287, abs=5e-5)
    assert kappa(table) == pytest.approx(0.6553, abs=5e-5)
    one = np.repeat([0, 0, 1, 1], [98, 20, 17, 81])
    other = np.repeat([0, 1, 0, 1], [98, 20, 17, 81])
    found = kappa_interval(one, other, range(216))
    assert found.estimate == pytest.approx(0.6553, abs=5e-5)
    assert found.low < 0.6 < 0.7 < found.high
    # Fleiss, Cohen and Everitt 1969: the standard error is about 0.051.
    assert (found.high - found.low) / 3.92 == pytest.approx(0.0514, abs=0.003)


LABELS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=30)


@given(LABELS)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    found = kappa_interval(one, other, range(len(pairs)))
    if len(set(one) | set(other)) == 1:
        assert math.isnan(found.estimate)
        return
    assert found.estimate == pytest.approx(cohen_kappa_score(one, other))
    assert not found.low > found.high


def counts(observers: list[str]) -> np.ndarray:
    """Return how many observers give each unit each value, of units with two or more."""
    values = sorted(set("".join(observers)) - {"."})
    columns = list(zip(*observers, strict=True))
    table = np.array([[column.count(value) for value in values] for column in columns], float)
    return table[table.sum(axis=1) > 1]


@pytest.mark.parametrize(
    ("observers", "expected"),
    [
        (["0100000010", "1110010000"], 0.095),
        (["123321412...", "1233224125.3", ".3332342251.", "12332441251."], 0.743),
    ],
)
def test_alpha_of_krippendorffs_examples(observers: list[str], expected: float) -> None:
    # Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", B and C.
    assert alpha(coincidences(counts(observers)).sum(axis=0)) == pytest.approx(expected, abs=5e-4)


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, math.nan]), min_size=4, max_size=4),
        min_size=2,
        max_size=12,
    )
)
def test_alpha_is_that_of_evalica(units: list[list[float]]) -> None:
    table = np.array([[unit.count(value) for value in (0.0, 1.0, 2.0)] for unit in units], float)
    table = table[table.sum(axis=1) > 1]
    if not len(table):
        return
    found = alpha_interval(table, range(len(table)))
    expected = evalica.alpha(pd.DataFrame(units).T)
    if (table.sum(axis=0) > 0).sum() == 1:
        assert math.isnan(found.estimate)
        return
    assert found.estimate == pytest.approx(expected.alpha)
    disagreeing = expected.observed / table.sum()
    assert same_interval(table, range(len(table))).estimate == pytest.approx(1 - disagreeing)


def test_questions_asked_again_are_not_more_evidence() -> None:
    rng = np.random.default_rng(0)
    one = rng.integers(2, size=60)
    other = np.where(rng.random(60) < 0.8, one, 1 - one)
    once = kappa_interval(one, other, range(60))
    again = kappa_interval(np.tile(one, 3), np.tile(other, 3), [*range(60)] * 3)
    assert again == once


# Verdicts on the same answers


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        (["left"], "left"),
        (["left", "left", "right"], "left"),
        (["left", "right"], "tie"),
        (["left", "tie"], "tie"),
        (["right", "right", "tie", "left"], "right"),
        (["tie", "tie", "left"], "tie"),
        (["left", "left", "tie", "tie", "right"], "tie"),
    ],
)
def test_votes_are_merged(sides: list[Side], expected: Side) -> None:
    assert merge(sides) == expected


@given(st.sampled_from(["first", "second", "tie", "both_bad"]), st.text(max_size=5))
def test_a_verdict_does_not_depend_on_the_order(winner: Winner, instruction: str) -> None:
    swapped: dict[Winner, Winner] = {"first": "second", "second": "first"}
    one = judged("a", "b", winner, instruction=instruction)
    other = judged("b", "a", swapped.get(winner, winner), instruction=instruction)
    assert unit(one) == unit(other)
    assert side(one, "overall") == side(other, "overall")


def test_labels_are_about_balanced_whatever_systems_are_called() -> None:
    sides = [side(judged("a", "b", instruction=f"q{number}"), "overall") for number in range(400)]
    assert 160 < sides.count("left") < 240


def test_agreement_with_people() -> None:
    judge = [judged("a", "b", instruction=f"q{number}") for number in range(10)]
    people = [
        judged("b", "a", "second" if number < 6 else "first", instruction=f"q{number}", judge=name)
        for number in range(8)
        for name in ("ann", "bob")
    ]
    people += [judged("a", "b", "tie", instruction="q8"), judged("a", "b", None, instruction="q9")]
    found = agreement(merged(judge, "overall"), merged(people, "overall"))
    assert (found.units, found.raw.estimate) == (9, pytest.approx(6 / 9))
    decisive = agreement(merged(judge, "overall"), merged(people, "overall"), decisive=True)
    assert (decisive.units, decisive.raw.estimate) == (8, pytest.approx(6 / 8))
    assert decisive.raw.low < 0.75 < decisive.raw.high
    nothing = agreement(merged(judge, "quality"), merged(people, "quality"))
    assert nothing.units == 0
    assert math.isnan(nothing.kappa.estimate)


def test_consistency_when_orders_are_swapped() -> None:
    rows: list[Judgement] = []
    outcomes: list[tuple[Winner, Winner]] = [
        ("first", "second"),  # the same system
        ("second", "first"),
        ("tie", "both_bad"),
        ("first", "first"),  # the same place
        ("second", "second"),
        ("first", "first"),
        ("first", "tie"),
    ]
    for number, (one, other) in enumerate(outcomes):
        rows.append(judged("a", "b", one, instruction=f"q{number}"))
        rows.append(judged("b", "a", other, instruction=f"q{number}"))
    rows.append(judged("a", "b", instruction="once"))
    rows.append(judged("a", "a", "tie", instruction="q0", probe="itself"))
    found = consistency(rows, "overall")
    assert found.pairs == 7
    assert found.same.estimate == pytest.approx(3 / 7)
    assert found.first_in_both == pytest.approx(2 / 7)
    assert found.second_in_both == pytest.approx(1 / 7)
    assert first_rate(rows, "overall").estimate == pytest.approx(8 / 12)
    assert math.isnan(longer_rate(rows, "overall").estimate)


def test_preference_for_the_longer() -> None:
    rows = [
        judged("a", "b", winner, features={"first_seconds": one, "second_seconds": other})
        for winner, one, other in [
            ("first", 3.0, 2.0),
            ("second", 2.0, 3.0),
            ("second", 3.0, 2.0),
            ("first", 2.0, 2.0),
            ("tie", 1.0, 2.0),
        ]
    ]
    rows = [
        replace(row, battle=replace(row.battle, instruction=f"q{number}"))
        for number, row in enumerate(rows)
    ]
    assert longer_rate(rows, "overall").estimate == pytest.approx(2 / 3)


def test_annotators_among_each_other() -> None:
    rows = [
        judged("a", "b", winner, instruction=f"q{number}", judge=name)
        for number, winners in enumerate([("first", "first"), ("second", "first"), ("tie", "tie")])
        for name, winner in zip(("ann", "bob"), winners, strict=True)
    ]
    rows.append(judged("a", "b", instruction="alone", judge="ann"))
    found = reliability(rows, "overall")
    assert (found.annotators, found.units) == (2, 3)
    assert found.raw.estimate == pytest.approx(2 / 3)
    assert reliability(rows, "quality").units == 0


# The command


def test_votes_of_the_page_are_read_beside_logs(tmp_path: Path) -> None:
    log, database = tmp_path / "log.jsonl", tmp_path / "votes.sqlite"
    append(log, judged("a", "b"))
    store = Store.open(database)
    draft = judged("a", "b", None, judge="")
    store.add_battles({unordered(draft.battle): draft})
    with store.invite(["ann"]):
        pass  # nobody opens the link
    assignment = store.next("ann")
    assert assignment is not None
    store.record(assignment.id, "…", "0" * 64, {"overall": "first"})
    one, other = read_verdicts([log, database])
    assert (one.judge, other.judge) == ("judge", "ann")
    assert unit(one) == unit(other)
    store.close()
    with pytest.raises(S2STasksError, match="cannot be read"):
        list(read_verdicts([tmp_path / "missing"]))


def test_the_command_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for number in range(40):
        good: Winner = "first" if rng.random() < 0.5 else "second"
        level = 1 if number % 2 else 2
        for judge in ("model", "person-1", "person-2"):
            wrong: Winner = "second" if good == "first" else "first"
            winner = good if rng.random() < 0.85 else wrong
            rows.append(
                judged("a", "b", winner, instruction=f"q{number}", judge=judge, level=level)
            )
    rows.append(judged("a", "b", None, judge="model"))
    append(tmp_path / "log.jsonl", *rows, judged("x", "y", judge="stranger", instruction="z"))
    parser = argparse.ArgumentParser()
    agreement_report.add_arguments(parser)
    options = parser.parse_args([str(tmp_path / "log.jsonl"), "--people", "person-*"])
    assert agreement_report.run(options) == 0
    folder = tmp_path / "agreement"
    tables = json.loads((folder / "agreement.json").read_text())
    parts = [(row["part"], row["verdicts"], row["units"]) for row in tables["compared"]]
    assert parts[0] == ("all", "all", 40)
    assert {part for part, _, _ in parts} == {"all", "L1", "L2"}
    assert 60 < tables["compared"][1]["raw, %"] < 100
    assert tables["people"][0]["units"] == 40
    assert {row["judge"] for row in tables["judges"]} == {"model", "stranger"}
    assert tables["judges"][0]["in both orders"] == 0
    told = capsys.readouterr().out
    assert "stranger and people have judged no answers in common." in told
    assert "model: 1 of 41 verdicts could not be read" in told
    assert (folder / "report.md").exists()
    alone = agreement_report.report(agreement_report.split([judged("a", "b")], ["judge"]))
    assert not any(section.blocks for section in alone.sections)
    options = parser.parse_args([str(tmp_path / "log.jsonl"), "--people", "nobody"])
    with pytest.raises(S2STasksError, match="--people nobody: nobody is called so; there are mod"):
        agreement_report.run(options)
