"""The engine: nothing asked twice, nothing lost when memory runs out, memory bounded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import scores
from torch.utils._python_dispatch import TorchDispatchMode

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio, probe
from s2s_tasks.engine.ahead import ahead
from s2s_tasks.engine.batches import AUTO_ITEMS, Budget, in_batches, parse_budget
from s2s_tasks.engine.plan import plan
from s2s_tasks.engine.run import score_requests
from s2s_tasks.engine.work import Work
from s2s_tasks.prompt import Prompt, Request

ENDINGS = [" the dog ran to the garden.", " He was glad.", " t", "小明高兴地回家了。"]


@pytest.fixture(scope="module")
def hearing(qwen2_audio: Path) -> HFAdapter:
    return HFAdapter(str(qwen2_audio), dtype="float32", device="cpu")


@pytest.fixture
def requests(recordings: list[Audio]) -> list[Request]:
    spoken = [Request(Prompt.of("Listen: ", a), e) for a in recordings for e in ENDINGS]
    return [*spoken, *(Request(Prompt.of("She opened the window."), e) for e in ENDINGS)]


class Calls:
    """Counts what goes through a model."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.rows: list[int] = []
        self.encoded = 0
        self._handles = [
            model.register_forward_pre_hook(self._count, with_kwargs=True),
            model.model.audio_tower.register_forward_pre_hook(self._hear, with_kwargs=True),
        ]

    def _count(self, _: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.rows.append(len(kwargs["input_ids"]))

    def _hear(self, _: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.encoded += len(args[0] if args else kwargs["input_features"])

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def test_a_recording_is_encoded_once_wherever_it_lies(
    hearing: HFAdapter, recordings: list[Audio], tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere.wav"
    copy.write_bytes(recordings[0].read())
    requests = [
        Request(Prompt.of("Listen: ", audio), ending)
        for ending in ENDINGS
        for audio in (recordings[0], probe(copy))
    ]
    work = Work()
    with Calls(hearing.model) as calls:
        answers = [a for b in score_requests(hearing, requests, Budget(8), work) for a in b]
    assert calls.encoded == 1
    assert calls.rows == [1, 3], "one prefill, and one row for each ending of more than a token"
    assert sorted(index for index, _ in answers) == list(range(8))
    assert (work.computed.prefixes, work.asked.prefixes) == (1, 8)
    assert work.computed.audio_seconds == pytest.approx(1.0)
    assert work.asked.audio_seconds == pytest.approx(8.0)
    assert work.computed.positions < work.asked.positions / 4


def test_exact_means_a_full_forward_for_each_request(
    hearing: HFAdapter, requests: list[Request]
) -> None:
    work = Work()
    with Calls(hearing.model) as calls:
        list(score_requests(hearing, [*requests, *requests], Budget(3), work, exact=True))
    assert sum(calls.rows) == len(requests)
    assert max(calls.rows) <= 3
    assert work.computed.prefixes == len(requests)
    assert work.asked.prefixes == 2 * len(requests)


def test_a_boundary_space_does_not_part_a_context(hearing: HFAdapter) -> None:
    one, other = Request(Prompt.of("a "), "b"), Request(Prompt.of("a"), " b")
    (group,) = plan([one, other, Request(Prompt.of("a"), " c")])
    assert list(group.askers.values()) == [[0, 1], [2]]


class Scarce(TorchDispatchMode):
    """An allocator that refuses tensors of more than so many elements."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.refused = most, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.numel() > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError("simulated")
        return result


@pytest.mark.parametrize("exact", [False, True])
def test_when_memory_runs_out_the_budget_halves_and_nothing_is_lost(
    hearing: HFAdapter,
    requests: list[Request],
    caplog: pytest.LogCaptureFixture,
    exact: bool,
) -> None:
    expected = scores(hearing, requests, 1, exact=exact)
    mask = 200 * 200  # of the audio encoder: the largest tensor for each recording
    with Scarce(2 * mask) as memory, caplog.at_level(logging.WARNING):
        found = scores(hearing, requests, 64, exact=exact)
    assert memory.refused
    assert "Out of memory" in caplog.text
    assert found.keys() == expected.keys()
    for request, score in found.items():
        assert score.token_logprobs == pytest.approx(expected[request].token_logprobs, abs=1e-4)


def test_without_memory_for_one_row_the_error_is_torchs(
    hearing: HFAdapter, requests: list[Request]
) -> None:
    with Scarce(10), pytest.raises(torch.OutOfMemoryError, match="simulated"):
        scores(hearing, requests, 4)


@settings(max_examples=25)  # each shortage collects garbage
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40),
    items=st.integers(1, 9),
    memory=st.integers(50, 300),
)
def test_batches_keep_order_and_budget(lengths: list[int], items: int, memory: int) -> None:
    budget = Budget(items)

    def run(batch: list[int]) -> list[int]:
        assert len(batch) <= items
        if len(batch) * max(batch) > memory:
            raise torch.OutOfMemoryError("simulated")
        return [-length for length in batch]

    found = [
        pair
        for batch, results in in_batches(lengths, run, budget, lambda length: length)
        for pair in zip(batch, results, strict=True)
    ]
    assert found == [(length, -length) for length in lengths]


def test_a_token_budget_lets_more_short_prefixes_in() -> None:
    budget = Budget(100, positions=40)
    sizes = [
        len(batch)
        for batch, _ in in_batches([20] * 4 + [5] * 16, lambda batch: None, budget, lambda n: n)
    ]
    assert sizes == [2, 2, 8, 8]


@pytest.mark.parametrize("text", ["auto", "auto:4"])
def test_batch_size_auto(text: str) -> None:
    assert parse_budget(text, None).items == AUTO_ITEMS
    assert parse_budget(text, 5).items == 5


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_batch_sizes_that_are_none(text: str) -> None:
    with pytest.raises(AdapterError, match="give a positive number or auto"):
        parse_budget(text, None)


def test_work_ahead_is_ordered_bounded_and_elsewhere() -> None:
    taken, furthest = 0, 0

    def items() -> Iterator[int]:
        nonlocal furthest
        for number in range(30):
            furthest = max(furthest, number - taken)
            yield number

    results = []
    for taken, (number, thread) in enumerate(  # noqa: B007
        ahead(items(), lambda _: threading.current_thread().name, window=4)
    ):
        results.append(number)
        assert thread != threading.current_thread().name
    assert results == list(range(30))
    assert furthest <= 4


def test_work_ahead_keeps_to_one_core_and_leaves_the_model_the_others() -> None:
    before = torch.get_num_threads()
    assert {n for _, n in ahead(range(8), lambda _: torch.get_num_threads(), window=4)} == {1}
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [torch.get_num_threads(), *later] == [before, before]


def test_a_recording_that_changed_is_named(hearing: HFAdapter, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, torch.randn(16000).numpy() * 0.1, 16000)
    request = Request(Prompt.of(probe(path)), " t")
    soundfile.write(path, torch.randn(16000).numpy() * 0.1, 16000)
    with pytest.raises(Exception, match=r"a\.wav: the recording changed since it was indexed"):
        scores(hearing, [request])


def test_memory_that_runs_out_while_hearing_halves_too(
    ctc_speech_lm: Path, recordings: list[Audio], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = HFAdapter(str(ctc_speech_lm), dtype="float32", device="cpu")
    requests = [Request(Prompt.of("Listen: ", a), e) for a in recordings for e in ENDINGS]
    expected = scores(adapter, requests, 1)
    render, sizes = adapter.render, []

    def scarce(prompts: list[Prompt], prepared: Any = None) -> Any:
        sizes.append(len(prompts))
        if len(prompts) > 1:
            raise torch.OutOfMemoryError("simulated")
        return render(prompts, prepared)

    monkeypatch.setattr(adapter, "render", scarce)
    found = scores(adapter, requests, 4)
    assert sizes[0] == 3
    assert {r: s[0] for r, s in found.items()} == pytest.approx(
        {r: s[0] for r, s in expected.items()}, abs=1e-4
    )


def test_a_question_too_long_for_the_model_is_named(
    hearing: HFAdapter, recordings: list[Audio], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "max_length", 20)
    with pytest.raises(AdapterError, match=r"0\.wav and a continuation take \d+ positions.*20"):
        scores(hearing, [Request(Prompt.of("Hm: ", recordings[0]), " t")])


def test_what_a_processor_refuses_is_named(
    hearing: HFAdapter, recordings: list[Audio], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("too short for me")

    monkeypatch.setattr(hearing, "prepare", refuse)
    with pytest.raises(AdapterError, match=r"0\.wav cannot be made ready.*too short for me"):
        scores(hearing, [Request(Prompt.of("Hm: ", recordings[0]), " t")])
