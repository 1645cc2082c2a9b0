"""`s2s-tasks demo`: the main job on the embedded mini set, with real weights from packages."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from s2s_tasks.commands import lm_eval
from s2s_tasks.demo.weights import model_folder

TASKS = ("s2sbench_mini_s2t", "s2sbench_mini_t2t")
LIMIT = 40
"""Questions a set, of 80: about three minutes on two cores."""


def main(arguments: Sequence[str]) -> int:
    """Score the mini set as speech and as text with a cascade of Whisper and Gemma."""
    parser = argparse.ArgumentParser(
        prog="s2s-tasks demo",
        description="Score the embedded mini set as speech (s2t) and as text (t2t) with a cascade "
        "of Whisper base and Gemma 3 270M, both taken from the packages of the extra `demo`.",
        epilog="Further arguments go to lm-eval: --log_samples --output_path DIR ...",
    )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help=f"questions a set, up to 80; default {LIMIT}"
    )
    options, further = parser.parse_known_args(arguments)
    asr, lm = model_folder("whisper-base"), model_folder("gemma-3-270m")
    command = [
        "--model",
        "speech-cascade",
        "--model_args",
        f"asr={asr},lm={lm},dtype=bfloat16,asr_dtype=bfloat16",
        "--tasks",
        ",".join(TASKS),
        "--batch_size",
        "16",
        "--limit",
        str(options.limit),
        *further,
    ]
    print(f"lm_eval {shlex.join(command)}", flush=True)
    return lm_eval.main(command)
