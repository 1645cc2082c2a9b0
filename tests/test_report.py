"""From real runs of lm-eval to what the report says of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex
from safetensors.torch import load_file, save_file
from scipy.stats import binomtest

from s2s_tasks.cli import main
from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.answers import Run
from s2s_tasks.report.build import build
from s2s_tasks.report.document import Document
from s2s_tasks.report.findings import loss, lost, margins, models, recognition, training, where
from s2s_tasks.report.pairing import Pair, pair_up
from s2s_tasks.report.reading import read_runs
from s2s_tasks.report.writing import write

LIMIT = 32
GAP = "s2sbench_mini_sstorycloze_gap"
FOUR = "s2sbench_mini_scmmlu_gap"


@pytest.fixture(scope="session")
def outputs(
    tmp_path_factory: pytest.TempPathFactory, qwen2_audio: Path, llama: Path, wav2vec2: Path
) -> Path:
    """Runs of two checkpoints that hear, a cascade, and a text model of lm-eval's own."""
    folder = tmp_path_factory.mktemp("outputs")
    checkpoints = tmp_path_factory.mktemp("training")
    hears_more(qwen2_audio, checkpoints / "checkpoint-100", 0.0)
    hears_more(qwen2_audio, checkpoints / "checkpoint-200", 0.3)
    index = TaskManager()._index
    hearing = "dtype=float32,long_audio=chunk"
    runs = {
        "one": ("speech-hf", f"pretrained={checkpoints}/checkpoint-100,{hearing}", [GAP, FOUR]),
        "two": ("speech-hf", f"pretrained={checkpoints}/checkpoint-200,{hearing}", [GAP]),
        "cascade": (
            "speech-cascade",
            f"asr={wav2vec2},lm={llama},dtype=float32",
            ["s2sbench_mini_sstorycloze_s2t", "s2sbench_mini_sstorycloze_t2t"],
        ),
        "text": ("hf", f"pretrained={llama},dtype=float32", ["s2sbench_mini_sstorycloze_t2t"]),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskIndex, "build", lambda *_, **__: index)
        for name, (model, arguments, tasks) in runs.items():
            patch.setattr("sys.argv", command(model, arguments, tasks, folder / name))
            cli_evaluate()
    return folder


def hears_more(source: Path, target: Path, noise: float) -> None:
    """Copy a checkpoint, with noise on its projector."""
    shutil.copytree(source, target)
    path = target / "model.safetensors"
    weights = load_file(path)
    for name, weight in weights.items():
        if "projector" in name and weight.dim() > 1:
            steps = np.random.default_rng(0).normal(size=weight.shape).astype("float32")
            weights[name] = weight + noise * weight.std() * weight.new_tensor(steps)
    save_file(weights, path, metadata={"format": "pt"})


def command(model: str, arguments: str, tasks: list[str], folder: Path) -> list[str]:
    return [
        *("lm_eval", "--model", model, "--model_args", arguments, "--tasks", ",".join(tasks)),
        *("--device", "cpu", "--batch_size", "8", "--limit", str(LIMIT)),
        *("--log_samples", "--output_path", str(folder)),
    ]


@pytest.fixture(scope="session")
def runs(outputs: Path) -> list[Run]:
    return read_runs([outputs])[0]


@pytest.fixture(scope="session")
def pairs(runs: list[Run]) -> list[Pair]:
    return pair_up(runs)[0]


def pair_of(pairs: list[Pair], model: str, question_set: str) -> Pair:
    (found,) = [p for p in pairs if p.model.startswith(model) and p.question_set == question_set]
    return found


def spoil_first(path: Path, **fields: object) -> None:
    """Change the first sample of a file."""
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps(json.loads(first) | fields) + "\n" + "".join(others))


