"""Where answers' speech goes: `DIR/<task>/<question id>.wav`, with a JSON file that says more."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lm_eval.api.instance import Instance

from s2s_tasks.adapters.contract import Adapter, AdapterError, Reply
from s2s_tasks.arena.answers import Entry, file_stem, is_answered, read_entry, write_answer
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Prompt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Asked:
    """One request, and where its answer goes."""

    folder: Path
    question: str
    request: str

    @property
    def path(self) -> Path:
        return self.folder / f"{file_stem(self.question)}.json"


class SpeechFolder:
    """A folder of answers, one model's, which a run that was killed goes on with.

    Each question is left with `answer`: `path` of the wav file (None without speech), `seconds`,
    `sampling_rate` in Hz, `status` (see `s2s_tasks.arena.records.Status`) and `transcript`.
    """

    def __init__(self, root: str, adapter: Adapter) -> None:
        """Take a folder, made if need be, and whose answers go there.

        Raises:
            AdapterError: when it cannot be made.
        """
        self._root = Path(str(root))  # lm-eval makes numbers of what looks like one
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdapterError(f"speech={root}: no folder can be made there: {error}") from error
        self._adapter = adapter
        self._asked: list[_Asked] = []
        self._statuses: dict[Path, str] = {}
        self._kept: set[Path] = set()

    def __str__(self) -> str:
        statuses = sorted(Counter(self._statuses.values()).items())
        counts = ", ".join(f"{count} {status}" for status, count in statuses)
        kept = f"; {len(self._kept)} of them were there already" if self._kept else ""
        return f"Answers in {self._root}: {counts or 'none'}{kept}"

    def refuse_cache(self) -> None:
        """Refuse lm-eval's file of answers, which keeps no speech.

        Raises:
            AdapterError: always.
        """
        raise AdapterError(
            f"--use_cache keeps no speech: leave it out; what is in {self._root} is not answered "
            "again anyway"
        )

    def begin(self, requests: Sequence[Instance], prompts: Sequence[Prompt]) -> dict[int, str]:
        """Return, by index, the answers that are there already and whole.

        They are if this model gave them to the same prompt with the same arguments and seed.

        Raises:
            AdapterError: when two requests would share a file, or one wants several answers.
            AnswerError: when another model answered in the folder.
        """
        self._asked = [
            self._place(number, instance, prompt)
            for number, (instance, prompt) in enumerate(zip(requests, prompts, strict=True))
        ]
        self._statuses, self._kept = {}, set()
        known: dict[Path, _Asked] = {}
        for asked in self._asked:
            if known.setdefault(asked.path, asked) != asked:
                raise AdapterError(
                    f"two different requests are called {asked.question} in {asked.folder.name}, "
                    f"and would share {asked.path}; give questions distinct ids"
                )
        found = {}
        for index, asked in enumerate(self._asked):
            if (entry := self._found(asked)) is not None:
                found[index] = self._noted(requests[index], asked, entry)
                self._kept.add(asked.path)
        if stale := sum(path.exists() and path not in self._kept for path in known):
            log.warning(
                "%s: %d answer(s) that failed, or were given to another prompt, with other "
                "arguments or another seed, are made anew. Others that are there stay as they "
                "are: give each configuration a folder of its own.",
                self._root,
                stale,
            )
        return found

    def keep(self, index: int, instance: Instance, reply: Reply, text: str) -> str:
        """Write the answer to a request that `begin` was given, and return it.

        Args:
            index: of the request.
            instance: the request.
            reply: what the adapter returned.
            text: of it, what lm-eval is to see.

        Raises:
            OSError: when the folder cannot be written.
        """
        asked = self._asked[index]
        error = reply.error or _fault(reply, text)
        if error:
            log.warning("%s %s: no speech: %s", asked.folder.name, asked.question, error)
        write_answer(
            asked.folder,
            system=self._root.resolve().name,
            model=self._adapter.name,
            instruction=asked.question,
            waveform=None if error else reply.waveform,
            sampling_rate=reply.sampling_rate,
            transcript=text,
            seed=reply.seed,
            fingerprint=self._adapter.fingerprint,
            error=error,
            request=asked.request,
        )
        return self._noted(instance, asked, read_entry(asked.path))

    def _place(self, number: int, instance: Instance, prompt: Prompt) -> _Asked:
        if (instance.repeats or 1) > 1:
            raise AdapterError(
                f"{instance.task_name} wants {instance.repeats} answers a question (repeats), and "
                "speech keeps one; set repeats to 1"
            )
        known = instance.task_name is not None
        question = instance.doc.get("id", instance.doc_id if known else number)
        folder = self._root / file_stem(instance.task_name or "requests")
        return _Asked(folder, str(question), _digest(prompt, instance.args[1]))

    def _found(self, asked: _Asked) -> Entry | None:
        if not is_answered(asked.folder, asked.question, self._adapter.fingerprint):
            return None
        entry = read_entry(asked.path)
        return entry if entry.request == asked.request and _is_whole(entry, asked.path) else None

    def _noted(self, instance: Instance, asked: _Asked, entry: Entry) -> str:
        """Leave with the question what its sample log should say, and return the text."""
        instance.doc["answer"] = {
            "path": str(asked.path.with_suffix(".wav").absolute()) if entry.sha256 else None,
            "seconds": entry.seconds,
            "sampling_rate": entry.sampling_rate,
            "status": entry.status,
            "transcript": entry.transcript,
        }
        self._statuses[asked.path] = entry.status
        return entry.transcript


def _digest(prompt: Prompt, arguments: dict[str, Any]) -> str:
    """Return what changes with a prompt, its recordings, the arguments and the seed."""
    segments = [
        [segment.sha256, segment.language] if isinstance(segment, Audio) else segment
        for segment in prompt.segments
    ]
    asked = json.dumps([segments, arguments, torch.initial_seed()], sort_keys=True, default=repr)
    return hashlib.sha256(asked.encode()).hexdigest()


def _is_whole(entry: Entry, path: Path) -> bool:
    if entry.sha256 is None:
        return True
    try:
        with path.with_suffix(".wav").open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
    except OSError:
        return False


def _fault(reply: Reply, text: str) -> str:
    """Say what is wrong with a reply; nothing if it can be kept."""
    if reply.waveform is None:
        return "" if text else "the model said nothing"
    if not len(reply.waveform):
        return "the speech has no samples"
    if not np.isfinite(reply.waveform).all():
        return "the speech holds values that are not finite numbers"
    return ""
