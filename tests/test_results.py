"""One question's scores to metrics."""

from __future__ import annotations

import logging
import math

import pytest

from s2s_tasks.score import Score
from s2s_tasks.tasks import results


def doc(gold: int = 1, endings: tuple[str, ...] = ("ab", "abcd")) -> dict:
    return {"id": "q", "gold": gold, "endings": list(endings), "subject": "astronomy"}


def test_every_metric_by_hand() -> None:
    # Ending 0: mean 2, sum -2 over 2 characters; ending 1: mean 1.5, sum -3 over 4 characters.
    question = doc()
    metrics = results.choice(question, [Score([-2.0], False), Score([-1.0, -2.0], False)])
    assert metrics == {
        "acc": 0.0,
        "acc_norm": 1.0,
        "pair_acc": 1.0,
        "mc_acc": 1.0,
        "tie_rate": 0.0,
        "nll_pos": 1.5,
        "nll_neg": 2.0,
        "nll_margin": 0.5,
        "ppl_pos": pytest.approx(math.exp(1.5)),
        "ppl_neg": pytest.approx(math.exp(2.0)),
    }
    assert question["ending_nll"] == [2.0, 1.5]
    assert question["ending_tokens"] == [1, 2]


def test_transcripts_reach_the_sample_log() -> None:
    question = doc()
    results.choice(question, [Score([-1.0], False, ["heard so"]), Score([-2.0], False, ["so"])])
    assert question["transcripts"] == [["heard so"], ["so"]]


def test_plain_pairs_leave_out_what_needs_tokens_and_warn_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results._warn_of_plain_pairs.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert results.choice(doc(), [(-2.0, False), (-3.0, False)]) == {
                "acc": 0.0,
                "acc_norm": 1.0,
            }
    assert len(caplog.records) == 1
    assert "speech-hf" in caplog.text


def test_a_model_that_cannot_tell_gets_chance() -> None:
    alike = [Score([-1.0], False)] * 4
    for gold in range(4):
        metrics = results.choice(doc(gold, ("a", "b", "c", "d")), alike)
        assert metrics["pair_acc"] == 0.5
        assert metrics["mc_acc"] == 0.25
        assert metrics["tie_rate"] == 1.0


def test_by_subject() -> None:
    metrics = results.choice_by_subject(doc(), [Score([-2.0], False), Score([-1.0], False)])
    assert metrics == {"pair_acc": 1.0, "pair_acc_astronomy": 1.0}


def test_the_published_counting() -> None:
    tied = [Score([-1.0], False), Score([-1.0], False)]
    assert results.upstream_stories(doc(), tied)["upstream_acc"] == 0.0
    assert results.upstream_scmmlu(doc(), tied)["upstream_acc"] == 1.0


def test_perplexity_is_the_exponential_of_the_mean_loss() -> None:
    values = [
        results.choice(doc(), [Score([-1.0], False), Score([-loss], False)])["ppl_pos"]
        for loss in (1.0, 3.0)
    ]
    assert results.perplexity(values) == pytest.approx(math.exp(2.0))
