"""The start-up hook and the plugin: what they cost, what they change, what they leave alone."""

from __future__ import annotations

import json
import logging
import os
import pkgutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent

import pytest

from s2s_tasks import TASK_CONFIGS, _autoload, plugin

ROOT = Path(__file__).parents[1]


def python(code: str, cwd: Path, *options: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


# The hook


def test_both_start_up_files_call_the_hook():
    (entry,) = (ROOT / "startup/s2s_tasks.start").read_text().splitlines()
    assert pkgutil.resolve_name(entry) is _autoload.install
    (line,) = (ROOT / "startup/s2s_tasks.pth").read_text().splitlines()
    assert line.startswith("import ")  # else Python takes it for a folder
    exec(line)
    assert _autoload._watcher in sys.meta_path


def test_start_up_is_cheap(tmp_path, capsys):
    """Nothing is imported but two small modules of our own; the time is the best of many."""
    code = """if True:
        import sys, time
        def start():
            for name in "s2s_tasks", "s2s_tasks._autoload":
                sys.modules.pop(name, None)
            began = time.perf_counter()
            from s2s_tasks._autoload import install
            install()
            return time.perf_counter() - began
        start()
        before = set(sys.modules)
        seconds = min(start() for _ in range(100))
        print(*set(sys.modules) - before, seconds)
    """
    *modules, seconds = python(code, tmp_path).stdout.split()
    with capsys.disabled():
        print(f" start-up hook: {float(seconds) * 1000:.2f} ms", end=" ")
    assert modules == []
    assert float(seconds) < 0.005

    code = "import sys; before = set(sys.modules); import s2s_tasks._autoload as hook; \
hook.install(); print(*sorted(set(sys.modules) - before))"
    loaded = python(code, tmp_path, S2S_TASKS_AUTOLOAD="0").stdout.split()
    assert set(loaded) <= {"s2s_tasks", "s2s_tasks._autoload"}


def test_hook_registers_once_lm_eval_is_imported(tmp_path):
    code = """if True:
        import sys
        from s2s_tasks import _autoload
        _autoload.install()
        _autoload.install()
        assert sys.meta_path.count(_autoload._watcher) == 1
        import lm_eval
        assert "s2s_tasks.plugin" not in sys.modules
        from importlib.util import find_spec
        find_spec("lm_eval.models")  # looks and does not import
        assert "s2s_tasks.plugin" not in sys.modules
        from lm_eval.api.registry import get_model, model_registry
        get_model("dummy")
        assert "speech-hf" in model_registry and "hf" in model_registry
        from lm_eval.tasks import TaskManager
        assert hasattr(TaskManager.__init__, "adds_s2s_tasks")
        assert not any("torch" == name for name in sys.modules)
    """
    assert python(code, tmp_path).stderr == ""


def test_hook_that_comes_late(tmp_path):
    code = """if True:
        import sys
        import lm_eval.models, lm_eval.tasks
        assert "s2s_tasks.plugin" not in sys.modules
        import os; del os.environ["S2S_TASKS_AUTOLOAD"]
        from s2s_tasks._autoload import install
        install()
        assert "speech-hf" in lm_eval.api.registry.model_registry
        assert hasattr(lm_eval.tasks.TaskManager.__init__, "adds_s2s_tasks")
    """
    python(code, tmp_path, S2S_TASKS_AUTOLOAD="0")


def test_broken_plugin_is_one_warning(tmp_path):
    code = """if True:
        import sys
        sys.modules["s2s_tasks.plugin"] = None  # importing it fails
        from s2s_tasks._autoload import install
        install()
        import lm_eval.models, lm_eval.tasks
        assert "hf" in lm_eval.models.MODEL_MAPPING and lm_eval.tasks.TaskManager
    """
    (warning,) = python(code, tmp_path).stderr.splitlines()
    assert "s2s_tasks.plugin" in warning
    assert "S2S_TASKS_AUTOLOAD=0" in warning


def test_unknown_task_manager_is_refused(monkeypatch):
    class TaskManager:
        def __init__(self, folders: list[str]) -> None: ...

    monkeypatch.setattr("lm_eval.tasks.TaskManager", TaskManager)
    with pytest.raises(RuntimeError, match="include_path"):
        plugin.register_tasks()


# What lm-eval has of its own


def test_lm_evals_own_is_untouched(tmp_path):
    """One scan of all of lm-eval's task files: no name of ours is taken there."""
    code = """if True:
        import json, logging
        logging.basicConfig(level="WARNING")
        import s2s_tasks
        s2s_tasks.register()
        s2s_tasks.register()
        import lm_eval.models
        from lm_eval.api.registry import model_registry
        from lm_eval.tasks import TaskManager
        print(json.dumps({
            "models": {name: str(target) for name, target in model_registry.items()},
            "own": lm_eval.models.MODEL_MAPPING,
            "tasks": TaskManager().all_tasks,
        }))
    """
    run = python(code, tmp_path)
    found = json.loads(run.stdout)
    assert found["models"] == found["own"] | plugin.MODELS
    assert "hellaswag" in found["tasks"]
    assert "overrides existing" not in run.stderr


@pytest.mark.parametrize(("error", "traceback"), [("S2STasksError", False), ("ValueError", True)])
def test_our_errors_are_their_message_alone(tmp_path, error, traceback):
    code = f"""
        import lm_eval.models
        from s2s_tasks.errors import S2STasksError
        raise {error}("mend it so")
    """
    with pytest.raises(subprocess.CalledProcessError) as failed:
        python(dedent(code), tmp_path)
    assert ("Traceback" in failed.value.stderr) == traceback
    assert "mend it so" in failed.value.stderr


def test_models_are_those_of_the_entry_points():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["lm_eval.models"] == plugin.MODELS
    installed = entry_points(group="lm_eval.models")
    assert {e.name: e.value for e in installed if e.dist.name == "s2s-tasks"} == plugin.MODELS


def test_models_that_lm_eval_found_stay(monkeypatch):
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry

    theirs = registry.Registry("model")
    theirs.register("speech-hf", target="found.by:EntryPoint")
    monkeypatch.setattr(registry, "model_registry", theirs)
    plugin.register_models()
    assert dict(theirs.items()) == plugin.MODELS | {"speech-hf": "found.by:EntryPoint"}


# The order of the task folders


def task(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"task: {name}\ndataset_path: {folder.name}\n")
    return folder


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """lm-eval's TaskManager, with two tasks in place of lm-eval's own thousands."""
    plugin.register()
    builtin = task(task(tmp_path / "builtin", "plain"), "shared")
    monkeypatch.setattr("lm_eval.tasks.manager.__file__", str(builtin / "manager.py"))
    ours = task(task(tmp_path / "ours", "speech"), "shared")
    monkeypatch.setattr(plugin, "TASK_CONFIGS", ours)
    from lm_eval.tasks import TaskManager

    return TaskManager


def folders(manager) -> dict[str, str]:
    return {name: entry.yaml_path.parent.name for name, entry in manager.task_index.items()}


def test_ours_come_after_lm_evals(manager):
    assert folders(manager()) == {"plain": "builtin", "shared": "ours", "speech": "ours"}
    assert manager().include_path is None


@pytest.mark.parametrize("wrap", [str, Path, lambda path: [path], lambda path: (path,)])
def test_the_users_come_last(manager, tmp_path, wrap):
    user = wrap(task(tmp_path / "user", "speech"))
    assert folders(manager(None, user)) == {
        "plain": "builtin",
        "shared": "ours",
        "speech": "user",
    }
    assert manager(include_path=user).include_path == user


def test_only_the_users(manager, tmp_path):
    user = task(tmp_path / "user", "mine")
    assert folders(manager(include_path=user, include_defaults=False)) == {"mine": "user"}
    assert folders(manager(include_defaults=False)) == {}


def test_our_folder_named_by_the_user_is_scanned_once(manager, caplog):
    with caplog.at_level(logging.WARNING):
        manager(include_path=str(plugin.TASK_CONFIGS))
    assert [record.args[0] for record in caplog.records] == ["shared"]


def test_task_folder_is_there():
    assert TASK_CONFIGS.is_absolute()
    assert list(TASK_CONFIGS.glob("**/*.yaml"))
