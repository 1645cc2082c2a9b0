"""Find the checkpoints of a training run."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.errors import S2STasksError
from s2s_tasks.sweep.steps import find_steps, natural, parse_steps

WEIGHTS = (".safetensors", ".bin")
"""In the order in which transformers looks for them."""
OTHERS = (".json", ".jinja", ".model", ".txt", ".py")
"""Configuration, tokenizer, processor and code."""

Files = dict[str, list[int]]
"""By name, the size in bytes and the time of the last change in nanoseconds."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder of weights."""

    path: Path
    step: int

    @property
    def name(self) -> str:
        """The folder's own name."""
        return _name(self.path)

    def weights(self) -> list[Path]:
        """Return the files of weights that are read when it is loaded."""
        for suffix in WEIGHTS:
            if found := sorted(self.path.glob(f"*{suffix}")):
                return found
        return []

    def files(self) -> Files:
        """Return what tells whether the model was written anew; an optimizer's state does not."""
        found = sorted(p for p in self.path.glob("*") if p.suffix in (*WEIGHTS, *OTHERS))
        stats = {path.name: path.stat() for path in found}
        return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


def find_checkpoints(
    patterns: Sequence[str], steps: str | None = None, marker: str = "config.json"
) -> tuple[list[Checkpoint], list[Path]]:
    """Return the checkpoints, by step, and what was left out because it is none.

    Args:
        patterns: folders, or globs of folders.
        steps: `--steps`, where the names do not say them.
        marker: the file that makes a folder a checkpoint.

    Raises:
        S2STasksError: when a pattern matches nothing, nothing is a checkpoint, two are called
            the same, or the steps cannot be told.
    """
    paths = sorted({path for pattern in patterns for path in _match(pattern)})
    skipped = [path for path in paths if not (path / marker).is_file()]
    folders = sorted((path for path in paths if path not in skipped), key=_by_name)
    if not folders:
        raise S2STasksError(
            f"--checkpoints {' '.join(patterns)}: none of these is a folder with a {marker}: "
            f"{_listed(skipped)}. Give folders that save_pretrained wrote{_advice(skipped)}"
        )
    names = [_name(path) for path in folders]
    twice = [str(path) for path in folders if Counter(names)[_name(path)] > 1]
    if twice:
        raise S2STasksError(
            f"checkpoints of the same name: {', '.join(twice)}. Results are kept by the folder's "
            "name: give these folders, or links to them, names of their own"
        )
    found = find_steps(names) if steps is None else parse_steps(steps, names)
    checkpoints = [Checkpoint(path, step) for path, step in zip(folders, found, strict=True)]
    return sorted(checkpoints, key=lambda checkpoint: checkpoint.step), skipped


def _match(pattern: str) -> list[Path]:
    expanded = Path(pattern).expanduser()
    # A folder may have a bracket in its name.
    found = [str(expanded)] if expanded.exists() else glob.glob(str(expanded))
    if not found:
        raise S2STasksError(f"--checkpoints {pattern}: nothing is called so")
    return [Path(path) for path in found]


def _name(path: Path) -> str:
    return path.name or path.resolve().name


def _by_name(path: Path) -> list[tuple[str, int]]:
    return natural(_name(path))


def _listed(paths: Sequence[Path], most: int = 10) -> str:
    return ", ".join(map(str, paths[:most])) + (" …" if len(paths) > most else "")


def _advice(skipped: Sequence[Path]) -> str:
    if any((path / "adapter_config.json").is_file() for path in skipped):
        return "; for LoRA adapters add --checkpoint_argument peft --model_args pretrained=BASE"
    below = next((p for p in skipped if p.is_dir() and list(p.glob("*/config.json"))), None)
    return f", as {below}/*" if below else ""
