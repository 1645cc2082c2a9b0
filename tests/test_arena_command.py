"""`s2s-tasks arena`: its sub-commands are there, and say what they lack."""

from __future__ import annotations

import sys

import pytest

from s2s_tasks.cli import main
from s2s_tasks.commands.arena import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["arena", command, "--help"])
    assert ended.value.code == 0
    assert f"s2s-tasks arena {command}" in capsys.readouterr().out


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("s2s_tasks.arena.ratings")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "evalica", None)
    assert main(["arena", "rate", "log.jsonl"]) == 2
    assert "evalica: pip install 's2s-tasks[arena]'" in capsys.readouterr().err
