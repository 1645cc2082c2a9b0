"""The plots of docs/speech_demo.md."""

import csv
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from conditions import SNRS, SPEEDS
from report import DOCS, TASKS, blocks, interval

CHANCE = 0.5


def draw(answers: Mapping[str, dict], curves: Path) -> None:
    """docs/speech_demo_noise.svg, docs/speech_demo_speed.svg, docs/speech_demo_training.svg."""
    plt.rcParams |= {"svg.hashsalt": "s2s-tasks", "axes.spines.top": False}
    plt.rcParams |= {"axes.spines.right": False, "figure.figsize": (9, 3.6)}
    noise = ["clean", *(f"babble {snr} dB" for snr in SNRS)]
    labels = ["clean", *(f"{snr} dB" for snr in SNRS)]
    cascade = [f"cascade {name}" for name in noise]
    _lines(answers, labels, {"speech-demo, S→T": noise, "cascade, S→T": cascade}, "noise")
    speeds = sorted([*SPEEDS, 1.0])
    names = ["clean" if speed == 1 else f"speed {speed}" for speed in speeds]
    _lines(answers, [f"{speed:g}x" for speed in speeds], {"speech-demo, S→T": names}, "speed")
    with curves.open(newline="") as file:
        logged = [[float(x) if x else np.nan for x in row] for row in csv.reader(file)]
    _, seconds, loss, held_out, errors = np.array(logged).T
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    left.plot(seconds / 60, loss, label="training")
    seen = ~np.isnan(held_out)
    left.plot(seconds[seen] / 60, held_out[seen], "o-", label="held out")
    left.set(xlabel="minutes", ylabel="CTC loss, nats per token", yscale="log")
    left.legend(frameon=False)
    right.plot(seconds[seen] / 60, 100 * errors[seen], "o-", color="C1")
    right.set(xlabel="minutes", ylabel="word error rate, held out, %", ylim=(0, None))
    _save(figure, "training")


def _lines(
    answers: Mapping[str, dict], labels: list[str], series: Mapping[str, list[str]], name: str
) -> None:
    figure, axes = plt.subplots(1, 2, sharey=True, layout="constrained")
    for axis, task in zip(axes, TASKS, strict=True):
        read = interval(list(blocks(answers["written"], task).values()))
        axis.axhline(100 * read[0], color="black", lw=1, label="speech-demo, T→T")
        axis.axhline(100 * CHANCE, color="black", lw=1, ls=":", label="no context")
        for number, (label, names) in enumerate(series.items()):
            asked = [place for place, name in enumerate(names) if name in answers]
            values = [list(blocks(answers[names[place]], task).values()) for place in asked]
            mean, low, high = 100 * np.array([interval(value) for value in values]).T
            axis.fill_between(asked, low, high, alpha=0.15, color=f"C{number}", lw=0)
            axis.plot(asked, mean, "o-", color=f"C{number}", label=label)
        axis.set_xticks(range(len(labels)), labels)
        axis.set_title("two endings of one block" if task == TASKS[0] else "topic variant")
    axes[0].set_ylabel("pair_acc, %")
    axes[1].legend(frameon=False, fontsize="small", loc="lower left")
    _save(figure, name)


def _save(figure: plt.Figure, name: str) -> None:
    figure.savefig(DOCS / f"speech_demo_{name}.svg", metadata={"Date": None})
    plt.close(figure)
