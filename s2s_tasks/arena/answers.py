"""Answers of one system in a folder: of each a recording, and a JSON file that says it is whole.

`<name>.wav` is written first and `<name>.json` last, each at once, so that a run that was killed
goes on where it stopped: what has no JSON file has not been answered.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import soundfile
from scipy.io import wavfile

from s2s_tasks.arena.files import write_whole
from s2s_tasks.arena.records import Answer, Status
from s2s_tasks.arena.silence import LOWEST, is_nothing, is_soundless
from s2s_tasks.audio import Audio, AudioError, Waveform, probe
from s2s_tasks.errors import S2STasksError

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_SHOWN = 10
"""Faults that a message names; the rest are counted."""


class AnswerError(S2STasksError):
    """Answers that cannot be used as they are."""


@dataclass(frozen=True)
class Entry:
    """The JSON file of one answer."""

    system: str
    """As it is called in battles: the folder's name."""
    instruction: str
    """Its id."""
    status: Status
    transcript: str
    """The system's own."""
    seconds: float
    """0 where there is no recording."""
    sampling_rate: int | None
    """In Hz; None where there is no recording."""
    sha256: str | None
    """Of the recording's file; None where there is none."""
    seed: int | None
    fingerprint: str
    """Of the model, as adapters give it."""
    error: str
    """Why a failed answer failed."""
    request: str = ""
    """Changes with what was asked, and how: hexadecimal digits; empty where it is not known."""
    model: str = ""
    """As its user named it; empty where it is not known."""


def file_stem(identifier: str) -> str:
    """Return a file name, without suffix, for an id: distinct ids have distinct ones.

    Ids of lower-case letters, digits, `-` and `_` stay as they are. Of any other one stays what
    can, and 16 digits of its hash tell it apart, also where file systems ignore case.
    """
    if _PLAIN.fullmatch(identifier):
        return identifier
    readable = re.sub(r"[^a-z0-9_-]+", "_", identifier.lower())[:60]
    return f"{readable}~{hashlib.sha256(identifier.encode()).hexdigest()[:16]}"


