"""`s2s-tasks demo`: what it asks lm-eval, and what it makes of the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from s2s_tasks.commands import demo


def results(folder: Path, name: str, **pair_acc: tuple[float, float | str]) -> Path:
    """Write what lm-eval leaves of a run."""
    path = folder / "model" / f"results_{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics = {
        f"s2sbench_mini_{task}": {"pair_acc,none": mean, "pair_acc_stderr,none": error}
        for task, (mean, error) in pair_acc.items()
    }
    path.write_text(json.dumps({"results": metrics}))
    return path


def test_the_gap_is_reading_less_hearing() -> None:
    values = {
        f"s2sbench_mini_{name}_{mode}": (mean, 0.05)
        for name in (*demo.ENGLISH, *demo.MANDARIN)
        for mode, mean in (("t2t", 0.9), ("s2t", 0.775))
    }
    values["s2sbench_mini_scmmlu_s2t"] = (0.95, "N/A")
    stories, _, scmmlu = demo.gaps(values).splitlines()[2:]
    assert " ".join(stories.split()) == "sstorycloze 90.0% ± 5.0% 77.5% ± 5.0% 12.5 points"
    assert " ".join(scmmlu.split()) == "scmmlu 90.0% ± 5.0% 95.0% -5.0 points"


def test_english_is_asked_of_the_speech_llm_and_mandarin_of_the_cascade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def lm_eval(arguments: list[str]) -> int:
        asked.append(arguments)
        tasks = arguments[arguments.index("--tasks") + 1].split(",")
        folder = Path(arguments[arguments.index("--output_path") + 1])
        named = {task.removeprefix("s2sbench_mini_"): (0.75, 0.1) for task in tasks}
        results(folder, str(len(asked)), **named)
        return 0

    monkeypatch.setattr(demo.lm_eval, "main", lm_eval)
    monkeypatch.setattr(demo, "model_folder", lambda name: tmp_path / name)
    assert demo.main(["--limit", "3", "--log_samples", "--output_path", str(tmp_path / "out")]) == 0
    english, mandarin = asked
    assert english[english.index("--model") + 1] == "speech-demo"
    assert "s2sbench_mini_sstorycloze_s2t,s2sbench_mini_sstorycloze_t2t" in english
    assert mandarin[mandarin.index("--model") + 1] == "speech-cascade"
    assert all("--log_samples" in command and "3" in command for command in asked)
    assert "scmmlu" in capsys.readouterr().out.splitlines()[-1]
    (kept,) = (tmp_path / "out").iterdir()
    assert len(list(kept.rglob("results_*.json"))) == 2


@pytest.mark.parametrize(
    "fixed", [["--tasks", "mmlu"], ["--model=hf"], ["--limit", "0"], ["--use_cache", "f"]]
)
def test_what_the_demo_decides_is_not_for_lm_eval(fixed: list[str]) -> None:
    with pytest.raises(SystemExit):
        demo.main(fixed)
