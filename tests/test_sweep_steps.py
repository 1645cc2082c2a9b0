"""Which training step the name of a checkpoint says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.sweep.steps import StepError, find_steps, natural, parse_steps

STEPS = st.lists(st.integers(0, 10**7), min_size=1, max_size=8, unique=True)
WORD = st.text("abcxyz-_=. 文", max_size=8).filter(lambda word: not word.endswith("."))
"""No digits; no dot before a number, which would make a decimal of two."""
FORMS = (
    "checkpoint-{}",
    "step_{}",
    "iter_{:07}",
    "global_step{}",
    "epoch=1-step={}.ckpt",
    "Baichuan_{}_x",
    "Qwen2-Audio-7B-step{}",
    "{}",
)


@pytest.mark.parametrize("form", FORMS)
@given(steps=STEPS)
def test_steps_in_usual_names(form: str, steps: list[int]) -> None:
    # With a single name nothing varies: it needs a word, or to have no other number.
    assert find_steps([form.format(step) for step in steps]) == steps


@given(before=WORD, after=WORD, constant=st.integers(0, 99), steps=STEPS)
def test_the_number_that_varies_is_the_step(
    before: str, after: str, constant: int, steps: list[int]
) -> None:
    names = [f"{before}{step}_{after}-v{constant}" for step in steps]
    if len(steps) > 1 and not after.startswith(("b", "k", "m")):
        assert find_steps(names) == steps


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 10**6)),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[1],
    )
)
def test_of_several_that_vary_the_one_called_step(pairs: list[tuple[int, int]]) -> None:
    names = [f"epoch={epoch}-step={step}.ckpt" for epoch, step in pairs]
    assert find_steps(names) == [step for _, step in pairs]


@given(STEPS)
def test_names_sort_as_their_numbers(steps: list[int]) -> None:
    names = sorted((f"checkpoint-{step}" for step in steps), key=natural)
    assert names == [f"checkpoint-{step}" for step in sorted(steps)]


@given(STEPS)
def test_given_steps_are_taken(steps: list[int]) -> None:
    names = [f"run=a-{index}" for index in range(len(steps))]
    assert parse_steps(",".join(map(str, steps)), names) == steps
    pairs = [f"{name}={step}" for name, step in zip(names, steps, strict=True)]
    assert parse_steps(", ".join(reversed(pairs)), names) == steps


def test_names_that_are_not_built_alike() -> None:
    assert find_steps(["checkpoint-500", "checkpoint-1000-merged2"]) == [500, 1000]
    assert find_steps(["step100-epoch1", "epoch2-step200"]) == [100, 200]


@pytest.mark.parametrize(
    "names",
    [
        ["final", "best"],
        ["checkpoint-500", "final"],
        ["a1-b2", "a2-b3"],
        ["epoch_0.5", "epoch_0.75"],
        ["step-500", "step-1k"],
        ["step-1K", "step-2K"],
        ["Qwen2-Audio-7B"],
    ],
)
def test_names_that_do_not_tell(names: list[str]) -> None:
    with pytest.raises(StepError, match="--steps") as error:
        find_steps(names)
    assert ", ".join(names) in str(error.value)


def test_two_of_one_step() -> None:
    with pytest.raises(StepError, match=r"same step: step_7 \(7\), step_007 \(7\)\."):
        find_steps(["step_7", "step_007", "step_8"])
    with pytest.raises(StepError, match="same step"):
        parse_steps("5,5", ["a", "b"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("1,x", "whole numbers"),
        ("1,1.5", "whole numbers"),
        ("1", "1 steps for 2 checkpoints, which are in this order: a, b"),
        ("a=1,2", "one step for each"),
        ("a=1", "one step for each of the checkpoints a, b"),
        ("a=1,a=2", "one step for each"),
        ("a=1,c=2", "one step for each"),
    ],
)
def test_given_steps_that_do_not_fit(given: str, message: str) -> None:
    with pytest.raises(StepError, match=message):
        parse_steps(given, ["a", "b"])
