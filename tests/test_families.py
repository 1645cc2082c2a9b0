"""Every architecture, from a checkpoint on disk, against what its own documentation computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from lm_eval.__main__ import cli_evaluate
from lm_eval.models.utils import postprocess_generated_text
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex
from safetensors.torch import load_file, save_file
from scoring import scores

from s2s_tasks.adapters.contract import AdapterError, Generation
from s2s_tasks.adapters.families.family import Family
from s2s_tasks.adapters.families.table import FAMILIES
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio, probe
from s2s_tasks.engine.self_test import examine
from s2s_tasks.prompt import Prompt, Request, parse_request, placeholder

BEFORE = "Below is a segment: "
ENDINGS = (" the dog ran to the garden.", " He was glad.", "小明高兴地回家了。")
QUESTION = "What comes next?"
SECONDS = (1.0, 1.0, 2.3, 0.1)
BUILT = sorted(
    path.stem
    for path in (Path(__file__).parent / "families").glob("*.py")
    if path.stem not in ("__init__", "unseen")
)


@dataclass(frozen=True)
class Case:
    """An architecture, its checkpoint, and our adapter on it."""

    family: ModuleType
    folder: Path
    adapter: HFAdapter
    model: Any
    processor: Any

    @property
    def row(self) -> Family:
        """What our table says of the architecture."""
        return FAMILIES[self.family.__name__.removeprefix("families.")]

    @property
    def arguments(self) -> dict[str, Any]:
        """What a user gives beside `pretrained`."""
        return getattr(self.family, "ARGUMENTS", {})

    def reference(self, audio: Audio, ending: str) -> list[float]:
        """Log-probabilities of an ending's tokens, by the model's documentation alone."""
        waveform = audio.load(self.family.SAMPLING_RATE)
        inputs = self.family.bare(self.processor, BEFORE, waveform, ending)
        length = len(self.processor.tokenizer.encode(ending, add_special_tokens=False))
        with torch.no_grad():
            logprobs = self.model(**inputs).logits[0].float().log_softmax(-1)
        targets = inputs["input_ids"][0, -length:]
        return logprobs[-length - 1 : -1].gather(1, targets[:, None])[:, 0].tolist()


@pytest.fixture(scope="module", params=BUILT)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    family = import_module(f"families.{request.param}")
    folder = tmp_path_factory.mktemp(request.param)
    family.save(folder)
    given = getattr(family, "ARGUMENTS", {})
    adapter = HFAdapter(str(folder), dtype="float32", device="cpu", **given)
    return Case(family, folder, adapter, *family.load(folder))


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[Audio]:
    """Gliding tones in noise, two of them equally long; the last as short as is heard."""
    folder = tmp_path_factory.mktemp("sounds")
    random = np.random.default_rng(1)
    handles = []
    for index, seconds in enumerate(SECONDS):
        time = np.arange(int(16000 * seconds)) / 16000
        pitch = (200 + 900 * (index % 2)) * (1 + 0.2 * np.sin((3 + 4 * index) * time))
        tone = 0.3 * np.sin(2 * np.pi * pitch * time)
        path = folder / f"{index}.wav"
        soundfile.write(path, tone + random.normal(size=len(tone)) * 0.02, 16000)
        handles.append(probe(path))
    return handles


def test_every_row_has_a_checkpoint() -> None:
    assert sorted(key for key, family in FAMILIES.items() if not family.refused) == BUILT


def test_scores_equal_the_documentation(case: Case, sounds: list[Audio]) -> None:
    everything = []
    for audio in sounds:
        requests = [Request(Prompt.of(BEFORE, audio), ending) for ending in ENDINGS]
        found = scores(case.adapter, requests, exact=True)
        for request in requests:
            expected = case.reference(audio, str(request.continuation))
            assert found[request].token_logprobs == pytest.approx(expected, abs=2e-4)
            everything += expected
    assert max(everything) - min(everything) > 3, "weights too small to prove anything"


def test_it_hears_what_the_table_says(case: Case) -> None:
    longest = getattr(case.family, "LONGEST", case.row.longest_audio)
    assert case.adapter.longest_audio == longest
    assert case.adapter.hears_several == case.row.several


def test_sharing_batching_and_padding_change_nothing(case: Case, sounds: list[Audio]) -> None:
    prompts = [Prompt.of(BEFORE, audio) for audio in sounds]
    prompts += [Prompt.of(sounds[0], " and then"), Prompt.of("She opened the window")]
    if case.adapter.hears_several:
        prompts.append(Prompt.of(sounds[2], " and then ", sounds[1], " she said"))
    requests = [Request(prompt, ending) for prompt in prompts for ending in ENDINGS]
    plain = scores(case.adapter, requests, 1, exact=True)
    ways = {
        "shared": scores(case.adapter, requests, 1),
        "shared, batched": scores(case.adapter, requests, len(prompts)),
        "full, batched": scores(case.adapter, requests, 5, exact=True),
    }
    for way, found in ways.items():
        for request, score in found.items():
            expected = pytest.approx(plain[request].token_logprobs, abs=2e-4)
            assert score.token_logprobs == expected, (way, request)


def test_the_self_test_finds_no_fault(
    case: Case, sounds: list[Audio], caplog: pytest.LogCaptureFixture
) -> None:
    findings = examine(case.adapter, [sounds[2], sounds[0], sounds[1]], exact=False)
    assert findings.shares and findings.batches
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_kept_encodings_change_nothing(case: Case, sounds: list[Audio], tmp_path: Path) -> None:
    requests = [Request(Prompt.of(BEFORE, audio), ENDINGS[0]) for audio in sounds]
    expected = scores(case.adapter, requests, 2)
    try:
        keeping = HFAdapter(
            str(case.folder),
            dtype="float32",
            device="cpu",
            audio_cache=str(tmp_path),
            **case.arguments,
        )
    except AdapterError as error:
        assert "encodings cannot be kept (docs/models.md); leave audio_cache out" in str(error)
        assert not case.row.keeps_audio
        return
    assert case.row.keeps_audio
    for _ in range(2):
        for request, score in scores(keeping, requests, 2).items():
            wanted = pytest.approx(expected[request].token_logprobs, abs=2e-4)
            assert score.token_logprobs == wanted
    assert keeping.notes() == ["audio_cache: 0 encodings were there, 4 were made"]


def test_other_audio_gives_other_scores(case: Case, sounds: list[Audio]) -> None:
    requests = [Request(Prompt.of(BEFORE, audio), ENDINGS[0]) for audio in sounds[:2]]
    first, second = (np.array(s.token_logprobs) for s in scores(case.adapter, requests).values())
    assert np.abs(first - second).max() > 0.01


def own_reply(case: Case, audio: Audio, tokens: int) -> str:
    """What the model's own `generate` says after a recording."""
    waveform = audio.load(case.family.SAMPLING_RATE)
    inputs = case.family.bare(case.processor, BEFORE, waveform, " and")
    with torch.no_grad():
        generate = getattr(case.family, "generate", type(case.model).generate)
        output = generate(case.model, **inputs, max_new_tokens=tokens, do_sample=False)
    new = output[:, inputs["input_ids"].shape[1] :]
    return case.processor.tokenizer.decode(new[0], skip_special_tokens=True)


