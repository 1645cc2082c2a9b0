"""A judge on this computer: a model of transformers that hears, through our adapters."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.adapters.contract import Adapter, Generation
from s2s_tasks.arena.judges.contract import JudgeError, Reply
from s2s_tasks.arena.judges.presenting import Presentation, wav
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, probe
from s2s_tasks.prompt import Prompt, Segment, parse_request

LONGEST_REPLY = 1024
"""Tokens."""


@dataclass(frozen=True)
class LocalJudge:
    """A model that hears, decoded greedily."""

    adapter: Adapter
    presentation: Presentation
    longest_reply: int = LONGEST_REPLY

    concurrent = False

    def __post_init__(self) -> None:
        """Refuse models that cannot hear a battle.

        Raises:
            JudgeError: when the model only reads, or hears only one recording and would get three.
        """
        if not self.adapter.embeds_audio:
            raise JudgeError(f"{self.adapter.name} does not hear, and cannot judge speech")
        one = self.presentation.together or self.presentation.cues is not None
        if not self.adapter.hears_several and not one:
            raise JudgeError(
                f"{self.adapter.name} takes one recording a prompt: use --layout together"
            )

    @property
    def name(self) -> str:
        """The model, as it was named."""
        return self.adapter.name

    @property
    def version(self) -> str:
        """Of the weights, the prompt, mode and presentation."""
        weights = self.adapter.fingerprint.rsplit(":", 1)[-1][:8]
        mode = self.presentation.rubric.mode
        return f"{mode}-{self.presentation.identity}-{weights}-{self.longest_reply}"

    def judge(self, instruction: Instruction, first: Audio, second: Audio) -> Reply:
        """Ask the model, in its own chat template where it has one.

        Raises:
            AdapterError: when the prompt does not fit the model.
            AudioError: when a recording cannot be used.
        """
        with tempfile.TemporaryDirectory(prefix="s2s-judge-") as folder:
            prompt = self.prompt(instruction, first, second, Path(folder))
            prefixes = self.adapter.render([prompt])
        how = Generation(self.longest_reply, options={"do_sample": False})
        text = self.adapter.generate(prefixes, how)[0]
        return Reply(
            text=text,
            winners=self.presentation.rubric.read(text),
            prompt_sha256=self.presentation.prompt_sha256(instruction, first, second),
        )

    def prompt(self, instruction: Instruction, first: Audio, second: Audio, folder: Path) -> Prompt:
        """Return what the model is asked; `folder` keeps the recordings as it is to hear them."""
        segments: list[Segment] = []
        for number, segment in enumerate(self.presentation.segments(instruction, first, second)):
            if isinstance(segment, str):
                segments.append(segment)
            else:
                path = folder / f"{number}.wav"
                path.write_bytes(wav(segment, self.presentation.sampling_rate))
                segments.append(probe(path))
        prompt = Prompt.of(*segments)
        if not self.adapter.chat_template:
            return prompt
        context, recordings = prompt.to_request()
        message = {"role": "user", "content": context}
        return parse_request(self.adapter.chat([message], add_generation_prompt=True), recordings)
