"""The leaderboard's document: what was voted so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from s2s_tasks.arena.page.board import Leaderboard
from s2s_tasks.arena.page.store import Progress
from s2s_tasks.arena.records import Judgement
from s2s_tasks.errors import S2STasksError
from s2s_tasks.inference import mean_interval
from s2s_tasks.report.document import Document, Section, Table


def board(
    judgements: Sequence[Judgement],
    progress: Mapping[str, Progress],
    leaderboard: Leaderboard | None = None,
) -> Document:
    """Return the document: ratings where there is something to rate, then counts."""
    counted = Section(
        "votes",
        "Votes",
        [
            "By the overall vote. A win rate is of the votes that one answer won, with its 95% "
            "interval (Wilson); probes do not count."
        ],
        [
            Table(
                "votes-systems",
                "Systems",
                _systems(judgements),
                {"Win rate": "{:.1%}", "Low": "{:.1%}", "High": "{:.1%}"},
            ),
            Table("votes-annotators", "Annotators", _annotators(progress)),
        ],
    )
    summary = [_sentence(judgements, progress)]
    warnings = []
    if leaderboard and judgements:
        try:
            document = leaderboard(judgements)
        except S2STasksError as error:
            warnings.append(f"Nothing is rated yet: {error}.")
        else:
            sections = [*document.sections, counted]
            return replace(document, summary=[*summary, *document.summary], sections=sections)
    return Document("Votes so far", summary, warnings, [counted])


def _sentence(judgements: Sequence[Judgement], progress: Mapping[str, Progress]) -> str:
    left = sum(one.assigned - one.done for one in progress.values())
    return f"{len(judgements)} votes by {len(progress)} annotators; {left} battles are open."


def _systems(judgements: Iterable[Judgement]) -> pd.DataFrame:
    counts: dict[str, Counter[str]] = {}
    for judgement in judgements:
        battle, winner = judgement.battle, judgement.winners.get("overall")
        if winner is None or battle.probe is not None:
            continue
        for role, system in (("first", battle.first), ("second", battle.second)):
            decided = "wins" if winner == role else "losses"
            outcome = decided if winner in ("first", "second") else winner
            counts.setdefault(system, Counter())[outcome] += 1
    rows = [_system(name, count) for name, count in counts.items()]
    columns = ["System", "Votes", "Wins", "Losses", "Ties", "Both bad", "Win rate", "Low", "High"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values(["Win rate", "System"], ascending=[False, True])


def _system(name: str, count: Counter[str]) -> list[object]:
    decided = [1.0] * count["wins"] + [0.0] * count["losses"]
    rate = mean_interval(decided) if decided else None
    return [
        name,
        count.total(),
        count["wins"],
        count["losses"],
        count["tie"],
        count["both_bad"],
        *((rate.estimate, rate.low, rate.high) if rate else (None, None, None)),
    ]


def _annotators(progress: Mapping[str, Progress]) -> pd.DataFrame:
    rows = [(name, one.assigned, one.voted, one.skipped) for name, one in progress.items()]
    return pd.DataFrame(rows, columns=["Annotator", "Assigned", "Voted", "Skipped"])
