"""A sweep in two processes, as `accelerate launch` and `torchrun` start them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

TASK = "sstorycloze_t2t"


def launch(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(script)
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc_per_node", "2", str(path), *arguments),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=120,
        text=True,
    )


def test_two_processes_do_the_same(llama: Path, s2sbench: Path, tmp_path: Path) -> None:
    """Both are past the one that is cut off when the last is scored."""
    script = """if True:
        import sys
        import lm_eval.tasks.manager
        lm_eval.tasks.manager.__file__ = sys.argv.pop()  # no need to scan lm-eval's own tasks
        from s2s_tasks import cli
        sys.exit(cli.main(sys.argv[1:]))
    """
    for step in (1, 2, 3):
        shutil.copytree(llama, tmp_path / f"step_{step}")
    weights = tmp_path / "step_2" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    call = ["sweep", "--checkpoints", f"{tmp_path}/step_*", "-o", f"{tmp_path}/results"]
    call += ["--tasks", TASK, "--limit", "3", "--device", "cpu", "--no_audio_cache"]
    call += ["--metadata", json.dumps({"data_dir": str(s2sbench)}), str(tmp_path / "manager.py")]
    run = launch(script, tmp_path, *call)
    assert "Failed: 1 of 3 checkpoints" in run.stdout, run.stderr
    for line in ("step_1: done", "step_2: failed: ", "step_3: done"):
        assert run.stdout.count(line) == 1
    for step in (1, 2, 3):
        folder = tmp_path / "results" / f"step_{step}"
        (record,) = json.loads((folder / "sweep.json").read_text())["runs"]
        assert (record["error"] is None) == (step != 2)
        samples = [path.read_text().splitlines() for path in folder.rglob("samples_*")]
        assert [len(lines) for lines in samples] == ([] if step == 2 else [3])


def test_a_process_that_fails_alone_ends_all(tmp_path: Path) -> None:
    """The other waits for it elsewhere, as it would inside lm-eval."""
    script = """if True:
        from datetime import timedelta
        from s2s_tasks.sweep import agreement
        agreement.ALONE = timedelta(seconds=1)
        together = agreement.Agreement("cpu")
        assert together.tell({together.main}) == {True}
        assert together.failure("broken") == "broken"
        assert together.failure(None if together.main else "one is enough") == "one is enough"
        assert together.failure(None) is None
        if together.main:
            together._processes.wait()
        together.failure("out of memory")
    """
    run = launch(script, tmp_path)
    assert run.returncode
    assert "AssertionError" not in run.stderr
    assert "S2STasksError: out of memory\n" in run.stderr
    assert "This happened in process 1 only" in run.stderr
