"""Answers that were made elsewhere: a folder of recordings in any layout, or a list of them."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from s2s_tasks.arena.answers import (
    AnswerError,
    file_stem,
    has_entries,
    read_answers,
    read_entries,
)
from s2s_tasks.arena.cells import csv_rows, text_of
from s2s_tasks.arena.records import Answer, Status
from s2s_tasks.arena.silence import is_soundless
from s2s_tasks.audio import AudioError, probe

log = logging.getLogger(__name__)

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".opus")
NUMBERED = re.compile(r"(?:[a-z]+[_-])?\d+(?:[_-][a-z]+)?", re.IGNORECASE)
"""`00`, `audio_12`, `7_pred`: what runners call answers that they count."""
_SHOWN = 10
_EXAMPLES = 3


def read_elsewhere(path: Path, system: str, instructions: Iterable[str]) -> list[Answer]:
    """Return the answers of one system, by instruction.

    Args:
        path: a CSV or JSONL manifest with `instruction`, `path` (relative to the manifest) and
            perhaps `transcript`; or a folder whose recordings are named by id: `<id>.wav`,
            `<id>/<id>.wav`, in folders of tasks or not, whatever folders stand above.
        system: who answered.
        instructions: ids of what was asked. Answers to others are left out, and counted in the log
            of the program, as are those without an answer.

    Raises:
        AnswerError: when recordings cannot be told apart, cannot be read, are numbered by
            position, or answer nothing that was asked.
    """
    asked = set(instructions)
    if path.is_dir():
        found = _by_name(path, asked)
    elif path.is_file():
        found = _by_manifest(path)
    else:
        raise AnswerError(f"{path}: neither a folder of answers nor a manifest of them")
    joined = {identifier: found[identifier] for identifier in sorted(asked & found.keys())}
    if not joined:
        examples = ", ".join(sorted(asked)[:_EXAMPLES])
        raise AnswerError(
            f"{path}: {len(found)} recording(s), and none is the answer to a question that is "
            f"asked (such as {examples}); write a manifest with the columns instruction, path"
        )
    strays = sorted(found[name][0].as_posix() for name in found.keys() - asked)
    _warn(system, asked, joined.keys(), strays)
    return [_answer(system, identifier, *given) for identifier, given in joined.items()]


def _answer(system: str, identifier: str, path: Path, transcript: str) -> Answer:
    try:
        audio = probe(path)
        status: Status = "silent" if is_soundless(audio) else "ok"
    except AudioError as error:
        raise AnswerError(f"{system}: the answer to {identifier}: {error}") from error
    except ValueError as error:  # of characters that no path has
        raise AnswerError(
            f"{system}: the answer to {identifier}: {str(path)!r}: {error}"
        ) from error
    return Answer(system, identifier, status, audio, transcript)


def _by_manifest(path: Path) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for number, row in _rows(path):
        try:
            identifier, recording, transcript = (
                text_of(row.get(name)) for name in ("instruction", "path", "transcript")
            )
        except ValueError as error:
            raise AnswerError(f"{path}, row {number}: {error}") from error
        if not identifier or not recording:
            raise AnswerError(f"{path}, row {number}: needs instruction and path")
        if identifier in found:
            raise AnswerError(f"{path}, row {number}: {identifier} is answered twice")
        found[identifier] = (path.parent / recording, transcript)
    return found


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                yield from enumerate(csv_rows(file), 1)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise ValueError(f"line {number} is not a JSON object")
                    yield number, row
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise AnswerError(
            f"{path}: not a manifest of answers ({error}); CSV, or JSONL, with the fields "
            "instruction and path"
        ) from error


def _by_name(folder: Path, asked: set[str]) -> dict[str, tuple[Path, str]]:
    names = defaultdict(set)
    for identifier in asked:
        names[identifier].add(identifier)
        names[file_stem(identifier)].add(identifier)
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    found: dict[str, list[Path]] = defaultdict(list)
    strangers = []
    for path in files:
        matches = next((names[key] for key in _keys(folder, path) if key in names), None)
        if matches is None:
            strangers.append(path)
            continue
        for identifier in matches:
            found[identifier].append(path)
    shapes = {_shape(identifier.rsplit("/", 1)[-1]) for identifier in asked}
    numbered = [
        path
        for path in strangers
        if NUMBERED.fullmatch(path.stem) and _shape(path.stem) not in shapes
    ]
    if numbered:
        raise AnswerError(
            f"{folder}: {len(numbered)} recording(s) such as {numbered[0]} are numbered by "
            "position. One answer that was left out would have shifted all after it, so they "
            "cannot be joined: name them by question id, or write a manifest with the columns "
            "instruction, path"
        )
    for identifier, paths in found.items():
        if len(paths) > 1:
            shown = ", ".join(map(str, paths[:_SHOWN]))
            raise AnswerError(
                f"{folder}: {len(paths)} recordings would answer {identifier}: {shown}; keep one, "
                "or write a manifest with the columns instruction, path"
            )
    return {identifier: (paths[0], "") for identifier, paths in found.items()} | {
        str(path): (path, "") for path in strangers
    }


def _shape(name: str) -> str:
    """Return a name without its number: one shaped like an id is an id that is not asked."""
    return re.sub(r"\d+", "0", name)


def _keys(folder: Path, path: Path) -> Iterator[str]:
    """Yield what id a file name may mean, the longest first."""
    parts = PurePosixPath(path.relative_to(folder).as_posix()).parts
    # Not `with_suffix`, twice: an id may have dots.
    parts = (*parts[:-1], parts[-1][: -len(path.suffix)])
    forms = [parts]
    if len(parts) > 1 and parts[-1] == parts[-2]:
        forms.append(parts[:-1])
    for start in range(len(parts)):
        for form in forms:
            if form[start:]:
                yield "/".join(form[start:])


def read_given(given: str, instructions: Iterable[str]) -> list[Answer]:
    """Return the answers that a command names: `DIR` as `write_answer` wrote it, or `NAME=PATH`.

    How many instructions have no answer, and how many answers are to none of them, is said in the
    log of the program.

    Args:
        given: a folder, or what to call a system and where its answers lie: such a folder, or what
            `read_elsewhere` takes.
        instructions: ids of what was asked.

    Raises:
        AnswerError: when they cannot be used.
    """
    name, path = _parted(given)
    if name is not None and not has_entries(path):
        return read_elsewhere(path, name, instructions)
    answers = read_answers(path)
    if name is not None:
        answers = [replace(answer, system=name) for answer in answers]
    asked, answered = set(instructions), {answer.instruction for answer in answers}
    _warn(answers[0].system, asked, answered & asked, sorted(answered - asked))
    return answers


def _warn(
    system: str, asked: Collection[str], answered: Collection[str], strays: Sequence[str]
) -> None:
    if missing := sorted(set(asked) - set(answered)):
        log.warning(
            "%s: %d of %d instructions have no answer: %s",
            *(system, len(missing), len(asked), _some(missing)),
        )
    if strays:
        log.warning(
            "%s: %d answer(s) left out, as nothing asked is called so: %s",
            *(system, len(strays), _some(strays)),
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _EXAMPLES} more" if len(names) > _EXAMPLES else ""
    return ", ".join(names[:_EXAMPLES]) + more


def models_of(given: str) -> set[str]:
    """Return the models that a folder of ours names; of answers made elsewhere none is known."""
    _, path = _parted(given)
    return {entry.model for entry in read_entries(path)} - {""} if has_entries(path) else set()


def _parted(given: str) -> tuple[str | None, Path]:
    """Return the name that a system is given, and where its answers lie."""
    name, equals, path = given.partition("=")
    # A folder may have the sign in its name.
    if not equals or Path(given).exists():
        return None, Path(given)
    if not name:
        raise AnswerError(f"{given}: name the system before the =")
    return name, Path(path)
