"""`CTCSpeechLM`: a Whisper encoder, a CTC projector and a causal LM, behind `HFAdapter`."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given
from hypothesis import strategies as st
from scoring import scores
from transformers import AutoTokenizer, LlamaForCausalLM, WhisperFeatureExtractor, WhisperModel

from s2s_tasks.adapters.contract import AdapterError, Generation
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM, CTCSpeechLMConfig
from s2s_tasks.adapters.ctc_speech_lm.modeling import encode
from s2s_tasks.adapters.ctc_speech_lm.projector import BLANK, collapse
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio, probe
from s2s_tasks.prompt import Prompt, Request

PREFIX = "Below is a segment of alternating speech and text content: "
ENDINGS = [" the dog ran to the garden.", " He was glad.", "小明高兴地回家了。"]


@pytest.fixture(scope="module")
def adapter(ctc_speech_lm: Path) -> HFAdapter:
    return HFAdapter(str(ctc_speech_lm), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Audio]:
    """Tones that change ten times a second; in steady noise nothing new would be heard."""
    folder, draw = tmp_path_factory.mktemp("tones"), np.random.default_rng(0)
    handles = []
    for index, (rate, seconds) in enumerate([(16000, 1.5), (16000, 1.5), (24000, 2.3)]):
        pitch = np.repeat(draw.uniform(100, 6000, int(seconds * 10) + 1), rate // 10)
        time = np.arange(int(seconds * rate)) / rate
        path = folder / f"{index}.wav"
        soundfile.write(path, 0.5 * np.sin(2 * np.pi * pitch[: len(time)] * time), rate)
        handles.append(probe(path))
    return handles


def heard(model: CTCSpeechLM, audio: Audio) -> torch.Tensor:
    """Soft tokens, step by step."""
    extractor = WhisperFeatureExtractor(feature_size=16, chunk_length=4)
    samples = audio.load(16000)
    spectrogram = extractor(
        samples, sampling_rate=16000, padding="longest", truncation=False, return_tensors="pt"
    ).input_features[0]
    assert spectrogram.shape[1] == len(samples) // 160
    table = model.language_model.model.embed_tokens.weight[model.projector.vocabulary]
    with torch.no_grad():
        hidden = encode(model.audio_encoder, spectrogram)[None]
        output, _ = model.projector(hidden, torch.tensor([hidden.shape[1]]), table)
    soft = []
    frames = [(int(frame.argmax()), frame.exp()) for frame in output[0]]
    for token, group in itertools.groupby(frames, key=lambda frame: frame[0]):
        if token != BLANK:
            weights = torch.stack([frame for _, frame in group]).mean(0)[1:]
            soft.append(weights / weights.sum() @ table)
    return torch.stack(soft)


def test_scores_equal_soft_tokens_and_one_forward_by_hand(
    adapter: HFAdapter, llama: Path, recordings: list[Audio]
) -> None:
    lm = LlamaForCausalLM.from_pretrained(llama, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(llama)
    everything: list[float] = []
    for audio in recordings:
        soft = heard(adapter.model, audio)
        assert len(soft) > 3
        for ending in ENDINGS:
            before = lm.model.embed_tokens(torch.tensor(tokenizer.encode(PREFIX)))
            targets = tokenizer.encode(ending)
            after = lm.model.embed_tokens(torch.tensor(targets))
            with torch.no_grad():
                inputs = torch.cat([before, soft, after])[None]
                logprobs = lm(inputs_embeds=inputs).logits[0].log_softmax(-1)
            expected = [
                logprobs[-len(targets) - 1 + step, token].item()
                for step, token in enumerate(targets)
            ]
            request = Request(Prompt.of(PREFIX, audio), ending)
            score = scores(adapter, [request], 1)[request]
            assert score.token_logprobs == pytest.approx(expected, abs=1e-4)
            everything += expected
    assert max(everything) - min(everything) > 5, "weights too small to prove anything"


def test_batching_and_padding_change_nothing(adapter: HFAdapter, recordings: list[Audio]) -> None:
    requests = [
        *(Request(Prompt.of(PREFIX, audio), e) for audio in recordings for e in ENDINGS),
        Request(Prompt.of(recordings[0], " and then ", recordings[2]), " the end."),
        Request(Prompt.of("She opened the window"), " and looked at the sea."),
    ]
    alone, together = (scores(adapter, requests, size) for size in (1, len(requests)))
    for request in requests:
        expected = pytest.approx(alone[request].token_logprobs, abs=1e-4)
        assert together[request].token_logprobs == expected


def test_other_audio_of_the_same_length_gives_other_scores(
    adapter: HFAdapter, recordings: list[Audio]
) -> None:
    first, second = (Request(Prompt.of(PREFIX, audio), " He") for audio in recordings[:2])
    found = scores(adapter, [first, second], 2)
    assert abs(found[first][0] - found[second][0]) > 0.01


def test_text_alone_equals_the_lm_alone(adapter: HFAdapter, llama: Path) -> None:
    requests = [Request(Prompt.of("She opened"), e) for e in ENDINGS] + [
        Request(Prompt.of(""), "It rained.")
    ]
    reader = HFAdapter(str(llama), dtype="float32", device="cpu")
    theirs, ours = scores(reader, requests, 4), scores(adapter, requests, 4)
    for request in requests:
        expected = pytest.approx(theirs[request].token_logprobs, abs=1e-5)
        assert ours[request].token_logprobs == expected


def test_generation_equals_greedy_search_by_hand(
    adapter: HFAdapter, llama: Path, recordings: list[Audio]
) -> None:
    lm = LlamaForCausalLM.from_pretrained(llama, dtype=torch.float32).eval()
    prompts = [Prompt.of(PREFIX, recordings[0]), Prompt.of(recordings[2], " He said:")]
    answers = adapter.generate(adapter.render(prompts), Generation(6))
    for prompt, answer in zip(prompts, answers, strict=True):
        pieces = [
            heard(adapter.model, piece)
            if isinstance(piece, Audio)
            else lm.model.embed_tokens(torch.tensor(adapter.tokenizer.encode(piece)))
            for piece in prompt.segments
        ]
        inputs, ids = torch.cat(pieces), []
        for _ in range(6):
            with torch.no_grad():
                token = lm(inputs_embeds=inputs[None]).logits[0, -1].argmax()
            ids.append(int(token))
            inputs = torch.cat([inputs, lm.model.embed_tokens(token[None])])
        assert answer == adapter.tokenizer.decode(ids, skip_special_tokens=True)


def test_chat_keeps_the_recordings_place(adapter: HFAdapter) -> None:
    messages = [{"role": "user", "content": "Listen: <|audio:0|> What is it?"}]
    assert adapter.chat(messages, add_generation_prompt=True) == (
        "<|im_start|>user\nListen: <|audio:0|> What is it?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_text_that_looks_like_a_recording_is_refused(adapter: HFAdapter) -> None:
    with pytest.raises(AdapterError, match="would take for a recording"):
        adapter.render([Prompt.of("a <|audio|> b")])


def test_our_encoder_run_equals_whispers_own_where_that_runs(
    ctc_speech_lm: Path, tmp_path: Path
) -> None:
    config = CTCSpeechLMConfig.from_pretrained(ctc_speech_lm)
    encoder = WhisperModel.from_pretrained(config.audio_model_id).encoder.eval()
    spectrogram = torch.randn(16, 400, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        theirs = encoder(spectrogram[None]).last_hidden_state[0]
        ours = encode(encoder, spectrogram)
    torch.testing.assert_close(ours, theirs)


def test_silence_of_which_nothing_is_heard_leaves_the_text(
    ctc_speech_lm: Path, tmp_path: Path
) -> None:
    adapter = HFAdapter(str(ctc_speech_lm), dtype="float32", device="cpu")
    adapter.model.projector.blank.bias.data.fill_(1e4)
    path = tmp_path / "quiet.wav"
    soundfile.write(path, np.full(8000, 1e-4), 16000)
    spoken = Request(Prompt.of("She opened", probe(path)), " the window")
    written = Request(Prompt.of("She opened"), " the window")
    found = scores(adapter, [spoken, written], 1)
    assert found[spoken][0] == pytest.approx(found[written][0], abs=1e-5)
    nothing = Request(Prompt.of(probe(path)), "The dog")
    empty = Request(Prompt.of(""), "The dog")
    found = scores(adapter, [nothing, empty], 1)
    assert found[nothing][0] == pytest.approx(found[empty][0], abs=1e-5)


def test_a_checkpoint_survives_saving(adapter: HFAdapter, tmp_path: Path) -> None:
    adapter.model.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    again = CTCSpeechLM.from_pretrained(tmp_path, dtype=torch.float32)
    for (name, before), after in zip(
        adapter.model.named_parameters(), again.parameters(), strict=True
    ):
        assert torch.equal(before, after), name
    assert torch.equal(adapter.model.projector.vocabulary, again.projector.vocabulary)


@pytest.mark.parametrize(
    "wrong",
    [{"vocabulary_size": 61}, {"vocabulary_size": -1}, {"projector_heads": 3}],
)
def test_a_configuration_that_does_not_fit_its_weights(
    ctc_speech_lm: Path, tmp_path: Path, wrong: dict[str, int]
) -> None:
    shutil.copytree(ctc_speech_lm, tmp_path, dirs_exist_ok=True)
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | wrong))
    with pytest.raises(AdapterError, match=r"not the projector that config\.json describes"):
        HFAdapter(str(tmp_path))


def test_weights_cut_short(ctc_speech_lm: Path, tmp_path: Path) -> None:
    shutil.copytree(ctc_speech_lm, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(AdapterError, match=r"model\.safetensors is not the projector"):
        HFAdapter(str(tmp_path))


def test_other_settings_have_another_fingerprint(
    adapter: HFAdapter, ctc_speech_lm: Path, tmp_path: Path
) -> None:
    shutil.copytree(ctc_speech_lm, tmp_path, dirs_exist_ok=True)
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | {"projector_heads": 4}))
    other = HFAdapter(str(tmp_path), dtype="float32", device="cpu")
    assert other.model.identity != adapter.model.identity


def test_a_part_that_is_nowhere(ctc_speech_lm: Path, tmp_path: Path) -> None:
    config = CTCSpeechLMConfig.from_pretrained(ctc_speech_lm)
    config.text_model_id = "no/such-lm"
    config.save_pretrained(tmp_path)
    with pytest.raises(AdapterError, match=r"frozen part no/such-lm .* neither"):
        HFAdapter(str(tmp_path))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(0, 1000))
def test_collapse_is_that_of_ctc(path: list[int], seed: int) -> None:
    noise = torch.rand(len(path), 5, generator=torch.Generator().manual_seed(seed))
    output = (noise + 3 * torch.nn.functional.one_hot(torch.tensor(path), 5)).log_softmax(-1)
    tokens = [label - 1 for label, _ in itertools.groupby(path) if label != BLANK]
    found = collapse(output)
    assert found.argmax(-1).tolist() == tokens
    torch.testing.assert_close(found.sum(-1), torch.ones(len(tokens)))
