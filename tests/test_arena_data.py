"""The arena's taxonomy, and where instructions come from."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from published_layout import tone

from s2s_tasks.arena.data import published
from s2s_tasks.arena.data.manifest import ManifestError, read
from s2s_tasks.arena.data.published import draft
from s2s_tasks.arena.data.sources import DATA_VARIABLE, load
from s2s_tasks.arena.data.taxonomy import canonical, taxonomy
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, probe

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


def test_a_name_that_is_not_utf8_leaves_nothing_behind(hub: Path, tmp_path: Path) -> None:
    bad = os.fsencode(hub / "noise") + b"/caf\xe9.wav"
    Path(os.fsdecode(bad)).write_bytes(tone(300.0))
    target = tmp_path / "own" / "manifest.csv"
    with pytest.raises(ManifestError, match=r"noise/caf.*xe9.wav' is not UTF-8.*rename"):
        draft(target, hub)
    assert not target.parent.exists()
    Path(os.fsdecode(bad)).unlink()
    draft(target, hub)
    assert [path.name for path in target.parent.iterdir()] == ["manifest.csv"]


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
