"""`s2s-tasks arena battle`: systems meet, a judge decides, and the log keeps it."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any, get_args

from tqdm import tqdm

from s2s_tasks.arena.contest import FEWEST_PROBES, Outcome, Settings, hold
from s2s_tasks.arena.data.manifest import read as read_instructions
from s2s_tasks.arena.elsewhere import fingerprints, read_given
from s2s_tasks.arena.judges.contract import Judge, JudgeError
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Mode, Rubric
from s2s_tasks.arena.matching import Kind, Matching, refuse_own_contest
from s2s_tasks.arena.probes import Failures, failures
from s2s_tasks.arena.records import Answer

JUDGES = ("signal", "openai", "local")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.description = (
        "Let systems that answered the same instructions meet, two at a time, and a judge say "
        "which answer is better. Every verdict is a line that is added to the log. Started again, "
        "the command goes on where it stopped: what the log has is not asked again."
    )
    parser.add_argument(
        "--answers",
        nargs="+",
        required=True,
        metavar="DIR|NAME=PATH",
        help="a folder a system, as `arena answer` writes it; or the name of a system and its "
        "answers made elsewhere: a folder of recordings named by question id, or a CSV or JSONL "
        "file with the columns instruction, path",
    )
    parser.add_argument(
        "--instructions", type=Path, metavar="PATH", help="manifest; default: the mini set"
    )
    parser.add_argument(
        "--old-levels", action="store_true", help="the manifest has levels L0 to L3, not L1 to L4"
    )
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
    """Hold a contest, and say how the judge did.

    Raises:
        S2STasksError: when something is amiss, or the judge could not be asked.
    """
    instructions = read_instructions(options.instructions, old_levels=options.old_levels)
    ids = [instruction.id for instruction in instructions]
    answers: list[Answer] = []
    models: dict[str, set[str]] = defaultdict(set)
    for given in options.answers:
        found = read_given(given, ids)
        answers += found
        models[found[0].system] |= fingerprints(given)
    judge = build_judge(options)
    refuse_own_contest(judge.name, models)
    settings = Settings(
        matching=Matching(options.matching, options.gap, options.width, options.closest),
        seed=options.seed,
        draws=options.draws,
        both_orders=options.orders == "both",
        probes=options.probes,
        jobs=options.jobs,
    )
    may_tie = options.mode == "ties"
    with tqdm(desc="battles", unit="battle", dynamic_ncols=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        outcome = hold(
            instructions,
            answers,
            judge,
            options.log,
            settings,
            may_tie=may_tie,
            progress=progress,
        )
    for line in report(outcome, may_tie=may_tie):
        print(line)
    print(f"The log: {options.log}")
    return 0


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

    adapter = HFAdapter(options.model, **_pairs(options.model_args))
    rate = options.rate or adapter.sampling_rate or 16000
    return LocalJudge(adapter, Presentation(Rubric(mode), rate, together, options.cues))


def report(outcome: Outcome, *, may_tie: bool) -> list[str]:
    """Return what is to be said at the end, a line each."""
    battles = [j for j in outcome.judgements if j.battle.probe is None]
    unread = sum(not judgement.winners for judgement in battles)
    lines = [
        f"{outcome.judge}: {len(battles)} battles; {outcome.asked} new verdicts, probes too",
        f"Verdicts that cannot be read: {unread} of {len(battles)}; they are kept, and not rated",
    ]
    lines += [
        f"Left out: {count} answer(s) of {system} ({status})"
        for (system, status), count in sorted(outcome.left_out.items())
    ]
    if outcome.both_silent:
        lines.append(f"Left out: {outcome.both_silent} battle(s) of two silent answers")
    probed = failures(outcome.judgements, may_tie=may_tie)
    return lines + [_told(found) for found in probed]


def _told(found: Failures) -> str:
    unread = f"; {found.unreadable} cannot be read" if found.unreadable else ""
    head = f"Probe, an answer against {_AGAINST[found.kind]}: "
    if found.share is None:
        return f"{head}the first one won {found.first} of {found.asked}, half would be fair{unread}"
    share = found.share
    return (
        f"{head}failed {found.failed} of {found.asked} "
        f"({share.estimate:.0%}, 95% interval {share.low:.0%} to {share.high:.0%}){unread}"
    )


_AGAINST = {
    "itself": "itself",
    "silence": "silence",
    "noise": "noise",
    "other": "that to another question",
}


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
    group.add_argument("--jobs", type=_positive, default=8, help="requests at once (default: 8)")


def _add_contest(group: Any) -> None:
    group.add_argument(
        "--matching",
        choices=get_args(Kind),
        default="moderate",
        help="which pairs meet: those with a moderate gap of ratings that met rarely (default), "
        "any, all, or any of the closest",
    )
    group.add_argument(
        "--gap", type=float, default=150.0, help="Elo points that `moderate` prefers (default: 150)"
    )
    group.add_argument(
        "--width",
        type=_above_zero,
        default=100.0,
        help="standard deviation around it (default: 100)",
    )
    group.add_argument(
        "--closest",
        type=_positive,
        default=3,
        help="pairs that `closest_k` draws from (default: 3)",
    )
    group.add_argument(
        "--draws", type=_positive, default=1, help="pairs an instruction (default: 1)"
    )
    group.add_argument(
        "--orders",
        choices=("both", "one"),
        default="both",
        help="judge a pair in both orders (default), or in one, which alternates",
    )
    group.add_argument(
        "--probes",
        type=_share,
        default=0.1,
        metavar="SHARE",
        help="battles of known outcome for each draw, that show how far the judge can be trusted: "
        f"{FEWEST_PROBES} at least (default: 0.1; 0 for none)",
    )
    group.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return number


def _above_zero(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text}: above 0")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text}: a share lies between 0 and 1")
    return number


def _pairs(text: str) -> dict[str, Any]:
    from lm_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(text))
