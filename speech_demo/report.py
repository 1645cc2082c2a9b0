"""docs/speech_demo.md: tables of what evaluate.py found; its words are in report.md."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy
import yaml
from conditions import SNRS, SPEEDS
from voices import MINI_SET_HEARD, MINI_SET_UNHEARD

DOCS = Path(__file__).parents[1] / "docs"
VOICES = Path(__file__).parents[1] / "mini_set" / "voices.yaml"
TASKS = ("sstorycloze", "tstorycloze")
CONFIDENCE = 0.95
SEED = 0
Block = dict[str, float]


def blocks(answers: Mapping[str, Mapping[str, tuple[str, float]]], task: str) -> Block:
    """Mean pair_acc of each block; its questions were written against each other."""
    (questions,) = (found for name, found in answers.items() if name.startswith(task))
    grouped: dict[str, list[float]] = {}
    for block, value in questions.values():
        grouped.setdefault(block, []).append(value)
    return {block: float(np.mean(values)) for block, values in grouped.items()}


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean over blocks, and its 95 % bootstrap interval (percentile, blocks resampled)."""
    if len(set(values)) == 1:
        return values[0], values[0], values[0]
    found = scipy.stats.bootstrap(
        (values,), np.mean, confidence_level=CONFIDENCE, method="percentile", rng=SEED
    ).confidence_interval
    return float(np.mean(values)), float(found.low), float(found.high)


def cell(values: list[float]) -> str:
    """For a table, in percent."""
    mean, low, high = interval(values)
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def difference(first: Block, second: Block) -> list[float]:
    """First less second, block by block."""
    return [first[block] - second[block] for block in first]


def table(rows: list[tuple[str, list[str]]], *header: str) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join([name, *cells])} |" for name, cells in rows)])


def rows_of(answers: Mapping[str, dict], names: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """A line a condition: accuracy in both tasks, nothing where it was not asked."""
    return [
        (
            label,
            [
                cell(list(blocks(answers[name], t).values())) if name in answers else ""
                for t in TASKS
            ],
        )
        for name, label in names.items()
    ]


def gap_rows(answers: Mapping[str, dict]) -> list[tuple[str, list[str]]]:
    """What is lost between two conditions, paired."""
    pairs = {
        "T→T less S→T, as published": ("written", "clean"),
        "- the wording: T→T less T→T worded as S→T": ("written", "same prompt"),
        "- recognition: T→T worded as S→T less the cascade": ("same prompt", "cascade clean"),
        "- the projector: the cascade less S→T": ("cascade clean", "clean"),
    }
    return [
        (
            label,
            [
                cell(difference(blocks(answers[first], task), blocks(answers[second], task)))
                for task in TASKS
            ],
        )
        for label, (first, second) in pairs.items()
    ]


def voice_rows(answers: Mapping[str, dict]) -> list[tuple[str, list[str]]]:
    """Speech by who speaks: accuracy, and what is lost against the text of the same blocks."""
    speakers = yaml.safe_load(VOICES.read_text(encoding="utf-8"))
    groups = {
        "6 Kokoro voices heard in training": ("clean", MINI_SET_HEARD),
        "6 Kokoro voices never heard": ("clean", MINI_SET_UNHEARD),
        "Piper, an engine never heard": ("piper", (*MINI_SET_HEARD, *MINI_SET_UNHEARD)),
    }
    rows = []
    for label, (name, voices) in groups.items():
        if name not in answers:
            continue
        cells = []
        for task in TASKS:
            spoken, written = blocks(answers[name], task), blocks(answers["written"], task)
            mine = {block: value for block, value in spoken.items() if speakers[block] in voices}
            lost = [written[block] - value for block, value in mine.items()]
            cells += [cell(list(mine.values())), cell(lost)]
        rows.append((label, cells))
    return rows


def write(answers: Mapping[str, dict]) -> None:
    """Write the page."""
    both = ("two endings of one block, %", "topic variant, %")
    main_rows = rows_of(
        answers,
        {
            "written": "T→T",
            "same prompt": "T→T, worded as S→T",
            "clean": "**S→T**",
            "cascade clean": "S→T by the cascade",
            "swapped": "S→T, another question's recording",
            "no context": "no context",
        },
    )
    noise = {"clean": "clean"} | {f"babble {snr} dB": f"{snr} dB" for snr in SNRS}
    cascade = rows_of(answers, {f"cascade {name}": label for name, label in noise.items()})
    noise_rows = [
        (label, [*cells, *others])
        for (label, cells), (_, others) in zip(rows_of(answers, noise), cascade, strict=True)
    ]
    speeds = {"clean" if s == 1 else f"speed {s}": f"{s:g}x" for s in sorted([*SPEEDS, 1.0])}
    tables = {
        "MAIN": table(main_rows, "", *both),
        "GAPS": table(gap_rows(answers), "lost, in points", *both),
        "NOISE": table(noise_rows, "babble", *both, "cascade, two endings", "cascade, topic"),
        "SPEED": table(rows_of(answers, speeds), "speed", *both),
        "VOICES": table(
            voice_rows(answers),
            "who speaks", "two endings, %", "lost, points", "topic, %", "lost, points",
        ),
    }  # fmt: skip
    page = (Path(__file__).parent / "report.md").read_text(encoding="utf-8")
    for name, text in tables.items():
        page = page.replace(f"{{{name}}}", text)
    DOCS.mkdir(exist_ok=True)
    (DOCS / "speech_demo.md").write_text(page, encoding="utf-8")
