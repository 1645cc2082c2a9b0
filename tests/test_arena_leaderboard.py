"""The leaderboard: what decides beside the system, its parts, its files and figures."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arena_judgements import contest, judged

from s2s_tasks.arena.log import append
from s2s_tasks.arena.ratings import command
from s2s_tasks.arena.ratings.board import build, to_json
from s2s_tasks.arena.ratings.bradley_terry import bradley_terry
from s2s_tasks.arena.ratings.covariates import control
from s2s_tasks.arena.ratings.drawings import draw_ratings, draw_win_rates
from s2s_tasks.arena.ratings.leaderboard import leaderboard, win_rates
from s2s_tasks.arena.ratings.outcomes import tally
from s2s_tasks.arena.records import Winner
from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.document import Figure
from s2s_tasks.report.drawing import render

# Covariates


def test_position_and_length_are_found_and_taken_out() -> None:
    truth = [1150, 1050, 950, 850]
    rows = contest(truth, 2000, seed=7, position=0.5, length=1.0)
    fit = bradley_terry(tally(rows), resamples=100)
    found = control(rows, fit)
    effects = {effect.name: effect.coefficient for effect in found.effects}
    shares = np.array(
        [
            (row.features["first_seconds"] - row.features["second_seconds"])
            / (row.features["first_seconds"] + row.features["second_seconds"])
            for row in rows
        ]
    )
    assert effects["heard first"].low < 0.5 < effects["heard first"].high
    assert effects["heard first"].low > 0.3
    assert effects["seconds"].low < shares.std() < effects["seconds"].high
    assert effects["loudness"].low < 0 < effects["loudness"].high
    first = found.effects[0].win_rate
    assert first.estimate == pytest.approx(1 / (1 + math.exp(-effects["heard first"].estimate)))
    assert list(found.ratings) == ["s0", "s1", "s2", "s3"]
    for number, rating in enumerate(truth):
        assert found.ratings[f"s{number}"].low < rating < found.ratings[f"s{number}"].high


def test_without_covariates_control_is_bradley_terry() -> None:
    rows = contest([1100, 1000, 900], 400, seed=8)
    swapped: dict[Winner, Winner] = {"first": "second", "second": "first"}
    rows += [
        judged(
            row.battle.second,
            row.battle.first,
            swapped[row.winners["overall"]],
            instruction=row.battle.instruction,
        )
        for row in rows
    ]
    fit = bradley_terry(tally(rows))
    found = control(rows, fit)
    assert found.left_out == ("seconds", "loudness")
    assert found.effects[0].coefficient.estimate == pytest.approx(0, abs=1e-6)
    for rating in fit.ratings:
        adjusted = found.ratings[rating.system]
        assert adjusted.estimate == pytest.approx(rating.rating.estimate, abs=0.01)
        assert adjusted.high - adjusted.low == pytest.approx(
            rating.rating.high - rating.rating.low, rel=0.15
        )


def test_a_judge_that_always_names_the_first_gets_a_finite_coefficient() -> None:
    rows = [replace(row, winners={"overall": "first"}) for row in contest([1000] * 3, 100, seed=9)]
    effect = control(rows, bradley_terry(tally(rows), 100)).effects[0]
    assert 0.95 < effect.win_rate.estimate < 1
    assert effect.coefficient.low > 2


# The leaderboard


def test_the_win_matrix_counts_every_battle() -> None:
    board = build(contest([1200, 1000, 800], 300, seed=10), resamples=100)
    assert board.ranked == ("s0", "s1", "s2")
    assert board.wins.sum() == 300
    rates = win_rates(board.wins)
    assert np.isnan(np.diag(rates)).all()
    assert rates[0, 1] + rates[1, 0] == pytest.approx(1)
    assert rates[0, 2] > rates[0, 1] > 0.5


def test_domains_and_levels_are_rated_by_themselves() -> None:
    rows = contest([1100, 1000], 200, seed=11)
    rows += [replace(row, domain="", level=None) for row in contest([1100, 1000], 20, seed=12)]
    board = build(rows, resamples=100)
    assert [group.name for group in board.domains] == ["education", "medical"]
    assert [group.name for group in board.levels] == ["L1", "L2", "L3", "L4"]
    assert sum(group.fit.battles for group in board.levels) == 200
    own = [row for row in rows if row.level == 3]
    assert board.levels[2].fit == bradley_terry(tally(own), 100)
    assert board.levels[2].elo.published.sum() == pytest.approx(2000)
    assert to_json(board)["levels"]["L3"]["battles"] == len(own)


def rate(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def test_the_command_writes_the_leaderboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    rows = [
        replace(row, battle=replace(row.battle, instruction=f"q{number}"))
        for number, row in enumerate(contest([1100, 1000, 900], 120, seed=13))
    ]
    rows += [replace(row, judge="other") for row in contest([900, 1000, 1100], 30, seed=14)]
    append(log, *rows, judged("s0", "s0", probe="itself"), judged("s0", "s1", None))
    assert rate([str(log), "--judge", "judge", "--resamples", "100"]) == 0
    folder = tmp_path / "leaderboard"
    assert {path.name for path in folder.iterdir()} >= {
        "report.html",
        "report.md",
        "leaderboard.csv",
        "leaderboard.json",
        "win-rates.png",
    }
    content = json.loads((folder / "leaderboard.json").read_text())
    assert (content["battles"], content["probes"], content["unreadable"]) == (120, 1, 1)
    assert content["judges"] == ["judge"]
    table = pd.read_csv(folder / "leaderboard.csv")
    assert list(table["system"]) == [row["system"] for row in content["overall"]["ratings"]]
    assert pd.read_csv(folder / "elo.csv")["Elo"].sum() == pytest.approx(3000)
    assert "1 of 121 judgements have no readable verdict" in capsys.readouterr().out
    with pytest.raises(S2STasksError, match="--judge nobody: no such judge; there are judge, oth"):
        rate([str(log), "--judge", "nobody"])
    assert "Verdicts of 2 judges are rated together: judge, other." in build(rows).notes


@pytest.mark.parametrize("wrong", [["--seed", "-1"], ["--resamples", "99"], ["--seed", "x"]])
def test_numbers_that_mean_nothing_are_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        rate(["log.jsonl", *wrong])
    assert f"{wrong[1]!r}: a whole number" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 12])
def test_a_clean_sweep_is_drawn(count: int) -> None:
    rows = [judged("good", "bad", instruction=f"q{number}") for number in range(count)]
    rows += [judged("bad", "good", "second", instruction=f"q{number}") for number in range(count)]
    board = build(rows, covariates=())
    for rating in board.everything.fit.ratings:
        low, high = rating.rating.low, rating.rating.high
        assert np.isnan(low) or low <= rating.rating.estimate <= high
    for section in leaderboard(board).sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                assert render(block, "light", "png").data.startswith(b"\x89PNG")


@pytest.mark.parametrize("systems", [2, 5, 12])
@pytest.mark.parametrize("name", ["x", "whisper-large+Qwen2.5-7B_kokoro/" * 2, "语音模型" * 9])
def test_names_in_figures_do_not_overlap(systems: int, name: str) -> None:
    rows = [
        replace(
            row,
            battle=replace(
                row.battle, first=f"{name}{row.battle.first}", second=f"{name}{row.battle.second}"
            ),
        )
        for row in contest([1000] * systems, 30 * systems, seed=15)
    ]
    board = build(rows, covariates=(), resamples=100)
    for figure in (
        draw_ratings(board.everything.fit.ratings, "light"),
        draw_win_rates(board.ranked, 100 * win_rates(board.wins), "light"),
    ):
        figure.draw_without_rendering()
        axes = figure.axes[0]
        for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
            boxes = [label.get_window_extent() for label in labels]
            for one, other in pairwise(boxes):
                assert not one.overlaps(other)
        names = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert min(box.x0 for box in names) >= 0
        assert axes.get_window_extent().width > 0.25 * figure.bbox.width