def test_generate_equals_the_models_own(case: Case, sounds: list[Audio]) -> None:
    how = Generation(max_new_tokens=8)
    prompts = [Prompt.of(BEFORE, audio, " and") for audio in sounds]
    replies = case.adapter.generate(case.adapter.render(prompts), how)
    assert replies == [own_reply(case, audio, 8) for audio in sounds]


def test_replies_end_where_they_are_told_to(case: Case, sounds: list[Audio]) -> None:
    spoken, written = Prompt.of(BEFORE, sounds[2], " and"), Prompt.of(BEFORE)
    prefixes = case.adapter.render([spoken, written])
    _, read = case.adapter.generate(prefixes, Generation(20))
    whole = [own_reply(case, sounds[2], 20), read]
    tried = 0
    for prefix, text in zip(prefixes, whole, strict=True):
        until = next((letter for letter in text[1:-1] if letter not in "\ufffd "), None)
        if until is None:
            continue  # Bytes that make no letter.
        tried += 1
        how = Generation(20, (until, "never said"))
        (reply,) = case.adapter.generate([prefix], how)
        assert until in reply
        assert len(reply) < len(text), "went on"
        for said, expected in zip(case.adapter.generate(prefixes, how), whole, strict=True):
            cut = postprocess_generated_text(said, [until], None)
            assert cut == postprocess_generated_text(expected, [until], None)
    assert tried