def write_answer(
    folder: Path,
    *,
    system: str,
    instruction: str,
    waveform: Waveform | None,
    sampling_rate: int | None = None,
    transcript: str = "",
    seed: int | None = None,
    fingerprint: str = "",
    error: str = "",
    request: str = "",
    model: str = "",
) -> Answer:
    """Write one answer, in place of an earlier one to the same instruction.

    Args:
        folder: of the system; made if need be.
        system: who answers.
        instruction: its id.
        waveform: what was said, `[frames]`; None for a model that only writes, or that failed.
        sampling_rate: of the waveform, in Hz.
        transcript: what the model itself says that it said.
        seed: that it was drawn with.
        fingerprint: of the model.
        error: why there is no answer; makes it a failed one.
        request: changes with what was asked, and how.
        model: as its user named it.

    Raises:
        AnswerError: when there is neither sound, text nor error, or values are not finite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_stem(instruction)}.wav"
    path.with_suffix(".json").unlink(missing_ok=True)  # it no longer says what is true
    encoded = None
    if waveform is not None and not error:
        encoded = _encode(waveform, sampling_rate, f"{system}: the answer to {instruction}")
    if encoded is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(path, encoded)
    audio = None if encoded is None else probe(path)
    entry = Entry(
        system=system,
        instruction=instruction,
        status=_status(system, instruction, waveform, sampling_rate, transcript, error),
        transcript=transcript,
        seconds=audio.seconds if audio else 0.0,
        sampling_rate=audio.sampling_rate if audio else None,
        sha256=audio.sha256 if audio else None,
        seed=seed,
        fingerprint=fingerprint,
        error=error,
        request=request,
        model=model,
    )
    text = json.dumps(asdict(entry), ensure_ascii=False, indent=2)
    write_whole(path.with_suffix(".json"), f"{text}\n".encode())
    return _answer(entry, audio)


def is_answered(folder: Path, instruction: str, fingerprint: str) -> bool:
    """Tell whether an instruction has been answered; a failed answer is to be tried again.

    Raises:
        AnswerError: when another model answered, or the JSON file cannot be read.
    """
    path = folder / f"{file_stem(instruction)}.json"
    if not path.exists():
        return False
    entry = read_entry(path)
    if entry.fingerprint != fingerprint:
        raise AnswerError(
            f"{path}: another model answered here ({entry.fingerprint}, not {fingerprint}); "
            "name another folder, or remove this one"
        )
    return entry.status != "failed"


def has_entries(folder: Path) -> bool:
    """Tell whether `write_answer` wrote here: whether any JSON file is one of an answer."""
    for path in folder.glob("*.json"):
        try:
            read_entry(path)
        except AnswerError:
            continue
        return True
    return False


def read_entries(folder: Path) -> list[Entry]:
    """Return what the JSON files of a folder say, by instruction; recordings are not looked at.

    Raises:
        AnswerError: when there are none, one cannot be read, or several systems share the folder.
    """
    entries = [read_entry(path) for path in _paths(folder)]
    systems = sorted({entry.system for entry in entries})
    if not entries:
        below = next((path for path in sorted(folder.iterdir()) if has_entries(path)), None)
        remedy = f"name {below}" if below else "of answers made elsewhere write NAME=PATH"
        raise AnswerError(f"{folder}: no answers are here (<name>.wav with <name>.json); {remedy}")
    if len(systems) > 1:
        raise AnswerError(
            f"{folder}: answers of {', '.join(systems)}; give every system a folder of its own"
        )
    return sorted(entries, key=lambda entry: entry.instruction)


def read_answers(folder: Path) -> list[Answer]:
    """Return the answers of a folder, by instruction, their recordings checked.

    A recording without a JSON file is one that was being written, and left out.

    Raises:
        AnswerError: when any is amiss; the message names those that are.
    """
    faults: list[str] = []
    answers = []
    for entry in read_entries(folder):
        path = folder / f"{file_stem(entry.instruction)}.wav"
        try:
            answers.append(_answer(entry, _checked(entry, path)))
        except (AnswerError, AudioError) as error:
            faults.append(str(error))
    if faults:
        head = f"{folder}: {len(faults)} answer(s) cannot be used:"
        more = [f"… and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        remedy = "Remove their JSON files and let the system answer again."
        raise AnswerError("\n".join([head, *faults[:_SHOWN], *more, remedy]))
    return answers


def read_entry(path: Path) -> Entry:
    """Return what the JSON file of one answer says.

    Raises:
        AnswerError: when it is not one, or is called otherwise than its instruction wants.
    """
    try:
        entry = Entry(**json.loads(path.read_text("utf-8")))
        _refuse_types(entry)
        stem = file_stem(entry.instruction)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        needed = ", ".join(field.name for field in fields(Entry))
        raise AnswerError(
            f"{path}: not the JSON file of an answer ({error}); it holds {needed}"
        ) from error
    if entry.status not in get_args(Status):
        raise AnswerError(f"{path}: status {entry.status!r} is none of {get_args(Status)}")
    if path.stem != stem:
        raise AnswerError(
            f"{path}: the answer to {entry.instruction!r} is called {stem}.json; was it renamed?"
        )
    return entry


def _refuse_types(entry: Entry) -> None:
    for name, hint in get_type_hints(Entry).items():
        value = getattr(entry, name)
        kind = str if name == "status" else float | int if hint is float else hint
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r}")
    if not entry.system:
        raise ValueError("system is empty")


def _paths(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise AnswerError(f"{folder}: no such folder of answers")
    return (path for path in folder.glob("*.json") if not path.name.startswith("."))


def _checked(entry: Entry, path: Path) -> Audio | None:
    """Return the recording that an entry speaks of."""
    if entry.sha256 is None:
        if entry.status == "ok":
            raise AnswerError(f"{path.with_suffix('.json')}: it is ok, but names no recording")
        return None
    if not path.exists():
        raise AnswerError(f"{path}: the recording is missing, and its JSON file says it is there")
    audio = probe(path)
    if audio.sha256 != entry.sha256:
        raise AnswerError(f"{path}: the recording is not the one that its JSON file names")
    if entry.status == "ok" and is_soundless(audio):
        raise AnswerError(f"{path}: the recording is silent, and its JSON file says it is ok")
    return audio


def _answer(entry: Entry, audio: Audio | None) -> Answer:
    return Answer(entry.system, entry.instruction, entry.status, audio, entry.transcript)


def _status(
    system: str,
    instruction: str,
    waveform: Waveform | None,
    sampling_rate: int | None,
    transcript: str,
    error: str,
) -> Status:
    if error:
        return "failed"
    if waveform is not None:
        return "silent" if is_nothing(waveform, sampling_rate or LOWEST) else "ok"
    if transcript:
        return "text_only"
    raise AnswerError(
        f"{system}: the answer to {instruction} has neither sound nor text; say in `error` why"
    )


def _encode(waveform: Waveform, sampling_rate: int | None, name: str) -> bytes | None:
    """Return a wav file: 16 bits, or float where samples exceed full scale; None for no samples."""
    if not sampling_rate:
        raise AnswerError(f"{name} has a waveform without a sampling rate")
    if not np.isfinite(waveform).all():
        raise AnswerError(f"{name} holds values that are not finite numbers")
    if not len(waveform):
        return None
    file = io.BytesIO()
    if float(np.abs(waveform).max()) > 1:
        # soundfile would note the time in a file of floats, and the same speech hash otherwise.
        wavfile.write(file, sampling_rate, waveform.astype(np.float32))
    else:
        soundfile.write(file, waveform, sampling_rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
