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

from s2s_tasks.arena.judges.presenting import equalise
from s2s_tasks.arena.page.preparing import highest_rate
from s2s_tasks.arena.page.rows import Assignment, Sound
from s2s_tasks.arena.page.sounds import anonymous, waveform
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import Answers, as_heard, recording
from s2s_tasks.arena.records import Criterion, Instruction, Judgement, Winner
from s2s_tasks.audio import AudioError, Waveform

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
ANSWERS = ("first", "second")
"""Recordings of a battle beside the instruction."""


@dataclass(frozen=True)
class Arena:
    """Everything that a page shows."""

    store: Store
    instructions: Mapping[str, Instruction]
    answers: Answers
    battles: Mapping[str, Judgement]
    """Key in the store → draft."""
    ties: bool
    rate: int
    """Hz at which recordings are served: the highest of all, so that nothing is lost."""
    environment: Environment

    @property
    def choices(self) -> dict[Winner, tuple[str, str, str]]:
        """What can be voted."""
        return {vote: says for vote, says in CHOICES.items() if self.ties or vote in STRICT}

    def instruction(self, assignment: Assignment) -> Instruction:
        """Return the instruction of a battle."""
        return self.instructions[self.battles[assignment.battle].battle.instruction]

    def wav(self, sound: Sound, id: str) -> bytes:
        """Return the file that is served under an id: answers equally loud, as judges hear them.

        Raises:
            AudioError: when a recording cannot be read.
        """
        draft = as_heard(self.battles[sound.battle], sound.swapped)
        roles = ANSWERS if sound.role in ANSWERS else (sound.role,)
        signals = equalise([self._signal(draft, role) for role in roles], self.rate)
        return anonymous(signals[roles.index(sound.role)], self.rate, id)

    def _signal(self, draft: Judgement, role: str) -> Waveform:
        if audio := recording(draft, role, self.instructions, self.answers):
            return audio.load(self.rate)
        sha256 = draft.answers[role]
        made = self.store.made(sha256)
        assert made is not None  # `open_arena` looked
        return waveform(made, sha256, self.rate)

    def can_be_heard(self, assignment: Assignment) -> bool:
        """Tell whether the recordings of a battle still are what they were at the start."""
        draft = self.battles[assignment.battle]
        try:
            for role in draft.answers:
                if audio := recording(draft, role, self.instructions, self.answers):
                    audio.read()
        except AudioError:
            return False
        return True

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
    rate = highest_rate(store, by_id, answers)
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(questions=QUESTIONS)
    return Arena(store, by_id, answers, store.battles(), ties, rate, environment)
