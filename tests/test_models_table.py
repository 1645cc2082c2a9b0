"""docs/models.md is what the registry says."""

from __future__ import annotations

from pathlib import Path

import pytest

from s2s_tasks.adapters.families.table import FAMILIES
from s2s_tasks.cli import main

DOCUMENT = Path(__file__).parent.parent / "docs" / "models.md"


def test_the_document_holds_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    assert DOCUMENT.read_text().endswith(printed)
    assert all(f"`{model_type}`" in printed for model_type in FAMILIES)
