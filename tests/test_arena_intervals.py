"""Intervals of ratings: those of the plain bootstrap, quickly; and none where none is known."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from arena_judgements import contest, judged
from arena_likelihood import resampled_ratings

from s2s_tasks.arena.ratings import bradley_terry as module
from s2s_tasks.arena.ratings.board import build, to_json
from s2s_tasks.arena.ratings.bradley_terry import bradley_terry
from s2s_tasks.arena.ratings.leaderboard import leaderboard
from s2s_tasks.arena.ratings.outcomes import tally
from s2s_tasks.arena.records import Winner
from s2s_tasks.arena.writing import to_text
from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.document import Figure, Table
from s2s_tasks.report.drawing import render


@pytest.mark.parametrize(("systems", "battles"), [(5, 200), (8, 60)])
def test_intervals_are_percentiles_of_resampled_instructions(
    systems: int, battles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 700)  # several resamples at once, not all
    outcomes = tally(contest(list(np.linspace(850, 1150, systems)), battles, seed=1))
    drawn = resampled_ratings(outcomes, 100, seed=3)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    for rating in bradley_terry(outcomes, 100, seed=3).ratings:
        place = outcomes.systems.index(rating.system)
        assert rating.rating.low == pytest.approx(low[place], abs=0.05)
        assert rating.rating.high == pytest.approx(high[place], abs=0.05)


def test_many_systems_take_little_memory() -> None:
    outcomes = tally(contest(list(np.linspace(800, 1200, 60)), 1000, seed=2))
    tracemalloc.start()
    bradley_terry(outcomes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80e6  # a matrix for each resample and instruction takes three times as much


def test_many_systems_are_drawn_by_colours_alone() -> None:
    rows = contest(list(np.linspace(800, 1200, 40)), 600, seed=2)
    board = build(rows, resamples=100)
    (matrix,) = [section for section in leaderboard(board).sections if section.key == "matrix"]
    figure, table = matrix.blocks
    assert isinstance(figure, Figure) and isinstance(table, Table)
    assert len(figure.alt) < 200
    assert len(render(figure, "light", "svg").data) < 200_000
    met = {frozenset((row.battle.first, row.battle.second)) for row in rows}
    assert len(table.frame) == len(met)


# Where none is known


def test_what_made_up_ties_hold_has_no_interval() -> None:
    rows = contest([1050, 1000, 950], 300, seed=5)
    rows += [judged("s0", "loser", instruction=f"z{number}") for number in range(40)]
    board = build(rows, resamples=100)
    *others, loser = board.everything.fit.ratings
    assert loser.held and math.isnan(loser.rating.low) and math.isnan(loser.rating.high)
    assert (loser.rank, loser.rank_low, loser.rank_high) == (4, None, None)
    assert all(math.isfinite(other.rating.low) and other.rank_low for other in others)
    row = json.loads(to_text(to_json(board)))["overall"]["ratings"][-1]
    assert row["rating"]["low"] is row["rating"]["high"] is row["rank_low"] is None
    document = leaderboard(board)
    table, figure, _ = document.sections[0].blocks
    assert isinstance(table, Table) and isinstance(figure, Figure)
    assert table.frame["from"].isna().tolist() == [False, False, False, True]
    assert table.frame["rank to"].isna().tolist() == [False, False, False, True]
    assert str(table.frame["rank to"].dtype) == "Int64"
    assert f"loser: {loser.rating.estimate:.0f} (no interval)" in figure.alt
    assert "hollow" in figure.note


def test_a_judge_that_always_names_the_first_makes_nothing_certain() -> None:
    rows = [
        judged(*order, instruction=f"q{number}")
        for number in range(40)
        for order in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"))
    ]
    board = build(rows, resamples=100)
    for rating in board.everything.fit.ratings:
        assert rating.rating.estimate == pytest.approx(1000) and not rating.held
        assert math.isnan(rating.rating.low) and rating.rank_low is None
    (note,) = [note for note in board.notes if "That is no certainty" in note]
    assert note.startswith("a, b, c: every choice of instructions gives the same rating")
    assert "First is a with 1000 (no interval)" in leaderboard(board).summary[1]


def test_what_cannot_be_told_from_the_order_is_said() -> None:
    winners: list[Winner] = ["first", "second", "first"]
    rows = [judged("a", "b", winners[n % 3], instruction=f"q{n}") for n in range(9)]
    board = build(rows, resamples=100)
    assert board.control is not None
    assert math.isnan(board.control.effects[0].win_rate.low)
    summary = leaderboard(board).summary
    assert summary[-1] == "These battles do not tell what being heard first is worth."


def test_adjusted_ratings_of_what_is_held_have_no_interval_either() -> None:
    rows = contest([1050, 1000, 950], 300, seed=5)
    rows += [judged("s0", "loser", instruction=f"z{number}") for number in range(9)]
    control = build(rows, resamples=100).control
    assert control is not None
    assert [name for name, own in control.ratings.items() if math.isnan(own.low)] == ["loser"]


def test_a_figure_keeps_marks_inside_and_names_as_they_are() -> None:
    rows = [judged(r"$\frac{a}$", "a_b$^", instruction=f"q{number}") for number in range(3)]
    for section in leaderboard(build(rows, resamples=100)).sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                assert render(block, "light", "svg").data
            if isinstance(block, Figure) and block.key == "ratings":
                axes = block.draw("light").axes[0]
                low, high = axes.get_xlim()
                marks = [
                    x for line in axes.lines if line.get_marker() == "o" for x in line.get_xdata()
                ]
                assert low + 0.05 * (high - low) < min(marks)
                assert max(marks) < high - 0.05 * (high - low)


# What numbers may be


def test_whole_numbers_are_measures_too() -> None:
    rows = [
        judged(
            *("a", "b", "first" if number % 3 else "second"),
            instruction=f"q{number}",
            features={"first_seconds": number % 5 + 1, "second_seconds": 4},
        )
        for number in range(40)
    ]
    floats = [replace(r, features={k: float(v) for k, v in r.features.items()}) for r in rows]
    whole, real = (str(build(given, resamples=100).control) for given in (rows, floats))
    assert whole == real and "nan" in whole  # which does not equal itself


def test_weights_that_lie_too_far_apart_are_refused() -> None:
    rows = contest([1100, 1000, 900], 200, seed=1)
    rows[0] = replace(rows[0], battle=replace(rows[0].battle, propensity=1e-12))
    assert build(rows, resamples=100)
    with pytest.raises(S2STasksError, match="drawn with a probability of 1e-12, others with up to"):
        build(rows, resamples=100, weighted=True)
    rows[0] = replace(rows[0], battle=replace(rows[0].battle, propensity=1.1e-6))
    assert build(rows, resamples=100, weighted=True).everything.fit.effective < 2


def test_an_answer_with_several_recordings_is_said() -> None:
    rows = [judged("a", "b", "first" if n % 2 else "second", instruction=f"q{n}") for n in range(9)]
    assert not any("several recordings" in note for note in build(rows, resamples=100).notes)
    anew = replace(rows[3], answers={**rows[3].answers, "second": "another"})
    silent = replace(rows[4], answers={**rows[4].answers, "second": ""})
    (note,) = [n for n in build([*rows, anew, silent], resamples=100).notes if "recordings" in n]
    assert note.startswith("1 answers are in these battles with several recordings (that of b to")
    assert "(that of b to q3 with 2)" in note and "judge them into a new log" in note
