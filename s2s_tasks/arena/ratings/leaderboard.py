"""A leaderboard as a document: tables, ratings with intervals, the heat map of win rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from s2s_tasks.arena.contest.probes_report import probes_section
from s2s_tasks.arena.ratings.board import Board, Group
from s2s_tasks.arena.ratings.bradley_terry import FEW, Rating
from s2s_tasks.arena.ratings.covariates import Control
from s2s_tasks.arena.ratings.drawings import READ, draw_ratings, draw_win_rates
from s2s_tasks.arena.ratings.outcomes import Array
from s2s_tasks.report.document import Document, Figure, Section, Table

_CRITERIA = {
    "instruction": "instruction alignment",
    "expression": "paralinguistic expressiveness",
    "quality": "audio quality",
    "overall": "overall",
}


def leaderboard(board: Board) -> Document:
    """Return the document."""
    criterion = _CRITERIA[board.selection.criterion]
    groups = [group for group in (*board.domains, *board.levels)]
    return Document(
        f"S2S-Arena leaderboard: {criterion}",
        list(_summary(board)),
        list(board.notes),
        [
            _ranking(board),
            _matrix(board),
            *([_groups(groups)] if groups else []),
            *([_control(board.control, board.by_rule)] if board.control else []),
            *([probes_section(board.probes)] if board.probes else []),
            _methods(),
        ],
    )


def win_rates(wins: Array) -> Array:
    """Return the share that row won against column, of shape (systems, systems); nan: never met."""
    battles = wins + wins.T
    empty = np.full_like(wins, np.nan)
    result: Array = np.divide(wins, battles, out=empty, where=battles > 0)
    return result


def _summary(board: Board) -> list[str]:
    fit, selection = board.everything.fit, board.selection
    best, second = fit.ratings[0], fit.ratings[1]
    sentences = [
        f"{fit.battles:,} verdicts of {', '.join(board.judges)} on {fit.instructions:,} "
        f"instructions rate {len(fit.ratings)} systems; {selection.probes:,} probes do not count.",
        f"First is {best.system} with {_rated(best)}, then {second.system} with {_rated(second)}.",
    ]
    tied = [r.system for r in fit.ratings[1:] if r.group == 1 and r.rank_low == 1]
    if tied:
        sentences.append(f"First place may as well be {', '.join(tied)}'s, by its interval.")
    if board.control:
        position = board.control.effects[0].win_rate
        sentences.append(
            "These battles do not tell what being heard first is worth."
            if math.isnan(position.low)
            else f"Of two equal answers the one heard first wins {100 * position.estimate:.1f} % "
            f"(95 % interval {100 * position.low:.1f} to {100 * position.high:.1f})."
        )
    return sentences


def _rated(rating: Rating) -> str:
    interval = rating.rating
    if math.isnan(interval.low):
        return f"{interval.estimate:.0f} (no interval)"
    return f"{interval.estimate:.0f} ({interval.low:.0f} to {interval.high:.0f})"


def _ranking(board: Board) -> Section:
    group = board.everything
    several = group.fit.groups > 1
    frame = _frame(
        ({"group": rating.group} if several else {})
        | _row(rating)
        | {
            "wins": rating.wins,
            "losses": rating.losses,
            "ties": rating.ties,
            "win rate, %": 100 * rating.win_rate,
        }
        for rating in group.fit.ratings
    )
    elo = pd.DataFrame(
        {"system": rating.system, **_elo(group, rating.system)} for rating in group.fit.ratings
    )
    return Section(
        "ranking",
        "Leaderboard",
        [
            "Rating: Bradley–Terry, where 400 points are odds of ten to one and the mean is 1000. "
            "From … to: 95 % intervals, of the rating and of the rank; none where the battles do "
            "not tell, as of a system that never won or never lost.",
        ],
        [
            Table("leaderboard", "Ratings", frame, _FORMATS),
            Figure(
                "ratings",
                "Ratings with 95 % intervals",
                "; ".join(f"{rating.system}: {_rated(rating)}" for rating in group.fit.ratings),
                lambda theme: draw_ratings(group.fit.ratings, theme),
                "A hollow mark has no interval.",
            ),
            Table(
                "elo",
                "Elo, as published",
                elo,
                _FORMATS,
                "In the order of the log; mean and standard deviation (±) over shuffles of the "
                "same battles show how much that order matters.",
            ),
        ],
    )


_FORMATS = {
    **dict.fromkeys(("rating", "from", "to", "Elo", "Elo, mean"), "{:.0f}"),
    "Elo, ±": "{:.0f}",
    "win rate, %": "{:.1f}",
    "battles": "{:,}",
}


def _frame(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(("rank from", "rank to"), "Int64"))  # some are missing


def _row(rating: Rating) -> dict[str, object]:
    return {
        "rank": rating.rank,
        "system": rating.system,
        "rating": rating.rating.estimate,
        "from": rating.rating.low,
        "to": rating.rating.high,
        "rank from": rating.rank_low,
        "rank to": rating.rank_high,
        "battles": rating.battles,
    }


def _elo(group: Group, system: str) -> dict[str, float]:
    place = group.systems.index(system)
    return {
        "Elo": group.elo.published[place],
        "Elo, mean": group.elo.mean[place],
        "Elo, ±": group.elo.spread[place],
    }


def _matrix(board: Board) -> Section:
    rates = 100 * win_rates(board.wins)
    battles = board.wins + board.wins.T
    pairs = pd.DataFrame(
        {
            "system": one,
            "against": other,
            "battles": round(float(battles[row, column])),
            "win rate, %": rates[row, column],
        }
        for row, one in enumerate(board.ranked)
        for column, other in enumerate(board.ranked)
        if row < column and battles[row, column]
    )
    told = [
        f"{one} won {rate:.0f} % against {other}"
        for one, other, rate in zip(
            pairs["system"], pairs["against"], pairs["win rate, %"], strict=True
        )
    ]
    if len(board.ranked) > READ:
        told = [f"{len(board.ranked)} systems by their ratings; the table below has every pair"]
    return Section(
        "matrix",
        "Who beats whom",
        [
            "Share of battles that the system of the row won against that of the column; a tie is "
            "half a win. Blank: never met."
        ],
        [
            Figure(
                "win-rates",
                "Win rates, %",
                "; ".join(told),
                lambda theme: draw_win_rates(board.ranked, rates, theme),
            ),
            Table("pairs", "Every pair that met", pairs, _FORMATS, folded=True),
        ],
    )


def _groups(groups: Sequence[Group]) -> Section:
    frame = _frame(
        {
            "part": group.name,
            **({"group": rating.group} if any(g.fit.groups > 1 for g in groups) else {}),
            **_row(rating),
            "Elo": _elo(group, rating.system)["Elo"],
            "few battles": rating.few or group.fit.instructions < FEW,
            "held": rating.held,
        }
        for group in groups
        for rating in group.fit.ratings
    )
    return Section(
        "parts",
        "By domain and level",
        [
            "Each part is rated by itself, from its own battles. Many parts are looked at, and "
            "their intervals are not corrected for that."
        ],
        [
            Table(
                "groups",
                "Ratings by domain and level",
                frame,
                _FORMATS,
                f"Few battles: fewer than {FEW} battles of the system or instructions of the part. "
                "Held: wins go one way only, to or from others; the rating rests on a made-up "
                "tie, and has no interval.",
            )
        ],
    )


def _control(control: Control, by_rule: int) -> Section:
    effects = pd.DataFrame(
        {
            "covariate": effect.name,
            "coefficient": effect.coefficient.estimate,
            "from": effect.coefficient.low,
            "to": effect.coefficient.high,
            "win rate, %": 100 * effect.win_rate.estimate,
            "win rate from": 100 * effect.win_rate.low,
            "win rate to": 100 * effect.win_rate.high,
        }
        for effect in control.effects
    )
    adjusted = pd.DataFrame(
        {
            "system": system,
            "rating": control.plain[system],
            "adjusted": interval.estimate,
            "from": interval.low,
            "to": interval.high,
        }
        for system, interval in control.ratings.items()
    )
    odds = dict.fromkeys(("coefficient", "from", "to"), "{:+.2f}")
    shares = dict.fromkeys(("win rate, %", "win rate from", "win rate to"), "{:.1f}")
    return Section(
        "control",
        "Position, length, loudness",
        [
            "A logistic regression of the verdicts on who met whom, on the order, and on how the "
            "two answers differ. A coefficient is in log-odds: of being heard first, or of a "
            "difference by one standard deviation. The win rate is that of the first, longer or "
            "louder of two answers that are otherwise alike. From … to: 95 % intervals.",
            *(["Both ratings below leave out what a rule decided."] if by_rule else []),
        ],
        [
            Table("covariates", "What decides beside the system", effects, odds | shares),
            Table(
                "adjusted",
                "Ratings as if answers were alike in these",
                adjusted,
                _FORMATS | {"adjusted": "{:.0f}"},
                "Length may be a merit or a fault of an answer; the adjusted rating is a second "
                "view, not a better one.",
            ),
        ],
    )


def _methods() -> Section:
    return Section(
        "methods",
        "How this was made",
        [
            "Bradley–Terry: maximum likelihood (evalica); a tie, good or bad, is half a win for "
            "both. Intervals: instructions are drawn with replacement, each with all its battles "
            "and both orders; percentiles. Systems that nobody links by battles are rated apart.",
            "Elo: from 1000, K = 32, scale 400, one battle after another, without ties "
            "(arXiv 2503.05085).",
            "Both orders of a pair are two verdicts: where they contradict each other, each system "
            "has won once.",
        ],
        [],
    )
