"""What can be wrong with a data set, and the one error that reports all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from s2s_tasks.errors import S2STasksError

_SHOWN = 10
"""Items named per kind of problem; the rest are counted."""


class Kind(Enum):
    """A kind of problem: how it is called, and what the user can do about it."""

    MALFORMED = ("malformed JSON lines", "mend the line: one JSON object a line, in UTF-8")
    FIELD_MISSING = ("missing or null fields", "fill the field in, or remove the row")
    FIELD_TYPE = ("fields of the wrong type", "texts are strings; an uttid is an integer or text")
    FIELD_EMPTY = ("empty texts", "fill the text in, or remove the row")
    ID = ("uttids that do not start with an integer", "name story rows 2i (true), 2i+1 (false)")
    DUPLICATE = ("duplicate uttids", "keep one row for each uttid")
    LONE = (
        "story rows without their partner",
        "a pair is uttid 2i (true ending) and 2i+1 (false ending): add the partner, or remove "
        "the row",
    )
    PARITY = (
        "pairs numbered from an odd uttid",
        "renumber the rows so that the true ending is 2i and the false one 2i+1; read as they "
        "are, true and false would be swapped",
    )
    CONTEXT = (
        "pairs whose `first` texts differ",
        "the two endings of a pair continue one context: give both rows the same `first`",
    )
    ENDINGS = ("questions whose endings are alike", "the false endings must differ from the true")
    ANSWER = ("answers that are not A, B, C or D", "name the true option by its letter")
    AUDIO_MISSING = (
        "missing recordings",
        "put the file there (wav, flac, ogg, opus or mp3), or name the right folder in "
        "eval_s2t.yaml",
    )
    AUDIO_UNREADABLE = (
        "unreadable recordings",
        "replace the file: wav, flac, ogg/opus and mp3 are read",
    )
    AUDIO_EMPTY = ("empty recordings", "replace the file")
    AUDIO_TRUNCATED = ("truncated recordings", "copy or download the file again")
    AUDIO_NOT_FINITE = ("recordings with values that are not finite", "replace the file")
    AUDIO_SILENT = ("silent recordings", "replace the file: it holds no speech")
    AUDIO_SHORT = ("recordings shorter than 25 ms", "replace the file: it holds no speech")
    AUDIO_CHANGED = ("recordings that are not what the index says", "write the data set again")

    @property
    def title(self) -> str:
        """The heading of such problems."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """What mends them."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one item."""

    kind: Kind
    item: str
    """The uttid or uttids, or the line where there is none."""
    detail: str
    """The file, with what is wrong in it."""


class DataError(S2STasksError):
    """A data set that cannot be used as it is; `problems` holds everything that was found."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([message, *describe(problems)]))


def describe(problems: Sequence[Problem]) -> list[str]:
    """Return lines of text: the problems by kind, each with its first items and its remedy."""
    groups: dict[Kind, list[Problem]] = defaultdict(list)
    for problem in problems:
        groups[problem.kind].append(problem)
    lines = []
    for kind in sorted(groups, key=list(Kind).index):
        found = groups[kind]
        lines.append(f"  {kind.title}: {len(found)}")
        lines += [f"    {problem.item}: {problem.detail}" for problem in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"    ... and {len(found) - _SHOWN} more")
        lines.append(f"    What to do: {kind.remedy}.")
    return lines
