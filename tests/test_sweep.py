"""`s2s-tasks sweep`: lm-eval on each checkpoint of a training run."""

from __future__ import annotations

import json
import os
import re
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lm_eval.tasks.manager
import lm_eval.utils
import pytest
import torch
from safetensors.torch import load_file, save_file

from s2s_tasks import cli
from s2s_tasks.adapters import hf
from s2s_tasks.commands import sweep as command
from s2s_tasks.errors import S2STasksError
from s2s_tasks.sweep.ahead import reading_ahead
from s2s_tasks.sweep.checkpoints import find_checkpoints

S2T, T2T = "sstorycloze_s2t", "sstorycloze_t2t"
GOOD = ("checkpoint-90", "checkpoint-200", "checkpoint-1000")
BROKEN = "checkpoint-300"
SMALL = ("--model_args", "dtype=float32", "--device", "cpu", "--limit", "3")
CONTEXTS, SELF_TEST = 4, 3
"""Recordings that the spoken task has with this limit, and that a model is tried on."""


@pytest.fixture(autouse=True)
def surroundings(s2sbench: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))
    monkeypatch.setenv("S2S_TASKS_CACHE", str(tmp_path / "prepared"))
    # No need to scan lm-eval's own tasks, which takes seconds.
    monkeypatch.setattr(lm_eval.tasks.manager, "__file__", str(tmp_path / "manager.py"))
    # Its log lines go where pytest wants them.
    monkeypatch.setattr(lm_eval.utils, "_LOGGING_CONFIGURED", True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models this small only wait for each other's threads
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def training(qwen2_audio: Path, tmp_path: Path) -> Path:
    """A training run that leaves the audio tower alone, with a checkpoint that is cut off."""
    folder = tmp_path / "run"
    for index, name in enumerate((*GOOD, BROKEN)):
        shutil.copytree(qwen2_audio, folder / name)
        train(folder / name, index)
    weights = folder / BROKEN / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    (folder / "checkpoint-tmp").mkdir()
    return folder


def train(checkpoint: Path, seed: int) -> None:
    path = checkpoint / "model.safetensors"
    weights = load_file(path)
    generator = torch.Generator().manual_seed(seed)
    for name in weights:
        if "language_model" in name:
            noise = torch.randn(weights[name].shape, generator=generator)
            weights[name] += 0.3 * weights[name].std(unbiased=False) * noise
    save_file(weights, path, metadata={"format": "pt"})


class Loads:
    """Sees every load of a model, and what is alive of earlier ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        self._models: list[weakref.ref[Any]] = []
        self._load = hf.load
        monkeypatch.setattr(hf, "load", self)

    def __call__(self, pretrained: str, **options: Any) -> Any:
        assert not any(model() is not None for model in self._models), "two models at once"
        self.paths.append(Path(pretrained).name)
        loaded = self._load(pretrained, **options)
        self._models.append(weakref.ref(loaded.model))
        return loaded


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)


def sweep(training: Path, *further: str) -> int:
    patterns = ["--checkpoints", f"{training}/checkpoint-*"]
    output = ["--output_path", str(training.parent / "results")]
    return cli.main(["sweep", *patterns, *output, *SMALL, *further])


def results_of(training: Path, name: str) -> list[dict[str, Any]]:
    found = sorted((training.parent / "results" / name).rglob("results_*.json"))
    return [json.loads(path.read_text()) for path in found]


def test_a_training_run(training: Path, loads: Loads, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("--tasks", f"{S2T},{T2T}", "--published_summary")
    assert sweep(training, *ask) == 1
    out = capsys.readouterr().out
    # By step, one at a time, the broken one in its turn.
    assert loads.paths == ["checkpoint-90", "checkpoint-200", BROKEN, "checkpoint-1000"]
    assert f"Left out, for want of a config.json: {training}/checkpoint-tmp" in out
    assert f"{BROKEN}: failed: " in out
    assert f"Failed: 1 of 4 checkpoints\n  {BROKEN}: " in out
    assert out.count("incomplete metadata") == 2  # what safetensors says of a file that is cut

    # The tower was not trained: what the first made, the others take.
    every = CONTEXTS + SELF_TEST
    assert f"checkpoint-90: 0 of {every} encodings" in out
    assert f"checkpoint-1000: {every} of {every} encodings" in out
    assert f"Audio cache: {2 * every} of {3 * every} encodings of recordings reused" in out

    found = [results_of(training, name)[0]["results"] for name in GOOD]
    for task in (S2T, T2T):
        rows = [line.split() for line in out.partition(f"\n{task}\n")[2].splitlines()[:5]]
        assert rows[0] == ["checkpoint", "step", "pair_acc"]
        assert [row[:2] for row in rows[1:]] == [
            [f"checkpoint-{step}", step] for step in ("90", "200", "300", "1000")
        ]
        shown = [row[2] for row in rows[1:]]
        assert shown.pop(2) == "–"
        assert shown == [f"{100 * scores[task]['pair_acc,none']:.1f}" for scores in found]
    for name in GOOD:
        samples = list((training.parent / "results" / name).rglob("samples_*.jsonl"))
        assert len(samples) == 2
        assert all(len(path.read_text().splitlines()) == 3 for path in samples)

    summary = training.parent / "results" / command.PUBLISHED / S2T / "results_summary.txt"
    assert summary.read_text().splitlines() == [
        f"{name.partition('-')[2]},{scores[S2T]['pair_acc,none']:.2%},"
        f"{scores[S2T]['nll_pos,none']:.4f},{scores[S2T]['nll_neg,none']:.4f}"
        for name, scores in zip(GOOD, found, strict=True)
    ]

    # Again: only what failed, and what was written over.
    train(training / "checkpoint-200", seed=7)
    loads.paths.clear()
    assert sweep(training, *ask) == 1
    assert loads.paths == ["checkpoint-200", BROKEN]
    out = capsys.readouterr().out
    assert "Done before and not run again: checkpoint-90, checkpoint-1000" in out
    assert len(results_of(training, "checkpoint-200")) == 2
    assert len(summary.read_text().splitlines()) == 3

    # Other arguments are another call; how fast it is computed is not.
    shutil.rmtree(training / BROKEN)
    loads.paths.clear()
    assert sweep(training, *ask, "--batch_size", "2") == 0
    assert loads.paths == []
    assert sweep(training, *ask, "--num_fewshot", "1", "--checkpoints", f"{training}/*-90") == 0
    assert loads.paths == ["checkpoint-90"]


def test_answers_of_checkpoints_do_not_mix(training: Path, loads: Loads) -> None:
    for name in (GOOD[2], BROKEN):
        shutil.rmtree(training / name)
    cache = training.parent / "cache"
    ask = ("--tasks", T2T, "--use_cache", str(cache))
    assert sweep(training, *ask) == 0
    first = [results_of(training, name)[0]["results"] for name in GOOD[:2]]
    assert len(list(cache.iterdir())) == 2
    # As if both had been killed before the end, and one was written over meanwhile.
    shutil.rmtree(training.parent / "results")
    train(training / GOOD[1], seed=7)
    assert sweep(training, *ask) == 0
    again = [results_of(training, name)[0]["results"] for name in GOOD[:2]]
    assert [one == other for one, other in zip(first, again, strict=True)] == [True, False]


def test_an_interrupt_ends_at_once(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hf, "load", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sweep(training, "--tasks", T2T)
    assert not (training.parent / "results" / GOOD[0] / "sweep.json").exists()


def test_a_model_that_cannot_keep_encodings(
    llama: Path, tmp_path: Path, loads: Loads, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (1, 2):
        shutil.copytree(llama, tmp_path / "run" / f"checkpoint-{step}")
    assert sweep(tmp_path / "run", "--tasks", T2T) == 0
    out = capsys.readouterr().out
    assert out.count("Without an audio cache from here on: ") == 1
    assert "encodings of recordings" not in out
    assert loads.paths == ["checkpoint-1", "checkpoint-1", "checkpoint-2"]


def test_scores_that_are_no_numbers(
    training: Path, loads: Loads, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in GOOD[:2]:
        shutil.move(training / name, training / f"not-{name}")
    path = training / BROKEN / "model.safetensors"
    weights = load_file(training / GOOD[2] / path.name)
    last = next(name for name in weights if name.endswith("model.norm.weight"))
    weights[last] *= torch.nan
    save_file(weights, path, metadata={"format": "pt"})
    assert sweep(training, "--tasks", T2T, "--no_audio_cache") == 1
    assert loads.paths == [BROKEN, GOOD[2]]
    assert "not finite" in capsys.readouterr().out.splitlines()[-1]
    assert not (training.parent / "results" / command.AUDIO_CACHE).exists()
    recorded = json.loads((training.parent / "results" / BROKEN / "sweep.json").read_text())
    assert recorded["step"] == 300
    assert "not finite" in recorded["runs"][0]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "no_such_task"], "lm-eval: Tasks not found: no_such_task"),
        (["--tasks", T2T, "--model", "no-such-model"], "lm-eval: .*no-such-model"),
        ([], "--tasks: name at least one"),
        (["--tasks", T2T, "--config", "no.yaml"], "--config no.yaml: "),
    ],
)
def test_a_wrong_call_loads_nothing(
    training: Path,
    loads: Loads,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sweep(training, *arguments) == 2
    assert re.search(message, capsys.readouterr().err)
    assert loads.paths == []


def test_arguments_of_a_file(training: Path, loads: Loads) -> None:
    config = training.parent / "sweep.yaml"
    config.write_text(f"tasks: [{T2T}]\nmodel_args: dtype=float32\nlimit: 5\nmodel: speech-hf\n")
    arguments = ["--checkpoints", str(training / GOOD[0]), "--device", "cpu", "--limit", "2"]
    output = training.parent / "results"
    assert cli.main(["sweep", *arguments, "-o", str(output), "--config", str(config)]) == 0
    (found,) = results_of(training, GOOD[0])
    assert found["config"]["model_args"]["dtype"] == "float32"
    assert found["config"]["limit"] == 2


def test_what_is_a_checkpoint(training: Path) -> None:
    found, skipped = find_checkpoints([f"{training}/checkpoint-*", str(training / GOOD[0])])
    assert [(c.name, c.step) for c in found] == [
        ("checkpoint-90", 90),
        ("checkpoint-200", 200),
        ("checkpoint-300", 300),
        ("checkpoint-1000", 1000),
    ]
    assert skipped == [training / "checkpoint-tmp"]
    # In the order of the names, whatever the steps.
    found, _ = find_checkpoints([f"{training}/*"], steps="4,3,2,1")
    assert (found[0].name, found[0].step) == ("checkpoint-1000", 1)


def test_what_is_none(training: Path) -> None:
    with pytest.raises(S2STasksError, match=r"/model-\*: nothing is called so"):
        find_checkpoints([f"{training}/model-*"])
    with pytest.raises(S2STasksError, match=r"none of these .*checkpoint-tmp\. Give folders"):
        find_checkpoints([f"{training}/*-tmp"])
    with pytest.raises(S2STasksError, match=rf"as {training}/\*"):
        find_checkpoints([str(training)])
    (training / "checkpoint-tmp" / "adapter_config.json").touch()
    with pytest.raises(S2STasksError, match="--checkpoint_argument peft"):
        find_checkpoints([f"{training}/*-tmp"])
    shutil.copytree(training / GOOD[0], training / "other" / GOOD[0])
    with pytest.raises(S2STasksError, match="same name"):
        find_checkpoints([f"{training}/checkpoint-*", f"{training}/other/*"])


def test_files_are_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    with reading_ahead([tmp_path / "gone", path]) as thread:
        assert thread is None
    with reading_ahead([path]) as thread:
        assert thread is not None
    assert not thread.is_alive()
    os.truncate(path, 2**43)  # a hole, larger than any memory
    with reading_ahead([path]) as thread:
        assert thread is None
    monkeypatch.setenv("LOCAL_RANK", "1")
    path.write_bytes(b"weights")
    with reading_ahead([path]) as thread:
        assert thread is None
