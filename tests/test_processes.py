"""Two processes, as `accelerate launch` and `torchrun` start them, answer as one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import torch
from lm_eval.tasks import TaskManager

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.models import SpeechHF
from s2s_tasks.processes import Processes

TASKS = ["sstorycloze_s2t", "scmmlu_s2t", "scmmlu_t2t"]


LIMIT = 3
"""An odd number: one of two processes has a question more than the other."""


def evaluate(folder: str, cache: str | None = None) -> dict[str, Any] | None:
    model = SpeechHF(pretrained=folder, dtype="float32", device="cpu", batch_size=1)
    return lm_eval.simple_evaluate(
        model=model,
        tasks=TASKS,
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        limit=LIMIT,
        use_cache=cache,
    )


def report(folder: str, cache: str, output: str) -> None:
    """Run as one of several processes; the first writes what all of them found."""
    results = evaluate(folder, cache)
    if results is not None:
        Path(output).write_text(json.dumps(answers(results)))


def answers(results: dict[str, Any]) -> list[Any]:
    return sorted(
        [task, sample["doc_id"], [list(pair) for pair in sample["filtered_resps"]]]
        for task, samples in results["samples"].items()
        for sample in samples
    )


def launch(folder: Path, cache: Path, output: Path) -> str:
    code = "import sys, test_processes; test_processes.report(*sys.argv[1:])"
    script = output.with_suffix(".py")
    script.write_text(code)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc_per_node", "2", str(script)),
            *(str(folder), str(cache), str(output)),
        ],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return done.stderr


@pytest.fixture(autouse=True)
def data(s2sbench: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))
    # Both processes find nothing prepared, and prepare it at the same time.
    monkeypatch.setenv("S2S_TASKS_CACHE", str(tmp_path / "prepared"))


def test_two_processes_answer_as_one(qwen2_audio: Path, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the launcher sets it: other sums round in another way
    expected = evaluate(str(qwen2_audio))
    torch.set_num_threads(threads)
    assert expected is not None
    output = tmp_path / "found.json"
    errors = launch(qwen2_audio, tmp_path / "cache", output)
    assert output.exists(), errors
    assert json.loads(output.read_text()) == json.loads(json.dumps(answers(expected)))
    assert {path.name for path in tmp_path.glob("cache*")} == {"cache_rank0.db", "cache_rank1.db"}


def test_one_process_is_alone() -> None:
    alone = Processes()
    assert (alone.rank, alone.count, alone.device) == (0, 1, None)
    assert alone.gather_object("mine", 0) == ["mine"]
    alone.wait()
