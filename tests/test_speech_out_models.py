"""Models that speak, tiny ones of real architectures, against their own `generate` by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pytest
import speaking_models
import torch
import transformers
from families import qwen2_5_omni
from lm_eval.tasks import TaskManager
from scoring import scores

from s2s_tasks.adapters.contract import AdapterError, Generation
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.adapters.tts import pipeline
from s2s_tasks.adapters.tts.choosing import load_engine
from s2s_tasks.arena.answers import read_answers, read_entries
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Prompt, Request

SHORT = {"talker_max_new_tokens": 12, "token2wav_num_steps": 2}
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaking_models.omni(tmp_path_factory.mktemp("omni"))


@pytest.fixture(scope="module")
def omni(folder: Path) -> HFAdapter:
    return HFAdapter(str(folder), device="cpu", dtype="float32", speaks=True)


def by_hand(folder: Path, inputs: dict[str, Any], seed: int, **options: Any) -> Any:
    """Speak as the model's page does."""
    model = transformers.Qwen2_5OmniForConditionalGeneration.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    torch.manual_seed(seed)
    return model.generate(**inputs, **options)


def test_omni_speaks_as_its_page_has_it(
    omni: HFAdapter, folder: Path, recordings: list[Audio]
) -> None:
    written = Prompt.of("Hello there, the dog ran.")
    heard = Prompt.of("Listen: ", recordings[0], " And?")
    replies = omni.generate(omni.render([written, heard]), Generation(8, (), SHORT))
    _, processor = qwen2_5_omni.load(folder)
    inputs = [
        processor.tokenizer(written.text, return_tensors="pt"),
        qwen2_5_omni.bare(processor, "Listen: ", recordings[0].load(16000), " And?"),
    ]
    for reply, given in zip(replies, inputs, strict=True):
        assert omni.speaks and not reply.error
        ids, waveform = by_hand(folder, given, reply.seed, thinker_max_new_tokens=8, **SHORT)
        new = ids[0, given["input_ids"].shape[1] :]
        assert reply == processor.tokenizer.decode(new, skip_special_tokens=True)
        assert reply.sampling_rate == 24_000
        np.testing.assert_allclose(reply.waveform, waveform.numpy(), atol=1e-5)
        assert np.ptp(reply.waveform) > 0.1
    assert not np.array_equal(replies[0].waveform, replies[1].waveform)


def test_a_voice_is_the_models_own(omni: HFAdapter, folder: Path) -> None:
    other = HFAdapter(str(folder), device="cpu", dtype="float32", speaks=True, voice="Ethan")
    assert other.fingerprint != omni.fingerprint
    how = Generation(6, (), SHORT)
    (chelsie,), (ethan,) = (
        adapter.generate(adapter.render([Prompt.of("Who are you?")]), how)
        for adapter in (omni, other)
    )
    assert str(chelsie) == str(ethan)
    assert not np.array_equal(chelsie.waveform, ethan.waveform)
    with pytest.raises(AdapterError, match=r"voice=Bob: the model has Chelsie, Ethan"):
        HFAdapter(str(folder), device="cpu", speaks=True, voice="Bob")
    with pytest.raises(AdapterError, match=r"voice=Ethan: .* only writes; give speech=DIR"):
        HFAdapter(str(folder), device="cpu", voice="Ethan")


def test_speaking_changes_neither_scores_nor_texts(
    omni: HFAdapter, folder: Path, recordings: list[Audio]
) -> None:
    thinker = HFAdapter(str(folder), device="cpu", dtype="float32")
    assert not thinker.speaks and thinker.fingerprint != omni.fingerprint
    request = Request(Prompt.of("Listen: ", recordings[1]), " the dog ran.")
    assert (
        scores(omni, [request], 1)[request].token_logprobs
        == scores(thinker, [request], 1)[request].token_logprobs
    )
    prefixes = omni.render([request.prompt])
    (spoken,) = omni.generate(prefixes, Generation(6, (), SHORT))
    (written,) = thinker.generate(prefixes, Generation(6))
    assert spoken == written and written.waveform is None


def test_a_reply_ends_where_it_is_to(omni: HFAdapter) -> None:
    prefixes = omni.render([Prompt.of("Hello there, the dog ran.")])
    (long,) = omni.generate(prefixes, Generation(8, (), SHORT))
    letters = [letter for letter in long if letter.isascii()]
    assert long.index(letters[-1]) > 2, "the reply is over at once"
    (short,) = omni.generate(prefixes, Generation(8, (letters[-1],), SHORT))
    assert long.startswith(short) and letters[-1] in short and len(short) < len(long)
    assert short.waveform is not None


def test_it_speaks_in_half_precision(folder: Path, recordings: list[Audio]) -> None:
    half = HFAdapter(str(folder), device="cpu", dtype="bfloat16", speaks=True)
    prefixes = half.render([Prompt.of("Listen: ", recordings[0])])
    (reply,) = half.generate(prefixes, Generation(6, (), SHORT))
    assert not reply.error and np.isfinite(reply.waveform).all()
    assert reply.waveform.dtype == np.float32


