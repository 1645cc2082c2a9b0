"""Judgements written in others' formats and read again; verdicts that are also systems' names."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from arena_judgements import contest, judged
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s2s_tasks.arena.data.taxonomy import taxonomy
from s2s_tasks.arena.exchange import export_command, import_command
from s2s_tasks.arena.log import append, read
from s2s_tasks.arena.ratings.board import build, to_json
from s2s_tasks.arena.records import CRITERIA, Judgement
from s2s_tasks.errors import S2STasksError

FORMATS = [("trace", "json"), ("chatbot-arena", "csv"), ("chatbot-arena", "jsonl")]
AWKWARD = [
    "1",
    "2",
    "model_a",
    "model_b",
    "tie",
    "a",
    "b",
    "NaN",
    "None",
    '"x",\r\ny\rz',
    "é\u2028x",
]
WORDS = st.text(min_size=1, max_size=8).map(str.strip).filter(bool)
NAMES = st.sampled_from(AWKWARD) | WORDS


def run(module: ModuleType, *arguments: object) -> None:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert module.run(parser.parse_args([str(argument) for argument in arguments])) == 0


def apart(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return judgements of different recordings each, so that none is there twice."""
    return [
        replace(judgement, answers={"instruction": f"{number}", "first": "x", "second": "y"})
        for number, judgement in enumerate(judgements)
    ]


def there_and_back(judgements: list[Judgement], kind: str, suffix: str) -> list[Judgement]:
    with tempfile.TemporaryDirectory() as name:
        log, file, back = (Path(name) / n for n in ("a.jsonl", f"b.{suffix}", "c.jsonl"))
        append(log, *judgements)
        run(export_command, log, "-o", file, "--format", kind)
        run(import_command, file, "-o", back, "--format", kind)
        return list(read(back))


@st.composite
def logs(draw: st.DrawFn) -> list[Judgement]:
    return apart(
        replace(
            judged(
                *draw(st.lists(NAMES, min_size=2, max_size=2, unique=True)),
                instruction=draw(NAMES),
                judge=draw(NAMES),
                level=draw(st.sampled_from([None, 1, 2, 3, 4])),
                domain=draw(st.just("") | WORDS),
                winners=draw(
                    st.fixed_dictionaries(
                        {"overall": st.sampled_from(["first", "second", "tie", "both_bad"])},
                        optional=dict.fromkeys(CRITERIA[:3], st.sampled_from(["first", "tie"])),
                    )
                ),
            ),
            task=draw(st.sampled_from(["pause", "irony", "knitting"])),
            language=draw(st.sampled_from(["", "zh"])),
            time=draw(
                st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
            ).isoformat(),
        )
        for _ in range(draw(st.integers(1, 3)))
    )


def said(judgement: Judgement, kind: str) -> dict[str, object]:
    """Return what a format can say of a judgement, the domain being that of a known task."""
    known = taxonomy().task(judgement.task)
    winners = judgement.winners
    return {
        "battle": judgement.battle,
        "judge": judgement.judge,
        "domain": judgement.domain or (known.domain if known else ""),
        "task": judgement.task,
        "level": judgement.level,
        "language": judgement.language,
        "winners": winners if kind == "trace" else {"overall": winners["overall"]},
        "time": datetime.fromisoformat(judgement.time),
    }


@pytest.mark.parametrize(("kind", "suffix"), FORMATS)
@settings(max_examples=30)
@given(judgements=logs())
@example(judgements=[replace(judged("b", "a", instruction="irony/1"), task="knitting", domain="")])
@example(judgements=[judged("2", "1", level=None), judged("model_b", "model_a", "second")])
def test_what_a_format_can_say_comes_back(
    kind: str, suffix: str, judgements: list[Judgement]
) -> None:
    found = there_and_back(judgements, kind, suffix)
    assert [said(j, kind) for j in found] == [said(j, kind) for j in judgements]


@pytest.mark.parametrize(("kind", "suffix"), FORMATS)
def test_what_comes_back_rates_the_same(kind: str, suffix: str) -> None:
    judgements = apart(contest([0, 100, 200], 60, seed=3))
    boards = [
        to_json(build(rows, covariates=(), resamples=50))
        for rows in (judgements, there_and_back(judgements, kind, suffix))
    ]
    for board in boards:
        del board["notes"]  # of recordings, which are not written
    assert boards[0] == boards[1]


def test_rules_are_written_like_verdicts_and_probes_are_not() -> None:
    by_rule = replace(judged("a", "b"), answers={"instruction": "x", "first": "y", "second": ""})
    rows = [judged("a", "a", probe="itself"), judged("a", "b", None), by_rule]
    (found,) = there_and_back(rows, "trace", "json")
    assert found.winners == {"overall": "first"}


# Words and names


def imported(tmp_path: Path, rows: list[dict[str, object]], *arguments: str) -> list[str]:
    file, log = tmp_path / "f.json", tmp_path / "log.jsonl"
    file.write_text(json.dumps(rows), "utf-8")
    log.unlink(missing_ok=True)
    run(import_command, file, "-o", log, *arguments)
    return [judgement.winners["overall"] for judgement in read(log)]


OTHER = ("--fields", "first=l", "second=r", "winner=w")


def test_a_word_that_is_also_the_name_of_the_other_system_is_refused(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"l": "B", "r": "A", "w": "A"}]
    message = "record 1: the verdict 'A' is the name of the second system, and a word for 'first'"
    with pytest.raises(S2STasksError, match=message) as caught:
        imported(tmp_path, rows, *OTHER)
    assert "--verdicts 'A'=name, or =first" in str(caught.value)
    assert imported(tmp_path, rows, *OTHER, "--verdicts", "A=name") == ["second"]
    assert imported(tmp_path, rows, *OTHER, "--verdicts", "A=first") == ["first"]


def test_a_word_that_means_the_same_as_the_name_is_not(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"l": "A", "r": "B", "w": w} for w in ("A", "b", 2, 1.0)]
    assert imported(tmp_path, rows, *OTHER) == ["first", "second", "second", "first"]
    rows = [{"l": "tie", "r": "B", "w": "tie"}]
    with pytest.raises(S2STasksError, match="'tie' is the name of the first system"):
        imported(tmp_path, rows, *OTHER)
