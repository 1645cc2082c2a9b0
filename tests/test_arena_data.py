"""Taxonomy, sources and the mini set of the arena, and their lm-eval tasks."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
import tiny
import yaml
from lm_eval.tasks import TaskManager
from published_layout import tone

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.arena.data import published
from s2s_tasks.arena.data.manifest import ManifestError, read
from s2s_tasks.arena.data.published import draft
from s2s_tasks.arena.data.sources import DATA_VARIABLE, load
from s2s_tasks.arena.data.taxonomy import canonical, taxonomy
from s2s_tasks.arena.features import loudness, syllable_rate
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, Waveform, probe
from s2s_tasks.errors import S2STasksError
from s2s_tasks.models import SpeechHF
from s2s_tasks.tasks.arena_results import answer_metrics, error_rate

MAKING = Path(__file__).parents[1] / "arena_mini"
sys.path.insert(0, str(MAKING))
import cue_measures  # noqa: E402
from cue_measures import RATE  # noqa: E402

# Taxonomy


def test_all_tasks_of_the_paper_are_known_by_any_of_their_names() -> None:
    known = taxonomy()
    assert list(known.domains) == ["Education", "Social", "Entertainment", "Medical"]
    assert Counter(task.domain for task in known.tasks.values()) == {
        "Education": 7,
        "Social": 4,
        "Entertainment": 7,
        "Medical": 3,
    }
    assert list(known.levels) == [1, 2, 3, 4]
    for task in known.tasks.values():
        for name in (task.name, task.title, task.title.upper(), *task.folders, *task.aliases):
            assert known.task(name) is task
    names = [name for task in known.tasks.values() for name in {task.name, *task.folders}]
    assert len(names) == len(set(names))
    assert known.domain("medical consultation") == known.domains["Medical"]
    assert known.domain("Space") is known.task("knitting") is None


def test_unknown_tasks_and_domains_are_kept_with_a_note(recordings: list[Audio]) -> None:
    one = Instruction("1", recordings[0], "", "en", "social", "Sarcasm detection", 2)
    given = [one, replace(one, domain="Space"), replace(one, task="knitting", domain="Medical")]
    found, notes = canonical([*given, replace(one, domain="Education")])
    assert [(i.domain, i.task) for i in found] == [
        ("Social", "irony"),
        ("Space", "irony"),
        ("Medical", "knitting"),
        ("Education", "irony"),
    ]
    assert len(notes) == 3
    for part in ("domain 'Space'", "task 'knitting'", "'irony' is one of Social, here of Educa"):
        assert any(part in note for note in notes)


# The published recordings


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    root = tmp_path / "hub"
    for number, path in enumerate(
        [
            "pronounciation/pronunciation0.wav",
            "identity/age/child.v2.wav",
            "identity/gender/2.wav",
            "noise/3.wav",
            "tongue_twister/4.wav",
            "README.md",
        ]
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(tone(200.0 + number))
    return root


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_draft_says_what_paths_say(hub: Path, tmp_path: Path) -> None:
    target = tmp_path / "own" / "manifest.csv"
    missing = draft(target, hub)
    found = {row["id"]: (row["domain"], row["task"]) for row in rows_of(target)}
    assert found == {
        "identity/age/child.v2": ("Social", "identity"),
        "identity/gender/2": ("Social", "identity"),
        "noise/3": ("", "noise"),
        "pronounciation/pronunciation0": ("Education", "pronunciation"),
        "tongue_twister/4": ("Entertainment", "tongue"),
    }
    assert [line.split(":")[0] for line in missing] == ["language", "domain", "level"]
    assert "domain: 1 of 5 rows have none, noise/3" in missing[1]
    with pytest.raises(ManifestError, match="language, domain, level missing"):
        read(target)
    with pytest.raises(ManifestError, match="is there already"):
        draft(target, hub)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_table_of_ones_own_fills_it_in(hub: Path, tmp_path: Path, suffix: str) -> None:
    details = tmp_path / f"details.{suffix}"
    paths = [path.relative_to(hub).as_posix() for path in hub.rglob("*.wav")]
    lines = [
        {"audio": path, "language": "en", "level": "L0", "domain": "", "cue": {}} for path in paths
    ]
    for line in lines:
        if line["audio"] == "noise/3.wav":
            line |= {"domain": "Social", "cue": {"noise": "airport"}}
    if suffix == "jsonl":
        details.write_text("".join(json.dumps(line) + "\n" for line in lines))
    elif suffix == "csv":
        with details.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows({**line, "cue": json.dumps(line["cue"])} for line in lines)
    else:
        import pandas as pd

        frame = pd.DataFrame(lines)
        frame["cue"] = frame["cue"].map(json.dumps)
        frame.to_parquet(details)
    target = tmp_path / "manifest.csv"
    assert draft(target, hub, details) == []
    found = {i.id: i for i in load(target, old_levels=True)}
    assert len(found) == 5
    assert {i.level for i in found.values()} == {1}
    assert found["noise/3"].cue == {"noise": "airport"}
    assert found["noise/3"].domain == "Social"
    assert found["identity/age/child.v2"].task == "identity"
    assert found["identity/age/child.v2"].audio == replace(
        probe(hub / "identity/age/child.v2.wav"), path=found["identity/age/child.v2"].audio.path
    )


def test_recordings_that_differ_in_their_suffix_alone_keep_it(tmp_path: Path) -> None:
    for name in ("story/1.mp3", "story/1.wav", "story/2.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(tone(300.0))
    ids = [row["id"] for row in published.recordings(tmp_path).values()]
    assert ids == ["story/1.mp3", "story/1.wav", "story/2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("audio,level\ngone.wav,1\n", r"field audio names 1 file\(s\) that are not in"),
        ("path,level\na.wav,1\n", "has no field audio"),
        ("audio,level\nnoise/3.wav,1\nnoise/3.wav,2\n", "several rows about noise/3.wav"),
        ("", "cannot be read"),
    ],
)
def test_details_that_do_not_fit(hub: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ManifestError, match=message):
        draft(tmp_path / "manifest.csv", hub, tmp_path / "d.csv")
    assert not (tmp_path / "manifest.csv").exists()


def test_other_refusals_of_a_draft(hub: Path, tmp_path: Path) -> None:
    (tmp_path / "d.txt").touch()
    for target, folder, details, message in [
        ("m.jsonl", hub, None, "call it .csv"),
        ("m.csv", tmp_path / "own", None, "no recordings are here"),
        ("m.csv", hub, tmp_path / "d.txt", "are a .csv, .jsonl or .parquet"),
        ("m.csv", None, None, "--folder DIR"),  # tests are offline
    ]:
        with pytest.raises(ManifestError, match=message):
            draft(tmp_path / target, folder, details)


def test_the_command_says_what_is_left_to_do(
    hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    published.add_arguments(parser)
    target = str(tmp_path / "manifest.csv")
    assert published.run(parser.parse_args([target, "--folder", str(hub)])) == 0
    said = capsys.readouterr().out
    for part in ("CC BY-NC-SA", "level: 5 of 5", "L2: A cue"):
        assert part in said


def test_what_to_do_without_a_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(ManifestError, match=r"(?s)s2s-tasks arena manifest.*s2s_arena_mini"):
        load()


def test_the_environment_names_a_manifest_and_notes_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1.wav").write_bytes(tone(200.0))
    row = {"id": "1", "audio": "1.wav", "language": "en", "domain": "X", "task": "y", "level": 1}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(row))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with caplog.at_level(logging.WARNING, "s2s_tasks"):
        assert [i.id for i in load()] == ["1"]
    assert "domain 'X' is not one of" in caplog.text


# The mini set


@cache
def mini() -> list[Instruction]:
    return load(mini=True)


def test_it_covers_everything_in_both_languages() -> None:
    counts = Counter((i.domain, i.level, i.language) for i in mini())
    assert len(counts) == 4 * 4 * 2
    assert set(counts.values()) == {2}
    for language in ("en", "zh"):
        assert {i.task for i in mini() if i.language == language} == set(taxonomy().tasks)
    assert canonical(mini()) == (mini(), [])


def test_levels_have_the_cues_and_targets_that_they_are_about() -> None:
    for instruction in mini():
        assert bool(instruction.cue) == (instruction.level in (2, 4)), instruction.id
        assert bool(instruction.target) == (instruction.level in (3, 4)), instruction.id
        assert instruction.evaluation


def test_it_is_the_texts_that_a_person_reads() -> None:
    entries = yaml.safe_load((MAKING / "instructions.yaml").read_text("utf-8"))
    assert [i.id for i in mini()] == [
        f"mini-{entry['id']}-{language}" for entry in entries for language in ("en", "zh")
    ]
    for entry in entries:
        for language in ("en", "zh"):
            said = entry[language]["say"]
            pieces = [said] if isinstance(said, str) else [part["text"] for part in said]
            (instruction,) = [i for i in mini() if i.id == f"mini-{entry['id']}-{language}"]
            assert instruction.text == (" " if language == "en" else "").join(pieces)
            assert instruction.evaluation == entry[language]["evaluation"]


def test_it_is_small_and_names_its_licence() -> None:
    path = Path(mini()[0].audio.path)
    assert path.stat().st_size < 3e6
    assert pq.read_schema(path).metadata[b"licence"] == b"Apache-2.0"


def test_every_recording_is_heard() -> None:
    for instruction in mini():
        signal = instruction.audio.load(RATE)
        assert 0.02 < np.abs(signal).max() <= 1.0
        assert 2 < instruction.audio.seconds < 15
        assert instruction.audio.channels == 1


# Cues: each recording against the same words without the cue


@cache
def twins(**cue: str) -> list[tuple[Waveform, Waveform]]:
    """Return pairs of signals: with a cue, without."""
    found = [(i, plain) for i, plain in cue_measures.contrasts() if cue.items() <= i.cue.items()]
    assert {i.language for i, _ in found} == {"en", "zh"}
    return [(i.audio.load(RATE), plain.load(RATE)) for i, plain in found]


def opening(signal: Waveform) -> Waveform:
    """Return the pitch of the first three seconds: all would take long."""
    return cue_measures.pitch_track(signal[: 3 * RATE])


def ending(signal: Waveform) -> Waveform:
    """Return the pitch of the last three seconds."""
    return cue_measures.pitch_track(signal[-3 * RATE :])


def pitch(signal: Waveform) -> float:
    return cue_measures.median_pitch(opening(signal))


def test_every_cue_has_its_contrast() -> None:
    assert [i for i, _ in cue_measures.contrasts()] == [i for i in mini() if i.cue]


def test_children_are_high() -> None:
    for cued, plain in twins(age="child"):
        assert pitch(cued) > 1.2 * pitch(plain)


def test_the_elderly_are_slow() -> None:
    for cued, plain in twins(age="elderly"):
        assert len(cued) > 1.2 * len(plain)
        assert syllable_rate(cued) < syllable_rate(plain)


def test_the_happy_are_high_and_quick() -> None:
    for cued, plain in twins(emotion="happy"):
        assert pitch(cued) > 1.05 * pitch(plain)
        assert len(cued) < len(plain)
        assert syllable_rate(cued) > syllable_rate(plain)


def test_the_sad_are_slow_and_quiet_and_end_low() -> None:
    for cued, plain in twins(emotion="sad"):
        assert len(cued) > 1.15 * len(plain)
        low, high = (cue_measures.median_pitch(ending(signal)) for signal in (cued, plain))
        assert low < 0.97 * high
        assert loudness(cued, RATE) < loudness(plain, RATE) - 4


def test_the_angry_are_loud_and_high() -> None:
    for cued, plain in twins(emotion="angry"):
        assert loudness(cued, RATE) > loudness(plain, RATE) + 3
        assert pitch(cued) > 1.05 * pitch(plain)


def test_the_hurried_are_fast() -> None:
    for cued, plain in twins(rate="fast"):
        assert len(cued) < 0.8 * len(plain)
        assert syllable_rate(cued) > 1.05 * syllable_rate(plain)


def test_sarcasm_is_drawn_out() -> None:
    for cued, plain in twins(style="sarcastic"):
        assert len(cued) > 1.15 * len(plain)
        assert syllable_rate(cued) < 0.9 * syllable_rate(plain)


def test_whispers_have_no_voice() -> None:
    for cued, plain in twins(style="whispered"):
        assert cue_measures.voiced_share(opening(cued)) < 0.1
        assert cue_measures.voiced_share(opening(plain)) > 0.4


def test_rain_falls_before_the_words() -> None:
    for cued, plain in twins(noise="rain"):
        assert cue_measures.edge(cued) > -30
        assert cue_measures.edge(plain) < -40


def test_men_are_low() -> None:
    for cued, plain in twins(gender="male"):
        assert pitch(cued) < 0.8 * pitch(plain)


def test_pauses_are_long() -> None:
    for cued, plain in twins(style="pauses"):
        spare = cue_measures.longest_pauses(cued, 2) - cue_measures.longest_pauses(plain, 2)
        assert spare > 0.8


def test_stressed_words_are_high_and_long() -> None:
    for cued, plain in twins(style="stress"):
        with_stress, without = (cue_measures.median_pitch(ending(s)) for s in (cued, plain))
        assert with_stress > 1.05 * without
        assert len(cued) > len(plain) + 0.5 * RATE


# lm-eval


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
    said = mini()[0].audio.load(RATE)
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
    with pytest.raises(S2STasksError, match="of Social, L2"):
        evaluate(hearing, "s2s_arena_social_l2", task_manager=old)
