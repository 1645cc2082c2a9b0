"""Examples before a spoken question are spoken too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import torch
from lm_eval.tasks import TaskManager
from transformers import Qwen2AudioForConditionalGeneration, Qwen2AudioProcessor

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.audio import Audio
from s2s_tasks.models import SpeechHF

MARKUP = "<|audio_bos|><|AUDIO|><|audio_eos|>"


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> SpeechHF:
    return SpeechHF(pretrained=str(qwen2_audio), dtype="float32", device="cpu", batch_size=4)


@pytest.fixture(autouse=True)
def data(s2sbench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(s2sbench))


def samples(model: SpeechHF, task: str, **options: Any) -> list[dict[str, Any]]:
    results = lm_eval.simple_evaluate(
        model=model,
        tasks=[task],
        task_manager=TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False),
        bootstrap_iters=0,
        **options,
    )
    found: list[dict[str, Any]] = results["samples"][task]
    return found


@pytest.mark.parametrize("shots", [1, 2])
def test_each_example_brings_its_recording_and_true_ending(hearing: SpeechHF, shots: int) -> None:
    found = samples(hearing, "sstorycloze_s2t", num_fewshot=shots)
    docs = {sample["doc"]["id"]: sample["doc"] for sample in found}
    of = {a["sha256"]: id_ for id_, doc in docs.items() for a in doc["context_audio"]}
    for sample in found:
        for context, _, media in sample["arguments"]:
            order = [int(number) for number in re.findall(r"<\|audio:(\d+)\|>", context)]
            assert order == [*range(1, shots + 1), 0], "examples first, the question last"
            owners = [of[audio["sha256"]] for audio in media["audio"]]
            assert owners[0] == sample["doc"]["id"] and len(set(owners)) == shots + 1
            for number, owner in list(enumerate(owners))[1:]:
                gold = docs[owner]["endings"][docs[owner]["gold"]]
                assert f"<|audio:{number}|> {gold}\n\n" in context


def test_scores_after_examples_equal_one_forward_by_hand(
    hearing: SpeechHF, qwen2_audio: Path
) -> None:
    processor = Qwen2AudioProcessor.from_pretrained(qwen2_audio)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(
        qwen2_audio, dtype=torch.float32
    ).eval()
    for sample in samples(hearing, "scmmlu_s2t", num_fewshot=2):
        (context, ending, media) = sample["arguments"][1]
        recordings = [Audio.from_json(handle) for handle in media["audio"]]
        order = [int(number) for number in re.findall(r"<\|audio:(\d+)\|>", context)]
        inputs = processor(
            text=re.sub(r"<\|audio:\d+\|>", MARKUP, context) + ending,
            audio=[recordings[index].load(16000) for index in order],
            sampling_rate=16000,
            return_tensors="pt",
        )
        targets = processor.tokenizer(ending, return_tensors="pt").input_ids[0]
        with torch.no_grad():
            logprobs = model(**inputs).logits[0, -len(targets) - 1 : -1].log_softmax(-1)
        expected = logprobs.gather(1, targets[:, None]).sum().item()
        assert sample["filtered_resps"][1][0] == pytest.approx(expected, abs=1e-3)


def test_chats_keep_examples_as_turns(hearing: SpeechHF) -> None:
    found = samples(
        hearing,
        "sstorycloze_s2t",
        num_fewshot=2,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        system_instruction="Go on.",
    )
    context, ending, _ = found[0]["arguments"][0]
    roles = re.findall(r"<\|im_start\|>(\w+)", context)
    assert roles == ["system", *2 * ["user", "assistant"], "user", "assistant"]
    assert "Go on." in context and not ending.startswith(" ")


def test_a_model_of_one_recording_a_prompt_refuses_them(
    hearing: SpeechHF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing.adapter, "hears_several", False)
    with pytest.raises(AdapterError, match=r"4 question\(s\) ask with several recordings"):
        samples(hearing, "sstorycloze_s2t", num_fewshot=1)


def test_written_examples_stay_written(hearing: SpeechHF) -> None:
    for sample in samples(hearing, "sstorycloze_t2t", num_fewshot=1):
        for arguments in sample["arguments"]:
            assert len(arguments) == 2 and "<|audio" not in arguments[0]
