"""`s2s-tasks arena battle`: systems meet, a judge decides, and the log keeps it."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from tqdm import tqdm

from s2s_tasks.arena.arguments import add_answers
from s2s_tasks.arena.contest.contest import FEWEST_PROBES, Settings, hold
from s2s_tasks.arena.contest.judging import Fault, Outcome, how_to_go_on
from s2s_tasks.arena.contest.matching import Kind, Matching, refuse_own_contest
from s2s_tasks.arena.contest.probes import failures
from s2s_tasks.arena.contest.probes_report import probe_line, probe_warnings
from s2s_tasks.arena.data.manifest import read as read_instructions
from s2s_tasks.arena.elsewhere import models_of, read_given
from s2s_tasks.arena.judges.contract import Judge, JudgeError
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Mode, Rubric
from s2s_tasks.arena.options import between, whole
from s2s_tasks.arena.records import Answer
from s2s_tasks.arena.verdicts import by_rule

JUDGES = ("signal", "openai", "local")
FARTHEST = 10_000.0
"""Elo points, more than ever lie between two systems."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
SHOWN_FAULTS = 3
"""Battles that failed and are told of one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.description = (
        "Let systems that answered the same instructions meet, two at a time, and a judge say "
        "which answer is better. Every verdict is a line that is added to the log. Started again, "
        "the command goes on where it stopped: what the log has is not asked again."
    )
    add_answers(parser)
    parser.add_argument(
        "--log",
        type=Path,
        default=Path("battles.jsonl"),
        metavar="FILE",
        help="JSON lines that verdicts are added to (default: battles.jsonl)",
    )
    _add_judge(parser.add_argument_group("judge"))
    _add_contest(parser.add_argument_group("contest"))


def run(options: argparse.Namespace) -> int:
    """Hold a contest, say how the judge did, and return 1 where battles could not be judged.

    Ctrl-C ends it when what is under way is judged.

    Raises:
        S2STasksError: when something is amiss, or the judge cannot be asked at all.
    """
    instructions = read_instructions(options.instructions, old_levels=options.old_levels)
    ids = [instruction.id for instruction in instructions]
    answers: list[Answer] = []
    models: dict[str, set[str]] = defaultdict(set)
    for given in options.answers:
        found = read_given(given, ids)
        answers += found
        models[found[0].system] |= models_of(given)
    judge = build_judge(options)
    if options.judge != "signal":  # which is no model
        refuse_own_contest(judge.name, models)
    settings = Settings(
        matching=Matching(options.matching, options.gap, options.width, options.closest),
        seed=options.seed,
        draws=options.draws,
        both_orders=options.orders == "both",
        probes=options.probes,
        jobs=options.jobs,
    )
    with tqdm(desc="battles", unit="battle", dynamic_ncols=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            outcome = hold(
                instructions,
                answers,
                judge,
                options.log,
                settings,
                may_tie=options.mode == "ties",
                progress=progress,
            )
        except KeyboardInterrupt:
            bar.close()
            print(f"Stopped. {how_to_go_on(options.log)}", file=sys.stderr)
            return INTERRUPTED
    for line in report(outcome):
        print(line)
    print(f"The log: {options.log}")
    return 1 if outcome.faults else 0


def build_judge(options: argparse.Namespace) -> Judge:
    """Return the judge that the arguments describe.

    Raises:
        JudgeError: when they leave something out.
        AdapterError: when a local model cannot be loaded.
    """
    mode: Mode = options.mode
    if options.judge == "signal":
        from s2s_tasks.arena.judges.offline import SignalJudge

        return SignalJudge(mode)
    if not options.model:
        raise JudgeError(f"--judge {options.judge} needs --model")
    together = options.layout == "together"
    if options.judge == "openai":
        from s2s_tasks.arena.judges.openai_chat import OpenAIChatJudge

        rate = options.rate or 16000
        return OpenAIChatJudge(
            options.model,
            Presentation(Rubric(mode), rate, together, options.cues),
            base_url=options.base_url,
            key_variable=options.key_variable,
        )
    from s2s_tasks.adapters.hf import HFAdapter
    from s2s_tasks.arena.judges.local import LocalJudge

    try:
        adapter = HFAdapter(options.model, **_pairs(options.model_args))
    except TypeError as error:  # an argument that there is not
        raise JudgeError(f"--model-args {options.model_args}: {error}") from error
    rate = options.rate or adapter.sampling_rate or 16000
    return LocalJudge(adapter, Presentation(Rubric(mode), rate, together, options.cues))


def report(outcome: Outcome) -> list[str]:
    """Return what is to be said at the end, a line each."""
    battles = [j for j in outcome.judgements if j.battle.probe is None]
    judged = [judgement for judgement in battles if not by_rule(judgement)]
    unread = sum(not judgement.winners for judgement in judged)
    lines = [
        f"{outcome.judge}: {len(battles)} battles; {outcome.asked} new verdicts, probes too",
        f"Verdicts that cannot be read: {unread} of {len(judged)}; they are kept, and not rated",
    ]
    if len(judged) < len(battles):
        lines.append(f"Not put to the judge: {len(battles) - len(judged)}; a silent answer loses")
    lines += [
        f"Left out: {count} answer(s) of {system} ({status})"
        for (system, status), count in sorted(outcome.left_out.items())
    ]
    if outcome.both_silent:
        lines.append(f"Left out: {outcome.both_silent} battle(s) of two silent answers")
    found = failures(outcome.judgements)
    return [*lines, *map(probe_line, found), *probe_warnings(found), *_faults(outcome.faults)]


def _faults(faults: Sequence[Fault]) -> list[str]:
    if not faults:
        return []
    lines = [
        f"{fault.battle.first} against {fault.battle.second} on {fault.battle.instruction}: "
        f"{fault.reason}"
        for fault in faults[:SHOWN_FAULTS]
    ]
    if len(faults) > SHOWN_FAULTS:
        lines.append(f"… and {len(faults) - SHOWN_FAULTS} more")
    head = f"Could not be judged: {len(faults)} battle(s); start the same command again to ask them"
    return [head, *(f"  {line}" for line in lines)]


def _add_judge(group: Any) -> None:
    group.add_argument(
        "--judge",
        choices=JUDGES,
        default="signal",
        help="`openai`: a chat model that hears, behind any endpoint that speaks OpenAI's "
        "protocol; `local`: a model of transformers; `signal`: measures and understands nothing "
        "(default)",
    )
    group.add_argument(
        "--model", help="of the judge; gemini-… is asked at Google's, with the key GEMINI_API_KEY"
    )
    group.add_argument(
        "--model-args", default="", metavar="A=B,…", help="what else `speech-hf` takes, for `local`"
    )
    group.add_argument("--base-url", metavar="URL", help="of another endpoint than OpenAI's")
    group.add_argument(
        "--key-variable",
        metavar="NAME",
        help="environment variable that holds the key (default: OPENAI_API_KEY)",
    )
    group.add_argument(
        "--mode",
        choices=get_args(Mode),
        default="strict",
        help="`strict`: one of the two wins, as in the paper (default); `ties`: neither may, both "
        "good or both bad",
    )
    group.add_argument(
        "--layout",
        choices=("parts", "together"),
        default="parts",
        help="three recordings with texts between (default), or all in one",
    )
    group.add_argument(
        "--cues",
        type=Path,
        metavar="DIR",
        help="instruction.wav, first.wav, second.wav: spoken cues, in one recording with the rest",
    )
    group.add_argument(
        "--rate", type=int, choices=(16000, 24000), help="Hz that the judge hears (default: 16000)"
    )
    group.add_argument("--jobs", type=whole(1), default=8, help="requests at once (default: 8)")


def _add_contest(group: Any) -> None:
    group.add_argument(
        "--matching",
        choices=get_args(Kind),
        default="moderate",
        help="which pairs meet: those with a moderate gap of ratings that met rarely (default), "
        "any, all, or any of the closest",
    )
    group.add_argument(
        "--gap",
        type=between(0, FARTHEST),
        default=150.0,
        help="Elo points that `moderate` prefers (default: 150)",
    )
    group.add_argument(
        "--width",
        type=between(1, FARTHEST),
        default=100.0,
        help="standard deviation around it (default: 100)",
    )
    group.add_argument(
        "--closest",
        type=whole(1),
        default=3,
        help="pairs that `closest_k` draws from (default: 3)",
    )
    group.add_argument(
        "--draws", type=whole(1), default=1, help="pairs an instruction (default: 1)"
    )
    group.add_argument(
        "--orders",
        choices=("both", "one"),
        default="both",
        help="judge a pair in both orders (default), or in one, which alternates",
    )
    group.add_argument(
        "--probes",
        type=between(0, 1),
        default=0.1,
        metavar="SHARE",
        help="battles of known outcome for each draw, that show how far the judge can be trusted: "
        f"{FEWEST_PROBES} at least (default: 0.1; 0 for none)",
    )
    group.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")


def _pairs(text: str) -> dict[str, Any]:
    from lm_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(text))
