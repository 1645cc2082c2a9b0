"""`HFAdapter` against references written from transformers' documentation alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import soundfile
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from scoring import scores
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
)

from s2s_tasks.adapters.contract import AdapterError, Generation
from s2s_tasks.adapters.generating import Spelled
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.adapters.hf_loading import pick_device
from s2s_tasks.audio import Audio, probe
from s2s_tasks.models import SpeechHF
from s2s_tasks.prompt import Prompt, Request

PREFIX = "Below is a segment of alternating speech and text content: "
ENDINGS = [" the dog ran to the garden.", " He was glad.", "小明高兴地回家了。"]


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> HFAdapter:
    return HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def reading(llama: Path) -> HFAdapter:
    return HFAdapter(str(llama), dtype="float32", device="cpu")


def test_qwen2_audio_equals_its_processor_and_one_forward(
    qwen2_audio: Path, hearing: HFAdapter, recordings: list[Audio]
) -> None:
    processor = Qwen2AudioProcessor.from_pretrained(qwen2_audio)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(
        qwen2_audio, dtype=torch.float32
    ).eval()
    everything: list[float] = []
    for audio in recordings:
        for ending in ENDINGS:
            inputs = processor(
                text=PREFIX + "<|audio_bos|><|AUDIO|><|audio_eos|>" + ending,
                audio=audio.load(16000),
                sampling_rate=16000,
                return_tensors="pt",
            )
            targets = processor.tokenizer(ending, return_tensors="pt").input_ids[0]
            with torch.no_grad():
                logprobs = model(**inputs).logits[0].log_softmax(-1)
            expected = [
                logprobs[-len(targets) - 1 + step, token].item()
                for step, token in enumerate(targets)
            ]
            request = Request(Prompt.of(PREFIX, audio), ending)
            score = scores(hearing, [request], 1)[request]
            assert score.token_logprobs == pytest.approx(expected, abs=1e-4)
            everything += expected
    assert max(everything) - min(everything) > 5, "weights too small to prove anything"


def test_batching_and_padding_change_nothing(hearing: HFAdapter, recordings: list[Audio]) -> None:
    requests = [
        *(Request(Prompt.of(PREFIX, audio), e) for audio in recordings for e in ENDINGS),
        Request(Prompt.of(recordings[0], " and then ", recordings[2]), " the end."),
        Request(Prompt.of("She opened the window"), " and looked at the sea."),
        Request(Prompt.of(""), "He was glad."),
    ]
    alone, together = (scores(hearing, requests, size) for size in (1, len(requests)))
    for request in requests:
        expected = pytest.approx(alone[request].token_logprobs, abs=1e-4)
        assert together[request].token_logprobs == expected


def test_other_audio_of_the_same_length_gives_other_scores(
    hearing: HFAdapter, recordings: list[Audio]
) -> None:
    first, second = (Request(Prompt.of(PREFIX, audio), "小") for audio in recordings[:2])
    found = scores(hearing, [first, second], 2)
    assert abs(found[first][0] - found[second][0]) > 0.01


@pytest.mark.parametrize("batch_size", [1, 7])
def test_text_equals_lm_evals_own_model(llama: Path, reading: HFAdapter, batch_size: int) -> None:
    pairs = [
        ("She opened the window", " and looked at the sea."),
        ("She opened the window ", "and looked at the sea."),
        ("小明去公园散步，", "天气很好。"),
        ("the dog", " ran"),
        ("", "He was glad."),
    ]
    theirs = HFLM(pretrained=str(llama), dtype="float32", device="cpu").loglikelihood(
        [Instance("loglikelihood", {}, pair, 0) for pair in pairs], disable_tqdm=True
    )
    requests = [Request(Prompt.of(context), continuation) for context, continuation in pairs]
    ours = scores(reading, requests, batch_size)
    for request, expected in zip(requests, theirs, strict=True):
        assert ours[request][0] == pytest.approx(expected[0], abs=1e-3)
        assert ours[request][1] == expected[1]


def test_a_token_never_straddles_the_boundary(reading: HFAdapter) -> None:
    context, ending = "the garde", "n."
    joined = reading.tokenizer.encode(context + ending)
    apart = reading.tokenizer.encode(context) + reading.tokenizer.encode(ending)
    assert joined != apart, "pick a boundary that BPE would merge over"
    assert reading.encode(Prompt.of(context), ending) == reading.tokenizer.encode(ending)


@pytest.mark.parametrize("until", [(), ("the",)])
def test_generation_equals_generate_by_hand(
    qwen2_audio: Path, hearing: HFAdapter, recordings: list[Audio], until: tuple[str, ...]
) -> None:
    processor = Qwen2AudioProcessor.from_pretrained(qwen2_audio)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(qwen2_audio, dtype=torch.float32)
    prompts = [Prompt.of(PREFIX, audio) for audio in recordings[1:]]
    replies = hearing.generate(hearing.render(prompts), Generation(12, until))
    for prompt, reply in zip(prompts, replies, strict=True):
        inputs = processor(
            text=PREFIX + "<|audio_bos|><|AUDIO|><|audio_eos|>",
            audio=prompt.audio[0].load(16000),
            sampling_rate=16000,
            return_tensors="pt",
        )
        ids = model.generate(**inputs, max_new_tokens=12, do_sample=False)
        expected = processor.tokenizer.decode(
            ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        assert expected.startswith(reply)
        if not until:
            assert reply == expected


def test_replies_end_at_special_tokens_and_never_inside_one(reading: HFAdapter) -> None:
    ids = reading.tokenizer.encode("Say: the<|im_end|> dog", add_special_tokens=False)
    rows = torch.tensor([ids])
    start = ids.index(reading.tokenizer.convert_tokens_to_ids("<|im_end|>")) - 1
    for until, done in (("<|im_end|>", True), ("im_", False), (" dog", True), ("Say", False)):
        found = Spelled(reading.tokenizer, [until], start)(rows, None)
        assert found.tolist() == [done], until


def test_chat_keeps_placeholders_where_the_template_puts_recordings(hearing: HFAdapter) -> None:
    messages = [{"role": "user", "content": "Hear <|audio:0|> and <|audio::1|>"}]
    text = hearing.chat(messages, add_generation_prompt=True)
    assert text.count("<|audio:0|>") == 1
    assert "<|audio::1|>" in text
    assert "<|AUDIO|>" not in text
    assert text.endswith("<|im_start|>assistant\n")


def test_chat_of_a_reading_model_is_the_tokenizers(llama: Path, reading: HFAdapter) -> None:
    messages = [{"role": "user", "content": "Tell me."}]
    expected = AutoTokenizer.from_pretrained(llama).apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    assert reading.chat(messages, add_generation_prompt=True) == expected


def test_a_context_too_long_loses_its_head_as_in_lm_eval(llama: Path, reading: HFAdapter) -> None:
    context, ending = "the dog ran to the garden. " * 80, "He was glad."
    model = AutoModelForCausalLM.from_pretrained(llama, dtype=torch.float32)
    ids = reading.tokenizer.encode(context.rstrip(" ") + " " + ending)
    ids = torch.tensor([ids[-reading.max_length - 1 :]])
    targets = ids[0, -len(reading.tokenizer.encode(" " + ending)) :]
    with torch.no_grad():
        logprobs = model(ids[:, :-1]).logits[0].log_softmax(-1)[-len(targets) :]
    expected = logprobs.gather(1, targets[:, None]).sum().item()
    request = Request(Prompt.of(context), ending)
    assert scores(reading, [request], 1)[request][0] == pytest.approx(expected, abs=1e-3)


def test_what_cannot_be_scored_is_refused(
    hearing: HFAdapter, reading: HFAdapter, recordings: list[Audio]
) -> None:
    with pytest.raises(AdapterError, match="gives no likelihoods of speech"):
        hearing.encode(Prompt.of("Say: "), recordings[0])
    with pytest.raises(AdapterError, match="only reads text"):
        reading.render([Prompt.of(recordings[0])])
    with pytest.raises(AdapterError, match="which the model would take for a recording"):
        hearing.render([Prompt.of("a literal <|AUDIO|>", recordings[0])])
    with pytest.raises(AdapterError, match="which the model would take for a recording"):
        hearing.encode(Prompt.of(recordings[0]), " a literal <|AUDIO|>")
    with pytest.raises(AdapterError, match="does not fit"):
        hearing.generate(hearing.render([Prompt.of(recordings[0])]), Generation(500))
    with pytest.raises(AdapterError, match="no tokens to score"):
        reading.encode(Prompt.of("a"), "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pretrained": "no/such-model"}, "pretrained=no/such-model cannot be loaded"),
        ({"dtype": "float13"}, "dtype=float13 is none of torch's"),
        ({"device": "cuda:7"}, "device=cuda:7 is not there"),
    ],
)
def test_what_does_not_load(llama: Path, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(AdapterError, match=message):
        HFAdapter(**({"pretrained": str(llama)} | arguments))


@pytest.mark.parametrize("device", [None, "cuda:0"])
def test_without_a_gpu_the_cpu_is_taken(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device(device) == torch.device("cpu")


def test_a_model_that_is_neither(wav2vec2: Path) -> None:
    with pytest.raises(AdapterError, match=r"'wav2vec2' is neither .*speech-cascade"):
        HFAdapter(str(wav2vec2))


def test_a_recording_too_short_to_be_heard_is_refused(hearing: HFAdapter, tmp_path: Path) -> None:
    """Qwen2-Audio gives 20 ms no position: the score would be that of the text alone."""
    path = tmp_path / "click.wav"
    soundfile.write(path, torch.randn(320).numpy() * 0.1, 16000)
    with pytest.raises(AdapterError, match=r"click\.wav \(20 ms\): too short"):
        hearing.render([Prompt.of("Hm: ", probe(path))])


def test_a_continuation_longer_than_the_model(reading: HFAdapter) -> None:
    request = Request(Prompt.of("the dog"), " ran" * 600)
    with pytest.raises(AdapterError, match="the model has 256 positions, what is to follow"):
        scores(reading, [request], 1)


@pytest.mark.parametrize(
    "arguments", [{"until": [], "bogus": 1}, {"do_sample": True, "temperature": -1.0}]
)
def test_generation_arguments_that_are_none_are_named(
    llama: Path, arguments: dict[str, Any]
) -> None:
    model = SpeechHF(pretrained=str(llama), device="cpu")
    request = Instance("generate_until", {}, ("Say: ", {"max_gen_toks": 2, **arguments}), 0)
    name = [*arguments][-1]
    with pytest.raises(AdapterError, match=f"refuses the generation arguments .*{name}"):
        model.generate_until([request])
