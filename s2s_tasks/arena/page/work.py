"""Who listens to which battle, and in which order: from names alone, without any state."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from s2s_tasks.arena.records import Battle

DOUBLE = 0.1
"""Share of the battles that two annotators judge, so that their agreement is known."""


def unordered(battle: Battle) -> str:
    """Return what tells battles apart whatever the order of their answers."""
    first, second = sorted((battle.first, battle.second))
    return "\x1f".join((battle.instruction, first, second, battle.probe or ""))


def draw(*parts: str) -> int:
    """Return a number of 63 bits that looks random and follows from strings alone."""
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:8]) >> 1


def deal(
    battles: Collection[str],
    annotators: Sequence[str],
    share: float = DOUBLE,
    held: Mapping[str, Collection[str]] | None = None,
    refused: Mapping[str, Collection[str]] | None = None,
) -> list[tuple[str, str]]:
    """Return pairs of annotator and battle, those that are to be added to what is held.

    Every battle goes to one annotator, and `share` of them, rounded, to two. Each goes to the one
    who has least so far; the order of battles, ties, and which are doubled follow from a hash.

    Args:
        battles: their keys.
        annotators: their names. Alone, one judges every battle once.
        share: of the battles that two annotators judge, in [0, 1].
        held: battle → those who have it already, who need not be among `annotators`.
        refused: battle → those who skipped it, who do not get it again.

    Raises:
        ValueError: when `share` is not in [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share of battles judged twice is {share}, and not in [0, 1]")
    held, refused = held or {}, refused or {}
    load = Counter(name for names in held.values() for name in names)
    doubled = round(share * len(battles))
    added = []
    for place, battle in enumerate(sorted(battles, key=lambda key: draw("battle", key))):
        has = set(held.get(battle, ()))
        free = set(annotators) - has - set(refused.get(battle, ()))
        for _ in range(max((2 if place < doubled else 1) - len(has), 0)):
            if not free:
                break
            name = min(free, key=lambda name: (load[name], draw("tie", battle, name)))
            free.remove(name)
            load[name] += 1
            added.append((name, battle))
    return added


def deal_apart(
    probes: Mapping[str, str],
    annotators: Sequence[str],
    met: Mapping[str, Collection[str]],
    held: Mapping[str, Collection[str]] | None = None,
    refused: Mapping[str, Collection[str]] | None = None,
) -> list[tuple[str, str]]:
    """Return pairs of annotator and probe, each probe once, those that are to be added.

    Each goes to one who has least so far. Who meets an instruction twice hears one answer to it
    twice, so that they get others first.

    Args:
        probes: key → instruction.
        annotators: their names.
        met: annotator → instructions that they have otherwise.
        held: probe → those who have it already.
        refused: probe → those who skipped it, who do not get it again.
    """
    held, refused = held or {}, refused or {}
    load = Counter(name for names in held.values() for name in names)
    seen = {name: set(met.get(name, ())) for name in annotators}
    left = sorted(set(probes) - held.keys(), key=lambda key: draw("battle", key))
    added = []
    while left:
        for name in sorted(annotators, key=lambda name: (load[name], draw("tie", left[0], name))):
            free = [probe for probe in left if name not in refused.get(probe, ())]
            if free:
                break
        else:
            break
        # The first in order, of those that are as good.
        probe = min(free, key=lambda probe: probes[probe] in seen[name])
        left.remove(probe)
        seen[name].add(probes[probe])
        load[name] += 1
        added.append((name, probe))
    return added
