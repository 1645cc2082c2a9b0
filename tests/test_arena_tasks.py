"""The arena's lm-eval tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pytest
import soundfile
import tiny
from lm_eval.tasks import TaskManager
from published_layout import tone

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.arena.data.manifest import ManifestError
from s2s_tasks.arena.data.sources import DATA_VARIABLE, load
from s2s_tasks.errors import S2STasksError
from s2s_tasks.models import SpeechHF
from s2s_tasks.tasks.arena_results import answer_metrics, error_rate

RATE = 16_000


def names(prefix: str) -> set[str]:
    domains = ["education", "social", "entertainment", "medical"]
    levels = [f"l{level}" for level in range(1, 5)]
    groups = {prefix, *(f"{prefix}_by_{what}" for what in ("domain", "level"))}
    groups |= {f"{prefix}_{part}" for part in (*domains, *levels)}
    return groups | {f"{prefix}_{d}_{part}" for d in domains for part in levels} | {f"{prefix}_all"}


def manager() -> TaskManager:
    return TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False)


def test_every_name_is_there() -> None:
    known = {*manager().all_groups, *manager().all_subtasks}
    assert {n for n in known if n.startswith("s2s_arena")} == names("s2s_arena") | names(
        "s2s_arena_mini"
    )


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> SpeechHF:
    folder = tiny.qwen2_audio(tmp_path_factory.mktemp("qwen2_audio"), seconds=16)
    return SpeechHF(pretrained=str(folder), dtype="float32", device="cpu", batch_size=16)


def evaluate(model: Any, *tasks: str, **options: Any) -> dict[str, Any]:
    settings = {"task_manager": manager(), "gen_kwargs": {"max_gen_toks": 4}, **options}
    results: dict[str, Any] = lm_eval.simple_evaluate(
        model=model, tasks=list(tasks), bootstrap_iters=0, **settings
    )
    return results


def test_the_mini_set_is_asked_by_domain_and_level(
    hearing: SpeechHF, caplog: pytest.LogCaptureFixture
) -> None:
    results = evaluate(hearing, "s2s_arena_mini", limit=2)
    samples = results["samples"]
    assert len(samples) == 16
    for task, asked in samples.items():
        assert len(asked) == 2
        for sample in asked:
            domain, level = task.removeprefix("s2s_arena_mini_").split("_")
            assert sample["doc"]["domain"].lower() == domain
            assert f"l{sample['doc']['level']}" == level
            context, _, media = sample["arguments"][0]
            assert context == "<|audio:0|>"
            (handle,) = media["audio"]
            assert handle["language"] == sample["doc"]["language"]
            assert handle["sha256"] == sample["doc"]["audio"][0]["sha256"]
            assert sample["target"] == sample["doc"]["evaluation"]
            assert sample["characters"] == len(sample["filtered_resps"][0].strip())
            assert "seconds" not in sample
    groups = results["groups"]
    for part in ("l1", "medical", "by_level", "by_domain"):
        assert groups[f"s2s_arena_mini_{part}"]["spoken,none"] == 0
    assert (
        groups["s2s_arena_mini_by_level"]["answered,none"]
        == groups["s2s_arena_mini_by_domain"]["answered,none"]
        == np.mean([s["answered"] for asked in samples.values() for s in asked])
    )
    assert caplog.text.count("answers in text") == 1


def test_a_saved_answer_is_measured(
    hearing: SpeechHF,
    wav2vec2: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spoken, silent = tmp_path / "spoken.wav", tmp_path / "silent.wav"
    said = load(mini=True)[0].audio.load(RATE)
    soundfile.write(spoken, said, RATE)
    soundfile.write(silent, np.zeros(RATE), RATE)
    write = hearing.generate_until

    def speak(requests: Any, disable_tqdm: bool = False) -> list[str]:
        """Note recordings with the questions, as models that speak do."""
        for number, request in enumerate(requests):
            path, status = ((spoken, "ok"), (silent, "silent"))[number % 2]
            request.doc["answer"] = {"path": str(path), "status": status}
        return write(requests, disable_tqdm)

    task = "s2s_arena_mini_social_l2"
    (written, _) = evaluate(hearing, task, limit=2)["samples"][task]
    monkeypatch.setattr(hearing, "generate_until", speak)
    informed = TaskManager(
        include_path=str(TASK_CONFIGS),
        include_defaults=False,
        metadata={"answer_asr": str(wav2vec2)},
    )
    results = evaluate(hearing, task, limit=2, task_manager=informed)
    one, other = results["samples"][task]
    assert one["doc"]["answer"]["path"] == str(spoken)
    assert one["doc_hash"] == written["doc_hash"]
    assert one["seconds"] == pytest.approx(len(said) / RATE)
    assert (one["spoken"], other["spoken"]) == (1, 0)
    assert one["speech_rate"] > 1
    assert 0 < one["silence_share"] < 0.8
    assert 1 < one["dnsmos"] < 5
    reply = one["filtered_resps"][0]
    if reply.strip():
        assert one["wer"] == error_rate(reply, one["doc"]["answer_heard"], "en")
    assert "seconds" not in other
    metrics = results["results"][task]
    assert metrics["spoken,none"] == 0.5
    assert metrics["seconds,none"] == one["seconds"]


def test_sound_without_text_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(tone(200.0))
    doc = {"language": "en", "answer": {"path": str(path), "status": "ok"}}
    found = answer_metrics(doc, "  ")
    assert (found["answered"], found["spoken"], found["characters"]) == (1, 1, 0)
    failed = answer_metrics({"language": "en", "answer": {"path": None, "status": "failed"}}, "")
    assert failed == {"answered": 0, "spoken": 0, "characters": 0}


@pytest.mark.parametrize(
    ("said", "heard", "language", "rate"),
    [
        ("It's seven, isn't it?", "it is seven is not it", "en", 0.0),
        ("The dog ran home.", "the dog ran", "en", 0.25),
        ("今天天气很好。", "今天 天汽很好", "zh", 1 / 6),
        ("这句话", "這句話。", "zh", 0.0),
        ("…", "", "en", 0.0),
        ("…", "word", "en", 1.0),
    ],
)
def test_errors_are_of_words_or_characters(
    said: str, heard: str, language: str, rate: float
) -> None:
    assert error_rate(said, heard, language) == pytest.approx(rate)


def test_a_manifest_of_ones_own_is_asked_whole_or_in_parts(
    hearing: SpeechHF, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.wav").write_bytes(tone(200.0))
    row = {"id": "1", "audio": "1.wav", "language": "en", "domain": "X", "task": "y", "level": "L0"}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(row))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    old = TaskManager(
        include_path=str(TASK_CONFIGS), include_defaults=False, metadata={"old_levels": True}
    )
    results = evaluate(hearing, "s2s_arena_all", task_manager=old)
    (sample,) = results["samples"]["s2s_arena_all"]
    assert sample["doc"]["level"] == 1
    new = TaskManager(
        include_path=str(TASK_CONFIGS), include_defaults=False, metadata={"old_levels": "false"}
    )
    with pytest.raises(ManifestError, match="L0"):
        evaluate(hearing, "s2s_arena_all", task_manager=new)
    with pytest.raises(S2STasksError, match="of Social, L2"):
        evaluate(hearing, "s2s_arena_social_l2", task_manager=old)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"old_levels": "no"}, "old_levels=no: say true or false"),
        ({"answer_asr": "no/such/folder"}, "answer_asr=no/such/folder cannot be loaded"),
        ({"answer_asr": True}, "answer_asr=True cannot be loaded"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_is_asked(
    metadata: dict[str, Any], message: str
) -> None:
    tasks = TaskManager(include_path=str(TASK_CONFIGS), include_defaults=False, metadata=metadata)
    with pytest.raises(S2STasksError, match=message):
        tasks.load(["s2s_arena_mini_social_l1"])


def test_one_language_can_be_asked(hearing: SpeechHF) -> None:
    def asking(language: str) -> TaskManager:
        return TaskManager(
            include_path=str(TASK_CONFIGS),
            include_defaults=False,
            metadata={"language": language},
        )

    task = "s2s_arena_mini_social_l1"
    results = evaluate(hearing, task, task_manager=asking("zh"))
    asked = {sample["doc"]["id"] for sample in results["samples"][task]}
    assert len(asked) == 2 and all(name.endswith("-zh") for name in asked)
    with pytest.raises(S2STasksError, match="of Social, L1, language th"):
        evaluate(hearing, task, task_manager=asking("th"))
