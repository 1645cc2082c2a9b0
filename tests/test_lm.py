"""`SpeechLM` through lm-eval: real sound, tiny models of real architectures."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError
from s2s_tasks.models import SpeechCascade, SpeechHF
from s2s_tasks.prompt import Prompt
from s2s_tasks.score import Score


@pytest.fixture(autouse=True)
def data(s2sbench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(qwen2_audio), dtype="float32", device="cpu", batch_size=4)


@pytest.fixture(scope="module")
def reading(llama: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(llama), dtype="float32", device="cpu", batch_size=4)


def evaluate(model: Any, *tasks: str, **options: Any) -> dict[str, Any]:
    return lm_eval.simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        **options,
    )


def test_speech_and_text_in_one_run(hearing: SpeechHF) -> None:
    results = evaluate(hearing, "s2sbench_s2t", "s2sbench_t2t")
    assert len(results["samples"]) == 6
    for task, samples in results["samples"].items():
        for sample in samples:
            spoken = task.endswith("s2t")
            assert len(sample["arguments"]) == len(sample["doc"]["endings"])
            assert all(len(arguments) == 2 + spoken for arguments in sample["arguments"])
            assert sample["doc"]["ending_nll"] == pytest.approx(
                [
                    -r[0] / n
                    for r, n in zip(
                        sample["filtered_resps"], sample["doc"]["ending_tokens"], strict=True
                    )
                ]
            )
        metrics = results["results"][task]
        assert 0 <= metrics["pair_acc,none"] <= 1
        assert metrics["nll_margin,none"] == pytest.approx(
            metrics["nll_neg,none"] - metrics["nll_pos,none"]
        )
    mean = sum(results["results"][f"{name}_s2t"]["pair_acc,none"] for name in SETS) / 3
    assert results["results"]["s2sbench_s2t"]["pair_acc,none"] == pytest.approx(mean)


SETS = ["sstorycloze", "zh_sstorycloze", "scmmlu"]


def test_prompts_and_boundaries(hearing: SpeechHF) -> None:
    results = evaluate(hearing, "s2sbench_s2t", "s2sbench_t2t", "s2sbench_s2t_upstream")
    first = {task: samples[0] for task, samples in results["samples"].items()}
    english = first["sstorycloze_s2t"]
    assert english["arguments"][0][0] == (
        "Below is a segment of alternating speech and text content: <|audio:0|>"
    )
    assert english["arguments"][0][1] == " " + english["doc"]["endings"][0]
    chinese = first["scmmlu_s2t"]
    assert chinese["arguments"][0][0] == "下面是一段语音和文本交错的内容：<|audio:0|>"
    assert chinese["arguments"][0][1] == chinese["doc"]["endings"][0]
    written = first["sstorycloze_t2t"]
    assert written["arguments"][1] == (
        written["doc"]["context"],
        " " + written["doc"]["endings"][1],
    )
    published = first["sstorycloze_s2t_upstream"]
    assert published["arguments"][0][0] == chinese["arguments"][0][0]
    assert published["arguments"][0][1] == published["doc"]["endings"][0]


def test_each_ending_gets_its_own_recording(hearing: SpeechHF) -> None:
    samples = evaluate(hearing, "sstorycloze_s2t")["samples"]["sstorycloze_s2t"]
    heard = [
        [arguments[2]["audio"][0]["sha256"] for arguments in sample["arguments"]]
        for sample in samples
    ]
    assert [len(set(hashes)) for hashes in heard] == [1, 2, 1, 1]
    for sample, hashes in zip(samples, heard, strict=True):
        handles = [audio["sha256"] for audio in sample["doc"]["context_audio"]]
        assert hashes == handles if len(handles) > 1 else set(hashes) == set(handles)


def test_samples_log_handles_and_never_arrays(hearing: SpeechHF, tmp_path: Path) -> None:
    samples = evaluate(hearing, "s2sbench_s2t")["samples"]
    for sample in (sample for task in samples.values() for sample in task):
        assert len(json.dumps(sample, default=str)) < 6000
        assert sample["doc"]["context_audio"][0]["path"].endswith(".parquet")


def test_the_cascades_transcripts_are_in_the_sample_log(wav2vec2: Path, llama: Path) -> None:
    cascade = SpeechCascade(asr=str(wav2vec2), lm=str(llama), device="cpu", batch_size=4)
    for sample in evaluate(cascade, "sstorycloze_s2t")["samples"]["sstorycloze_s2t"]:
        heard = sample["doc"]["transcripts"]
        assert len(heard) == len(sample["doc"]["endings"])
        assert all(isinstance(text, str) for texts in heard for text in texts)


def test_text_to_text_equals_lm_evals_own_model(llama: Path, reading: SpeechHF) -> None:
    stock = HFLM(pretrained=str(llama), dtype="float32", device="cpu", batch_size=4)
    tasks = [f"{name}_t2t" for name in SETS]
    theirs, ours = evaluate(stock, *tasks), evaluate(reading, *tasks)
    for task in tasks:
        for metric in ("acc,none", "acc_norm,none"):
            assert theirs["results"][task][metric] == ours["results"][task][metric]
        assert "pair_acc,none" not in theirs["results"][task]
        assert "pair_acc,none" in ours["results"][task]
        for a, b in zip(theirs["samples"][task], ours["samples"][task], strict=True):
            for x, y in zip(a["filtered_resps"], b["filtered_resps"], strict=True):
                assert y[0] == pytest.approx(x[0], abs=1e-3)


def test_limit_and_subjects(hearing: SpeechHF) -> None:
    results = evaluate(hearing, "scmmlu_subjects_s2t", limit=2)
    assert len(results["samples"]["scmmlu_subjects_s2t"]) == 2
    metrics = results["results"]["scmmlu_subjects_s2t"]
    assert {"pair_acc_astronomy,none", "pair_acc_nutrition,none"} <= metrics.keys()


def test_the_response_cache_keeps_the_tokens(
    hearing: SpeechHF, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = str(tmp_path / "cache")
    first = evaluate(hearing, "s2sbench_s2t", use_cache=cache)
    monkeypatch.setattr(hearing.adapter, "score_groups", lambda *_: pytest.fail("not the cache"))
    again = evaluate(hearing, "s2sbench_s2t", use_cache=cache)
    assert again["results"]["scmmlu_s2t"] == first["results"]["scmmlu_s2t"]


def test_with_a_chat_template_the_ending_is_the_assistants(
    hearing: SpeechHF, caplog: pytest.LogCaptureFixture
) -> None:
    hearing._chatted = False
    with caplog.at_level(logging.INFO):
        results = evaluate(hearing, "sstorycloze_s2t", "sstorycloze_t2t", apply_chat_template=True)
    assert caplog.text.count(f"through the chat template of {hearing.adapter.name}") == 1
    assert results["config"] and "<|im_start|>" in str(hearing.chat_template(True))
    spoken = results["samples"]["sstorycloze_s2t"][0]
    context, continuation, _ = spoken["arguments"][0]
    assert context.count("<|audio:0|>") == 1
    assert context.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert continuation == spoken["doc"]["endings"][0]
    written = results["samples"]["sstorycloze_t2t"][0]
    assert written["doc"]["context"] in written["arguments"][0][0]


def test_rolling_equals_lm_evals_own_model(llama: Path, reading: SpeechHF) -> None:
    texts = ["the dog ran to the garden. " * 60, "He was glad."]
    requests = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in texts]
    stock = HFLM(pretrained=str(llama), dtype="float32", device="cpu", max_length=256)
    assert reading.loglikelihood_rolling(requests) == pytest.approx(
        stock.loglikelihood_rolling(requests), rel=1e-4
    )


def test_generate_until_equals_generate_by_hand(hearing: SpeechHF, recordings: list[Audio]) -> None:
    context, audio = Prompt.of("Listen: ", recordings[0]).to_request()
    how = {"until": ["\n\n"], "max_gen_toks": 6, "do_sample": False}
    (reply,) = hearing.generate_until(
        [Instance("generate_until", {}, (context, how, {"audio": audio}), 0)]
    )
    adapter = hearing.adapter
    assert isinstance(adapter, HFAdapter)
    inputs = adapter.processor(
        text="Listen: <|audio_bos|><|AUDIO|><|audio_eos|>",
        audio=recordings[0].load(16000),
        sampling_rate=16000,
        return_tensors="pt",
    )
    ids = adapter.model.generate(**inputs, max_new_tokens=6, do_sample=False)
    expected = adapter.tokenizer.decode(
        ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    assert reply == expected


def test_a_model_that_only_reads_refuses_speech(reading: SpeechHF) -> None:
    with pytest.raises(AdapterError, match=r"sstorycloze_s2t: .*only reads text.*speech-cascade"):
        evaluate(reading, "sstorycloze_s2t")


def test_recordings_too_long_are_named_before_work(
    hearing: SpeechHF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "_usable_recordings", set())
    monkeypatch.setattr(hearing.adapter, "longest_audio", 0.6)
    monkeypatch.setattr(hearing.adapter, "render", lambda *_: pytest.fail("worked first"))
    with pytest.raises(
        AdapterError, match=r"parquet#context_audio/\d+/0: 0.7 s, longer than the 0.6 s"
    ):
        evaluate(hearing, "sstorycloze_s2t")


def test_scores_that_are_no_numbers_name_their_questions(
    hearing: SpeechHF, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Score([float("nan")], False)
    monkeypatch.setattr(
        hearing.adapter, "score_groups", lambda groups, _: [[nothing] * 4 for _ in groups]
    )
    with pytest.raises(S2STasksError, match=r"not finite numbers: scmmlu_s2t scmmlu-0, .*scmmlu-2"):
        evaluate(hearing, "scmmlu_s2t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pretraned=x", "did you mean pretrained"),
        ("dtype=float32", "the model argument pretrained is missing"),
        ("pretrained=x,batch_size=none", "give a positive number or auto"),
    ],
)
def test_wrong_arguments(arguments: str, message: str) -> None:
    with pytest.raises(AdapterError, match=message):
        SpeechHF.create_from_arg_string(arguments)


@pytest.fixture
def text_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plain text tasks, as lm-eval has thousands: MMLU-style letters, rolling, generation."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    rows = [
        {"text": f"Question {i}: which is right?\nA. the dog\nB. the sea\nAnswer:", "gold": i % 2}
        for i in range(5)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = (
        "dataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path}/rows.jsonl}}}}\n"
        "test_split: test\n"
    )
    kinds = {
        "letters": "output_type: multiple_choice\ndoc_to_text: '{{text}}'\n"
        "doc_to_choice: ['A', 'B']\ndoc_to_target: '{{gold}}'\n",
        "rolling": "output_type: loglikelihood_rolling\ndoc_to_text: ''\n"
        "doc_to_target: '{{text}}'\nmetric_list: [{metric: word_perplexity}]\n",
        "replies": "output_type: generate_until\ndoc_to_text: '{{text}}'\ndoc_to_target: 'A'\n"
        "generation_kwargs: {max_gen_toks: 4, until: ['\\n']}\n"
        "metric_list: [{metric: exact_match}]\n",
    }
    for name, kind in kinds.items():
        (tmp_path / f"{name}.yaml").write_text(f"task: {name}\n{data}{kind}")
    return tmp_path


def test_text_tasks_of_every_kind_beside_speech(
    llama: Path, hearing: SpeechHF, reading: SpeechHF, text_tasks: Path
) -> None:
    folders = [str(TASK_CONFIGS), str(text_tasks)]
    manager = TaskManager(include_path=folders, include_defaults=False)
    kinds = ["letters", "rolling", "replies"]

    def run(model: Any, *tasks: str) -> dict[str, Any]:
        return lm_eval.simple_evaluate(
            model=model, tasks=[*kinds, *tasks], task_manager=manager, bootstrap_iters=0
        )

    together = run(hearing, "sstorycloze_s2t")
    assert len(together["samples"]) == 4
    stock = HFLM(pretrained=str(llama), dtype="float32", device="cpu", batch_size=4)
    theirs, ours = run(stock), run(reading)
    for kind in kinds:
        for metric, value in theirs["results"][kind].items():
            assert ours["results"][kind][metric] == (
                pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
            )
        for a, b in zip(theirs["samples"][kind], ours["samples"][kind], strict=True):
            for x, y in zip(a["filtered_resps"], b["filtered_resps"], strict=True):
                if kind == "letters":
                    assert y[0] == pytest.approx(x[0], abs=1e-3)
                    assert y[1] == x[1]
                else:
                    assert y == (pytest.approx(x, rel=1e-4) if kind == "rolling" else x)


def test_a_question_asked_by_two_tasks_is_computed_once(hearing: SpeechHF) -> None:
    rows: list[int] = []
    handle = hearing.adapter.model.register_forward_pre_hook(
        lambda _, __, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    evaluate(hearing, "zh_sstorycloze_t2t")
    once = sum(rows)
    rows.clear()
    evaluate(hearing, "zh_sstorycloze_t2t", "zh_sstorycloze_t2t_upstream")
    handle.remove()
    assert sum(rows) == once


def test_rolling_scores_that_are_no_numbers_are_refused(
    reading: SpeechHF, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Score([float("nan")], False)
    monkeypatch.setattr(reading.adapter, "score", lambda rows: [nothing] * len(rows))
    request = Instance("loglikelihood_rolling", {"id": "a"}, ("It rained.",), 0)
    with pytest.raises(S2STasksError, match="not finite numbers"):
        reading.loglikelihood_rolling([request])
