"""lm-eval's `--use_cache` with our models: killed runs go on, and no answer is another's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import soundfile
import tiny
import torch
from lm_eval.tasks import TaskManager
from safetensors.torch import load_file, save_file

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.models import SpeechHF

TASKS = ["s2sbench_s2t", "s2sbench_t2t"]


@pytest.fixture(autouse=True)
def data(s2sbench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))


def load(folder: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(folder), dtype="float32", device="cpu", batch_size=2)


def evaluate(model: SpeechHF, cache: Path | None, *tasks: str) -> dict[str, Any]:
    return lm_eval.simple_evaluate(
        model=model,
        tasks=list(tasks or TASKS),
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        use_cache=None if cache is None else str(cache),
    )


class Prefills:
    """Counts prefixes that a model reads."""

    def __init__(self, model: torch.nn.Module, fatal: int | None = None) -> None:
        self.rows = 0
        self._fatal = fatal
        self._handle = model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs.get("cache") is None and kwargs.get("use_cache"):
            self.rows += len(kwargs["input_ids"])
            if self._fatal is not None and self.rows >= self._fatal:
                print(self.rows, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

    def __enter__(self) -> Prefills:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()


def die_halfway(folder: str, cache: str, rows: str) -> None:
    """Run in another process until so many prefixes have been given to the model."""
    model = load(Path(folder))
    Prefills(model.adapter.model, fatal=int(rows))
    evaluate(model, Path(cache))


def test_a_killed_run_goes_on_where_it_was(qwen2_audio: Path, tmp_path: Path) -> None:
    whole = load(qwen2_audio)
    with Prefills(whole.adapter.model) as total:
        expected = evaluate(whole, None)

    code = "import sys, test_resume; test_resume.die_halfway(*sys.argv[1:])"
    cache = tmp_path / "cache"
    killed = subprocess.run(
        [sys.executable, "-c", code, str(qwen2_audio), str(cache), str(total.rows // 2)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    begun = int(killed.stdout.split()[-1])
    assert begun < total.rows

    again = load(qwen2_audio)
    with Prefills(again.adapter.model) as rest:
        found = evaluate(again, cache)
    assert rest.rows <= total.rows - begun + again.batch_size
    assert found["results"] == expected["results"]
    for task, samples in expected["samples"].items():
        for one, other in zip(samples, found["samples"][task], strict=True):
            assert one["filtered_resps"] == other["filtered_resps"]

    with Prefills(again.adapter.model) as nothing:
        evaluate(again, cache)
    assert nothing.rows == 0


def test_answers_of_another_model_are_refused(llama: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    evaluate(load(llama), cache, "s2sbench_t2t")
    trained = tmp_path / llama.name
    shutil.copytree(llama, trained)
    weights = load_file(trained / "model.safetensors")
    weights["model.layers.0.mlp.up_proj.weight"][3, 5] += 2**-10
    save_file(weights, trained / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AdapterError, match=r"cache_rank0\.db holds answers of .*delete that one"):
        evaluate(load(trained), cache, "s2sbench_t2t")


def test_a_checkpoint_written_over_is_another_model(tmp_path: Path) -> None:
    """The same folder, trained on: lm-eval would give it the answers of the day before."""
    folder, cache = tiny.llama(tmp_path / "last"), tmp_path / "cache"
    evaluate(load(folder), cache, "s2sbench_t2t")
    evaluate(load(folder), cache, "s2sbench_t2t")
    tiny.llama(folder, seed=1)
    with pytest.raises(AdapterError, match="holds answers of"):
        evaluate(load(folder), cache, "s2sbench_t2t")


def test_exact_answers_are_not_those_of_shared_prefixes(llama: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    evaluate(load(llama), cache, "s2sbench_t2t")
    exact = SpeechHF(pretrained=str(llama), dtype="float32", device="cpu", exact=True)
    with pytest.raises(AdapterError, match=r"not of .*, exact=true"):
        evaluate(exact, cache, "s2sbench_t2t")


def test_answers_of_an_unknown_model_are_refused(llama: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    lm_eval.simple_evaluate(
        model="dummy",
        tasks=["s2sbench_t2t"],
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        use_cache=str(cache),
    )
    with pytest.raises(AdapterError, match="answers of an unknown model"):
        evaluate(load(llama), cache, "s2sbench_t2t")


def test_scores_of_another_version_are_refused(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    evaluate(load(llama), cache, "s2sbench_t2t")
    monkeypatch.setattr("s2s_tasks.engine.answers.SCORING_VERSION", 2)
    with pytest.raises(
        AdapterError, match=r"\(scoring version 1\), not of .*\(scoring version 2\)"
    ):
        evaluate(load(llama), cache, "s2sbench_t2t")


def test_a_recording_that_changed_is_heard_again(
    qwen2_audio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same path, of the same length: only its content tells."""
    task = tmp_path / "heard.yaml"
    task.write_text(
        "task: heard\n"
        "dataset_path: csv\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path}/questions.csv}}}}\n"
        "test_split: test\n"
        "output_type: multiple_choice\n"
        "doc_to_text: '<|audio:0|>'\n"
        "doc_to_choice: [' yes', ' no']\n"
        "doc_to_target: '{{gold}}'\n"
        "doc_to_audio: !function recordings.find\n"
    )
    (tmp_path / "questions.csv").write_text("file,gold\na.wav,0\nb.wav,1\n")
    (tmp_path / "recordings.py").write_text(
        "from pathlib import Path\n"
        "from s2s_tasks.audio import probe\n"
        "def find(doc):\n"
        "    return [probe(Path(__file__).parent / doc['file']).to_json()]\n"
    )
    for seed, name in enumerate("ab"):
        record(tmp_path / f"{name}.wav", seed)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))

    def run() -> tuple[int, list[Any]]:
        model = load(qwen2_audio)
        with Prefills(model.adapter.model) as read:
            results = lm_eval.simple_evaluate(
                model=model,
                tasks=["heard"],
                task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
                bootstrap_iters=0,
                use_cache=str(tmp_path / "cache"),
            )
        return read.rows, [sample["filtered_resps"] for sample in results["samples"]["heard"]]

    read, first = run()
    assert read == 2
    assert run() == (0, first)
    record(tmp_path / "a.wav", seed=7)
    read, changed = run()
    assert read == 1
    assert changed[0] != first[0]
    assert changed[1] == first[1]


def record(path: Path, seed: int) -> None:
    sound = torch.randn(16000, generator=torch.Generator().manual_seed(seed)) * 0.1
    soundfile.write(path, sound.numpy(), 16000)
