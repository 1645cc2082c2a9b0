from __future__ import annotations

import os
import subprocess
import sys

import pytest

import s2s_tasks
from s2s_tasks import cli
from s2s_tasks.errors import S2STasksError


def fail(arguments):
    raise S2STasksError("a.wav: not a recording. Convert it to WAV or FLAC.")


def echo(arguments):
    print(*arguments)
    return 7


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        cli.main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"s2s-tasks {s2s_tasks.__version__}\n"


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in cli.COMMANDS)


@pytest.mark.parametrize("argv", [[], ["no-such-command"]])
def test_wrong_command(argv, capsys):
    with pytest.raises(SystemExit) as done:
        cli.main(argv)
    assert done.value.code == 2
    assert "usage: s2s-tasks" in capsys.readouterr().err


def test_every_command_has_help(capsys):
    for name in cli.COMMANDS:
        with pytest.raises(SystemExit) as done:
            cli.main([name, "--help"])
        assert done.value.code == 0
        assert "usage: " in capsys.readouterr().out


def test_path(capsys):
    assert cli.main(["path"]) == 0
    assert capsys.readouterr().out == f"{s2s_tasks.TASK_CONFIGS}\n"


def test_arguments_reach_the_command_as_they_are(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "echo", (f"{__name__}:echo", ""))
    arguments = ["--model", "speech-hf", "run", "-h", "--version", "a,b"]
    assert cli.main(["echo", *arguments]) == 7
    assert capsys.readouterr().out.split() == arguments


def test_a_users_error_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "fail", (f"{__name__}:fail", ""))
    assert cli.main(["fail"]) == 2
    assert capsys.readouterr().err == (
        "s2s-tasks: a.wav: not a recording. Convert it to WAV or FLAC.\n"
    )


def test_lm_eval_does_without_the_start_up_hook(tmp_path):
    code = """if True:
        import sys
        import lm_eval.tasks.manager
        lm_eval.tasks.manager.__file__ = sys.argv.pop()  # no need to scan lm-eval's own tasks
        from s2s_tasks.cli import main
        sys.exit(main())
    """
    run = subprocess.run(
        [sys.executable, "-c", code, "lm-eval", "ls", "subtasks", str(tmp_path / "manager.py")],
        cwd=tmp_path,
        env=os.environ | {"S2S_TASKS_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "sstorycloze_s2t" in run.stdout
