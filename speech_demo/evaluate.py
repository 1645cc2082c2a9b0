"""What the demo model's numbers are worth: docs/speech_demo.md and its plots.

    python speech_demo/evaluate.py WORK [--piper en_US-joe-medium.onnx]

WORK is train.py's. The benchmark's own tasks ask the English mini set, as it is and altered
(conditions.py). Every score is kept in WORK/results; run again, and only what is missing is asked.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import conditions
import lm_eval
import plots
import report
from lm_eval.tasks import TaskManager

import s2s_tasks
from s2s_tasks.adapters.ctc_speech_lm.modeling import WEIGHTS
from s2s_tasks.cache import file_key
from s2s_tasks.demo import SPEECH_DEMO, weights
from s2s_tasks.lm import SpeechLM
from s2s_tasks.models import SpeechCascade, SpeechDemo

HERE = Path(__file__).parent
SPOKEN = ("sstorycloze_s2t", "tstorycloze_s2t")
WRITTEN = ("sstorycloze_t2t", "tstorycloze_t2t")
SAME_PROMPT = ("sstorycloze_same_prompt", "tstorycloze_same_prompt")  # the spoken prompt, as text
SILENT = ("sstorycloze_no_context", "tstorycloze_no_context")  # the spoken prompt, no recording
CASCADE = ("clean", "babble 10 dB", "babble 0 dB")
"""Conditions that the cascade is asked too: it takes several times as long."""
Answers = Mapping[str, Mapping[str, tuple[str, float]]]
"""Task -> question -> its block and its pair_acc."""


@cache
def demo() -> SpeechLM:
    """The model of the package."""
    return SpeechDemo(device="cpu", batch_size=16)


@cache
def cascade() -> SpeechLM:
    """The same two frozen models with a transcript in between."""
    return SpeechCascade(
        asr=str(weights.model_folder("whisper-base")),
        lm=str(weights.model_folder("smollm2-135m-instruct")),
        asr_dtype="bfloat16",
        device="cpu",
        batch_size=16,
    )


def ask(model: Callable[[], SpeechLM], tasks: Sequence[str], data: Path, kept: Path) -> Answers:
    """Put the tasks to a model, unless its answers are kept already."""
    if not kept.is_file():
        manager = TaskManager(include_path=str(HERE / "controls"), metadata={"data_dir": str(data)})
        found = lm_eval.simple_evaluate(
            model=model(), tasks=list(tasks), task_manager=manager, bootstrap_iters=0
        )
        answers = {
            task: {
                sample["doc"]["id"]: (sample["doc"]["pair_id"], sample["pair_acc"])
                for sample in samples
            }
            for task, samples in found["samples"].items()
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(".new")
        new.write_text(json.dumps(answers, indent=0), encoding="utf-8")
        new.rename(kept)
    return json.loads(kept.read_text(encoding="utf-8"))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--piper", type=Path, help="en_US-joe-medium.onnx, its .json beside it")
    given = parser.parse_args()
    s2s_tasks.register()
    altered = given.work / "conditions"
    clean = conditions.make("clean", conditions.as_it_is, altered)
    # Another checkpoint or another mini set, another folder of results.
    results = given.work / "results" / f"{file_key(SPEECH_DEMO / WEIGHTS)}-{clean.parent.name}"
    answers: dict[str, Answers] = {
        "written": ask(demo, WRITTEN, clean, results / "written.json"),
        "same prompt": ask(demo, SAME_PROMPT, clean, results / "same_prompt.json"),
        "no context": ask(demo, SILENT, clean, results / "no_context.json"),
    }
    for name, change in conditions.conditions(given.piper).items():
        folder = conditions.make(name, change, altered)
        answers[name] = ask(demo, SPOKEN, folder, results / f"{folder.name}.json")
        if name in CASCADE:
            answers[f"cascade {name}"] = ask(
                cascade, SPOKEN, folder, results / f"cascade_{folder.name}.json"
            )
    report.write(answers)
    plots.draw(answers, given.work / "curves.csv")


if __name__ == "__main__":
    main()
