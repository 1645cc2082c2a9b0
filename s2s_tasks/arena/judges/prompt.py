"""What a judge that speaks is asked, in our own words, and how its reply is read.

The paper names three criteria and does not publish its prompt; this one is not the paper's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from s2s_tasks.arena.records import CRITERIA, Criterion, Instruction, Winner

Mode = Literal["strict", "ties"]
"""`strict`: one of the two wins, as in the paper. `ties`: neither may, for good or bad."""

_MODE = re.compile(rf"@({'|'.join(get_args(Mode))})-[^@]*")

_MOST = 1000

_TASK = """\
You compare two spoken answers to one spoken instruction. You hear three things, in this order: \
the instruction, the first answer, the second answer. They come from different voices and systems; \
who made them does not matter.

Listen to how things are said, not only to which words are said. The speaker of the instruction \
may tell something with the voice alone: mood, age, a whisper, irony, a noisy place. The \
instruction may also ask for a way of speaking: fast, slow, sad, in another role, sung.

Judge three criteria, each by itself:
1. instruction: does the answer do what was asked, correctly and to the point, and does it take \
into account what the voice of the instruction tells?
2. expression: does the voice of the answer do what is called for: speed, emotion, emphasis, \
style, sounds? Go by how it sounds. To say "I am so happy" in a flat voice is not to sound happy, \
and an answer that sounds right needs no words about it.
3. quality: is the sound of the answer clear, natural and whole, without noise, distortion, \
stutter or missing ends?
Then decide overall: which answer would the speaker of the instruction rather have heard? \
Instruction comes first, then expression, then quality.

Length is not a merit: a short answer that does what was asked is as good as a long one. \
Neither is loudness. The order in which you hear the answers means nothing."""
_LABELS: dict[Mode, str] = {
    "strict": 'For every criterion name one winner, "first" or "second", also where it is close.',
    "ties": 'For every criterion give "first" or "second"; "tie" where both are equally good; '
    '"both_bad" where neither is acceptable.',
}
_FORMAT = """\
First give your reasons, one or two sentences a criterion, on what you heard. Then end with one \
JSON object and nothing after it, with exactly these keys:
{"instruction": …, "expression": …, "quality": …, "overall": …}"""


@dataclass(frozen=True)
class Rubric:
    """What is to be judged, and which verdicts there are."""

    mode: Mode = "strict"

    @property
    def labels(self) -> tuple[Winner, ...]:
        """The verdicts that are accepted."""
        return ("first", "second") if self.mode == "strict" else get_args(Winner)

    def opening(self, instruction: Instruction) -> str:
        """Return what stands before the recordings; never what is said in them."""
        if not instruction.evaluation:
            return _TASK
        return f"{_TASK}\n\nFor this instruction ask in particular: {instruction.evaluation}"

    @property
    def closing(self) -> str:
        """What stands after the recordings."""
        return f"{_LABELS[self.mode]}\n\n{_FORMAT}"

    def read(self, reply: str) -> dict[Criterion, Winner]:
        """Return the verdict of a reply, or nothing where it does not hold exactly one.

        It is a JSON object, bare or fenced, with one of `labels` for each criterion. Nothing is
        guessed: a criterion that is missing, given twice or has another label makes it unreadable.
        """
        found = [verdict for verdict in _objects(reply) if verdict.keys() & set(CRITERIA)]
        if len(found) != 1:
            return {}
        verdict = {criterion: _label(found[0].get(criterion)) for criterion in CRITERIA}
        if not all(label in self.labels for label in verdict.values()):
            return {}
        return cast(dict[Criterion, Winner], verdict)


def mode_of(judge: str) -> Mode | None:
    """Return the mode that a judge's name in the log tells; None of people and others' judges."""
    found = _MODE.search(judge)
    return cast(Mode, found[1]) if found and found.end() == len(judge) else None


def _label(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects in a text; one with a key given twice has none.

    Nothing of a text with more braces than `_MOST` that open no object: each may be looked at to
    the text's end.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    found = []
    vain = 0
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            vain += 1
            if vain > _MOST:
                return []
            end = at + 1
        else:
            found.append(value)
        at = text.find("{", end)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    # An object that contradicts itself still counts as one, which cannot be read.
    return values if len(values) == len(pairs) else dict.fromkeys(values)
