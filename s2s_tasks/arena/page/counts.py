"""The leaderboard's document: what was voted so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from s2s_tasks.arena.contest.probes import failures
from s2s_tasks.arena.contest.probes_report import probes_section
from s2s_tasks.arena.page.rows import Progress
from s2s_tasks.arena.records import Judgement
from s2s_tasks.errors import S2STasksError
from s2s_tasks.inference import mean_interval
from s2s_tasks.report.document import Document, Section, Table

Leaderboard = Callable[[Iterable[Judgement]], Document]
"""Ratings of a log."""


def board(
    judgements: Sequence[Judgement],
    progress: Mapping[str, Progress],
    leaderboard: Leaderboard | None = None,
) -> Document:
    """Return the document: ratings where there is something to rate, counts, then probes."""
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
    sections = [counted]
    if found := failures(judgements):
        sections.append(_of_people(probes_section(found)))
    summary = [_sentence(judgements, progress)]
    warnings = []
    if leaderboard and judgements:
        try:
            document = leaderboard(judgements)
        except S2STasksError as error:
            warnings.append(f"Nothing is rated yet: {error}.")
        else:
            # Ratings may tell of probes, too.
            told = {section.key for section in document.sections}
            added = [section for section in sections if section.key not in told]
            return replace(
                document,
                summary=[*summary, *document.summary],
                sections=[*map(_of_people, document.sections), *added],
            )
    return Document("Votes so far", summary, warnings, sections)


def _of_people(section: Section) -> Section:
    """Return a section; that on probes is not on judges here, whom people are not called."""
    return replace(section, title="Probes") if section.key == "probes" else section


def _sentence(judgements: Sequence[Judgement], progress: Mapping[str, Progress]) -> str:
    left = sum(one.assigned - one.done for one in progress.values())
    probes = sum(bool(judgement.battle.probe) for judgement in judgements)
    return (
        f"Votes: {len(judgements)}, {probes} of them on probes; annotators: {len(progress)}; "
        f"battles that are open: {left}."
    )


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