def test_an_answer_does_not_depend_on_those_before_it(omni: HFAdapter) -> None:
    prefixes = omni.render([Prompt.of("One."), Prompt.of("Two, three.")])
    how = Generation(6, (), SHORT)
    state = torch.get_rng_state()
    together = omni.generate(prefixes, how)
    assert torch.equal(torch.get_rng_state(), state)
    torch.randn(9)
    (alone,) = omni.generate(prefixes[1:], how)
    np.testing.assert_array_equal(together[1].waveform, alone.waveform)


def test_a_talker_that_fails_leaves_the_text(omni: HFAdapter) -> None:
    # Qwen2.5-Omni's own generate cannot say a reply of one token.
    prefixes = omni.render([Prompt.of("One.")])
    (reply,) = omni.generate(prefixes, Generation(1, (), SHORT))
    assert reply and reply.waveform is None
    assert "non-empty list of Tensors" in reply.error


def test_a_checkpoint_without_talker(folder: Path, tmp_path: Path) -> None:
    model = transformers.Qwen2_5OmniForConditionalGeneration.from_pretrained(folder)
    model.disable_talker()
    model.config.enable_audio_output = False
    model.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(AdapterError, match="has no Talker"):
        HFAdapter(str(tmp_path), device="cpu", speaks=True)


def test_a_speaking_model_through_lm_eval(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"id": f"Q {n}", "text": f"Say {n}."}) + "\n" for n in range(2))
    )
    (tmp_path / "said.yaml").write_text(
        f"task: said\ndataset_path: json\ndataset_kwargs: {{data_files: {tmp_path}/q.jsonl}}\n"
        "test_split: train\noutput_type: generate_until\ndoc_to_text: '{{text}}'\n"
        "doc_to_target: 'A'\nmetric_list: [{metric: exact_match}]\n"
        "generation_kwargs: {max_gen_toks: 5, until: [], talker_max_new_tokens: 8, "
        "token2wav_num_steps: 2}\n"
    )
    results = lm_eval.simple_evaluate(
        model="speech-hf",
        model_args=f"pretrained={folder},dtype=float32,speech={tmp_path}/out,voice=Ethan",
        tasks=["said"],
        device="cpu",
        torch_random_seed=99,
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
    )
    entries = read_entries(tmp_path / "out" / "said")
    texts = [sample["resps"][0][0] for sample in results["samples"]["said"]]
    assert [entry.transcript for entry in entries] == texts
    for entry, answer in zip(entries, read_answers(tmp_path / "out" / "said"), strict=True):
        assert (entry.status, entry.seed, entry.sampling_rate) == ("ok", 99, 24_000)
        assert answer.audio.seconds > 0


def test_vits_speaks_as_its_pipeline(tmp_path: Path) -> None:
    folder = str(speaking_models.vits(tmp_path))
    reply = load_engine(folder, None, None, CPU).reply("hello there")
    speaker = transformers.pipeline("text-to-audio", model=folder)
    torch.manual_seed(reply.seed)
    expected = speaker("hello there")
    assert (str(reply), reply.sampling_rate) == ("hello there", expected["sampling_rate"])
    np.testing.assert_array_equal(reply.waveform, expected["audio"])
    faster = load_engine(folder, None, 3, CPU)
    assert len(faster.reply("hello there").waveform) < len(reply.waveform)
    assert faster.name == f"{folder}@3"
    with pytest.raises(AdapterError, match="has one voice"):
        load_engine(folder, "2", None, CPU)
    with pytest.raises(AdapterError, match="give a number above 0"):
        load_engine(folder, None, "fast", CPU)


def test_vits_of_several_speakers(tmp_path: Path) -> None:
    folder = str(speaking_models.vits(tmp_path, speakers=3))
    # lm-eval hands voices that look like numbers over as numbers.
    said = [load_engine(folder, voice, None, CPU).reply("hello") for voice in (0, "2")]
    assert not np.array_equal(said[0].waveform, said[1].waveform)
    with pytest.raises(AdapterError, match="has 0 to 2"):
        load_engine(folder, "3", None, CPU)


def test_csm_speaks_as_its_page_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CSM_FRAMES", 6)  # random weights never come to an end
    folder = str(speaking_models.csm(tmp_path))
    reply = load_engine(folder, None, None, CPU).reply("the dog ran")
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.CsmForConditionalGeneration.from_pretrained(folder).eval()
    inputs = processor("[0]the dog ran", add_special_tokens=True)
    torch.manual_seed(reply.seed)
    (expected,) = model.generate(**inputs, output_audio=True, max_new_tokens=6)
    assert reply.sampling_rate == 24_000
    np.testing.assert_allclose(reply.waveform, expected.float().numpy().reshape(-1), atol=1e-6)
    other = load_engine(folder, "1", None, CPU).reply("the dog ran")
    assert not np.array_equal(other.waveform, reply.waveform)
    with pytest.raises(AdapterError, match="takes no speed"):
        load_engine(folder, None, 2.0, CPU)


@pytest.mark.parametrize("name", ["no/such-tts", "./missing"])
def test_a_model_that_is_not_there(name: str) -> None:
    with pytest.raises(AdapterError, match=f"tts={name} cannot be loaded"):
        load_engine(name, None, None, CPU)
