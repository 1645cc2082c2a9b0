"""Battles of known outcome: what judges fail on, and what is decided without a judge."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import chat_server
import numpy as np
import pytest
from arena_contests import PITCHES, RATE, answer, arguments, ask, battles, logged, meet, tone
from arena_judgements import contest, judged
from chat_server import said, serving, verdict
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.arena.agreement.measures import consistency, first_rate, longer_rate, merged
from s2s_tasks.arena.agreement.report import report
from s2s_tasks.arena.agreement.sides import split
from s2s_tasks.arena.contest.judging import BY_RULE
from s2s_tasks.arena.contest.meeting import identity
from s2s_tasks.arena.contest.probes import NAMES, failures
from s2s_tasks.arena.contest.probes_report import probe_line, probe_warnings, probes_section
from s2s_tasks.arena.judges.local import LocalJudge
from s2s_tasks.arena.judges.offline import SignalJudge
from s2s_tasks.arena.judges.openai_chat import OpenAIChatJudge
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Mode, Rubric, mode_of
from s2s_tasks.arena.ratings.board import build, to_json
from s2s_tasks.arena.ratings.leaderboard import leaderboard
from s2s_tasks.arena.records import Judgement, Probe, Winner
from s2s_tasks.arena.verdicts import by_rule


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return meet(tmp_path)


def test_probes_show_a_judge_that_does_not_listen(
    arena: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: said(verdict("first"))) as server:
        battles(arguments(arena, server.url, "--probes", "1"))
    told = capsys.readouterr().out
    assert "against itself: the first one won 2 of 2 (100 %, 95 % interval 34 to 100 %)" in told
    for kind in ("silence", "noise", "that to another question"):
        assert f"against {kind}: failed 2 of 4 times (50 %" in told
    probes = [j for j in logged(arena) if j.battle.probe]
    assert Counter(j.battle.probe for j in probes) == {
        **{"itself": 2, "silence": 4, "noise": 4, "other": 4}
    }
    for judgement in probes:
        names = {judgement.battle.first, judgement.battle.second}
        kind = judgement.battle.probe
        assert len(names & set(PITCHES)) == 1
        assert kind == "itself" or f"<{kind}>" in names
        same = judgement.answers["first"] == judgement.answers["second"]
        assert same == (kind == "itself")


def test_probes_clear_a_judge_that_listens(arena: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(chat_server.likes_pitch) as server:
        battles(arguments(arena, server.url))
    told = capsys.readouterr().out
    assert "against silence: failed 0 of 4 times (0 %, 95 % interval 0 to 66 %)" in told
    assert "against noise: failed 0 of 4" in told


@pytest.mark.parametrize("mode", ["strict", "ties"])
def test_answers_without_sound(
    tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path / "questions", 3)
    silence = np.zeros(RATE, np.float32)
    for number in range(3):
        answer(tmp_path, "speaks", f"q/{number}", waveform=tone(300 + number))
        answer(tmp_path, "silent", f"q/{number}", waveform=silence)
        answer(tmp_path, "mute", f"q/{number}", waveform=silence)
        answer(tmp_path, "writes", f"q/{number}", waveform=None, transcript="Hello.")
    answer(tmp_path, "breaks", "q/0", waveform=None, error="out of memory")
    systems = ("speaks", "silent", "mute", "writes", "breaks")
    with serving(chat_server.likes_pitch) as server:
        options = ("--matching", "round_robin", "--probes", "0", "--mode", mode)
        battles(arguments(tmp_path, server.url, *options, systems=systems))
        assert server.requests == []
    found: Counter[str] = Counter()
    for judgement in logged(tmp_path):
        met = judgement.battle
        assert judgement.reply.startswith(BY_RULE)
        assert by_rule(judgement)
        assert judgement.features["second_loudness"] == -70 or met.second == "speaks"
        label = judgement.winners["overall"]
        found[{"first": met.first, "second": met.second}.get(label, label)] += 1
    told = capsys.readouterr().out
    assert "cannot be read: 0 of 0" in told
    assert f"Not put to the judge: {found.total()}; a silent answer loses" in told
    assert "Left out: 3 answer(s) of writes (text_only)" in told
    assert "Left out: 1 answer(s) of breaks (failed)" in told
    if mode == "strict":
        assert found == {"speaks": 12}
        assert "6 battle(s) of two silent answers" in told
    else:
        assert found == {"speaks": 12, "both_bad": 6}


# How failures are counted


def probed(kind: Probe, winner: Winner | None, judge: str, *, turned: bool = False) -> Judgement:
    """Return a probe of an answer of `a`, which is heard first unless turned."""
    sides = ("a", NAMES.get(kind, "a"))
    first, second = sides[::-1] if turned else sides
    return judged(first, second, winner, probe=kind, judge=judge)


@given(st.sampled_from(["strict", "ties"]), st.text("a@-:/", max_size=8))
def test_a_judge_that_a_contest_asks_tells_its_mode(mode: Mode, name: str) -> None:
    chat = OpenAIChatJudge(name, Presentation(Rubric(mode)))
    assert mode_of(identity(chat)) == mode_of(identity(SignalJudge(mode))) == mode
    assert mode_of(f"{name}@person") is None


def test_a_local_judge_tells_its_mode(qwen2_audio: Path) -> None:
    judge = LocalJudge(HFAdapter(str(qwen2_audio)), Presentation(Rubric("ties")))
    assert mode_of(identity(judge)) == "ties"


@pytest.mark.parametrize("kind", ["silence", "noise", "other"])
@pytest.mark.parametrize("turned", [False, True])
def test_the_worse_answer_must_not_win_or_draw(kind: Probe, turned: bool) -> None:
    right: Winner = "second" if turned else "first"
    for winner in ("first", "second", "tie", "both_bad"):
        (found,) = failures([probed(kind, winner, "j@ties-1", turned=turned)])
        assert found.failed == (winner not in (right, "both_bad"))
        assert found.share is not None and found.share.estimate == found.failed


def test_an_answer_against_itself_depends_on_what_a_judge_may_say() -> None:
    rows = [
        *(probed("itself", "first", judge) for judge in ("j@strict-1", "j@ties-1", "anna", "ben")),
        judged("a", "b", "both_bad", judge="ben"),  # so he may
        probed("itself", None, "j@ties-1"),
    ]
    found = {row.judge: row for row in failures(rows)}
    able = {name: row.share is not None for name, row in found.items()}
    assert able == {"j@strict-1": False, "j@ties-1": True, "anna": False, "ben": True}
    assert [row.first for row in found.values()] == [1, 1, 1, 1]
    assert (found["j@ties-1"].asked, found["j@ties-1"].unreadable) == (1, 1)
    (tied,) = failures([probed("itself", "tie", "anna")])
    assert (tied.failed, tied.ties, tied.first_share) == (0, 1, None)


def test_both_orders_of_a_probe_are_not_more_evidence_than_one() -> None:
    rows = [
        (probed("noise", "first", "j"), probed("noise", "second", "j", turned=True), number)
        for number in range(4)
    ]
    one = [replace_instruction(row, number) for row, _, number in rows]
    both = one + [replace_instruction(row, number) for _, row, number in rows]
    (few,), (many,) = failures(one), failures(both)
    assert (few.asked, many.asked) == (4, 8)
    assert few.share == many.share


def replace_instruction(judgement: Judgement, number: int) -> Judgement:
    return replace(judgement, battle=replace(judgement.battle, instruction=f"q{number}"))


# How they are told


def probes_of(judge: str, winner: Winner, count: int = 10) -> list[Judgement]:
    return [
        replace_instruction(probed(kind, winner, judge), number)
        for number in range(count)
        for kind in ("itself", "silence", "other")
    ]


def test_a_poor_judge_is_named_and_a_good_one_is_not() -> None:
    good = [replace_instruction(probed("noise", "first", "good"), number) for number in range(9)]
    unread = replace(probed("noise", None, "deaf"), judge="deaf")
    found = failures(
        [*good, *probes_of("j@strict-1", "first"), *probes_of("j@ties-1", "tie"), unread]
    )
    told = probe_warnings(found)
    assert told == [
        "j@ties-1 is a poor judge by its probes: it fails on an answer against silence 10 of 10 "
        "times (100 %, 95 % interval 72 to 100 %), against that to another question 10 of 10 "
        "times (100 %, 95 % interval 72 to 100 %).",
        "j@strict-1: of an answer against itself, the first one won 10 of 10 (100 %, 95 % "
        "interval 72 to 100 %).",
        "deaf: of 1 probes of an answer against noise none has a verdict that can be read.",
    ]
    (table,) = probes_section(found).blocks
    frame = table.frame.set_index(["judge", "an answer against"])
    assert frame.loc[("j@strict-1", "itself"), "first won"] == 10
    assert np.isnan(frame.loc[("j@strict-1", "itself"), "failed"])
    assert frame.loc[("j@ties-1", "itself"), "ties"] == 10
    assert frame.loc[("j@ties-1", "silence"), "failed, %"] == 100
    assert frame.loc[("deaf", "noise"), "unreadable"] == 1


def test_a_judge_that_finds_everything_bad_is_named() -> None:
    told = probe_warnings(failures(probes_of("j@ties-1", "both_bad", 3)))
    assert [line.split(" (")[0] for line in told] == [
        f"j@ties-1 prefers nothing: it names no winner between an answer and {against}"
        for against in ("silence", "that to another question")
    ]


@pytest.mark.parametrize(
    ("kind", "judge"), [("noise", "j@strict-1"), ("itself", "j@strict-1"), ("itself", "j@ties-1")]
)
def test_where_nothing_can_be_read_nothing_is_counted(kind: Probe, judge: str) -> None:
    (found,) = failures([probed(kind, None, judge)])
    assert probe_line(found).endswith(": no verdict; 1 cannot be read")


def test_ratings_and_agreement_report_them() -> None:
    rows = contest([1100, 1000, 900], 60, seed=0)
    plain = build(rows, resamples=100)
    assert "probes" not in {section.key for section in leaderboard(plain).sections}
    rows += probes_of("judge", "second")
    board = build(rows, resamples=100)
    people = [replace(row, judge="anna") for row in rows[:60]]
    for document in (leaderboard(board), report(split([*rows, *people], ["anna"]))):
        assert "judge is a poor judge by its probes" in document.warnings[0]
        (section,) = [section for section in document.sections if section.key == "probes"]
        assert list(section.blocks[0].frame["failed"].dropna()) == [10, 10]
    content = json.loads(json.dumps(to_json(board)))
    kinds = {row["kind"]: row for row in content["failures_on_probes"]}
    assert kinds["silence"]["share"]["estimate"] == 1
    assert kinds["itself"]["share"] is None and kinds["itself"]["first"] == 0
    assert board.everything.fit == plain.everything.fit


# What a rule decides


def silent(judgement: Judgement) -> Judgement:
    """Return a verdict on a battle whose second answer is silent."""
    features = {**judgement.features, "second_seconds": 0.0, "second_loudness": -70.0}
    answers = {**judgement.answers, "second": ""}
    return replace(judgement, answers=answers, features=features, winners={"overall": "first"})


def test_what_a_rule_decides_counts_in_ratings_alone() -> None:
    rows = contest([1050, 1000, 950], 200, seed=1, position=0.4)
    ruled = [silent(row) for row in contest([1000, 1000, 1000], 60, seed=2)]
    ruled += [silent(judged("s0", "mute", instruction=f"q{number}")) for number in range(9)]
    assert all(map(by_rule, ruled)) and not any(map(by_rule, rows))
    plain, board = build(rows, resamples=100), build([*rows, *ruled], resamples=100)
    assert plain.control is not None and plain.by_rule == 0
    assert board.control == plain.control
    assert board.by_rule == 69 and to_json(board)["by_rule"] == 69
    assert board.everything.fit.battles == 269
    assert board.ranked[-1] == "mute"
    assert any("69 of 269 battles were not put to a judge" in note for note in board.notes)
    for measure in (first_rate, longer_rate, merged, consistency):
        assert str(measure([*rows, *ruled], "overall")) == str(measure(rows, "overall"))
    told = report(split([*rows, *ruled, judged("s0", "s1", judge="anna")], ["anna"])).warnings
    assert "judge: 69 battles were decided by rule, and are left out." in told
    unreadable = build([*rows, *ruled, judged("s0", "s1", None)], resamples=100)
    assert any("1 of 201 judgements have no readable" in note for note in unreadable.notes)


def test_a_contest_that_rules_alone_decide_is_rated() -> None:
    rows = [silent(judged("a", "b", instruction=f"q{number}")) for number in range(3)]
    board = build(rows, resamples=100)
    assert board.control is None and board.ranked == ("a", "b")
    document = leaderboard(board)
    assert "control" not in {section.key for section in document.sections}
    assert to_json(board)["control"] is None


def test_imported_verdicts_are_a_judges() -> None:
    nothing = {"instruction": "", "first": "", "second": ""}
    assert not by_rule(replace(judged("a", "b"), answers=nothing))
