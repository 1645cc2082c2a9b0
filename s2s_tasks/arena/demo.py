"""`s2s-tasks arena demo`: the whole way from spoken instructions to a leaderboard, on a CPU."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from s2s_tasks.arena.options import whole
from s2s_tasks.commands import arena, lm_eval
from s2s_tasks.demo.weights import model_folder

LIMIT = 8
"""Instructions, of the mini set's 32 in English."""
TASK = "s2s_arena_mini_all"
SPEEDS: Mapping[str, float] = {"calm": 1.0, "hasty": 4.0}
"""System -> how fast it speaks, as a factor. The second says the same words, too fast to follow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.description = (
        "Let two systems answer spoken instructions of the embedded mini set, judge their answers, "
        "and rate them. Both are a cascade of Whisper base, SmolLM2 135M and a voice of Piper, and "
        "differ in how fast they speak. The weights come out of the packages that the README "
        "names. Started again, the command goes on where it stopped."
    )
    parser.add_argument(
        "--limit",
        type=whole(1),
        default=LIMIT,
        help=f"instructions, up to 32; default {LIMIT}: four to five minutes on two cores",
    )
    parser.add_argument(
        "--output_path",
        "-o",
        type=Path,
        default=Path("arena-demo"),
        metavar="DIR",
        help="where answers, battles and leaderboard go (default: arena-demo)",
    )


def run(options: argparse.Namespace) -> int:
    """Answer, judge, rate, and say how people judge the same battles.

    Raises:
        S2STasksError: when a package is missing, or a part of the way fails.
    """
    # `make arena` runs it where it is, and that is not on PATH; lm-eval changes what is here.
    program = "s2s-tasks" if shutil.which("s2s-tasks") else sys.argv[0]
    folder: Path = options.output_path
    for system in SPEEDS:
        command = _answering(folder, system, options.limit)
        print(f"lm_eval {shlex.join(command)}", flush=True)
        lm_eval.main(command)
    log, answers = folder / "battles.jsonl", _answers(folder)
    for command in (
        ["battle", "--answers", *answers, "--judge", "signal", "--mode", "ties", "--log", str(log)],
        ["rate", str(log)],
    ):
        print(f"s2s-tasks arena {shlex.join(command)}", flush=True)
        if status := arena.main(command):
            return status
    print("\nTo judge the same battles yourself, and hold the judge against you:")
    votes = folder / "votes.sqlite"
    serve = ["--battles", str(log), "--answers", *answers, "--votes", str(votes)]
    print(f"{program} arena serve {shlex.join([*serve, '--annotators', 'me'])}")
    print(f"{program} arena agreement {shlex.join([str(log), str(votes), '--people', 'me'])}")
    return 0


def _answering(folder: Path, system: str, limit: int) -> list[str]:
    asr, lm, voice = map(model_folder, ("whisper-base", "smollm2-135m-instruct", "piper-joe"))
    model = {
        "asr": str(asr),
        "lm": str(lm),
        "tts": "piper",
        "voice": str(voice / "voice.onnx"),
        "speed": SPEEDS[system],
        "speech": str(folder / "answers" / system),
    }
    return [
        *("--model", "speech-cascade", "--model_args", json.dumps(model)),
        *("--tasks", TASK, "--metadata", json.dumps({"language": "en", "answer_asr": str(asr)})),
        *("--limit", str(limit), "--batch_size", "8"),
        *("--apply_chat_template", "--gen_kwargs", "max_gen_toks=40"),
        *("--log_samples", "--output_path", str(folder / "results")),
    ]


def _answers(folder: Path) -> list[str]:
    return [str(folder / "answers" / system / TASK) for system in SPEEDS]
