"""Memory and time of a whole run, by the number of questions; each run in its own process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from benchmarks.model import write_small
from s2s_tasks.audio import probe
from s2s_tasks.data.parquet import write_rows
from s2s_tasks.data.rows import Row, place_gold

FEW, MANY = 200, 2000
BATCH_SIZE = 8


def measure(folder: Path) -> dict[int, dict[str, float]]:
    """Return, for each number of questions, peak memory in MB and milliseconds a question.

    The time is that of the first `FEW` questions and of the last: machines are not equally fast
    from one run to the next.
    """
    model = write_small(folder / "small")
    found = {}
    for count in (FEW, MANY):
        data = folder / f"questions-{count}"
        _write_questions(data, count)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", str(model)],
            env=os.environ | {"S2SBENCH_DATA": str(data)},
            capture_output=True,
            text=True,
            check=True,
        )
        found[count] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(model: str) -> dict[str, float]:
    """Ask a model all questions through lm-eval, in this process."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    from s2s_tasks import TASK_CONFIGS
    from s2s_tasks.models import SpeechHF

    lm = SpeechHF(pretrained=model, dtype="float32", device="cpu", batch_size=BATCH_SIZE)
    score, starts = lm.adapter.score_groups, []

    def timed(*given: Any) -> Any:
        starts.append(time.perf_counter())
        return score(*given)

    lm.adapter.score_groups = timed  # type: ignore[method-assign]
    lm_eval.simple_evaluate(
        model=lm,
        tasks=["scmmlu_s2t"],
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        log_samples=False,
    )
    batches = FEW // BATCH_SIZE
    return {
        "megabytes": _peak_memory(),
        "first": _milliseconds(starts[: batches + 1]),
        "last": _milliseconds(starts[-batches - 1 :]),
    }


def _milliseconds(starts: list[float]) -> float:
    """Return the median time a question, from the times at which batches began."""
    return 1000 * statistics.median(b - a for a, b in pairwise(starts)) / BATCH_SIZE


def _peak_memory() -> float:
    """Return the most memory that this process held, in MB.

    `getrusage` would tell that of the process which started it, if that is larger (Linux).
    """
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes.split()[1]) / 1024


def _write_questions(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)

    def rows() -> Any:
        for number in range(count):
            path = folder / f"{number}.wav"
            soundfile.write(path, random.normal(size=16_000) * 0.1, 16_000)
            endings = tuple(f"答案{number:04}之{letter}" for letter in "甲乙丙丁")
            yield place_gold(
                Row(
                    id=f"scmmlu-{number}",
                    language="zh",
                    context=f"第{number:04}个问题是什么？",
                    endings=endings,
                    gold=0,
                    context_audio=(probe(path),),
                    subject="astronomy",
                )
            )

    write_rows(folder / "scmmlu.parquet", rows(), source="benchmarks/memory.py")


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
