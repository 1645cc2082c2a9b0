"""What models are called: as short as tells them apart."""

from __future__ import annotations

from typing import Any

import pytest

from s2s_tasks.report.names import name_models


def results(model: str, **arguments: str) -> dict[str, Any]:
    return {"config": {"model": model, "model_args": arguments}}


def labels(*found: dict[str, Any]) -> list[str]:
    return [name.label for name in name_models([(one, None) for one in found])]


def test_the_last_part_of_the_path_is_enough() -> None:
    assert labels(
        results("speech-hf", pretrained="Qwen/Qwen2-Audio-7B", dtype="bfloat16"),
        results("speech-cascade", asr="openai/whisper-base", lm="/models/gemma"),
        results("speech-demo"),
    ) == ["Qwen2-Audio-7B", "whisper-base + gemma", "speech-demo"]


def test_settings_then_paths_tell_apart() -> None:
    assert labels(
        results("speech-hf", pretrained="a/m", dtype="float32"),
        results("speech-hf", pretrained="a/m", dtype="bfloat16"),
        results("hf", pretrained="a/n"),
        results("hf", pretrained="b/n"),
    ) == [
        "m (speech-hf, dtype=float32)",
        "m (speech-hf, dtype=bfloat16)",
        "a/n (hf)",
        "b/n (hf)",
    ]


def test_what_changes_no_score_makes_no_other_model() -> None:
    first = results("speech-hf", pretrained="a/m", audio_cache="x")
    second = results("speech-hf", pretrained="a/m", device_map="auto")
    assert labels(first, second) == ["m", "m"]


def test_arguments_may_be_a_string() -> None:
    given = {"config": {"model": "speech-hf", "model_args": "pretrained=a/m,dtype=float32"}}
    assert labels(given, results("speech-hf", pretrained="a/m", dtype="float32")) == ["m", "m"]


@pytest.mark.parametrize(
    "paths",
    [
        ("run/checkpoint-9", "run/checkpoint-10"),
        ("run/step_0009", "run/step_0010"),
    ],
)
def test_checkpoints_of_one_folder_are_a_training_run(paths: tuple[str, str]) -> None:
    named = name_models([(results("speech-hf", pretrained=path), None) for path in paths])
    assert [(one.training, one.step) for one in named] == [("run", 9), ("run", 10)]


@pytest.mark.parametrize("paths", [("hub/small", "hub/large"), ("hub/model-1", "hub/model-2")])
def test_models_without_steps_are_none(paths: tuple[str, str]) -> None:
    named = name_models([(results("speech-hf", pretrained=path), None) for path in paths])
    assert [(one.training, one.step) for one in named] == [(None, None)] * 2


def test_training_runs_of_one_folder_name_stay_apart() -> None:
    named = name_models(
        [
            (results("speech-hf", pretrained=f"{run}/run/step-{step}"), None)
            for run in ("first", "second")
            for step in (1, 2)
        ]
    )
    assert [one.step for one in named] == [1, 2, 1, 2]
    assert len({one.training for one in named}) == 2
    assert named[0].training == named[1].training and named[2].training == named[3].training


def test_a_training_run_has_a_name_without_a_folder() -> None:
    named = name_models(
        [(results("speech-hf", pretrained=f"step-{step}"), None) for step in (1, 2)]
    )
    assert {one.training for one in named} == {"training run"}


def test_adapters_on_one_model_are_checkpoints_too() -> None:
    named = name_models(
        [(results("speech-hf", pretrained="m", peft=f"lora/step-{step}"), None) for step in (5, 50)]
    )
    assert [(one.label, one.step) for one in named] == [("step-5 + m", 5), ("step-50 + m", 50)]


def test_noted_steps_come_first() -> None:
    paths = ("run/best", "run/last")
    named = name_models(
        [
            (results("speech-hf", pretrained=path), step)
            for path, step in zip(paths, (70, 90), strict=True)
        ]
    )
    assert [(one.training, one.step) for one in named] == [("run", 70), ("run", 90)]
