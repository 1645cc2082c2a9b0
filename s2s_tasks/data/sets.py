"""The three sets of S2SBench: what tells them apart, and how their authors call their parts."""

from __future__ import annotations

from dataclasses import dataclass

from s2s_tasks.data.problems import DataError
from s2s_tasks.data.rows import Language

STORY_FIELDS = ("first", "last")
"""Text fields of a story row: the context and one ending."""
OPTIONS = ("A", "B", "C", "D")
QUESTION_FIELDS = ("first", *OPTIONS)
"""Text fields of an sCMMLU row: the context and four endings; `answer` names the true one."""


@dataclass(frozen=True, slots=True)
class SetSpec:
    """One set; names and places as in `eval_s2t.yaml` of undobug/S2SBench."""

    language: Language
    fields: tuple[str, ...]
    key: str
    """Key in `eval_s2t.yaml`."""
    table: str
    """Name of the jsonl file, without its ending."""
    audio: str
    """Name of the folder of recordings."""


SETS = {
    "sstorycloze": SetSpec(
        "en", STORY_FIELDS, "sStory_s2t", "sStory_s2t", audio="s-story-firstspeech"
    ),
    "zh_sstorycloze": SetSpec("zh", STORY_FIELDS, "zh_story", "zh_story", audio="zh_story"),
    "scmmlu": SetSpec(
        "zh", QUESTION_FIELDS, "cmmlu_write_4", "cmmlu_rewrite_4", audio="cmmlu_rewrite"
    ),
}


def set_spec(name: str) -> SetSpec:
    """Return one set's entry.

    Raises:
        DataError: when there is no such set.
    """
    if name not in SETS:
        raise DataError(f"{name!r} is not a set of S2SBench; the sets are {', '.join(SETS)}")
    return SETS[name]
