"""What the rubric reads of a reply."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.arena.judges.prompt import Mode, Rubric
from s2s_tasks.arena.records import CRITERIA

LABELS = ("first", "second", "tie", "both_bad")
verdicts = st.fixed_dictionaries({name: st.sampled_from(LABELS) for name in CRITERIA})


@given(verdicts, st.sampled_from(["strict", "ties"]), st.booleans(), st.text(alphabet="ab \n`:"))
def test_a_verdict_is_read_or_left(
    verdict: dict[str, str], mode: Mode, fenced: bool, reasons: str
) -> None:
    text = json.dumps(verdict)
    reply = f"{reasons}\n```json\n{text}\n```" if fenced else text
    expected = verdict if set(verdict.values()) <= set(Rubric(mode).labels) else {}
    assert Rubric(mode).read(reply) == expected


@given(st.text() | st.text(alphabet='{}[]":,firstovela \n'))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert Rubric("ties").read(text) == {}


@given(verdicts, st.sampled_from(CRITERIA), st.sampled_from(["third", "A", "", None, 1, ["first"]]))
def test_a_verdict_with_an_unknown_label_is_left(
    verdict: dict[str, object], criterion: str, label: object
) -> None:
    assert Rubric("ties").read(json.dumps({**verdict, criterion: label})) == {}
    del verdict[criterion]
    assert Rubric("ties").read(json.dumps(verdict)) == {}


@given(verdicts)
def test_a_reply_with_two_verdicts_is_left(verdict: dict[str, str]) -> None:
    text = json.dumps(verdict)
    assert Rubric("ties").read(f"{text}\n{text}") == {}
    twice = text[:-1] + ', "overall": "first"}'
    assert Rubric("ties").read(twice) == {}
    assert Rubric("ties").read(f'{{"verdict": {text}}}') == {}
    assert Rubric("ties").read(text[:-1]) == {}


def test_labels_are_read_in_any_case() -> None:
    reply = json.dumps(dict.fromkeys(CRITERIA, " First"))
    assert Rubric().read(reply) == dict.fromkeys(CRITERIA, "first")
