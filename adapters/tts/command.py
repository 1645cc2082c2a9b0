"""Any program that writes what it says to a file: `espeak-ng -v en -w {output} {text}`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.tts.engine import Engine, Speech
from s2s_tasks.audio import probe
from s2s_tasks.errors import S2STasksError

PATIENCE = 300.0
"""Seconds after which a program is taken to hang."""
TRIAL = "One, two, three."
"""Said at load: a command that is wrong should not be found out after the last question."""
EXAMPLE = 'tts="espeak-ng -v en -w {output} {text}"'


class CommandError(S2STasksError):
    """A program that did not say what it was to say."""


class Command(Engine):
    """A command template. It is split into arguments as a shell does, and no shell runs it.

    In its arguments `{output}` is the wav file to write, and `{text}` what to say; without `{text}`
    that comes by standard input, as UTF-8. `{voice}` and `{speed}` are what the user gave.
    """

    def __init__(self, template: str, voice: str | None, speed: str | float | None) -> None:
        """Take a template.

        Raises:
            AdapterError: when the program is not there or fails, or a placeholder is missing or
                has no value.
        """
        given = {"voice": voice, "speed": None if speed is None else str(speed)}
        try:
            arguments = shlex.split(template)
        except ValueError as error:
            raise AdapterError(f"tts={template!r}: {error}; {EXAMPLE} is right") from error
        if "{output}" not in template:
            raise AdapterError(
                f"tts={template!r}: the command must name {{output}}, the file that it writes: "
                f"{EXAMPLE}"
            )
        for name, value in given.items():
            mark = f"{{{name}}}"
            if value is not None and mark not in template:
                raise AdapterError(f"{name}={value}: the command has no {mark}: tts={template!r}")
            if value is None and mark in template:
                raise AdapterError(f"tts={template!r} needs {name}=…")
            arguments = [argument.replace(mark, value or "") for argument in arguments]
        if shutil.which(arguments[0]) is None:
            raise AdapterError(f"tts={template!r}: there is no program {arguments[0]!r}")
        self._arguments = arguments
        self.name = self.fingerprint = shlex.join(arguments)
        tried = self.reply(TRIAL)
        if tried.waveform is None or not len(tried.waveform):
            raise AdapterError(f"tts={template!r} does not speak: {tried.error or 'no sound'}")

    def say(self, text: str) -> Speech:
        """Run the program, and return what it wrote.

        Raises:
            CommandError: when it fails, hangs or writes nothing.
            AudioError: when what it wrote is not a recording.
        """
        with tempfile.TemporaryDirectory(prefix="s2s-tts-") as folder:
            path = Path(folder) / "speech.wav"
            self._run(text, path)
            if not path.exists():
                raise CommandError(f"{self._arguments[0]} wrote no file")
            audio = probe(path)
            return Speech(audio.load(audio.sampling_rate), audio.sampling_rate)

    def _run(self, text: str, path: Path) -> None:
        # A text that reads as an option would become one; the space is not heard.
        spoken = f" {text}" if text.startswith("-") else text
        # The text comes last: it may itself hold a placeholder.
        arguments = [argument.replace("{output}", str(path)) for argument in self._arguments]
        by_argument = any("{text}" in argument for argument in arguments)
        try:
            done = subprocess.run(
                [argument.replace("{text}", spoken) for argument in arguments],
                input=b"" if by_argument else text.encode(),
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(
                f"{self._arguments[0]} did not end within {PATIENCE:.0f} s"
            ) from error
        if done.returncode:
            told = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise CommandError(
                f"{self._arguments[0]} failed ({done.returncode}): {told[-500:] or 'no message'}"
            )
