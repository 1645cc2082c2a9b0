"""Battles whose outcome is known, and how often a judge gets them wrong."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import soundfile

from s2s_tasks.arena.contest.meeting import Meeting
from s2s_tasks.arena.judges.prompt import mode_of
from s2s_tasks.arena.records import Answer, Battle, Instruction, Judgement, Probe
from s2s_tasks.audio import Audio, probe
from s2s_tasks.inference import Interval, mean_interval

NAMES: dict[Probe, str] = {"silence": "<silence>", "noise": "<noise>", "other": "<other>"}
"""What stands in `Battle.first` or `second` for what is no system's answer."""
NOISE = 0.1
"""Root mean square of the white noise; judges hear all at one loudness."""
RATE = 16000


@dataclass(frozen=True)
class Failures:
    """How a judge did on probes of one kind, overall."""

    judge: str
    kind: Probe
    asked: int
    """Those with a verdict that could be read."""
    unreadable: int
    failed: int
    """Where the worse one won or drew; of an answer against itself, where one won. Neither being
    acceptable is no failure."""
    share: Interval | None
    """Of failures; None where none could be read, or, of an answer against itself, where the judge
    had to name a winner."""
    first: int
    """How often the first one won."""
    ties: int
    """How often none won, for good or bad."""
    first_share: Interval | None
    """Of those that one won, how often it was the first; None where none did."""


def choose_probes(
    instructions: Mapping[str, Instruction],
    answers: Mapping[str, Mapping[str, Answer]],
    *,
    count: int,
    seed: int,
    folder: Path,
    both_orders: bool,
) -> list[Meeting]:
    """Return probes, of each kind in turn.

    Args:
        instructions: by id.
        answers: that have sound, by instruction and system.
        count: of what is drawn; each is one battle, or two in both orders.
        seed: of the run.
        folder: where silence and noise are written.
        both_orders: let the answer be heard first and second.
    """
    pool = sorted((identifier, system) for identifier, given in answers.items() for system in given)
    order = random.Random(f"{seed}\x1fprobes")
    order.shuffle(pool)
    kinds = get_args(Probe)
    meetings: list[Meeting] = []
    for number, (identifier, system) in enumerate(pool[:count]):
        kind: Probe = kinds[number % len(kinds)]
        sound = _sound(answers[identifier][system])
        against = _against(kind, identifier, system, answers, folder, order)
        if against is None:
            continue
        sides = [(system, sound), (NAMES.get(kind, system), against)]
        turned = kind != "itself" and (both_orders or order.random() < 0.5)
        kept = [sides] if not turned else [sides, sides[::-1]] if both_orders else [sides[::-1]]
        meetings += [
            Meeting(
                Battle(identifier, first[0], second[0], 1.0, seed, kind),
                instructions[identifier],
                first[1],
                second[1],
            )
            for first, second in kept
        ]
    return meetings


def failures(judgements: Iterable[Judgement]) -> list[Failures]:
    """Return how judges did on probes, by judge and kind; intervals are by instruction.

    Whether a judge could say that neither is better is in its name, of those whom a contest asks;
    of all others it is whether they ever did, so give their verdicts on other battles, too.
    """
    probed: dict[str, dict[Probe, list[Judgement]]] = {}
    may_tie: dict[str, bool] = {}
    for judgement in judgements:
        judge, kind = judgement.judge, judgement.battle.probe
        drew = not set(judgement.winners.values()) <= {"first", "second"}
        may_tie[judge] = may_tie.get(judge, mode_of(judge) == "ties") or drew
        if kind is not None:
            probed.setdefault(judge, defaultdict(list))[kind].append(judgement)
    return [
        _failures(judge, kind, kinds[kind], may_tie[judge])
        for judge, kinds in probed.items()
        for kind in get_args(Probe)
        if kind in kinds
    ]


def _failures(judge: str, kind: Probe, judgements: Sequence[Judgement], may_tie: bool) -> Failures:
    read = [j for j in judgements if "overall" in j.winners]
    decisive = [j for j in read if j.winners["overall"] in ("first", "second")]
    first = [judgement.winners["overall"] == "first" for judgement in decisive]
    failed = [_has_failed(judgement) for judgement in read]
    told = kind != "itself" or may_tie
    return Failures(
        judge=judge,
        kind=kind,
        asked=len(read),
        unreadable=len(judgements) - len(read),
        failed=sum(failed),
        share=_share(failed, read) if told else None,
        first=sum(first),
        ties=len(read) - len(decisive),
        first_share=_share(first, decisive),
    )


def _share(hits: Sequence[bool], judgements: Sequence[Judgement]) -> Interval | None:
    if not hits:
        return None
    # Both orders of a probe are asked, and are not more evidence than one.
    return mean_interval(
        np.array(hits, float), [judgement.battle.instruction for judgement in judgements]
    )


def _has_failed(judgement: Judgement) -> bool:
    battle, winner = judgement.battle, judgement.winners["overall"]
    if battle.probe == "itself":
        return winner in ("first", "second")
    right = "second" if battle.first in NAMES.values() else "first"
    return winner not in (right, "both_bad")


def _against(
    kind: Probe,
    identifier: str,
    system: str,
    answers: Mapping[str, Mapping[str, Answer]],
    folder: Path,
    order: random.Random,
) -> Audio | None:
    """Return what an answer is to meet; None where the system answered nothing else."""
    sound = _sound(answers[identifier][system])
    if kind == "itself":
        return sound
    if kind == "other":
        others = sorted(i for i, given in answers.items() if i != identifier and system in given)
        return _sound(answers[order.choice(others)][system]) if others else None
    frames = round(sound.seconds * RATE)
    draws = np.random.default_rng(frames).normal(scale=NOISE, size=frames)
    signal = np.zeros(frames) if kind == "silence" else np.clip(draws, -1, 1)
    path = folder / f"{kind}-{frames}.wav"
    soundfile.write(path, signal, RATE, subtype="PCM_16")
    return probe(path)


def _sound(answer: Answer) -> Audio:
    assert answer.audio is not None, "only answers with sound are probed"
    return answer.audio
