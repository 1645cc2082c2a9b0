"""How fast questions are scored: `make bench`.

Everything is timed in one process, in turns, so that what else the machine does falls on all; a
figure is the median of its rounds. Only ratios mean anything elsewhere.
"""

from __future__ import annotations

import argparse
import gc
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from lm_eval.models.huggingface import HFLM
from tqdm import tqdm
from transformers import AutoProcessor

from benchmarks import memory
from benchmarks.model import write_hearing, write_reading
from benchmarks.protocols import LowerLimit, published
from benchmarks.questions import Question, scmmlu_shaped, spoken, story_shaped, written
from benchmarks.report import write_report
from s2s_tasks.models import SpeechHF

SHAPES = {"sCMMLU": scmmlu_shaped, "story": story_shaped}
SPOKEN, WRITTEN = 4, 16
"""Questions a round, all in one batch. A spoken one takes some ten times as long."""
TOLERANCE = 1e-4


@dataclass
class Contest:
    """Ways to score the same requests, each timed in turn."""

    name: str
    ways: dict[str, Callable[[], Any]]
    tokens: tuple[int, int]
    """Positions that a forward for each ending reads, and positions that are unique."""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    difference: float = 0.0
    """Largest difference between our scores and the reference's, in nats a token."""

    def __post_init__(self) -> None:
        self._order = list(self.ways)

    def run(self) -> None:
        """Time each way once, in turning order, so that what comes and goes falls on all."""
        for name in self._order:
            gc.collect()
            start = time.perf_counter()
            self.ways[name]()
            self.rounds.setdefault(name, []).append(time.perf_counter() - start)
        self._order.reverse()

    def ratio(self, slow: str, fast: str) -> float:
        """Return the median, over rounds, of how many times as long one way takes as another."""
        return statistics.median(
            a / b for a, b in zip(self.rounds[slow], self.rounds[fast], strict=True)
        )

    def seconds(self, way: str) -> float:
        """Return the median of a way's rounds."""
        return statistics.median(self.rounds[way])


@dataclass
class Target:
    """What a ratio should be."""

    what: str
    found: float
    wanted: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


def ours(lm: SpeechHF, instances: Sequence[Any], *, exact: bool) -> Callable[[], Any]:
    """Return a call that scores requests with our model, by full forwards if `exact`."""

    def score() -> Any:
        lm.exact = exact
        return lm.loglikelihood(list(instances), disable_tqdm=True)

    return score


def spoken_contest(name: str, questions: list[Question], lm: SpeechHF) -> Contest:
    """Set ours against the published protocol, on spoken contexts."""
    model, processor = (
        lm.adapter.model,
        AutoProcessor.from_pretrained(lm.adapter.tokenizer.name_or_path),
    )
    limit = LowerLimit(model, processor.tokenizer, processor, questions)
    instances = spoken(questions)
    contest = Contest(
        f"S→T, {name}-shaped",
        {
            "published": lambda: published(model, processor, questions),
            "ours, exact": ours(lm, instances, exact=True),
            "ours": ours(lm, instances, exact=False),
            "lower limit": lambda: limit(lm.batch_size),
        },
        (limit.repeated_tokens, limit.unique_tokens),
    )
    reference = published(model, processor, questions)
    for way in ("ours, exact", "ours"):
        for expected, score in zip(reference, contest.ways[way](), strict=True):
            found = score.token_logprobs
            apart = max(abs(a - b) for a, b in zip(expected, found, strict=True))
            contest.difference = max(contest.difference, apart)
    return contest


def written_contest(name: str, questions: list[Question], lm: SpeechHF, theirs: HFLM) -> Contest:
    """Set ours against lm-eval's own model, on written contexts."""
    limit = LowerLimit(lm.adapter.model, lm.tokenizer, None, questions)
    instances = written(questions)
    contest = Contest(
        f"T→T, {name}-shaped",
        {
            "lm-eval hf": lambda: theirs.loglikelihood(list(instances), disable_tqdm=True),
            "ours": ours(lm, instances, exact=False),
            "lower limit": lambda: limit(lm.batch_size),
        },
        (limit.repeated_tokens, limit.unique_tokens),
    )
    reference = contest.ways["lm-eval hf"]()
    for expected, score in zip(reference, contest.ways["ours"](), strict=True):
        apart = abs(expected[0] - score[0]) / len(score.token_logprobs)
        contest.difference = max(contest.difference, apart)
    return contest


def targets(contests: Sequence[Contest], runs: dict[int, dict[str, float]]) -> list[Target]:
    """Return what the engine is to reach."""
    wanted = {"S→T, sCMMLU-shaped": 3.6, "S→T, story-shaped": 1.85}
    found = []
    for contest in contests:
        if contest.name in wanted:
            times = contest.ratio("published", "ours")
            found.append(
                Target(f"{contest.name}: times as fast as published", times, wanted[contest.name])
            )
        else:
            repeated, unique = contest.tokens
            times = contest.ratio("lm-eval hf", "ours")
            found.append(
                Target(
                    f"{contest.name}: times as fast as lm-eval hf", times, 0.8 * repeated / unique
                )
            )
        near = contest.ratio("ours", "lower limit")
        found.append(Target(f"{contest.name}: times the lower limit", near, 1.15, at_most=True))
        found.append(
            Target(
                f"{contest.name}: nats a token from the reference",
                contest.difference,
                TOLERANCE,
                at_most=True,
            )
        )
    few, many = runs[memory.FEW], runs[memory.MANY]
    name = f"peak memory, {memory.MANY:,} questions over {memory.FEW}"
    found.append(Target(name, many["megabytes"] / few["megabytes"], 1.05, at_most=True))
    name = f"time a question, last {memory.FEW} of {memory.MANY:,} over first {memory.FEW}"
    found.append(Target(name, many["last"] / many["first"], 1.05, at_most=True))
    return found


def main() -> None:
    """Run, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hearing = SpeechHF(
            pretrained=str(write_hearing(folder / "hearing")), device="cpu", batch_size=SPOKEN
        )
        text = str(write_reading(folder / "reading"))
        reading = SpeechHF(pretrained=text, device="cpu", batch_size=WRITTEN)
        theirs = HFLM(pretrained=text, device="cpu", batch_size=WRITTEN)
        contests = [
            *(spoken_contest(n, make(SPOKEN, folder), hearing) for n, make in SHAPES.items()),
            *(
                written_contest(n, make(WRITTEN, folder), reading, theirs)
                for n, make in SHAPES.items()
            ),
        ]
        for _ in tqdm(range(options.rounds), desc="Rounds", unit="round"):
            for contest in contests:
                contest.run()
        runs = memory.measure(folder)
        parameters = sum(weight.numel() for weight in hearing.adapter.model.parameters())
    write_report(
        options.output,
        {
            "machine": {"threads": torch.get_num_threads(), "torch": torch.__version__},
            "parameters": parameters,
            "batch_size": {"S→T": SPOKEN, "T→T": WRITTEN},
            "contests": [
                {
                    "name": contest.name,
                    "tokens": contest.tokens,
                    "difference": contest.difference,
                    "rounds": contest.rounds,
                }
                for contest in contests
            ],
            "memory": runs,
            "targets": [asdict(target) | {"met": target.met} for target in targets(contests, runs)],
        },
    )


if __name__ == "__main__":
    main()
