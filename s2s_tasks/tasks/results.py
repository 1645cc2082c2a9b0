"""What the YAML files name as `process_results`: one question's scores to its metrics."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np

from s2s_tasks import stats
from s2s_tasks.score import Score
from s2s_tasks.tasks.choice import subject_metric

log = logging.getLogger(__name__)

Doc = dict[str, Any]
Pair = tuple[float, bool]


def choice(doc: Doc, results: Sequence[Pair]) -> dict[str, float]:
    """Return every metric that the model's answers allow.

    `acc` and `acc_norm` are lm-eval's own (summed log-likelihood, and that per character of the
    ending; lm_eval.api.task.ConfigurableTask.process_results). All others rest on the mean
    negative log-likelihood per token, which only a `Score` knows.
    """
    gold = doc["gold"]
    sums = np.array([logprob for logprob, _ in results])
    characters = np.array([len(ending) for ending in doc["endings"]])
    metrics = {
        "acc": float(np.argmax(sums) == gold),
        "acc_norm": float(np.argmax(sums / characters) == gold),
    }
    if not _all_scores(results):
        _warn_of_plain_pairs()
        return metrics
    losses = _log_scores(doc, results)
    false_loss = stats.mean_false(losses, gold)
    return metrics | {
        "pair_acc": stats.pair_accuracy(losses, gold),
        "mc_acc": stats.choice_accuracy(losses, gold),
        "tie_rate": stats.tie_rate(losses, gold),
        "nll_pos": losses[gold],
        "nll_neg": false_loss,
        "nll_margin": false_loss - losses[gold],
        "ppl_pos": float(np.exp(losses[gold])),
        "ppl_neg": float(np.exp(false_loss)),
    }


def gap(doc: Doc, results: Sequence[Pair]) -> dict[str, float]:
    """Return what a question's endings score when it is read, when it is heard, and the difference.

    Args:
        doc: the question.
        results: one score an ending after the written context, then one after the spoken.
    """
    if not _all_scores(results):
        _warn_of_plain_pairs()
        return {}
    gold, count = doc["gold"], len(doc["endings"])
    metrics = {}
    for mode, scores in (("t2t", results[:count]), ("s2t", results[count:])):
        losses = _log_scores(doc, scores, f"_{mode}")
        metrics[f"acc_{mode}"] = stats.pair_accuracy(losses, gold)
        metrics[f"mc_acc_{mode}"] = stats.choice_accuracy(losses, gold)
        metrics[f"nll_margin_{mode}"] = stats.mean_false(losses, gold) - losses[gold]
    return metrics | {
        "gap": metrics["acc_t2t"] - metrics["acc_s2t"],
        "mc_gap": metrics["mc_acc_t2t"] - metrics["mc_acc_s2t"],
        "nll_margin_gap": metrics["nll_margin_t2t"] - metrics["nll_margin_s2t"],
    }


def perplexity(values: Sequence[float]) -> float:
    """Aggregate perplexities: the exponential of the mean loss, which is their geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def choice_by_subject(doc: Doc, results: Sequence[Pair]) -> dict[str, float]:
    """Return `pair_acc` over all questions and under the name of the question's subject."""
    pair_acc = choice(doc, results).get("pair_acc")
    if pair_acc is None:
        return {}
    by_subject = {subject_metric(doc["subject"]): pair_acc} if doc["subject"] else {}
    return {"pair_acc": pair_acc} | by_subject


def upstream_stories(doc: Doc, results: Sequence[Pair]) -> dict[str, float]:
    """Count as the published eval_story.py does: a tie is wrong."""
    return _upstream(doc, results, ties="wrong")


def upstream_scmmlu(doc: Doc, results: Sequence[Pair]) -> dict[str, float]:
    """Count as the published eval_cmmlu4.py does: a tie is right."""
    return _upstream(doc, results, ties="right")


def _upstream(doc: Doc, results: Sequence[Pair], ties: stats.TieRule) -> dict[str, float]:
    if not _all_scores(results):
        _warn_of_plain_pairs()
        return {}
    losses = _log_scores(doc, results)
    return {
        "upstream_acc": stats.pair_accuracy(losses, doc["gold"], ties),
        "upstream_posloss": losses[doc["gold"]],
        "upstream_negloss": stats.mean_false(losses, doc["gold"]),
    }


def _log_scores(doc: Doc, scores: Sequence[Score], suffix: str = "") -> list[float]:
    """Return the endings' losses, and leave them with the question for the sample log."""
    losses = [score.nll for score in scores]
    doc[f"ending_nll{suffix}"] = losses
    doc[f"ending_tokens{suffix}"] = [len(score.token_logprobs) for score in scores]
    if any(score.transcripts for score in scores):
        doc[f"transcripts{suffix}"] = [list(score.transcripts) for score in scores]
    return losses


def _all_scores(results: Sequence[Pair]) -> TypeGuard[Sequence[Score]]:
    return all(isinstance(result, Score) for result in results)


@cache
def _warn_of_plain_pairs() -> None:
    log.warning(
        "This model returns summed log-likelihoods without token counts, so metrics per token "
        "(pair_acc, mc_acc, nll_*, ppl_*, tie_rate) are left out; acc and acc_norm remain. "
        "Use --model speech-hf, which scores text models too, to get all of them."
    )
