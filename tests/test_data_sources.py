"""Where rows come from, and the commands on a copy of the data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import huggingface_hub
import pytest
from published_layout import QUESTIONS, STORIES, cache, publish, tone  # noqa: F401

from s2s_tasks.cli import main
from s2s_tasks.data import sources
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.sources import load_rows, mini_rows


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2SBENCH_DATA", str(publish(tmp_path / "a")))
    assert len(load_rows("scmmlu")) == 4
    assert len(load_rows("scmmlu", publish(tmp_path / "b", questions=2))) == 2
    monkeypatch.setenv("S2SBENCH_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"gone: no such folder\. What to do: set S2SBENCH_DATA"):
        load_rows("scmmlu")


def test_without_a_folder_the_hub_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot(name: str, repo_type: str) -> str:
        asked.append((name, repo_type))
        return str(publish(tmp_path))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert len(load_rows("scmmlu")) == 4
    assert asked == [("undobug/S2SBench", "dataset")]


def test_offline_the_error_says_what_to_do() -> None:
    with pytest.raises(DataError) as caught:
        load_rows("scmmlu")
    for part in (
        "undobug/S2SBench",
        "S2SBENCH_DATA",
        '--metadata \'{"data_dir": ',
        "s2sbench_mini",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("load", [load_rows, mini_rows])
def test_an_unknown_set_is_refused(load: object) -> None:
    with pytest.raises(DataError, match=r"'storycloze' is not a set .* sstorycloze, zh_ssto"):
        load("storycloze")  # type: ignore[operator]


def test_a_missing_mini_set_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "files", lambda _: tmp_path)
    with pytest.raises(DataError, match=r"mini/scmmlu.parquet: the mini set is missing"):
        mini_rows("scmmlu")


def test_an_empty_set_is_refused(tmp_path: Path) -> None:
    root = publish(tmp_path)
    (root / QUESTIONS / "cmmlu_rewrite_4.jsonl").write_text("\n")
    with pytest.raises(DataError, match="holds no questions"):
        load_rows("scmmlu", root)


def test_check_reports_every_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(publish(tmp_path))]) == 0
    printed = capsys.readouterr().out
    for line in (
        "sstorycloze: 3 rows, 3 pairs of endings",
        "scmmlu: 4 rows, 12 pairs of endings",
        "languages       zh: 3",
        "subjects        not named: 4",
        "recordings      6 distinct; 0.10 to 0.10, median 0.10 s; 0.00 h in all",
        "sampling rates  16000 Hz: 6",
        "channels        1: 6",
        "formats         WAV/PCM_16: 6",
        "one recording   0.0% of the rows",
        "one recording   100.0% of the rows",
        "context text    20 to 20, median 20 characters",
        "problems        none",
    ):
        assert line in printed


def test_check_fails_on_problems_and_missing_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = publish(tmp_path, mapped=False)
    shutil.rmtree(root / STORIES)
    (root / QUESTIONS / "cmmlu_rewrite" / "1.wav").write_bytes(b"")
    assert main(["data", "check", str(root)]) == 1
    printed = capsys.readouterr().out
    assert "scmmlu: 3 rows" in printed and "empty recordings: 1" in printed
    assert "sstorycloze: no table" in printed
    assert "To check only what is there: --sets scmmlu" in printed


def test_check_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = publish(tmp_path)
    (root / QUESTIONS / "cmmlu_rewrite" / "1.wav").write_bytes(b"")
    assert main(["data", "check", str(root), "--json", "--sets", "scmmlu", "sstorycloze"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["errors"] == {}
    assert printed["sets"]["sstorycloze"]["seconds"]["total"] == pytest.approx(0.3)
    (problem,) = printed["sets"]["scmmlu"]["problems"]
    assert (problem["kind"], problem["item"]) == ("empty recordings", "1")


def test_prepare_writes_keeps_and_renews(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, target = publish(tmp_path / "data"), tmp_path / "canonical"
    command = ["data", "prepare", str(root), str(target), "--licence", "CC0"]
    assert main([*command, "--sets", "scmmlu"]) == 0
    printed = capsys.readouterr().out
    assert f"export S2SBENCH_DATA={target}" in printed and "scmmlu.parquet: 4 rows" in printed
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "scmmlu.parquet: already there, kept" in printed
    assert "| scmmlu | cmmlu_rewrite_4.jsonl (sha256 " in (target / "README.md").read_text()
    (root / QUESTIONS / "cmmlu_rewrite" / "1.wav").write_bytes(tone(999, seconds=0.2))
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "scmmlu.parquet: 4 rows" in printed and "zh_sstorycloze.parquet: already" in printed
    assert main(["data", "check", str(target)]) == 0


def test_prepare_refuses_what_check_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = publish(tmp_path / "data")
    (root / QUESTIONS / "cmmlu_rewrite" / "1.wav").write_bytes(b"")
    assert main(["data", "prepare", str(root), str(tmp_path / "out"), "--sets", "scmmlu"]) == 2
    assert "scmmlu: 1 problems; it was not written." in capsys.readouterr().err
    assert main(["data", "prepare", str(root), str(root)]) == 2
    assert "name another one" in capsys.readouterr().err


def test_check_hears_what_changed_inside_a_canonical_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, target = publish(tmp_path / "data"), tmp_path / "canonical"
    main(["data", "prepare", str(root), str(target), "--sets", "scmmlu"])
    path = target / "scmmlu.parquet"
    data = path.read_bytes()
    assert data.count(tone(601)) == 1
    path.write_bytes(data.replace(tone(601), tone(333)))
    capsys.readouterr()
    assert main(["data", "check", str(target), "--sets", "scmmlu"]) == 1
    assert "scmmlu.parquet#context_audio/1/0: its content differs" in capsys.readouterr().out
