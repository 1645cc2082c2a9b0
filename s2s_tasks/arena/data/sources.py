"""Instructions, from wherever they lie: a manifest, or this package."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from pathlib import Path

from s2s_tasks.arena.data.manifest import ManifestError, read
from s2s_tasks.arena.data.published import HUB_DATASET, LICENCE
from s2s_tasks.arena.data.taxonomy import canonical
from s2s_tasks.arena.records import Instruction

log = logging.getLogger(__name__)

DATA_VARIABLE = "S2S_ARENA_DATA"


def load(
    place: str | Path | None = None, *, mini: bool = False, old_levels: bool = False
) -> list[Instruction]:
    """Return instructions, their domains and tasks spelt as the taxonomy has them.

    What the taxonomy does not know is kept, and logged once.

    Args:
        place: a manifest, or the folder of one; None stands for what S2S_ARENA_DATA names.
        mini: take the mini set of the package instead.
        old_levels: the levels are L0 to L3 of the first version.

    Raises:
        ManifestError: when there is no manifest, or anything is amiss in it; all at once.
    """
    return list(_load(None if mini else _manifest(place), old_levels))


@lru_cache(maxsize=8)
def _load(path: Path | None, old_levels: bool) -> tuple[Instruction, ...]:
    """Read once what every task of a run asks for."""
    instructions, notes = canonical(read(path, old_levels=old_levels))
    for note in notes:
        log.warning("%s: %s", path or "the mini set", note)
    return tuple(instructions)


def _manifest(place: str | Path | None) -> Path:
    named = place or os.environ.get(DATA_VARIABLE)
    if named:
        return Path(named).expanduser()
    raise ManifestError(
        "S2S-Arena needs a manifest of its instructions, and none is named.\n"
        f"The published recordings (datasets/{HUB_DATASET}, {LICENCE}) come without texts, "
        "languages and levels: `s2s-tasks arena manifest FILE.csv` lists them for you to fill in.\n"
        f"What to do: set {DATA_VARIABLE}=FILE.csv, or give "
        '--metadata \'{"data": "FILE.csv"}\'; or run the s2s_arena_mini tasks, whose data comes '
        "with s2s-tasks."
    )
