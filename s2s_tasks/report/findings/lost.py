"""The questions that were right when read and wrong when heard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from s2s_tasks.report.answers import Array, Run
from s2s_tasks.report.document import Clip, Clips, Section
from s2s_tasks.report.pairing import Pair


def section(pairs: Sequence[Pair]) -> Section:
    """List what was lost of each pair, the largest change of margin first."""
    return Section(
        "lost",
        "Right when read, wrong when heard",
        [
            "Questions whose true ending beat all others when the context was read, and did not "
            "when it was heard; the largest change of margin first. Margins are those against the "
            "false ending that won when heard.",
        ],
        [
            Clips(
                f"lost-{number}",
                f"{pair.model}, {pair.question_set}",
                lost(pair),
                _counts(pair),
                "nats per token" if pair.per_token else "nats, summed",
            )
            for number, pair in enumerate(pairs, 1)
        ],
    )


def _counts(pair: Pair) -> str:
    reading, hearing = pair.measure("mc_acc")
    gone, gained = np.sum((reading == 1) & (hearing < 1)), np.sum((reading < 1) & (hearing == 1))
    return (
        f"{gone:,} of {len(pair.ids):,} questions were lost and {gained:,} are right only when "
        "heard. All of the lost ones:"
    )


def lost(pair: Pair) -> list[Clip]:
    """Return the questions that were lost, those with the largest change of margin first."""
    reading, hearing = (_costs(pair, run) for run in (pair.reading, pair.hearing))
    transcripts = pair.hearing.table.loc[list(pair.ids), "transcript"]
    found = []
    for place, question in enumerate(pair.questions):
        read, heard = reading[place], hearing[place]
        gold = question.gold
        rival = _rival(heard, gold)
        if _margin(read, _rival(read, gold), gold) > 0 >= _margin(heard, rival, gold):
            found.append(
                Clip(
                    question=question.id,
                    where=f"{pair.model}, {pair.question_set}",
                    context=question.context,
                    true_ending=question.endings[gold],
                    false_ending=question.endings[rival],
                    margin_t2t=_margin(read, rival, gold),
                    margin_s2t=_margin(heard, rival, gold),
                    transcript=transcripts.iloc[place],
                    audio=question.audio,
                )
            )
    return sorted(found, key=lambda clip: clip.margin_s2t - clip.margin_t2t)


def _costs(pair: Pair, run: Run) -> Array:
    """Return what each ending costs, in the order of the pair's questions."""
    places = run.places(pair.ids)
    return run.losses[places] if pair.per_token else -run.sums[places]


def _rival(costs: Array, gold: int) -> int:
    others = costs.copy()
    others[gold] = np.nan
    return int(np.nanargmin(others))


def _margin(costs: Array, rival: int, gold: int) -> float:
    return float(costs[rival] - costs[gold])
