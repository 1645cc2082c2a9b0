"""`s2s-tasks arena import`: others' battles as a log of judgements."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from s2s_tasks.arena.data import manifest
from s2s_tasks.arena.exchange.formats import FIELDS, OWN_WORDS, PRESETS, WORDS, Meaning
from s2s_tasks.arena.exchange.reading import to_judgements
from s2s_tasks.arena.exchange.rows import read_rows
from s2s_tasks.arena.log import append
from s2s_tasks.arena.records import Instruction, Winner
from s2s_tasks.errors import S2STasksError

_MEANINGS = (*get_args(Winner), "name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON, JSONL or CSV, by its name")
    parser.add_argument(
        "--output", "-o", type=Path, required=True, metavar="LOG", help="a new log of judgements"
    )
    parser.add_argument(
        "--format",
        choices=PRESETS,
        default="other",
        help="trace: battle files of TRACE; chatbot-arena: model_a, model_b, winner; other "
        "(default): what --fields says, for example of the published human results",
    )
    parser.add_argument(
        "--fields",
        nargs="+",
        default=[],
        metavar="WHAT=FIELD",
        help="which field of a record holds what, before what the format says; a dot goes into "
        f"an object: winner=label.overall. WHAT is one of {', '.join(FIELDS)}; key is the name "
        "of a record where records are the values of an object",
    )
    parser.add_argument(
        "--verdicts",
        nargs="+",
        default=[],
        metavar="WORD=VERDICT",
        help=f"what a word means: {', '.join(get_args(Winner))}; or name, the system called so. "
        f"Known are {', '.join(WORDS)}, and names of systems; words of --format go before names",
    )
    parser.add_argument(
        "--records", default="", metavar="NAME", help="part of the JSON that holds the records"
    )
    parser.add_argument(
        "--judge",
        default="people",
        metavar="NAME",
        help="who judged, where no field says; default: people",
    )
    add_manifest(parser)


def add_manifest(parser: argparse.ArgumentParser) -> None:
    """Add `--manifest`, which `read_manifest` reads."""
    parser.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="manifest of the instructions: what their ids stand for",
    )


def read_manifest(path: Path | None) -> dict[str, Instruction]:
    """Return instructions by id; none without a manifest.

    Raises:
        ManifestError: when it cannot be read.
    """
    if path is None:
        return {}
    return {instruction.id: instruction for instruction in manifest.read(path)}


def run(options: argparse.Namespace) -> int:
    """Write the log.

    Raises:
        S2STasksError: when the file does not fit, or the log exists.
    """
    if options.output.exists():
        raise S2STasksError(
            f"{options.output}: exists, and would hold these battles twice if they are in it; "
            "name a new log (rate and agreement take several)"
        )
    fields = PRESETS[options.format] | _pairs(options.fields, "--fields", FIELDS)
    given = _pairs(options.verdicts, "--verdicts", None)
    if unknown := [word for word in given.values() if word not in _MEANINGS]:
        raise S2STasksError(f"--verdicts {unknown[0]}: a verdict is one of {', '.join(_MEANINGS)}")
    words = {word.lower(): cast(Meaning, meaning) for word, meaning in given.items()}
    judgements = to_judgements(
        read_rows(options.file, options.records),
        fields,
        str(options.file),
        judge=options.judge,
        words={**OWN_WORDS[options.format], **words},
        instructions=read_manifest(options.manifest),
    )
    append(options.output, *judgements)
    verdicts = Counter(judgement.winners.get("overall", "none") for judgement in judgements)
    told = ", ".join(f"{name} {count:,}" for name, count in verdicts.most_common())
    print(f"{options.output}: {len(judgements):,} judgements (overall: {told})")
    return 0


def _pairs(texts: Sequence[str], option: str, known: Mapping[str, str] | None) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.rpartition("=") if known is None else text.partition("=")
        if not (name and separator and value):
            raise S2STasksError(f"{option} {text}: two names with = between them are needed")
        if known is not None and name not in known:
            raise S2STasksError(
                f"{option} {text}: {name!r} is not known; there are {', '.join(known)}"
            )
        pairs[name] = value
    return pairs
