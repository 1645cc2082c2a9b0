"""Where what can be made again is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from s2s_tasks.cache import cache_folder
from s2s_tasks.errors import S2STasksError


def test_the_cache_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("S2S_TASKS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("models") == tmp_path / ".cache" / "s2s_tasks" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("models") == tmp_path / "xdg" / "s2s_tasks" / "models"
    monkeypatch.setenv("S2S_TASKS_CACHE", str(tmp_path / "own"))
    assert cache_folder("models") == tmp_path / "own" / "models"
    assert (tmp_path / "own" / "models").is_dir()


def test_a_cache_that_cannot_be_written_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("S2S_TASKS_CACHE", str(tmp_path / "file"))
    with pytest.raises(S2STasksError, match="set S2S_TASKS_CACHE to a folder"):
        cache_folder("models")