def changed(outputs: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> list[Path]:
    """Copy the first two runs, with a change in the second one's file of results."""
    shutil.copytree(outputs / "one", folder / "one")
    shutil.copytree(outputs / "two", folder / "two")
    (path,) = (folder / "two").rglob("results_*.json")
    results = json.loads(path.read_text())
    change(results)
    path.write_text(json.dumps(results))
    return [folder]


def test_measures_are_those_of_lm_eval(outputs: Path, runs: list[Run]) -> None:
    (path,) = (outputs / "one").rglob("results_*.json")
    reported = json.loads(path.read_text())["results"]
    for task, name in ((GAP, "mini sstorycloze"), (FOUR, "mini scmmlu")):
        for mode in ("t2t", "s2t"):
            (run,) = [
                run
                for run in runs
                if (run.model, run.asked.question_set, run.asked.mode)
                == ("checkpoint-100", name, mode)
            ]
            assert len(run.table) == LIMIT
            means = run.table.drop(columns="transcript").mean()
            assert means["pair_acc"] == pytest.approx(reported[task][f"acc_{mode},none"])
            assert means["mc_acc"] == pytest.approx(reported[task][f"mc_acc_{mode},none"])
            assert means["margin"] == pytest.approx(reported[task][f"nll_margin_{mode},none"])


def test_models_are_named_and_steps_are_found(runs: list[Run]) -> None:
    named = {(run.model, run.step) for run in runs if run.training is not None}
    assert named == {("checkpoint-100", 100), ("checkpoint-200", 200)}
    others = {run.model for run in runs if run.training is None}
    assert len(others) == 2 and any(" + " in name for name in others)


def test_lm_evals_own_models_are_judged_by_sums(runs: list[Run], outputs: Path) -> None:
    (own,) = [run for run in runs if not run.per_token]
    assert own.asked.mode == "t2t" and own.table["pair_acc"].isna().all()
    (cascade,) = [
        run for run in runs if run.asked.mode == "t2t" and " + " in run.model and run.per_token
    ]
    # The same LM reads in both, so their sums agree, and so does lm-eval's `acc` of two endings.
    assert list(own.table["pair_acc_sum"]) == list(cascade.table["pair_acc_sum"])
    (path,) = (outputs / "text").rglob("results_*.json")
    reported = json.loads(path.read_text())["results"]["s2sbench_mini_sstorycloze_t2t"]
    assert own.table["mc_acc_sum"].mean() == pytest.approx(reported["acc,none"])


def test_a_gap_task_is_matched_and_two_tasks_are_as_published(pairs: list[Pair]) -> None:
    matched = {(pair.model.split(" ")[0], pair.matched) for pair in pairs}
    assert {("checkpoint-100", True), ("checkpoint-200", True)} <= matched
    assert len([pair for pair in pairs if not pair.matched]) == 1


def test_a_baseline_reads_for_a_model_that_only_heard(runs: list[Run]) -> None:
    kept = [run for run in runs if run.asked.mode == "s2t" or not run.per_token]
    pairs, notes = pair_up([run for run in kept if " + " in run.model or not run.per_token])
    assert not pairs and "--baseline" in notes[0]
    (text,) = [run.model for run in kept if not run.per_token]
    (pair,), _ = pair_up([run for run in kept if " + " in run.model or not run.per_token], text)
    reading, hearing = pair.measure("pair_acc")
    assert not pair.per_token and not np.isnan(np.concatenate([reading, hearing])).any()
    assert list(hearing) == list(pair.hearing.table["pair_acc_sum"])
    with pytest.raises(S2STasksError, match="no model is called 'nobody'"):
        pair_up(runs, "nobody")


def test_gaps_agree_with_lm_evals_paired_error(outputs: Path, pairs: list[Pair]) -> None:
    (path,) = (outputs / "one").rglob("results_*.json")
    reported = json.loads(path.read_text())["results"][GAP]
    pair = pair_of(pairs, "checkpoint-100", "mini sstorycloze")
    (found,) = [one for one in loss.losses([pair]) if one.measure is loss.PAIRS]
    assert found.gap.difference.estimate == pytest.approx(reported["gap,none"])
    assert found.gap.difference.low <= reported["gap,none"] <= found.gap.difference.high
    # The mini set's stories come in twos, which the report keeps together.
    assert len(set(pair.clusters)) == LIMIT / 2


def test_groups_hold_each_question_once(pairs: list[Pair]) -> None:
    pair = pair_of(pairs, "checkpoint-100", "mini scmmlu")
    tables = {block.key: block for block in where.section([pair]).blocks if block.key != "where-1"}
    assert tables["groups-1"].frame["independent"].sum() >= len(set(pair.clusters))
    for _, group in tables["groups-1"].frame.groupby("by"):
        assert group["questions"].sum() == LIMIT
        mean = np.average(group["gap"], weights=group["questions"])
        reading, hearing = pair.measure("pair_acc")
        assert mean == pytest.approx(100 * (reading - hearing).mean())
    subjects = tables["subjects-1"].frame
    assert subjects["from"].isna().all(), "a subject has too few questions here for an interval"
    assert set(subjects["subject"]) == {question.subject for question in pair.questions}


def test_lost_questions_were_right_and_became_wrong(pairs: list[Pair]) -> None:
    for pair in pairs:
        clips = lost.lost(pair)
        table = pair.table()
        expected = table[(table["mc_acc_t2t"] == 1) & (table["mc_acc_s2t"] < 1)]
        assert {clip.question for clip in clips} == set(expected.index)
        changes = [clip.margin_s2t - clip.margin_t2t for clip in clips]
        assert changes == sorted(changes)
        assert all(clip.margin_t2t > 0 >= clip.margin_s2t for clip in clips)


def test_probabilities_follow_the_sums(pairs: list[Pair]) -> None:
    pair = pair_of(pairs, "checkpoint-100", "mini scmmlu")
    for run, values in zip((pair.reading, pair.hearing), pair.measure("pair_acc_sum"), strict=True):
        probabilities = margins.pair_probabilities(pair, run)
        assert probabilities.shape == (LIMIT, 3)
        assert list((probabilities > 0.5).mean(axis=1)) == pytest.approx(list(values))


def test_a_cascades_loss_is_split_by_recognition_errors(pairs: list[Pair]) -> None:
    found = recognition.section(pairs)
    assert found is not None
    (table,) = found.blocks
    (row,) = table.frame.to_dict("records")
    assert row["set"] == "mini sstorycloze" and row["characters wrong, %"] > 0
    without = row["without error, %"] / 100
    parts = [(without, row["gap without error"]), (1 - without, row["gap with errors"])]
    (cascade,) = [pair for pair in pairs if not pair.matched]
    reading, hearing = cascade.measure("pair_acc")
    total = sum(share * gap for share, gap in parts if share)
    assert total == pytest.approx(100 * (reading - hearing).mean())
    assert recognition.section([p for p in pairs if p.matched]) is None


@pytest.mark.parametrize(
    ("reference", "transcript", "rate"),
    [
        ("It rained.", "it rained", 0.0),
        ("It rained.", "it trained", 1 / 8),
        ("地球自西向东。", "地球字西向东", 1 / 6),
        ("Ｃafé!", "CAFÉ", 0.0),
        ("...", "", 0.0),
        ("...", "oh", 1.0),
        ("爷爷从市场回来。", "爺爺從市場回來", 0.0),
    ],
)
def test_error_rates_count_letters(reference: str, transcript: str, rate: float) -> None:
    assert recognition.error_rates([reference], [transcript]) == pytest.approx([rate])


def test_the_best_step_is_named_and_its_equals(pairs: list[Pair]) -> None:
    found, notes = training.section(pairs, force=False)
    assert found is not None and not notes
    (sentence,) = found.text
    heard = {
        pair.hearing.step: pair.measure("pair_acc")[1].mean()
        for pair in pairs
        if pair.question_set == "mini sstorycloze" and pair.hearing.step
    }
    best = max(heard, key=heard.__getitem__)
    assert f"step {best} hears best" in sentence


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda r: r["configs"][GAP].update(doc_to_text="Go on: <|audio:0|>"), "prompt"),
        (lambda r: r["versions"].update({GAP: 9}), "task version"),
        (lambda r: r["configs"][GAP]["metadata"].update(data_sha256="f" * 64), "data"),
        (lambda r: r["configs"][GAP]["metadata"].update(s2s_tasks="0.0.0"), "plugin version"),
        (lambda r: r.update(chat_template="{{ messages }}"), "chat template"),
        (lambda r: r["n-shot"].update({GAP: 3}), "few-shot examples"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_asked_differently_is_not_compared(
    outputs: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], named: str
) -> None:
    pairs, _ = pair_up(read_runs(changed(outputs, tmp_path, change))[0])
    for section in (models.section, training.section):
        with pytest.raises(S2STasksError, match=f"cannot be compared: {named}.*--force"):
            section(pairs, force=False)
        _, notes = section(pairs, force=True)
        assert "are compared although they differ in" in notes[0]


