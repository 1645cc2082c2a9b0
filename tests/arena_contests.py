"""Small contests for tests: systems that answer in tones, and the command that lets them meet."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from s2s_tasks.arena import log
from s2s_tasks.arena.answers import write_answer
from s2s_tasks.arena.contest import battle
from s2s_tasks.arena.records import Judgement
from s2s_tasks.audio import Waveform

RATE = 16000
PITCHES = {"high": 900.0, "middle": 500.0, "low": 250.0}


def tone(pitch: float, seconds: float = 0.5) -> Waveform:
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.2 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def ask(folder: Path, count: int) -> Path:
    """Write a manifest of instructions `q/0` …"""
    folder.mkdir(exist_ok=True)
    rows = []
    for number in range(count):
        soundfile.write(folder / f"{number}.wav", tone(310 + number, 0.4), RATE)
        row = {"id": f"q/{number}", "audio": f"{number}.wav", "language": "en", "text": "Say it."}
        rows.append({**row, "domain": "Social", "task": "irony", "level": f"L{1 + number % 4}"})
    (folder / "manifest.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


def answer(folder: Path, system: str, instruction: str, **given: Any) -> None:
    if given.get("waveform") is not None:
        given["sampling_rate"] = RATE
    write_answer(folder / system, system=system, instruction=instruction, **given)


def meet(folder: Path, count: int = 6) -> Path:
    """Write instructions, and three systems' answers in tones of their own."""
    ask(folder / "questions", count)
    for system, pitch in PITCHES.items():
        for number in range(count):
            answer(folder, system, f"q/{number}", waveform=tone(pitch + number))
    return folder


def arguments(folder: Path, url: str, *more: str, systems: tuple[str, ...] = ()) -> list[str]:
    return [
        *("--answers", *(str(folder / system) for system in systems or PITCHES)),
        *("--instructions", str(folder / "questions"), "--log", str(folder / "log.jsonl")),
        *("--judge", "openai", "--model", "ears", "--base-url", url, *more),
    ]


def battles(given: list[str]) -> int:
    parser = argparse.ArgumentParser()
    battle.add_arguments(parser)
    return battle.run(parser.parse_args(given))


def logged(folder: Path) -> list[Judgement]:
    return list(log.read(folder / "log.jsonl"))


def contests(folder: Path) -> list[Judgement]:
    return [judgement for judgement in logged(folder) if judgement.battle.probe is None]
