"""`s2s-tasks sweep`: lm-eval on every checkpoint of a training run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import s2s_tasks
from s2s_tasks.errors import S2STasksError

if TYPE_CHECKING:
    from s2s_tasks.sweep.run import Outcome

AUDIO_CACHE = "audio_cache"
PUBLISHED = "published_summary"
"""Folders below the output path, beside those of the checkpoints."""


def main(arguments: Sequence[str]) -> int:
    """Run the chosen tasks on every checkpoint; 1 when some of them failed."""
    options, further = _parser().parse_known_args(arguments)
    s2s_tasks.register()
    from lm_eval.utils import setup_logging

    from s2s_tasks.sweep import harness
    from s2s_tasks.sweep.agreement import Agreement
    from s2s_tasks.sweep.checkpoints import find_checkpoints
    from s2s_tasks.sweep.run import Sweep
    from s2s_tasks.sweep.summary import tables, write_published

    setup_logging()
    command = harness.command()
    command.prog, command.usage = "s2s-tasks sweep", "s2s-tasks sweep [options of lm-eval run]"
    call = harness.Call(
        harness.with_config(command.parse_args(further)),
        options.checkpoint_argument,
        options.output_path,
    )
    if options.checkpoint_argument in call.arguments.model_args:
        raise S2STasksError(
            f"--model_args {options.checkpoint_argument}=…: leave it out, each checkpoint is that "
            "in turn; --checkpoint_argument names another argument for them"
        )
    marker = "adapter_config.json" if options.checkpoint_argument == "peft" else "config.json"
    checkpoints, skipped = find_checkpoints(options.checkpoints, options.steps, marker)
    together = Agreement(getattr(call.arguments, "device", None))
    if together.main and skipped:
        print(f"Left out, for want of a {marker}: {', '.join(map(str, skipped))}")
    by_default = call.keeps_audio and not options.no_audio_cache
    cache = options.output_path / AUDIO_CACHE if by_default else None
    outcomes = Sweep(call, together, cache).run(checkpoints)
    if together.main:
        print(f"\n{tables(outcomes)}\n")
        if options.published_summary:
            for path in write_published(options.output_path / PUBLISHED, outcomes):
                print(f"Written: {path}")
        _report(options.output_path, outcomes)
        print("\n".join(_ending(outcomes)))
    return int(any(outcome.error for outcome in outcomes))


def _report(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the report where some checkpoint answered questions of ours."""
    from s2s_tasks.commands import report

    if all(outcome.error for outcome in outcomes):
        return
    try:
        report.main([str(folder)])
    except S2STasksError as error:
        print(f"No report: {error}")


def _ending(outcomes: Sequence[Outcome]) -> list[str]:
    from s2s_tasks.sweep.encodings import Encodings

    kept = [outcome.encodings for outcome in outcomes if outcome.encodings]
    failed = [f"  {o.checkpoint.name}: {o.error}" for o in outcomes if o.error]
    return [
        *([f"Audio cache: {sum(kept, Encodings())}"] if kept else []),
        *([f"Failed: {len(failed)} of {len(outcomes)} checkpoints", *failed] if failed else []),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2s-tasks sweep",
        description="Run lm-eval on every checkpoint of a training run, one after the other, and "
        "keep the results of each in a folder of its name. Started again, it goes on: checkpoints "
        "whose results are there are not run again, unless their files or the arguments changed. "
        "A checkpoint that fails is named at the end, and the exit status is then 1.",
        usage="s2s-tasks sweep --checkpoints PATTERN ... --output_path DIR --tasks TASK ... "
        "[options]",
        epilog="All other arguments are those of lm-eval, and mean what they mean there: --tasks, "
        "--model (default: speech-hf), --model_args dtype=bfloat16, --batch_size, --limit, "
        "--num_fewshot, --apply_chat_template, --device, --use_cache DIR (here a folder, with "
        "files for each checkpoint) ...: s2s-tasks lm-eval run --help lists them. Samples are "
        "always logged. On several GPUs: accelerate launch --num_processes 8 -m s2s_tasks.cli "
        "sweep ...",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--checkpoints",
        nargs="+",
        required=True,
        metavar="PATTERN",
        help="folders, or globs of folders in quotes: 'run/checkpoint-*'",
    )
    parser.add_argument(
        "--output_path",
        "-o",
        type=Path,
        required=True,
        metavar="DIR",
        help="where the results go: DIR/<checkpoint's folder>/...",
    )
    parser.add_argument(
        "--steps",
        metavar="STEPS",
        help="the training steps: a comma list in the order of the folders' names, or name=step "
        "pairs. Default: the number that varies between the names; where several do, the one after "
        "'step', else after 'iter', else after 'checkpoint'",
    )
    parser.add_argument(
        "--checkpoint_argument",
        default="pretrained",
        metavar="NAME",
        help="the model argument that takes the folder (default: pretrained); 'peft' for LoRA "
        "checkpoints, with --model_args pretrained=BASE",
    )
    parser.add_argument(
        "--no_audio_cache",
        action="store_true",
        help="encode all recordings anew for each checkpoint. By default --model speech-hf keeps "
        f"what an audio tower made of them in DIR/{AUDIO_CACHE}, by a checksum of its weights",
    )
    parser.add_argument(
        "--published_summary",
        action="store_true",
        help=f"write DIR/{PUBLISHED}/<set and mode>/results_summary.txt as the scripts of S2SBench "
        "do: a line a checkpoint, step,accuracy,loss of true endings,loss of false ones. Tasks "
        "named ..._upstream count as the scripts do; in others a tie counts one half",
    )
    return parser