def test_two_loads_are_one_model(case: Case) -> None:
    again = HFAdapter(str(case.folder), dtype="float32", device="cpu", **case.arguments)
    assert again.fingerprint == case.adapter.fingerprint
    assert again.chat_template == case.adapter.chat_template
    assert isinstance(again.chat_template, str)


def test_a_checkpoint_that_lacks_a_weight_is_refused(case: Case, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(case.folder, tmp_path / case.folder.name))
    weights = load_file(folder / "model.safetensors")
    ends = ("mlp.down_proj.weight", "k_proj.weight", "linear_1.weight")
    parts = [name for name in weights if not name.startswith(("talker", "code2wav"))]
    weights.pop(next(name for name in parts if name.endswith(ends)))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        AdapterError, match=r"(lacks 1 weight\(s\): |1 tensors have no weights ).*weight"
    ):
        HFAdapter(str(folder), dtype="float32", device="cpu", **case.arguments)


@pytest.mark.parametrize("system", [None, "Answer in one word."])
def test_chats_equal_the_documentation(case: Case, sounds: list[Audio], system: str | None) -> None:
    waveform = sounds[2].load(case.family.SAMPLING_RATE)
    build: Callable[..., dict[str, torch.Tensor]] = case.family.chat
    turns = [{"role": "system", "content": system}] if system else []
    turns.append({"role": "user", "content": placeholder(0) + QUESTION})
    try:
        expected = build(case.processor, waveform, QUESTION, system)["input_ids"][0]
    except ValueError:
        with pytest.raises(AdapterError, match="chat template refuses"):
            case.adapter.chat(turns, add_generation_prompt=True)
        assert system and "system" not in case.row.chat_roles
        return
    for role, text in (("system", system or ""), ("user", QUESTION)):
        if text not in case.processor.tokenizer.decode(expected):
            with pytest.raises(AdapterError, match=f"chat template drops a text of the {role}"):
                case.adapter.chat(turns, add_generation_prompt=True)
            assert role not in case.row.chat_roles
            return
    assert {turn["role"] for turn in turns} <= set(case.row.chat_roles)
    context = case.adapter.chat(turns, add_generation_prompt=True)
    prompt = parse_request(context, [sounds[2].to_json()])
    (prefix,) = case.adapter.render([prompt])
    found = [case.adapter._lm._audio if id_ < 0 else id_ for id_ in prefix.ids]
    assert found == expected.tolist()


@pytest.fixture(scope="module")
def task_index() -> dict[str, Any]:
    """lm-eval's index of all its tasks, which takes it seconds to build for each run."""
    return TaskManager()._index


def test_the_command_runs_the_mini_set(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task_index: dict[str, Any],
) -> None:
    monkeypatch.setattr(TaskIndex, "build", lambda *_, **__: task_index)
    arguments = {"pretrained": case.folder, **case.arguments}
    monkeypatch.setattr(
        "sys.argv",
        [
            "lm_eval",
            *("--model", "speech-hf", "--device", "cpu", "--batch_size", "4", "--limit", "2"),
            *("--model_args", ",".join(f"{key}={value}" for key, value in arguments.items())),
            *("--tasks", "s2sbench_mini_s2t,s2sbench_mini_t2t", "--output_path", str(tmp_path)),
        ],
    )
    cli_evaluate()
    (path,) = tmp_path.glob("**/results_*.json")
    results = json.loads(path.read_text())
    assert len(results["n-samples"]) == 6
    assert all(counts["effective"] == 2 for counts in results["n-samples"].values())
    for task in results["n-samples"]:
        assert 0 <= results["results"][task]["pair_acc,none"] <= 1
        assert results["results"][task]["tie_rate,none"] == 0
