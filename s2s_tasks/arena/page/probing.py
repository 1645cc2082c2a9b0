"""Probes among the battles that people judge, and how people do on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import rmtree

from s2s_tasks.arena.page.votes import Answers, Measure, draft
from s2s_tasks.arena.page.work import unordered
from s2s_tasks.arena.records import Answer, Instruction, Judgement

PROBES = 0.1
"""For each battle that is dealt."""
SEED = 0


def draw_probes(
    known: Mapping[str, Judgement],
    instructions: Mapping[str, Instruction],
    answers: Answers,
    count: int,
    measure: Measure,
    folder: Path,
) -> tuple[dict[str, Judgement], dict[str, bytes]]:
    """Return the probes that are still missing, and the recordings that are no system's.

    They are of the answers that meet in battles, so that nothing else sets them apart.

    Args:
        known: key → draft of all battles, probes too.
        instructions: by id.
        answers: by system, then by the instruction's id.
        count: of all probes that there should be; there are fewer where answers are.
        measure: gives the features of an answer.
        folder: for recordings meanwhile. It goes in the end, and what a kill left in it, too.

    Returns:
        Key → draft, and SHA-256 → silence or noise, encoded.
    """
    missing = count - sum(bool(one.battle.probe) for one in known.values())
    if missing <= 0:
        return {}, {}
    from s2s_tasks.arena.contest.probes import (  # slow, and for new probes alone
        NAMES,
        choose_probes,
    )

    made = (NAMES["silence"], NAMES["noise"])
    pool: dict[str, dict[str, Answer]] = defaultdict(dict)
    for battle in (judgement.battle for judgement in known.values()):
        for system in (battle.first, battle.second):
            answer = answers.get(system, {}).get(battle.instruction)
            if answer and answer.status == "ok":
                pool[battle.instruction][system] = answer
    drafts: dict[str, Judgement] = {}
    sounds: dict[str, bytes] = {}
    folder.mkdir(exist_ok=True)
    try:
        meetings = choose_probes(
            instructions, pool, count=count, seed=SEED, folder=folder, both_orders=False
        )
        new = [one for one in meetings if unordered(one.battle) not in known][:missing]
        for one in new:
            assert one.first and one.second, "probes have sound"
            drafts[unordered(one.battle)] = draft(
                one.battle, one.instruction, one.first, one.second, measure
            )
            for name, audio in ((one.battle.first, one.first), (one.battle.second, one.second)):
                if name in made:
                    sounds[audio.sha256] = audio.read()
    finally:
        rmtree(folder)
    return drafts, sounds


def told(judgements: Iterable[Judgement]) -> list[str]:
    """Return a line for each annotator and kind of probe that they judged."""
    judged = list(judgements)
    if not any(judgement.battle.probe for judgement in judged):
        return []
    from s2s_tasks.arena.contest.probes import failures
    from s2s_tasks.arena.contest.probes_report import probe_line

    return [f"{found.judge}: {probe_line(found)}" for found in failures(judged)]
