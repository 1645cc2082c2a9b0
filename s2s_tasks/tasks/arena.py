"""`ArenaTask`: spoken instructions, to be answered freely and, by models that can, in speech."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import datasets
from lm_eval.api.task import ConfigurableTask

from s2s_tasks import __version__
from s2s_tasks.arena.data.sources import load
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError
from s2s_tasks.tasks.arena_results import answer_metrics, load_recognizer

OPTIONS = ("data", "old_levels", "language", "answer_asr")
"""What `--metadata` may say as well as the YAML's `dataset_kwargs`."""


class ArenaTask(ConfigurableTask):
    """Ask spoken instructions; `dataset_kwargs` says which.

    - `mini`: those embedded in the package instead of a manifest's
    - `data`: the manifest, or its folder; the environment variable `S2S_ARENA_DATA` says it too
    - `old_levels`: its levels are L0 to L3 of the first version
    - `domain`, `level`, `language`: only those of one domain, level, language (ISO 639-1)
    - `answer_asr`: a recognizer of transformers, whose transcript of an answer is held against the
      model's own text
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Build the task from its YAML configuration."""
        super().__init__(config={key: value for key, value in config.items() if key != "class"})

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Load the instructions; recordings stay where they are."""
        metadata = self.config.metadata or {}
        told = {key: metadata[key] for key in OPTIONS if key in metadata}
        options = {**(dataset_kwargs or {}), **told}
        self.asr: str | None = options.get("answer_asr")
        if self.asr is not None:
            load_recognizer(self.asr)  # a wrong one costs no answers
        instructions = load(
            options.get("data"),
            mini=bool(options.get("mini")),
            old_levels=_switch("old_levels", options.get("old_levels", False)),
        )
        domain, level, language = (options.get(key) for key in ("domain", "level", "language"))
        asked = [
            instruction
            for instruction in instructions
            if domain in (None, instruction.domain)
            and level in (None, instruction.level)
            and language in (None, instruction.language)
        ]
        if not asked:
            raise S2STasksError(
                f"{self.config.task}: none of the {len(instructions)} instructions is of "
                f"{domain or 'any domain'}, {f'L{level}' if level else 'any level'}, "
                f"{f'language {language}' if language else 'any language'}. "
                f"What to do: run the tasks that have some, or s2s_arena_all, which asks all."
            )
        self.config.metadata = metadata | {
            "data_sha256": digest(asked),
            "s2s_tasks": __version__,
        }
        self.dataset = {"test": datasets.Dataset.from_list([_to_doc(each) for each in asked])}

    def doc_to_audio(self, doc: dict[str, Any], doc_to_audio: Any = None) -> list[dict[str, Any]]:
        """Return the instruction's recording, as requests carry it."""
        return [Audio.from_json(heard).to_json() for heard in doc["audio"]]

    def build_all_requests(self, *, cache_requests: bool = False, **kwargs: Any) -> None:
        """Build the requests anew: lm-eval's cache of them does not know the data they are of."""
        super().build_all_requests(cache_requests=False, **kwargs)

    def process_results(self, doc: dict[str, Any], results: list[str]) -> dict[str, float]:
        """Measure an answer: its text, and the recording that the model left with the question.

        lm-eval hands over a fresh copy of the question, and the model saw another.
        """
        asked = next(request.doc for request in self.instances if request.doc["id"] == doc["id"])
        if "answer" in asked:
            # lm-eval hashes that one, and a question's hash should not depend on the answer.
            doc["answer"] = asked.pop("answer")
        return answer_metrics(doc, results[0], self.asr)


def _switch(name: str, value: object) -> bool:
    """Return what a switch says, whether JSON or a command line wrote it."""
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise S2STasksError(f"{name}={value}: say true or false")
    return known[str(value).lower()]


def digest(instructions: Iterable[Instruction]) -> str:
    """Return a hash of what is asked: recordings, languages, domains, tasks and levels."""
    lines = [
        json.dumps([i.id, i.audio.sha256, i.language, i.domain, i.task, i.level])
        for i in instructions
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _to_doc(instruction: Instruction) -> dict[str, Any]:
    heard = replace(instruction.audio, language=instruction.language)
    return {
        "id": instruction.id,
        "language": instruction.language,
        "domain": instruction.domain,
        "task": instruction.task,
        "level": instruction.level,
        "split": instruction.split,
        "text": instruction.text,
        # As text: a table would give every row the keys of all.
        "cue": json.dumps(dict(instruction.cue), ensure_ascii=False),
        "target": json.dumps(dict(instruction.target), ensure_ascii=False),
        "evaluation": instruction.evaluation,
        "audio": [asdict(heard)],
    }
