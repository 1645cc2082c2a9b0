"""The YAML files: what is there, and that variants differ only where they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from s2s_tasks import TASK_CONFIGS

FOLDER = Path(TASK_CONFIGS) / "s2sbench"
SETS = ["sstorycloze", "zh_sstorycloze", "scmmlu"]


def config(path: str) -> dict[str, Any]:
    return load_yaml(FOLDER / path, resolve_func=False)


def differing(a: dict[str, Any], b: dict[str, Any]) -> set[str]:
    return {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}


def test_every_name_is_there() -> None:
    manager = TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False)
    kinds = ("s2t", "t2t", "t2t_prefixed", "gap", "gap_unmatched")
    groups = {f"{of}_{kind}" for of in ("s2sbench", "s2sbench_mini") for kind in kinds}
    groups |= {f"s2sbench_{mode}_upstream" for mode in ("s2t", "t2t")}
    assert {name for name in manager.all_groups if name.startswith("s2sbench")} == groups
    for mode in ("s2t", "t2t"):
        for name in [*SETS, "tstorycloze", "zh_tstorycloze", "scmmlu_subjects"]:
            assert {f"{name}_{mode}", f"s2sbench_mini_{name}_{mode}"} <= set(manager.all_subtasks)
        for name in SETS:
            assert f"{name}_{mode}_upstream" in manager.all_subtasks


@pytest.mark.parametrize("name", SETS)
def test_speech_differs_from_text_in_the_prompt_alone(name: str) -> None:
    assert differing(config(f"{name}_s2t.yaml"), config(f"{name}_t2t.yaml")) == {
        "task",
        "doc_to_text",
        "doc_to_audio",
    }


@pytest.mark.parametrize("mode", ["s2t", "t2t"])
@pytest.mark.parametrize("name", [*SETS, "tstorycloze", "zh_tstorycloze", "scmmlu_subjects"])
def test_mini_differs_in_the_data_alone(name: str, mode: str) -> None:
    full, mini = config(f"{name}_{mode}.yaml"), config(f"mini/{name}_{mode}.yaml")
    assert differing(full, mini) - {"metadata"} == {"task", "dataset_kwargs"}
    assert mini["metadata"].keys() == {"version"}
    assert mini["dataset_kwargs"] == full["dataset_kwargs"] | {"mini": True}


@pytest.mark.parametrize("kind", ["gap", "gap_unmatched", "t2t_prefixed"])
@pytest.mark.parametrize("name", SETS)
def test_mini_gaps_differ_in_the_data_alone(name: str, kind: str) -> None:
    full, mini = config(f"gap/{name}_{kind}.yaml"), config(f"mini/{name}_{kind}.yaml")
    assert differing(full, mini) - {"metadata"} == {"task", "dataset_kwargs"}
    assert mini["dataset_kwargs"] == full["dataset_kwargs"] | {"mini": True}
    # Runs of one set can be compared: its tasks have one version.
    assert mini["metadata"] == config(f"mini/{name}_s2t.yaml")["metadata"]


@pytest.mark.parametrize("name", SETS)
def test_a_prefixed_text_is_worded_as_the_speech(name: str) -> None:
    spoken, written = config(f"{name}_s2t.yaml"), config(f"gap/{name}_t2t_prefixed.yaml")
    wording = spoken["doc_to_text"].replace("<|audio:0|>", "{{context}}")
    assert written["doc_to_text"] == wording
    assert differing(config(f"{name}_t2t.yaml"), written) == {"task", "doc_to_text"}


@pytest.mark.parametrize("mode", ["s2t", "t2t"])
def test_languages_differ_in_the_wording_alone(mode: str) -> None:
    wording = {"task", "dataset_kwargs", "target_delimiter"}
    wording |= {"doc_to_text"} if mode == "s2t" else set()
    assert (
        differing(config(f"sstorycloze_{mode}.yaml"), config(f"zh_sstorycloze_{mode}.yaml"))
        == wording
    )


@pytest.mark.parametrize("mode", ["s2t", "t2t"])
def test_upstream_asks_everything_in_chinese(mode: str) -> None:
    for name in SETS:
        published = config(f"upstream/{name}_{mode}.yaml")
        chinese = config(f"scmmlu_{mode}.yaml")
        for key in ("doc_to_text", "target_delimiter"):
            assert published[key] == chinese[key]


def test_every_folder_has_its_readme_and_every_task_its_version() -> None:
    assert (FOLDER / "README.md").exists()
    for path in FOLDER.rglob("*.yaml"):
        assert load_yaml(path, resolve_func=False)["metadata"]["version"] >= 1.0