def test_gaps_of_models_that_read_differently_are_not_compared(pairs: list[Pair]) -> None:
    both = [pair for pair in pairs if pair.question_set == "mini sstorycloze"]
    found, notes = models.section(both, force=False)
    assert found is not None
    (table,) = [block for block in found.blocks if block.key == "differences"]
    assert set(table.frame["of"]) == {"hearing"} and "--force" in notes[0]
    found, notes = models.section(both, force=True)
    (table,) = [block for block in found.blocks if block.key == "differences"]
    assert set(table.frame["of"]) == {"hearing", "gap"} and "all the same" in notes[0]


def test_different_questions_are_intersected_and_said(outputs: Path, tmp_path: Path) -> None:
    folder = changed(outputs, tmp_path, lambda _: None)
    (path,) = (tmp_path / "two").rglob("samples_*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:20]))
    document = build(*read_runs(folder))
    assert "compared on the 20 in common" in " ".join(document.warnings)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), "missing beside .*--log_samples"),
        (lambda path: path.write_text(path.read_text()[:5000]), r"line \d+ is not JSON"),
        (lambda path: path.write_text(""), "holds no questions"),
        (lambda path: spoil_first(path, filtered_resps=[["-1", "False"]] * 3), "cannot be read"),
        (lambda path: spoil_first(path, filtered_resps=[["nan", "False"]] * 4), "cannot be read"),
    ],
)
def test_broken_outputs_are_named(
    outputs: Path, tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    folder = changed(outputs, tmp_path, lambda _: None)
    (path,) = (tmp_path / "two").rglob("samples_*.jsonl")
    spoil(path)
    with pytest.raises(S2STasksError, match=message):
        read_runs(folder)


def test_folders_without_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(S2STasksError, match="no results of S2SBench tasks"):
        read_runs([tmp_path])
    with pytest.raises(S2STasksError, match="no such folder"):
        read_runs([tmp_path / "nowhere"])


@pytest.mark.parametrize("asked", [LIMIT, 6])
def test_the_fullest_and_then_the_newest_of_two_runs_counts(
    outputs: Path, tmp_path: Path, asked: int
) -> None:
    shutil.copytree(outputs / "one", tmp_path / "a")
    shutil.copytree(outputs / "one", tmp_path / "b")
    first, second = ((next((tmp_path / name).rglob("results_*.json"))) for name in "ab")
    results = json.loads(second.read_text())
    results["date"] += 60
    for counts in results["n-samples"].values():
        counts["effective"] = asked
    second.write_text(json.dumps(results))
    found, notes = read_runs([tmp_path])
    assert {run.source for run in found} == {second if asked == LIMIT else first}
    assert "Run several times" in notes[0] and f"{GAP} (" in notes[0]


def test_what_a_sweep_has_no_more_is_left_out(outputs: Path, tmp_path: Path) -> None:
    shutil.copytree(outputs / "one", tmp_path / "step-1")
    shutil.copytree(outputs / "two", tmp_path / "step-2")
    for name, step in (("one", 1), ("two", 2)):
        folder = tmp_path / f"step-{step}"
        (path,) = folder.rglob("results_*.json")
        done = str(path.relative_to(folder)) if name == "one" else None
        run = {"arguments": {}, "files": {}, "results": done, "error": None if done else "broken"}
        notes = {"checkpoint": "x", "step": step, "runs": [run]}
        (folder / "sweep.json").write_text(json.dumps(notes))
    found, notes_ = read_runs([tmp_path])
    assert {run.model for run in found} == {"checkpoint-100"}
    assert "the sweep has no such result any more" in notes_[0] and "step-2" in notes_[0]


def test_recordings_may_lie_elsewhere(outputs: Path, tmp_path: Path) -> None:
    folder = changed(outputs, tmp_path, lambda _: None)
    (path,) = (tmp_path / "two").rglob("samples_*.jsonl")
    path.write_text(path.read_text().replace(".parquet", "-moved.parquet"))
    assert len({run.model for run in read_runs(folder)[0]}) == 2


def test_a_model_that_lost_nothing_has_a_report(pairs: list[Pair], tmp_path: Path) -> None:
    pair = pair_of(pairs, "checkpoint-100", "mini sstorycloze")
    same = Pair(pair.reading, pair.reading, pair.ids)
    section = lost.section([same])
    files = write(Document("Nothing", [], [], [section]), tmp_path)
    assert {file.name for file in files} == {"report.html", "report.md", "lost-1.csv"}
    assert (tmp_path / "lost-1.csv").read_text().startswith("question,where,context")


def test_picking_the_best_of_many_is_paid_for() -> None:
    random = np.random.default_rng(0)
    alarms = 0
    for _ in range(24):
        heard = random.random((20, 400)) < 0.7
        best = heard[heard.mean(axis=1).argmax()]
        won, lost_ = (best & ~heard).sum(axis=1), (~best & heard).sum(axis=1)
        raw = [binomtest(int(w), int(w + o)).pvalue for w, o in zip(won, lost_, strict=True) if w]
        alarms += min(models.holm_among(raw, 20)) < 0.05
    assert alarms <= 4, "equal models are told apart more often than promised"


def test_the_command_writes_everything(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(outputs), "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "checkpoint-100 on mini sstorycloze: hearing instead of reading" in printed
    page, text = (tmp_path / f"report.{kind}" for kind in ("html", "md"))
    for told in ("How much was lost", "Over the training run", "Published numbers"):
        assert told in page.read_text() and told in text.read_text()
    gaps = pd.read_csv(tmp_path / "gap-pairs.csv")
    assert len(gaps) == 4 and (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        main(["report"])
    assert main(["report", str(tmp_path)]) == 2
    assert "no results of S2SBench tasks" in capsys.readouterr().err
