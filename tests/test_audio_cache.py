"""`audio_cache`: what a frozen audio tower made is there for the next checkpoint."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from scoring import scores

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError
from s2s_tasks.models import SpeechHF
from s2s_tasks.prompt import Prompt, Request
from s2s_tasks.tensor_store import TensorStore

ENDINGS = [" the dog ran to the garden.", " t"]


@pytest.fixture
def requests(recordings: list[Audio]) -> list[Request]:
    prompts = [Prompt.of("Listen: ", audio) for audio in recordings]
    prompts.append(Prompt.of(recordings[2], " and then ", recordings[0]))
    prompts.append(Prompt.of("She opened the window"))
    return [Request(prompt, ending) for prompt in prompts for ending in ENDINGS]


def load(folder: Path, cache: Path | None, **arguments: Any) -> HFAdapter:
    return HFAdapter(
        str(folder),
        dtype="float32",
        device="cpu",
        audio_cache=None if cache is None else str(cache),
        **arguments,
    )


def count_encodings(adapter: HFAdapter) -> list[int]:
    """Return a list that grows by one whenever the tower really runs."""
    ran: list[int] = []
    model = adapter.model
    tower = model.audio_encoder if hasattr(model, "audio_encoder") else model.model.audio_tower
    tower.layers[0].register_forward_hook(lambda *_: ran.append(1))
    return ran


def trained(folder: Path, copy: Path, part: str) -> Path:
    """Return another checkpoint, of which a part has changed."""
    shutil.copytree(folder, copy)
    weights = load_file(copy / "model.safetensors")
    changed = [name for name in weights if part in name and weights[name].is_floating_point()]
    assert changed
    for name in changed:
        weights[name] = weights[name] * 1.01
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


@pytest.mark.parametrize("name", ["qwen2_audio", "ctc_speech_lm"])
def test_the_second_time_nothing_is_encoded_and_scores_are_the_same(
    request: pytest.FixtureRequest, requests: list[Request], tmp_path: Path, name: str
) -> None:
    folder = request.getfixturevalue(name)
    expected = scores(load(folder, None), requests, 4)
    for encodes in (True, False):
        adapter = load(folder, tmp_path)
        ran = count_encodings(adapter)
        found = scores(adapter, requests, 4)
        assert bool(ran) == encodes
        for asked, score in found.items():
            assert score.token_logprobs == pytest.approx(expected[asked].token_logprobs, abs=1e-4)
    exact = scores(load(folder, tmp_path), requests, 4, exact=True)
    for asked, score in exact.items():
        assert score.token_logprobs == pytest.approx(expected[asked].token_logprobs, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "part", "encodes"),
    [
        ("qwen2_audio", "language_model", False),
        ("qwen2_audio", "multi_modal_projector", False),
        ("qwen2_audio", "audio_tower", True),
        ("ctc_speech_lm", "blank", False),
    ],
)
def test_the_next_checkpoint_encodes_only_if_its_tower_was_trained(
    request: pytest.FixtureRequest,
    requests: list[Request],
    tmp_path: Path,
    name: str,
    part: str,
    encodes: bool,
) -> None:
    folder = request.getfixturevalue(name)
    scores(load(folder, tmp_path / "kept"), requests, 4)
    later = trained(folder, tmp_path / "later", part)
    adapter = load(later, tmp_path / "kept")
    ran = count_encodings(adapter)
    found = scores(adapter, requests, 4)
    assert bool(ran) == encodes
    expected = scores(load(later, None), requests, 4)
    for asked, score in found.items():
        assert score.token_logprobs == pytest.approx(expected[asked].token_logprobs, abs=1e-4)


def test_encodings_that_are_wrong_are_found_and_not_used(
    qwen2_audio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    get = TensorStore.get

    def wrong(self: TensorStore, key: str) -> Any:
        kept = get(self, key)
        return kept and {name: tensor + 1 for name, tensor in kept.items()}

    monkeypatch.setattr(TensorStore, "get", wrong)
    model = SpeechHF(pretrained=str(qwen2_audio), device="cpu", audio_cache=str(tmp_path))
    assert not model.adapter.keeps_audio
    assert "recordings are encoded anew" in caplog.text


def test_the_self_test_passes_right_ones(qwen2_audio: Path, tmp_path: Path) -> None:
    model = SpeechHF(pretrained=str(qwen2_audio), device="cpu", audio_cache=str(tmp_path))
    assert model.adapter.keeps_audio


def test_a_model_that_only_reads_keeps_nothing(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="only reads text; leave audio_cache out"):
        load(llama, tmp_path)


Put = Callable[[TensorStore, str], None]


@pytest.fixture
def put() -> Put:
    return lambda store, key: store.put(key, {"x": torch.zeros(1000)})


def test_the_store_is_bounded_and_others_go_first(
    tmp_path: Path, put: Put, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = TensorStore(tmp_path, "old", 20_000), TensorStore(tmp_path, "new", 20_000)
    for number in range(4):
        put(old, str(number))
    for number in range(9):
        put(new, str(number))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.safetensors"))
    assert size <= 20_000
    assert all(old.get(str(number)) is None for number in range(4))
    assert [n for n in range(9) if new.get(str(n)) is not None] == [0, 1, 2, 3]
    assert "is full" in caplog.text


def test_the_store_keeps_types_and_values(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4).to(torch.bfloat16).t(), "b": torch.arange(5)}
    TensorStore(tmp_path, "m", 10**6).put("key", tensors)
    kept = TensorStore(tmp_path, "m", 10**6).get("key")
    assert kept is not None
    assert all(torch.equal(kept[name], tensor) for name, tensor in tensors.items())
    assert kept["a"].dtype == torch.bfloat16
    assert TensorStore(tmp_path, "other", 10**6).get("key") is None


def test_a_damaged_entry_is_made_again(
    tmp_path: Path, put: Put, caplog: pytest.LogCaptureFixture
) -> None:
    store = TensorStore(tmp_path, "m", 10**6)
    put(store, "key")
    (path,) = tmp_path.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-10])
    with caplog.at_level(logging.WARNING):
        assert store.get("key") is None
    assert "is made again" in caplog.text
    put(store, "key")
    assert store.get("key") is not None


def test_content_that_the_disk_lost_is_made_again(tmp_path: Path, put: Put) -> None:
    store = TensorStore(tmp_path, "m", 10**6)
    store.put("key", {"x": torch.ones(1000)})
    (path,) = tmp_path.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-512] + bytes(512))
    assert store.get("key") is None


def test_another_users_entry_is_read(
    tmp_path: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TensorStore(tmp_path, "m", 10**6)
    put(store, "key")
    (path,) = tmp_path.rglob("*.safetensors")
    assert path.stat().st_mode & 0o044, "readable as other files are"

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert store.get("key") is not None


@pytest.mark.parametrize("size", ["x", -1, 0])
def test_a_size_that_is_none(qwen2_audio: Path, tmp_path: Path, size: Any) -> None:
    with pytest.raises(AdapterError, match="give a positive number"):
        load(qwen2_audio, tmp_path, audio_cache_gb=size)


def test_several_may_write_and_read_at_once(tmp_path: Path) -> None:
    tensors = {"x": torch.arange(20_000)}
    broken: list[Any] = []

    def work() -> None:
        store = TensorStore(tmp_path, "m", 10**8)
        for number in range(30):
            store.put(str(number % 5), tensors)
            kept = store.get(str(number % 5))
            if kept is None or not torch.equal(kept["x"], tensors["x"]):
                broken.append(kept)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not broken
    assert not list(tmp_path.rglob("*.part"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(S2STasksError, match=r"file: cannot make the folder .*can be written to"):
        TensorStore(tmp_path / "file", "m", 10)


def test_a_folder_that_fails_midway_ends_no_run(
    tmp_path: Path, put: Put, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = TensorStore(tmp_path, "m", 10**6)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    put(store, "a")
    put(store, "b")
    assert caplog.text.count("No space left on device") == 1
    assert not list(tmp_path.rglob("*.part"))


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    old, fresh = tmp_path / "m" / "x.part", tmp_path / "m" / "y.part"
    old.parent.mkdir()
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    TensorStore(tmp_path, "m", 10**6)
    assert [old.exists(), fresh.exists()] == [False, True]


def test_what_the_self_test_made_was_not_there(
    qwen2_audio: Path, requests: list[Request], tmp_path: Path
) -> None:
    notes = []
    for _ in range(2):
        model = SpeechHF(pretrained=str(qwen2_audio), device="cpu", audio_cache=str(tmp_path))
        for _ in range(2):
            scores(model.adapter, requests, 4)
        notes += model.adapter.notes()
    first, second = notes
    assert first == "audio_cache: 0 encodings were there, 7 were made"
    assert second == "audio_cache: 7 encodings were there, 0 were made"


def test_the_run_says_what_the_cache_was_good_for(
    qwen2_audio: Path, requests: list[Request], tmp_path: Path
) -> None:
    for expected in ("0 encodings were there, 4 were made", "4 encodings were there, 0 were made"):
        adapter = load(qwen2_audio, tmp_path)
        scores(adapter, requests, 4)
        (note,) = adapter.notes()
        assert expected in note
