"""What kinds of instructions there are: domains, tasks and levels, as taxonomy.yaml lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import PurePath

import yaml

from s2s_tasks.arena.records import Instruction


@dataclass(frozen=True)
class Domain:
    """A field of life that instructions are about."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A kind of instruction."""

    name: str
    """Short, as files of the published set are called."""
    title: str
    """As the paper calls it."""
    domain: str
    folders: tuple[str, ...]
    """Of its recordings in the published set; several where both names occur."""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Taxonomy:
    """All that is known by name."""

    domains: Mapping[str, Domain]
    tasks: Mapping[str, Task]
    levels: Mapping[int, str]
    """Level, 1 to 4, to what it means."""

    def domain(self, name: str) -> Domain | None:
        """Return the domain of a name in any spelling; None where it is not known."""
        return next(
            (d for d in self.domains.values() if _plain(name) in _names(d.name, d.aliases)), None
        )

    def task(self, name: str) -> Task | None:
        """Return the task of a name, title or folder in any spelling; None where none is."""
        return next(
            (
                task
                for task in self.tasks.values()
                if _plain(name) in _names(task.name, (task.title, *task.folders, *task.aliases))
            ),
            None,
        )

    def task_of_path(self, path: PurePath) -> Task | None:
        """Return the task that the first known folder of a recording's path names."""
        return next(filter(None, map(self.task, path.parts[:-1])), None)


@cache
def taxonomy() -> Taxonomy:
    """Return the taxonomy of the package."""
    entries = yaml.safe_load((files("s2s_tasks.arena.data") / "taxonomy.yaml").read_text("utf-8"))
    return Taxonomy(
        domains={
            name: Domain(name, tuple(fields.get("aliases", ())))
            for name, fields in entries["domains"].items()
        },
        tasks={
            name: Task(
                name=name,
                title=fields["title"],
                domain=fields["domain"],
                folders=tuple(fields["folders"]),
                aliases=tuple(fields.get("aliases", ())),
            )
            for name, fields in entries["tasks"].items()
        },
        levels=entries["levels"],
    )


def canonical(instructions: Iterable[Instruction]) -> tuple[list[Instruction], list[str]]:
    """Return instructions with domains and tasks as the taxonomy spells them, and notes.

    What the taxonomy does not know stays as it is and gets a note, as does a known task in a
    domain that is not its own.
    """
    known = taxonomy()
    result, noted = [], Counter[str]()
    for instruction in instructions:
        domain, task = known.domain(instruction.domain), known.task(instruction.task)
        if domain is None:
            noted[f"domain {instruction.domain!r} is not one of {', '.join(known.domains)}"] += 1
        if task is None:
            noted[f"task {instruction.task!r} is not one of the {len(known.tasks)} known ones"] += 1
        elif domain and task.domain != domain.name:
            noted[f"task {task.name!r} is one of {task.domain}, here of {domain.name}"] += 1
        result.append(
            replace(
                instruction,
                domain=domain.name if domain else instruction.domain,
                task=task.name if task else instruction.task,
            )
        )
    notes = [f"{note}; kept as it is ({count} instruction(s))" for note, count in noted.items()]
    return result, notes


def _names(name: str, others: Iterable[str]) -> Iterator[str]:
    return map(_plain, (name, *others))


def _plain(name: str) -> str:
    """Return a name without what spellings differ in."""
    return "".join(filter(str.isalnum, name.casefold()))
