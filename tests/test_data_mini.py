"""How the embedded mini set is put together, tried with tones in place of speech."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from published_layout import tone

from s2s_tasks.data.parquet import read_metadata, read_rows

SCRIPT = Path(__file__).parents[1] / "mini_set" / "build.py"
SIZES = {"sstorycloze": 2, "zh_sstorycloze": 2, "scmmlu": 4}


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mini_set_build", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look annotations up
    spec.loader.exec_module(module)
    return module


def blocks(set_name: str, count: int = 3) -> list[dict[str, Any]]:
    def text(part: str, block: int, item: int) -> str:
        if set_name == "sstorycloze":
            return f"The {part} {block} {item}."
        return f"这是文本{part[0]}{block}的第{item}个。"

    return [
        {
            "block": f"{set_name}-{block}",
            **({"subject": "法学"} if set_name == "scmmlu" else {}),
            "items": [
                {part: text(part, block, item) for part in ("context", "ending")}
                for item in range(SIZES[set_name])
            ],
        }
        for block in range(count)
    ]


def write(folder: Path, sets: dict[str, Any]) -> tuple[Path, Path]:
    """Write texts, and tones with a manifest; the two folders."""
    texts, speech = folder / "texts", folder / "speech"
    texts.mkdir()
    speech.mkdir()
    lines = []
    for name, content in sets.items():
        (texts / f"{name}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True))
        for block in content:
            for item, parts in enumerate(block["items"]):
                for part, text in parts.items():
                    data = tone(200 + len(lines), format="OGG", subtype="VORBIS")
                    file = f"{block['block']}-{item}-{part}.ogg"
                    (speech / file).write_bytes(data)
                    digest = hashlib.sha256(data).hexdigest()
                    entry = {"block": block["block"], "part": part, "text": text}
                    lines.append(json.dumps({**entry, "file": file, "sha256": digest}))
    (speech / "manifest.jsonl").write_text("\n".join(lines))
    return texts, speech


def test_crossed_blocks_become_questions(
    tmp_path: Path, build: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, speech = write(tmp_path, {name: blocks(name) for name in SIZES})
    build.build(texts, speech, tmp_path / "mini", list(SIZES))
    printed = capsys.readouterr().out
    for name, size in SIZES.items():
        assert f"{name}.parquet: 3 blocks, {3 * size} rows, {6 * size} recordings" in printed
        path = tmp_path / "mini" / f"{name}.parquet"
        rows = read_rows(path)
        assert len(rows) == 3 * size
        for row in rows:
            block, item = row.id.removeprefix(f"mini-{name}-").split(".")
            (source,) = (b for b in blocks(name) if b["block"] == block)
            here = source["items"][int(item) - 1]
            assert (row.context, row.endings[row.gold]) == (here["context"], here["ending"])
            assert sorted(row.endings) == sorted(other["ending"] for other in source["items"])
            assert row.source_ids[row.gold] == f"{block}.{item}" and row.pair_id == block
            assert row.subject == source.get("subject")
            spoken = (speech / f"{block}-{int(item) - 1}-context.ogg").read_bytes()
            assert [audio.read() for audio in row.context_audio] == [spoken]
            for source_id, audio in zip(row.source_ids, row.ending_audio, strict=True):
                place = int(source_id.split(".")[1]) - 1
                assert audio.read() == (speech / f"{block}-{place}-ending.ogg").read_bytes()
        assert read_metadata(path)["licence"] == "Apache-2.0"


def broken_manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        manifest = folder / "speech" / "manifest.jsonl"
        lines = [json.loads(line) for line in manifest.read_text().splitlines()]
        change(lines[3])
        manifest.write_text("\n".join(map(json.dumps, lines)))

    return apply


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no manifest": (
        lambda folder: (folder / "speech/manifest.jsonl").unlink(),
        "manifest.jsonl: there is no such file",
    ),
    "another text": (
        broken_manifest(lambda line: line.update(text="The ending 9.")),
        "sstorycloze-0: no recording of the ending 'The ending 0 1.'",
    ),
    "another recording": (
        broken_manifest(lambda line: line.update(sha256="0")),
        "0-1-ending.ogg: not the recording that the manifest describes",
    ),
    "a second recording": (
        broken_manifest(lambda line: line.update(part="ending", text="The ending 0 0.")),
        "0-1-ending.ogg: a second recording",
    ),
    "a lost recording": (
        lambda folder: (folder / "speech/sstorycloze-0-1-ending.ogg").unlink(),
        "0-1-ending.ogg: 0 bytes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_speech_that_does_not_fit_is_refused(tmp_path: Path, build: ModuleType, case: str) -> None:
    texts, speech = write(tmp_path, {"sstorycloze": blocks("sstorycloze")})
    spoil, message = REFUSED[case]
    spoil(tmp_path)
    with pytest.raises(build.BuildError) as caught:
        build.build(texts, speech, tmp_path / "mini", ["sstorycloze"])
    assert message in str(caught.value)
    assert not (tmp_path / "mini").exists()


def test_texts_of_a_wrong_form_are_refused(tmp_path: Path, build: ModuleType) -> None:
    content = [*blocks("sstorycloze"), blocks("sstorycloze")[0]]
    content[1]["items"].append({"context": "Another.", "ending": ""})
    texts, speech = write(tmp_path, {"sstorycloze": content[:1]})
    (texts / "sstorycloze.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(build.BuildError) as caught:
        build.build(texts, speech, tmp_path / "mini", ["sstorycloze"])
    for message in ("-0: two blocks", "-1: 3 items and not 2", "-1: an empty or repeated text"):
        assert message in str(caught.value)


def test_a_text_of_the_other_language_is_refused(tmp_path: Path, build: ModuleType) -> None:
    content = blocks("zh_sstorycloze")
    content[0]["items"][0]["ending"] = "In English."
    texts, speech = write(tmp_path, {"zh_sstorycloze": content})
    with pytest.raises(build.BuildError, match="not in 'zh': 'In English"):
        build.build(texts, speech, tmp_path / "mini", ["zh_sstorycloze"])


def test_a_set_too_large_to_embed_is_refused(
    tmp_path: Path, build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, speech = write(tmp_path, {"sstorycloze": blocks("sstorycloze")})
    monkeypatch.setattr(build, "MOST_BYTES", 1000)
    with pytest.raises(build.BuildError, match="at most 1,000"):
        build.build(texts, speech, tmp_path / "mini", ["sstorycloze"])
