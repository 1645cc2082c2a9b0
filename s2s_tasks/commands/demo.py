"""`s2s-tasks demo`: the main job on the embedded mini set, with real weights from packages."""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from s2s_tasks.commands import lm_eval
from s2s_tasks.demo.weights import model_folder

LIMIT = 40
"""Questions a set, of 80: about three minutes on two cores."""
ENGLISH, MANDARIN = ("sstorycloze",), ("zh_sstorycloze", "scmmlu")


def main(arguments: Sequence[str]) -> int:
    """Score the mini set as speech and as text, and show what hearing costs."""
    parser = argparse.ArgumentParser(
        prog="s2s-tasks demo",
        description="Score the embedded mini set as speech (s2t) and as text (t2t): the English "
        "stories with speech-demo, a small speech LLM that comes with this package, the Mandarin "
        "sets with a cascade of Whisper base and Gemma 3 270M. The weights of others come out of "
        "the packages that the README names.",
        epilog="Further arguments go to lm-eval: --log_samples ...",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help=f"questions a set, up to 80; default {LIMIT}"
    )
    parser.add_argument(
        "--output_path", "-o", type=Path, metavar="DIR", help="keep lm-eval's results in a folder"
    )
    options, further = parser.parse_known_args(arguments)
    if options.limit < 1:
        parser.error(f"--limit {options.limit}: at least one question a set")
    given = {word.split("=")[0] for word in further}
    for fixed in {"--model", "--model_args", "--tasks"} & given:
        parser.error(f"{fixed} is the demo's own; lm_eval takes every other model and task")
    if given & {"--use_cache", "-c"}:
        parser.error("--use_cache: the demo asks two models, and a file holds answers of one")
    asr, lm, _ = map(model_folder, ("whisper-base", "gemma-3-270m", "smollm2-135m-instruct"))
    cascade = f"asr={asr},lm={lm},dtype=bfloat16,asr_dtype=bfloat16"
    runs = (
        (ENGLISH, ["--model", "speech-demo", "--model_args", "dtype=bfloat16"]),
        (MANDARIN, ["--model", "speech-cascade", "--model_args", cascade]),
    )
    with tempfile.TemporaryDirectory(prefix="s2s-tasks-demo-") as scratch:
        folder = scratch
        if options.output_path:  # a folder of its own, beside what else is there
            options.output_path.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(prefix="demo-", dir=options.output_path)
        for sets, model in runs:
            tasks = [f"s2sbench_mini_{name}_{mode}" for mode in ("s2t", "t2t") for name in sets]
            amount = ["--batch_size", "16", "--limit", str(options.limit)]
            command = [*model, "--tasks", ",".join(tasks), *amount, *further]
            print(f"lm_eval {shlex.join(command)}", flush=True)
            lm_eval.main([*command, "--output_path", folder])
        print(gaps(pair_accuracies(Path(folder))))
    return 0


def pair_accuracies(folder: Path) -> dict[str, tuple[float, float | str]]:
    """Return `pair_acc` of each task in lm-eval's results below a folder, and its error."""
    return {
        task: (values["pair_acc,none"], values["pair_acc_stderr,none"])
        for path in folder.rglob("results_*.json")
        for task, values in json.loads(path.read_text(encoding="utf-8"))["results"].items()
    }


def gaps(metrics: Mapping[str, tuple[float, float | str]]) -> str:
    """Write reading, hearing and their difference, a line a set."""
    lines = ["", f"{'pair_acc, chance 50 %':24}{'reading':>16}{'hearing':>16}{'lost':>14}"]
    for name in (*ENGLISH, *MANDARIN):
        (read, read_error), (heard, heard_error) = (
            metrics[f"s2sbench_mini_{name}_{mode}"] for mode in ("t2t", "s2t")
        )
        lines.append(
            f"{name:24}{_percent(read, read_error):>16}{_percent(heard, heard_error):>16}"
            f"{100 * (read - heard):>7.1f} points"
        )
    return "\n".join(lines)


def _percent(share: float, error: float | str) -> str:
    # lm-eval writes "N/A" where a single question leaves no spread.
    return f"{share:.1%}" + (f" ± {error:.1%}" if isinstance(error, float) else "")
