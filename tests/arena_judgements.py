"""Judgements for tests: single ones, and those of simulated judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from s2s_tasks.arena.records import Battle, Criterion, Judgement, Level, Probe, Winner


def judged(
    first: str,
    second: str,
    winner: Winner | None = "first",
    *,
    instruction: str = "q",
    judge: str = "judge",
    level: Level | None = 1,
    domain: str = "education",
    propensity: float = 1.0,
    probe: Probe | None = None,
    features: Mapping[str, float] | None = None,
    winners: Mapping[Criterion, Winner] | None = None,
) -> Judgement:
    """Return a judgement with an overall verdict; None is one that could not be read."""
    verdicts: Mapping[Criterion, Winner] = {} if winner is None else {"overall": winner}
    return Judgement(
        battle=Battle(instruction, first, second, propensity, seed=0, probe=probe),
        judge=judge,
        domain=domain,
        task="pause",
        level=level,
        language="en",
        winners=verdicts if winners is None else winners,
        reply="…",
        prompt_sha256="0" * 64,
        answers={
            "instruction": instruction,
            **{
                role: f"{system} on {instruction}"
                for role, system in (("first", first), ("second", second))
            },
        },
        features=features or {},
        time="2026-01-02T03:04:05+00:00",
        version="0",
    )


def contest(
    truth: Sequence[float],
    battles: int,
    seed: int,
    *,
    position: float = 0.0,
    length: float = 0.0,
) -> list[Judgement]:
    """Return verdicts that follow the Bradley–Terry model, two on each instruction.

    Args:
        truth: ratings of the systems `s0`, `s1` …
        battles: how many.
        seed: of everything.
        position: log-odds that being heard first adds.
        length: log-odds that (a - b) / (a + b) of the seconds adds.
    """
    rng = np.random.default_rng(seed)
    found = []
    for number in range(battles):
        one, other = rng.choice(len(truth), 2, replace=False)
        seconds = rng.uniform(2, 20, 2)
        loudness = rng.normal(-23, 1, 2)
        odds = (truth[one] - truth[other]) * np.log(10) / 400 + position
        odds += length * (seconds[0] - seconds[1]) / seconds.sum()
        found.append(
            judged(
                f"s{one}",
                f"s{other}",
                "first" if rng.random() < 1 / (1 + np.exp(-odds)) else "second",
                instruction=f"q{number // 2}",
                level=(1, 2, 3, 4)[number // 2 % 4],
                domain=("education", "medical")[number // 2 % 2],
                features={
                    "first_seconds": seconds[0],
                    "second_seconds": seconds[1],
                    "first_loudness": loudness[0],
                    "second_loudness": loudness[1],
                },
            )
        )
    return found
