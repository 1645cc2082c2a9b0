"""Commands and packages that speak texts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import beeper
import numpy as np
import pytest
import torch

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.tts import packages
from s2s_tasks.adapters.tts.choosing import load_engine
from s2s_tasks.demo.weights import model_folder

CPU = torch.device("cpu")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return beeper.write(tmp_path)


@pytest.fixture
def command(program: Path) -> str:
    return beeper.command(program)


def test_a_text_reaches_a_command_as_it_is(program: Path, command: str, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    keeper = program.with_name("keeper.py")
    keeper.write_text(
        beeper.BEEPER
        + f"\nimport pathlib\npathlib.Path({str(printed)!r}).write_text(text, 'utf-8')"
    )
    texts = ["$(touch hacked); `id` \"a\" 'b' {output} {text} {voice}\n& 你好 \\", "--help"]
    for template in (command, command.removesuffix(" {text}")):
        by_argument = "{text}" in template
        engine = load_engine(template.replace("beeper", "keeper"), None, None, CPU)
        for text in texts:
            reply = engine.reply(text)
            expected = f" {text}" if by_argument and text.startswith("-") else text
            assert (str(reply), reply.error) == (text, "")
            assert printed.read_text("utf-8") == expected
            assert len(reply.waveform) == 100 * len(expected)
    assert "the reply is empty" in engine.reply(" \n").error


def test_a_command_takes_voice_and_speed(program: Path) -> None:
    template = f"{sys.executable} {program} {{output}} {{speed}} '{{voice}} {{text}}'"
    engine = load_engine(template, "en", 2, CPU)
    reply = engine.reply("hello")
    assert (len(reply.waveform), reply.sampling_rate) == (100 * len("en hello"), 16_000)
    assert engine.fingerprint != load_engine(template, "en", 1, CPU).fingerprint
    with pytest.raises(AdapterError, match=r"needs voice=…"):
        load_engine(template, None, 2, CPU)
    with pytest.raises(AdapterError, match=r"speed=2: the command has no \{speed\}"):
        load_engine(template.replace("{speed}", "1"), "en", 2, CPU)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("espeak-ng {text}", r"must name \{output\}"),
        ("no-such-program-at-all -w {output} {text}", "there is no program 'no-such-program"),
        ("'{output} {text}", "No closing quotation"),
        (f"{sys.executable} -c 'import sys; sys.exit(7)' {{output}}", r"failed \(7\): no message"),
        (f"{sys.executable} -c pass {{output}} {{text}}", "wrote no file"),
        (f"{shutil.which('cp')} {__file__} {{output}}", "not a recording"),
    ],
)
def test_commands_that_are_wrong(template: str, problem: str) -> None:
    with pytest.raises(AdapterError, match=problem):
        load_engine(template, None, None, CPU)


@pytest.mark.parametrize(("name", "package"), [("kokoro", "kokoro"), ("piper", "piper-tts")])
def test_packages_that_are_not_there(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda module: None)
    with pytest.raises(AdapterError, match=f"pip install {package}"):
        load_engine(name, None, None, CPU)


@pytest.mark.weights
def test_a_voice_of_piper() -> None:
    voice = str(model_folder("piper-joe") / "voice.onnx")
    text = "Good morning. The train to the coast leaves in ten minutes."
    torch.manual_seed(7)
    calm, hasty = (load_engine("piper", voice, speed, CPU) for speed in (None, 2))
    said = calm.reply(text)
    assert (said.sampling_rate, said.seed, said.error) == (22_050, 7, "")
    assert 2 * 22_050 < len(said.waveform) < 6 * 22_050
    assert 0.4 < len(hasty.reply(text).waveform) / len(said.waveform) < 0.7
    # The same seed says the same, whatever was said before; another one does not.
    np.testing.assert_array_equal(calm.reply(text).waveform, said.waveform)
    torch.manual_seed(8)
    assert not np.array_equal(calm.reply(text).waveform, said.waveform)
    with pytest.raises(AdapterError, match="cannot be loaded"):
        load_engine("piper", f"{voice}.json", None, CPU)
