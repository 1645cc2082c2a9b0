"""A prefix that is read once gives the scores of full forwards, whatever the architecture.

Every reference here is a forward over one row, written from transformers' documentation alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from scoring import scores
from transformers import (
    Gemma4AudioFeatureExtractor,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    WhisperFeatureExtractor,
)

from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.contract import Group, Prefix
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.adapters.likelihood import CACHED_POSITION, _chunks, score_groups, score_rows
from s2s_tasks.adapters.model_inputs import collate
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Prompt, Request

CONTINUATIONS = [[7], [8], [7, 9, 11, 13, 15], list(range(20, 80)), [7]]


@dataclass
class Hearing:
    """A model, and how it takes a recording."""

    model: Any
    features: Callable[[Audio], dict[str, torch.Tensor]]
    positions: Callable[[dict[str, torch.Tensor]], int]


def gemma4() -> Hearing:
    """Sliding windows shorter than the prompts, and caches shared between layers."""
    model, extractor = tiny.gemma4(), Gemma4AudioFeatureExtractor(feature_size=16)

    def features(audio: Audio) -> dict[str, torch.Tensor]:
        made = extractor([audio.load(16000)], sampling_rate=16000, return_tensors="pt")
        return dict(made)

    return Hearing(
        model, features, lambda made: model.model.get_audio_features(**made).pooler_output.shape[1]
    )


def omni_thinker() -> Hearing:
    """Multimodal rotary positions."""
    model = tiny.omni_thinker()
    extractor = WhisperFeatureExtractor(feature_size=16, chunk_length=4)

    def features(audio: Audio) -> dict[str, torch.Tensor]:
        made = extractor(
            [audio.load(16000)],
            sampling_rate=16000,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return {
            "input_features": made["input_features"],
            "feature_attention_mask": made["attention_mask"],
        }

    return Hearing(
        model, features, lambda made: len(model.get_audio_features(**made).last_hidden_state)
    )


@pytest.fixture(scope="module", params=[gemma4, omni_thinker], ids=lambda make: make.__name__)
def hearing(request: pytest.FixtureRequest) -> Hearing:
    return request.param()


@pytest.fixture(scope="module")
def groups(hearing: Hearing, recordings: list[Audio]) -> list[Group]:
    prefixes = [Prefix([3, 4, 5, 6] * 3)]
    for audio in recordings:
        made = hearing.features(audio)
        heard = [tiny.AUDIO_TOKEN] * hearing.positions(made)
        prefixes.append(Prefix([3, 4, tiny.AUDIO_TOKEN + 3, *heard, tiny.AUDIO_TOKEN + 4], made))
    return [Group(prefix, CONTINUATIONS) for prefix in prefixes]


def by_hand(model: Any, prefix: Prefix, continuation: list[int]) -> list[float]:
    ids = torch.tensor([[*prefix.ids, *continuation]])
    with torch.no_grad():
        output = model(input_ids=ids, attention_mask=torch.ones_like(ids), **prefix.features)
    logprobs = output.logits[0].log_softmax(-1)
    start = len(prefix.ids) - 1
    return [logprobs[start + step, token].item() for step, token in enumerate(continuation)]


@pytest.mark.parametrize("most_positions", [None, 120, 1])
@torch.inference_mode()
def test_forked_prefixes_equal_full_forwards(
    hearing: Hearing, groups: list[Group], most_positions: int | None
) -> None:
    lm = CausalLM(hearing.model, pad_token_id=0)
    features = collate([group.prefix.features for group in groups])
    found = score_groups(lm, groups, features, most_positions)
    expected = [[by_hand(hearing.model, g.prefix, c) for c in g.continuations] for g in groups]
    everything = [value for group in expected for row in group for value in row]
    assert max(everything) - min(everything) > 5, "weights too small to prove anything"
    for scored, group in zip(found, expected, strict=True):
        for score, row in zip(scored, group, strict=True):
            assert score.token_logprobs == pytest.approx(row, abs=1e-4)
    assert abs(found[1][0][0] - found[2][0][0]) > 1e-3, "equally long recordings that differ"


@torch.inference_mode()
def test_full_forwards_together_equal_single_ones(hearing: Hearing, groups: list[Group]) -> None:
    rows = [(group.prefix, ids) for group in groups for ids in group.continuations]
    features = collate([prefix.features for prefix, _ in rows])
    lm = CausalLM(hearing.model, pad_token_id=0)
    found = score_rows(lm, [(prefix.ids, ids) for prefix, ids in rows], features)
    for (logprobs, _), (prefix, ids) in zip(found, rows, strict=True):
        assert logprobs == pytest.approx(by_hand(hearing.model, prefix, ids), abs=1e-4)


def test_a_wrong_position_would_show(hearing: Hearing, groups: list[Group]) -> None:
    prefix, continuation = groups[1].prefix, CONTINUATIONS[2]
    moved = Prefix([3, *prefix.ids], prefix.features)
    differences = torch.tensor(by_hand(hearing.model, prefix, continuation)) - torch.tensor(
        by_hand(hearing.model, moved, continuation)
    )
    assert differences.abs().max() > 0.1


@pytest.fixture(scope="module", params=["llama", "qwen2_audio", "ctc_speech_lm"])
def adapter(request: pytest.FixtureRequest) -> HFAdapter:
    folder: Path = request.getfixturevalue(request.param)
    return HFAdapter(str(folder), dtype="float32", device="cpu")


@pytest.fixture
def requests(adapter: HFAdapter, recordings: list[Audio]) -> list[Request]:
    endings = ["小", " t", " the dog ran to the garden.", " He was glad." * 15]
    prompts = [Prompt.of("She opened the window"), Prompt.of("")]
    if adapter.embeds_audio:
        prompts += [Prompt.of("Listen: ", audio) for audio in recordings]
        prompts += [Prompt.of(recordings[0], " and then ", recordings[2])]
    return [Request(prompt, ending) for prompt in prompts for ending in endings]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["", "reversed"])
def test_the_engine_equals_full_forwards(
    adapter: HFAdapter, requests: list[Request], batch_size: int, order: slice
) -> None:
    assert min(len(adapter.encode(r.prompt, r.continuation)) for r in requests) == 1
    assert max(len(adapter.encode(r.prompt, r.continuation)) for r in requests) >= 60
    found = scores(adapter, requests[order], batch_size)
    assert len(found) == len(requests)
    for request, score in found.items():
        (prefix,) = adapter.render([request.prompt])
        (expected,) = adapter.score(
            [(prefix, adapter.encode(request.prompt, request.continuation))]
        )
        assert score.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-4)
        assert score[1] == expected[1]


def test_the_same_text_after_two_recordings_of_one_length(
    qwen2_audio: Path, recordings: list[Audio]
) -> None:
    """Two questions that differ in their sound alone, with endings of one token."""
    adapter = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    processor = Qwen2AudioProcessor.from_pretrained(qwen2_audio)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(
        qwen2_audio, dtype=torch.float32
    ).eval()
    requests = [Request(Prompt.of("Hm: ", a), e) for a in recordings[:2] for e in (" t", "小")]
    found = scores(adapter, requests, 4)
    for request, score in found.items():
        inputs = processor(
            text="Hm: <|audio_bos|><|AUDIO|><|audio_eos|>",
            audio=request.prompt.audio[0].load(16000),
            sampling_rate=16000,
            return_tensors="pt",
        )
        token = processor.tokenizer(request.continuation).input_ids[0]
        with torch.no_grad():
            expected = model(**inputs).logits[0, -1].log_softmax(-1)[token].item()
        assert score.token_logprobs[0] == pytest.approx(expected, abs=1e-4)
    values = [score[0] for score in found.values()]
    assert abs(values[0] - values[2]) > 1e-3
    assert abs(values[1] - values[3]) > 1e-3


def test_no_logits_of_the_prefix_are_made(qwen2_audio: Path, recordings: list[Audio]) -> None:
    """Qwen2-Audio has no `logits_to_keep`; a vocabulary of 150,000 would fill the memory."""
    adapter = HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")
    seen: list[torch.Size] = []

    def watch(_: Any, inputs: Any, logits: torch.Tensor) -> None:
        seen.append(logits.shape[:2])

    handle = adapter.model.lm_head.register_forward_hook(watch)
    scores(adapter, [Request(Prompt.of("Hm: ", recordings[0]), " the dog ran.")])
    handle.remove()
    assert seen[0] == (1, 1)
    assert sum(rows * positions for rows, positions in seen) < 20


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=50),
    prefix_length=st.integers(1, 300),
    most_positions=st.none() | st.integers(1, 2000),
    forward_cost=st.floats(0, 2000),
)
def test_rows_are_cut_into_chunks_that_fit_and_cost_no_more(
    lengths: list[int], prefix_length: int, most_positions: int | None, forward_cost: float
) -> None:
    lengths = sorted(lengths, reverse=True)
    chunks = _chunks(lengths, prefix_length, most_positions, forward_cost)
    assert [row for chunk in chunks for row in chunk] == list(range(len(lengths)))
    if most_positions is None:
        cost = sum(len(chunk) * lengths[chunk[0]] + forward_cost for chunk in chunks)
        assert cost <= len(lengths) * lengths[0] + forward_cost + 1e-6
    else:
        for chunk in chunks:
            taken = len(chunk) * (lengths[chunk[0]] + prefix_length * CACHED_POSITION)
            assert len(chunk) == 1 or taken <= most_positions


@pytest.fixture
def half(llama: Path) -> Iterator[HFAdapter]:
    yield HFAdapter(str(llama), dtype="bfloat16", device="cpu")


def test_ties_stay_ties_in_half_precision(half: HFAdapter) -> None:
    """A question whose endings are one is a tie, wherever they stand in a batch."""
    prompts = [Prompt.of("She opened the window"), Prompt.of("She opened the window", ".")]
    groups = [
        Group(prefix, [half.encode(prompt, " and looked.")] * 3)
        for prompt, prefix in zip(prompts, half.render(prompts), strict=True)
    ]
    for same in half.score_groups(groups):
        assert len({score[0] for score in same}) == 1
