"""Scores: lm-eval's pair, with its tokens."""

from __future__ import annotations

import json
import math
import pickle

import pytest
import torch

from s2s_tasks.adapters.likelihood import token_logprobs
from s2s_tasks.score import Score


def test_a_score_is_the_pair() -> None:
    score = Score([-1.0, -2.5], True)
    assert score == (-3.5, True)
    logprob, is_greedy = score
    assert (logprob, is_greedy) == (-3.5, True)
    assert json.dumps(score) == "[-3.5, true]"
    assert score.nll == 1.75


def test_a_score_survives_pickling() -> None:
    score = pickle.loads(pickle.dumps(Score([-1.0, -2.0], False, ["heard"])))
    assert score == (-3.0, False)
    assert score.token_logprobs == (-1.0, -2.0)
    assert score.transcripts == ("heard",)


def test_logits_by_hand() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [math.log(4.0), 0.0]])
    logprobs, greedy = token_logprobs(logits, [1, 1])
    assert logprobs.tolist() == pytest.approx((math.log(3 / 4), math.log(1 / 5)))
    assert greedy.tolist() == [True, False]


def test_bf16_logits_are_normalised_in_fp32() -> None:
    logits = (torch.arange(1000.0) / 100).to(torch.bfloat16).unsqueeze(0)
    expected = logits.double().log_softmax(-1)[0, 7].item()
    assert token_logprobs(logits, [7])[0].item() == pytest.approx(expected, abs=1e-5)
