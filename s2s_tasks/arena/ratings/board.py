"""Everything that is rated from one log, and what a reader must know of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from s2s_tasks.arena.ratings.bradley_terry import FEW, RESAMPLES, Fit, bradley_terry
from s2s_tasks.arena.ratings.covariates import DEFAULT, Control, control
from s2s_tasks.arena.ratings.elo import Elo, elo
from s2s_tasks.arena.ratings.outcomes import Array, Selection, select, tally
from s2s_tasks.arena.records import Criterion, Judgement


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
    control: Control
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
    selection = select(judgements, criterion)
    rated = selection.judgements

    def group(name: str, chosen: Sequence[Judgement]) -> Group:
        outcomes = tally(chosen, criterion, weighted=weighted)
        fit = bradley_terry(outcomes, resamples, seed)
        return Group(name, outcomes.systems, fit, elo(outcomes, seed=seed))

    everything = group("overall", rated)
    domains = sorted({judgement.domain for judgement in rated} - {""})
    levels = sorted({judgement.level for judgement in rated if judgement.level is not None})
    controlled = control(rated, everything.fit, criterion, covariates, weighted=weighted)
    judges = tuple(dict.fromkeys(judgement.judge for judgement in rated))
    wins = tally(rated, criterion).wins().sum(axis=0)
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
        control=controlled,
        wins=wins[place][:, place],
        notes=tuple(_notes(selection, judges, everything, controlled, weighted)),
    )


def _notes(
    selection: Selection,
    judges: tuple[str, ...],
    everything: Group,
    controlled: Control,
    weighted: bool,
) -> Iterable[str]:
    fit = everything.fit
    if selection.unreadable:
        total = selection.unreadable + len(selection.judgements)
        yield (
            f"{selection.unreadable:,} of {total:,} judgements have no readable verdict "
            f"on {selection.criterion!r} and are left out."
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
            f"{', '.join(held)}: never won, or never lost, against the others, so that any rating "
            "beyond would fit as well. A made-up tie with each such opponent holds the rating; "
            "its interval is too narrow."
        )
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
    if controlled.left_out:
        yield (
            "Not controlled for, since not measured of all answers or alike in all: "
            f"{', '.join(controlled.left_out)}."
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
        "weighted": board.weighted,
        "overall": _group(board.everything),
        "domains": {group.name: _group(group) for group in board.domains},
        "levels": {group.name: _group(group) for group in board.levels},
        "control": asdict(board.control),
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
