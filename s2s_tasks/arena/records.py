"""What the arena is about: instructions, answers, battles, and what was judged of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from s2s_tasks.audio import Audio

Level = Literal[1, 2, 3, 4]
"""L1: words alone. L2: the cue in the instruction's voice matters. L3: the answer's voice is asked
for. L4: both (arXiv 2503.05085)."""
Criterion = Literal["instruction", "expression", "quality", "overall"]
"""Instruction alignment, paralinguistic expressiveness, output audio quality; then all of it."""
CRITERIA: tuple[Criterion, ...] = ("instruction", "expression", "quality", "overall")
Winner = Literal["first", "second", "tie", "both_bad"]
"""By the order in which the answers were heard."""
Status = Literal["ok", "text_only", "silent", "failed"]
"""Of an answer: spoken; of a model that only writes; without sound; not given."""
Probe = Literal["itself", "silence", "noise", "other"]
"""A battle whose outcome is known: an answer against itself, silence, noise, or another
question's answer."""


@dataclass(frozen=True)
class Instruction:
    """One spoken instruction."""

    id: str
    audio: Audio
    text: str
    language: str
    """ISO 639-1."""
    domain: str
    task: str
    level: Level
    split: str = ""
    """`seed`, `augment` or nothing."""
    cue: Mapping[str, str] = field(default_factory=dict)
    """What its voice tells beside the words: emotion, age, gender, style, noise …"""
    target: Mapping[str, str] = field(default_factory=dict)
    """What the answer's voice should do: rate, emotion, style, sound …"""
    evaluation: str = ""
    """The question that a judge should ask of the answer."""


@dataclass(frozen=True)
class Answer:
    """What one system said to one instruction."""

    system: str
    instruction: str
    """Its id."""
    status: Status
    audio: Audio | None
    """None where there is no sound."""
    transcript: str = ""
    """The system's own."""


@dataclass(frozen=True)
class Battle:
    """Two answers to one instruction, in the order in which they are heard."""

    instruction: str
    first: str
    """System."""
    second: str
    propensity: float
    """Probability with which this pair of systems was drawn."""
    seed: int
    probe: Probe | None = None

    @property
    def key(self) -> str:
        """Tells battles of one judge apart."""
        parts = (self.instruction, self.first, self.second, self.probe or "")
        return "\x1f".join(parts)


@dataclass(frozen=True)
class Judgement:
    """One line of the log: who judged which battle, and how. Whatever is rated rests on these."""

    battle: Battle
    judge: str
    """A model and its version, or an annotator."""
    domain: str
    task: str
    level: Level | None
    """None where it is not known, as in others' files."""
    language: str
    winners: Mapping[Criterion, Winner]
    """Empty where the verdict could not be read."""
    reply: str
    """What the judge said, word for word."""
    prompt_sha256: str
    """Of what the judge was asked, texts and recordings."""
    answers: Mapping[str, str]
    """SHA-256 of the recordings: of the instruction, `first` and `second`."""
    features: Mapping[str, float]
    """Of both answers, `first_…` and `second_…`: seconds, loudness …"""
    time: str
    """ISO 8601, UTC."""
    version: str
    """Of this package."""

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return asdict(self)

    @staticmethod
    def from_json(line: Mapping[str, Any]) -> Judgement:
        """Return the judgement that a line of the log holds.

        Raises:
            TypeError: when the line lacks something, or has something else.
        """
        return Judgement(**{**line, "battle": Battle(**line["battle"])})
