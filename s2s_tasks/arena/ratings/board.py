"""Everything that is rated from one log, and what a reader must know of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from s2s_tasks.arena.contest.probes import Failures, failures
from s2s_tasks.arena.contest.probes_report import probe_warnings
from s2s_tasks.arena.ratings.bradley_terry import FEW, RESAMPLES, Fit, bradley_terry
from s2s_tasks.arena.ratings.covariates import DEFAULT, Control, control
from s2s_tasks.arena.ratings.elo import Elo, elo
from s2s_tasks.arena.ratings.outcomes import Array, Selection, select, tally
from s2s_tasks.arena.records import Criterion, Judgement
from s2s_tasks.arena.verdicts import by_rule


@dataclass(frozen=True)
class Group:
    """The battles of one domain or level, rated by themselves."""

    name: str
    systems: tuple[str, ...]
    """Of the Elo ratings."""
    fit: Fit
    elo: Elo


@dataclass(frozen=True)
class Board:
    """A leaderboard by one criterion."""

    selection: Selection
    judges: tuple[str, ...]
    weighted: bool
    everything: Group
    domains: tuple[Group, ...]
    levels: tuple[Group, ...]
    by_rule: int
    """Of the rated judgements, those that no judge gave, as an answer was silent."""
    control: Control | None
    """Of the others alone; None where there are none."""
    probes: tuple[Failures, ...]
    wins: Array
    """Of row over column, unweighted, a tie being half of one; in the order of `ranked`."""
    notes: tuple[str, ...]

    @property
    def ranked(self) -> tuple[str, ...]:
        """Systems, from the best."""
        return tuple(rating.system for rating in self.everything.fit.ratings)


def build(
    judgements: Iterable[Judgement],
    criterion: Criterion = "overall",
    *,
    covariates: Sequence[str] = DEFAULT,
    weighted: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Board:
    """Rate all systems: overall, by domain, by level, and with covariates.

    Args:
        judgements: in the order of the log.
        criterion: which verdicts.
        covariates: features of answers to control for, beside the position.
        weighted: whether a battle counts as one over its propensity.
        resamples: of the bootstrap.
        seed: of resamples and shuffles.

    Raises:
        S2STasksError: when nothing is left to rate.
    """
    judgements = list(judgements)
    selection = select(judgements, criterion)
    rated = selection.judgements

    def group(name: str, chosen: Sequence[Judgement]) -> Group:
        outcomes = tally(chosen, criterion, weighted=weighted)
        fit = bradley_terry(outcomes, resamples, seed)
        return Group(name, outcomes.systems, fit, elo(outcomes, seed=seed))

    everything = group("overall", rated)
    domains = sorted({judgement.domain for judgement in rated} - {""})
    levels = sorted({judgement.level for judgement in rated if judgement.level is not None})
    judged = [judgement for judgement in rated if not by_rule(judgement)]
    controlled = None
    if judged:
        outcomes = tally(judged, criterion, weighted=weighted)
        every = len(judged) == len(rated)
        fit = everything.fit if every else bradley_terry(outcomes, resamples, seed)
        controlled = control(judged, fit, criterion, covariates, weighted=weighted)
    judges = tuple(dict.fromkeys(judgement.judge for judgement in rated))
    probes = tuple(failures(judgements))
    wins = tally(rated, criterion).wins()
    place = [everything.systems.index(rating.system) for rating in everything.fit.ratings]
    return Board(
        selection=selection,
        judges=judges,
        weighted=weighted,
        everything=everything,
        domains=tuple(group(name, [j for j in rated if j.domain == name]) for name in domains),
        levels=tuple(
            group(f"L{level}", [j for j in rated if j.level == level]) for level in levels
        ),
        by_rule=len(rated) - len(judged),
        control=controlled,
        probes=probes,
        wins=wins[place][:, place],
        notes=(
            *probe_warnings(probes),
            *_notes(selection, judges, everything, len(judged), controlled, weighted),
        ),
    )


def _notes(
    selection: Selection,
    judges: tuple[str, ...],
    everything: Group,
    judged: int,
    controlled: Control | None,
    weighted: bool,
) -> Iterable[str]:
    fit = everything.fit
    if selection.unreadable:
        total = selection.unreadable + judged
        yield (
            f"{selection.unreadable:,} of {total:,} judgements have no readable verdict "
            f"on {selection.criterion!r} and are left out."
        )
    if rest := fit.battles - judged:
        yield (
            f"{rest:,} of {fit.battles:,} battles were not put to a judge: a silent answer loses "
            "by rule. They are rated, and say nothing of the judge."
        )
    if len(judges) > 1:
        yield f"Verdicts of {len(judges)} judges are rated together: {', '.join(judges)}."
    if fit.groups > 1:
        circles = [
            ", ".join(rating.system for rating in fit.ratings if rating.group == group)
            for group in range(1, fit.groups + 1)
        ]
        yield (
            f"No chain of battles links {fit.groups} groups of systems, so ratings and ranks "
            f"compare within a group only: {'; '.join(circles)}."
        )
    if held := [rating.system for rating in fit.ratings if rating.held]:
        yield (
            f"{', '.join(held)}: wins go from some of these to others and never back, so that any "
            "distance beyond would fit as well. A made-up tie with each such opponent holds the "
            "rating, which has no interval."
        )
    sure = [r.system for r in fit.ratings if math.isnan(r.rating.low) and not r.held]
    if sure and fit.instructions > 1:
        yield (
            f"{', '.join(sure)}: every choice of instructions gives the same rating, so that there "
            "is no interval. That is no certainty: a judge causes it who always names the one "
            "heard first (both orders of a pair then cancel), or never a winner."
        )
    if anew := _anew(selection.judgements):
        yield anew
    if few := [rating.system for rating in fit.ratings if rating.few]:
        yield f"Fewer than {FEW} battles: {', '.join(few)}."
    if fit.instructions < FEW:
        yield (
            f"All battles are on {fit.instructions} instructions; below {FEW}, bootstrap intervals "
            "are somewhat narrow."
        )
    if everything.elo.ties:
        yield (
            f"Elo as published has no ties: it leaves out {everything.elo.ties:,} of "
            f"{fit.battles:,} battles."
        )
    if weighted:
        yield (
            f"Battles are weighted by inverse propensity; they tell as much as "
            f"{fit.effective:,.0f} of equal weight would."
        )
    if controlled and controlled.left_out:
        yield (
            "Not controlled for, since not measured of all answers or alike in all: "
            f"{', '.join(controlled.left_out)}."
        )


def _anew(judgements: Iterable[Judgement]) -> str:
    """Return what there is to say of answers with several recordings; nothing where none has."""
    recordings: dict[tuple[str, str], set[str]] = defaultdict(set)
    for judgement in judgements:
        battle = judgement.battle
        for role, system in (("first", battle.first), ("second", battle.second)):
            if sha256 := judgement.answers.get(role):
                recordings[system, battle.instruction].add(sha256)
    several = {answer: found for answer, found in recordings.items() if len(found) > 1}
    if not several:
        return ""
    system, instruction = next(iter(several))
    return (
        f"{len(several):,} answers are in these battles with several recordings (that of {system} "
        f"to {instruction} with {len(several[system, instruction])}): they were made anew while "
        "the log was kept, and what was judged of old and new ones is rated together. To rate the "
        "present ones alone, judge them into a new log."
    )


def to_json(board: Board) -> dict[str, Any]:
    """Return the board's numbers; what is not known is nan."""
    selection = board.selection
    return {
        "criterion": selection.criterion,
        "judges": list(board.judges),
        "battles": len(selection.judgements),
        "unreadable": selection.unreadable,
        "probes": selection.probes,
        "by_rule": board.by_rule,
        "failures_on_probes": [asdict(found) for found in board.probes],
        "weighted": board.weighted,
        "overall": _group(board.everything),
        "domains": {group.name: _group(group) for group in board.domains},
        "levels": {group.name: _group(group) for group in board.levels},
        "control": asdict(board.control) if board.control else None,
        "wins": {"systems": list(board.ranked), "row_over_column": board.wins.tolist()},
        "notes": list(board.notes),
    }


def _group(group: Group) -> dict[str, Any]:
    rows = []
    for rating in group.fit.ratings:
        place = group.systems.index(rating.system)
        own = {
            "win_rate": rating.win_rate,
            "elo_published": group.elo.published[place],
            "elo_mean": group.elo.mean[place],
            "elo_spread": group.elo.spread[place],
        }
        rows.append(asdict(rating) | {key: float(value) for key, value in own.items()})
    return {
        "battles": group.fit.battles,
        "instructions": group.fit.instructions,
        "effective_battles": group.fit.effective,
        "ratings": rows,
    }
