"""`…_gap`: one task, both modes, the same questions and words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pytest
from lm_eval.tasks import TaskManager
from scoring import scores

from s2s_tasks import TASK_CONFIGS, __version__
from s2s_tasks.models import SpeechHF
from s2s_tasks.prompt import Request, parse_request

SETS = ("sstorycloze", "zh_sstorycloze", "scmmlu")
METRICS = ("pair_acc", "mc_acc", "nll_margin")


@pytest.fixture(scope="module")
def manager() -> TaskManager:
    return TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False)


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(qwen2_audio), dtype="float32", device="cpu", batch_size=4)


@pytest.fixture(autouse=True)
def data(s2sbench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))


def run(model: SpeechHF, manager: TaskManager, *tasks: str, **options: Any) -> dict[str, Any]:
    results: dict[str, Any] = lm_eval.simple_evaluate(
        model=model, tasks=list(tasks), task_manager=manager, **options
    )
    return results


@pytest.fixture(scope="module")
def everything(
    hearing: SpeechHF, manager: TaskManager, s2sbench: Path
) -> dict[str, dict[str, Any]]:
    groups = ("gap", "gap_unmatched", "s2t", "t2t", "t2t_prefixed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("S2SBENCH_DATA", str(s2sbench))
        return run(hearing, manager, *(f"s2sbench_{group}" for group in groups))


@pytest.mark.parametrize("name", SETS)
def test_each_mode_equals_the_task_of_its_own(everything: dict[str, Any], name: str) -> None:
    results = everything["results"]
    for gap, read in (
        (f"{name}_gap", f"{name}_t2t_prefixed"),
        (f"{name}_gap_unmatched", f"{name}_t2t"),
    ):
        for metric in METRICS:
            own = metric.removeprefix("pair_")
            for mode, task in (("t2t", read), ("s2t", f"{name}_s2t")):
                expected = pytest.approx(results[task][f"{metric},none"], abs=1e-9)
                assert results[gap][f"{own}_{mode},none"] == expected, (gap, metric, mode)


@pytest.mark.parametrize("name", SETS)
def test_the_error_of_the_gap_is_that_of_paired_differences(
    everything: dict[str, Any], name: str
) -> None:
    samples = everything["samples"][f"{name}_gap"]
    lost = np.array([sample["acc_t2t"] - sample["acc_s2t"] for sample in samples])
    results = everything["results"][f"{name}_gap"]
    assert results["gap,none"] == pytest.approx(lost.mean())
    assert results["gap_stderr,none"] == pytest.approx(lost.std(ddof=1) / np.sqrt(len(lost)))


def test_the_group_is_the_mean_of_its_sets(everything: dict[str, Any]) -> None:
    group = everything["groups"]["s2sbench_gap"]
    for metric in ("acc_t2t", "acc_s2t", "gap", "mc_gap"):
        mean = np.mean([everything["results"][f"{name}_gap"][f"{metric},none"] for name in SETS])
        assert group[f"{metric},none"] == pytest.approx(mean)


@pytest.mark.parametrize("name", SETS)
def test_only_the_modality_differs(everything: dict[str, Any], name: str) -> None:
    for sample in everything["samples"][f"{name}_gap"]:
        doc, asked = sample["doc"], sample["arguments"]
        count = len(doc["endings"])
        assert len(asked) == 2 * count
        for written, spoken in zip(asked[:count], asked[count:], strict=True):
            assert len(written) == 2 and len(spoken) == 3
            assert written[0] == spoken[0].replace("<|audio:0|>", doc["context"])
            assert written[0] != doc["context"] and written[1] == spoken[1]


def test_losses_are_logged_by_mode_and_equal_single_scores(
    everything: dict[str, Any], hearing: SpeechHF
) -> None:
    for sample in everything["samples"]["scmmlu_gap"]:
        for place, (context, ending, *media) in enumerate(sample["arguments"]):
            recordings = media[0]["audio"] if media else []
            request = Request(parse_request(context, recordings), ending)
            mode, at = divmod(place, len(sample["doc"]["endings"]))
            logged = sample["doc"][f"ending_nll_{('t2t', 's2t')[mode]}"][at]
            (alone,) = scores(hearing.adapter, [request], exact=True).values()
            assert logged == pytest.approx(alone.nll, abs=2e-4)


def test_results_say_which_data_and_which_version(everything: dict[str, Any]) -> None:
    metadata = {task: config["metadata"] for task, config in everything["configs"].items()}
    for name in SETS:
        hashes = {metadata[f"{name}_{kind}"]["data_sha256"] for kind in ("gap", "s2t", "t2t")}
        assert len(hashes) == 1 and re.fullmatch("[0-9a-f]{64}", hashes.pop())
        assert metadata[f"{name}_gap"]["s2s_tasks"] == __version__
    assert len({metadata[f"{name}_gap"]["data_sha256"] for name in SETS}) == 3


def test_no_forward_is_made_twice(
    hearing: SpeechHF, manager: TaskManager, caplog: pytest.LogCaptureFixture
) -> None:
    alike = ("sstorycloze_s2t", "sstorycloze_t2t_prefixed")
    with caplog.at_level("INFO"):
        run(hearing, manager, "sstorycloze_gap")
        run(hearing, manager, "sstorycloze_gap", *alike)
    counts = re.findall(r"(\d+) of (\d+) contexts, ([\d,]+) of", caplog.text)
    (alone, asked, tokens), (beside, asked_beside, tokens_beside) = counts
    assert (alone, tokens) == (beside, tokens_beside)
    assert int(asked_beside) == 2 * int(asked)


@pytest.mark.parametrize("chat", [False, True])
def test_examples_are_the_same_in_both_modes(
    hearing: SpeechHF, manager: TaskManager, chat: bool
) -> None:
    options = {"num_fewshot": 1, "apply_chat_template": chat, "fewshot_as_multiturn": chat}
    found = run(hearing, manager, "sstorycloze_gap", **options)["samples"]["sstorycloze_gap"]
    docs = {sample["doc"]["id"]: sample["doc"] for sample in found}
    by_sound = {a["sha256"]: id_ for id_, doc in docs.items() for a in doc["context_audio"]}
    for sample in found:
        count = len(sample["doc"]["endings"])
        for written, spoken in zip(
            sample["arguments"][:count], sample["arguments"][count:], strict=True
        ):
            heard = [docs[by_sound[audio["sha256"]]] for audio in spoken[2]["audio"]]
            assert heard[0]["id"] == sample["doc"]["id"]
            expected = spoken[0]
            for number, doc in enumerate(heard):
                expected = expected.replace(f"<|audio:{number}|>", doc["context"])
            # What the template puts around a recording belongs to the modality.
            assert written[0] == re.sub(r"Audio \d+: (.*)\n", r"\1", expected)
