"""The log of judgements: written by many at once, and by some that are killed."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from arena_judgements import judged

from s2s_tasks.arena.log import alone, append, read
from s2s_tasks.errors import S2STasksError

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from arena_judgements import judged
from s2s_tasks.arena.log import append
for number in range(100):
    append(Path(sys.argv[1]), judged("a", "b", instruction=f"{sys.argv[2]}-{number}" + "x" * 20000))
"""


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    written = [
        judged("a", "b"),
        judged("甲\n\u2028", "b", None, probe="noise"),
        judged("a", "b", level=None, winners={"quality": "both_bad", "overall": "tie"}),
    ]
    append(path, written[0])
    append(path, *written[1:])
    assert list(read(path)) == written


def test_threads_and_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    tests = str(Path(__file__).parent)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, tests]) for name in "xy"
    ]
    with ThreadPoolExecutor(4) as pool:
        for number in range(200):
            pool.submit(append, path, judged("a", "b", instruction=f"here-{number}"))
    assert [writer.wait() for writer in writers] == [0, 0]
    found = Counter(j.battle.instruction.partition("-")[0] for j in read(path))
    assert found == {"x": 100, "y": 100, "here": 200}


@pytest.mark.parametrize("kept", [1, 40, 0.5, -3, -2])
def test_an_unfinished_line_is_skipped_and_does_not_spoil_the_next(
    tmp_path: Path, kept: float, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    first, second = judged("小明", "b"), judged("a", "b")
    append(path, first)
    line = path.read_bytes()
    torn = line[: int(len(line) * kept) if isinstance(kept, float) else int(kept)]
    path.write_bytes(line + torn)
    with caplog.at_level(logging.WARNING):
        assert list(read(path)) == [first]
    assert f"{path}, line 2: unfinished" in caplog.text
    append(path, second)
    append(path, first)
    caplog.clear()
    assert list(read(path)) == [first, second, first]
    assert caplog.text.count("line 2: unfinished") == 1


def test_a_line_that_lacks_only_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append(path, judged("a", "b"), judged("c", "d" * 200_000))
    path.write_bytes(path.read_bytes()[:-1])
    assert len(list(read(path))) == 2
    append(path, judged("e", "f"))
    assert [judgement.battle.first for judgement in read(path)] == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("judge", None),
        ("judge", 5),
        ("judge", ""),
        ("domain", None),
        ("task", ["irony"]),
        ("language", 1),
        ("level", 5),
        ("level", 2.0),
        ("level", True),
        ("level", "L2"),
        ("winners", None),
        ("winners", []),
        ("winners", {"overall": None}),
        ("winners", {"overall": ["first"]}),
        ("winners", {"overall": "A"}),
        ("winners", {"beauty": "first"}),
        ("reply", None),
        ("answers", None),
        ("answers", {"first": 3}),
        ("features", None),
        ("features", []),
        ("features", {"first_seconds": "x"}),
        ("features", {"first_seconds": True}),
        ("features", {"first_seconds": float("nan")}),
        ("time", None),
        ("domain", "\ud83d"),
        ("battle.first", None),
        ("battle.first", 5),
        ("battle.second", ""),
        ("battle.instruction", ["q"]),
        ("battle.propensity", 0),
        ("battle.propensity", True),
        ("battle.seed", None),
        ("battle.probe", "foo"),
        ("battle.probe", ""),
        ("battle.colour", "blue"),
        ("battle", []),
        ("colour", "blue"),
    ],
)
def test_a_broken_field_is_named(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "log.jsonl"
    append(path, judged("a", "b"))
    line = json.loads(path.read_text())
    *inside, name = field.split(".")
    (line[inside[0]] if inside else line)[name] = value
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    lines = read(path)
    next(lines)
    with pytest.raises(S2STasksError, match=rf"log\.jsonl, line 2: not a judgement .*{name}"):
        next(lines)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"battle": {"instruction": "q"}}\n')
    with pytest.raises(S2STasksError, match=r"line 1: not a judgement .*'first'"):
        list(read(path))


def test_half_a_character_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written = [replace(judged("a", "b"), reply="cut off: \ud83d 甲"), judged("小明", "b")]
    append(path, *written)
    assert list(read(path)) == written


HOLDER = """
import sys, time
from pathlib import Path
from s2s_tasks.arena.log import alone
with alone(Path(sys.argv[1]), "ears"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_judge_is_asked_for_a_log_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    refused = pytest.raises(S2STasksError, match="another process is putting battles to ears")
    with refused, alone(path, "ears"):
        pass
    with alone(path, "other ears"), alone(tmp_path / "other.jsonl", "ears"):
        append(path, judged("a", "b"))
    holder.kill()
    holder.communicate()
    with alone(path, "ears"), refused, alone(path, "ears"):
        pass
    assert [file.name for file in path.parent.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize("line", ["{", "[]", "3", "", "null"])
def test_what_is_no_judgement_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(S2STasksError, match="line 1"):
        list(read(path))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(S2STasksError, match="cannot be read"):
        list(read(tmp_path / "missing.jsonl"))
    with pytest.raises(S2STasksError, match="cannot be written"):
        append(tmp_path, judged("a", "b"))
    path = tmp_path / "log.jsonl"
    with pytest.raises(ValueError, match="JSON compliant"):
        append(path, replace(judged("a", "b"), features={"first_seconds": float("inf")}))
    assert not path.exists()
