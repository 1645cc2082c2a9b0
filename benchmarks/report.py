"""The figures as one table, JSON and a picture."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

COLOURS = {
    "published": "#8c8c8c",
    "lm-eval hf": "#8c8c8c",
    "ours, exact": "#9ecae1",
    "ours": "#08519c",
    "lower limit": "white",
}


def write_report(folder: Path, found: dict[str, Any]) -> None:
    """Write `scoring.json`, `scoring.md` and `scoring.png`, and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scoring.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    table = "\n".join(_table(found))
    (folder / "scoring.md").write_text(table + "\n")
    _draw(found).savefig(folder / "scoring.png", dpi=150)
    print(table)
    print(f"\nWritten to {folder}: scoring.json, scoring.md, scoring.png")


def _table(found: dict[str, Any]) -> list[str]:
    rounds = len(next(iter(found["contests"][0]["rounds"].values())))
    lines = [
        f"Qwen2-Audio, {found['parameters'] / 1e6:.0f} M random parameters, fp32, "
        f"{found['machine']['threads']} threads; medians of {rounds} rounds; a ratio is that of "
        "two times of one round.",
        "",
        "| requests | way | seconds | times as fast | times the lower limit |",
        "|---|---|--:|--:|--:|",
    ]
    for contest in found["contests"]:
        batch = found["batch_size"][contest["name"][:3]]
        rounds = contest["rounds"]
        slowest, limit = next(iter(rounds.values())), rounds["lower limit"]
        for way, seconds in rounds.items():
            title = f"{contest['name']}, batches of {batch}" if seconds is slowest else ""
            lines.append(
                f"| {title} | {way} | {statistics.median(seconds):.2f} | "
                f"{_ratio(slowest, seconds):.2f} | {_ratio(seconds, limit):.2f} |"
            )
    lines += ["", "| questions | peak memory, MB | ms a question, first 200 | last 200 |"]
    lines += ["|--:|--:|--:|--:|"]
    for count, run in found["memory"].items():
        times = f"{run['first']:.1f} | {run['last']:.1f}"
        lines.append(f"| {count:,} | {run['megabytes']:.0f} | {times} |")
    lines += ["", "| target | found | wanted | |", "|---|--:|--:|---|"]
    for target in found["targets"]:
        sign = "≤" if target["at_most"] else "≥"
        verdict = "met" if target["met"] else "**missed**"
        figures = f"{target['found']:.3g} | {sign} {target['wanted']:.3g}"
        lines.append(f"| {target['what']} | {figures} | {verdict} |")
    return lines


def _ratio(one: list[float], other: list[float]) -> float:
    """Return the median ratio of what was measured in the same round."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def _draw(found: dict[str, Any]) -> Any:
    contests = found["contests"]
    figure, axes = plt.subplots(1, len(contests), figsize=(3 * len(contests), 3.6))
    for axis, contest in zip(axes, contests, strict=True):
        names = list(contest["rounds"])
        limit = contest["rounds"]["lower limit"]
        relative = [_ratio(seconds, limit) for seconds in contest["rounds"].values()]
        bars = axis.bar(names, relative, color=[COLOURS[name] for name in names], edgecolor="black")
        axis.bar_label(bars, fmt="%.2f", padding=2)
        axis.set_title(contest["name"], fontsize=10)
        axis.set_ylim(0, max(relative) * 1.15)
        axis.tick_params(axis="x", rotation=30, labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("time, as multiples of the lower limit")
    figure.tight_layout()
    return figure
