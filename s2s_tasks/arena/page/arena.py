"""What the pages are about: battles as an annotator meets them, and their templates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from s2s_tasks.arena.page.store import Assignment, Sound, Store
from s2s_tasks.arena.page.votes import Answers, as_heard, recording
from s2s_tasks.arena.records import Criterion, Instruction, Judgement, Winner
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError

HERE = Path(__file__).parent
QUESTIONS: Mapping[Criterion, tuple[str, str]] = {
    "instruction": (
        "Instruction",
        "Which does better what was asked, and heeds the voice in which it was asked?",
    ),
    "expression": (
        "Expression",
        "Whose voice suits better: its emotion, pace, emphasis and style?",
    ),
    "quality": ("Sound", "Which is clearer and more natural, without noise or missing ends?"),
    "overall": ("Overall", "Which answer is better, all in all?"),
}
"""Criterion → what it is called, and what annotators are asked."""
CHOICES: Mapping[Winner, tuple[str, str, str]] = {
    "first": ("A", " is better", "a"),
    "second": ("B", " is better", "b"),
    "tie": ("Tie", "", "t"),
    "both_bad": ("Both bad", "", "n"),
}
"""Vote → its label, what a screen reader adds, and its key."""
STRICT: tuple[Winner, ...] = ("first", "second")


@dataclass(frozen=True)
class Arena:
    """Everything that a page shows."""

    store: Store
    instructions: Mapping[str, Instruction]
    answers: Answers
    battles: Mapping[str, Judgement]
    """Key in the store → draft."""
    ties: bool
    environment: Environment

    @property
    def choices(self) -> dict[Winner, tuple[str, str, str]]:
        """What can be voted."""
        return {vote: says for vote, says in CHOICES.items() if self.ties or vote in STRICT}

    def instruction(self, assignment: Assignment) -> Instruction:
        """Return the instruction of a battle."""
        return self.instructions[self.battles[assignment.battle].battle.instruction]

    def recording(self, sound: Sound) -> Audio:
        """Return the recording that an id stands for."""
        draft = as_heard(self.battles[sound.battle], sound.swapped)
        audio = recording(draft.battle, sound.role, self.instructions, self.answers)
        assert audio is not None  # `open_arena` looked
        return audio

    def prompt_sha256(self, assignment: Assignment) -> str:
        """Return the hash of what an annotator read and heard."""
        draft = as_heard(self.battles[assignment.battle], assignment.swapped)
        instruction = self.instruction(assignment)
        asked = {
            "questions": QUESTIONS,
            "choices": list(self.choices),
            "text": instruction.text,
            "evaluation": instruction.evaluation,
            "recordings": draft.answers,
        }
        text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        text = self.environment.get_template(f"{template}.html.jinja").render(values)
        return HTMLResponse(text, status)


def open_arena(
    instructions: Iterable[Instruction], answers: Answers, store: Store, ties: bool
) -> Arena:
    """Return an arena whose battles can all be heard.

    Raises:
        S2STasksError: when a battle in the store is of something that is not given, or has changed.
    """
    by_id = {instruction.id: instruction for instruction in instructions}
    battles = store.battles()
    for draft in battles.values():
        for role, sha256 in draft.answers.items():
            audio = recording(draft.battle, role, by_id, answers)
            if audio is None or audio.sha256 != sha256:
                raise S2STasksError(
                    f"{store.engine.url.database}: holds a battle of {draft.battle.first} and "
                    f"{draft.battle.second} on {draft.battle.instruction}, and a recording of it "
                    f"({role}) is not given, or was another one; name the same folders as before, "
                    "or a new file for the votes"
                )
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(questions=QUESTIONS)
    return Arena(store, by_id, answers, battles, ties, environment)
