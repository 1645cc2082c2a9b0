"""lm-eval's file of answers (`--use_cache`): whose they are, and that they are written in time."""

from __future__ import annotations

from typing import Any

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.score import SCORING_VERSION

OWNER = "s2s-tasks"
"""The key beside lm-eval's hashes that holds whose answers a file has."""


def claim(answers: Any, fingerprint: str, *, exact: bool) -> None:
    """Write into a file whose answers it holds, or see that they are this model's.

    lm-eval looks answers up by the question alone, and would return those of another model.

    Args:
        answers: an open `sqlitedict.SqliteDict`.
        fingerprint: of the model.
        exact: whether full forwards were asked for: who compares them with shared prefixes must
            not be given the same answers.

    Raises:
        AdapterError: when the answers are, or may be, another model's.
    """
    ours = {"model": fingerprint, "exact": exact, "scoring_version": SCORING_VERSION}
    theirs = answers.get(OWNER)
    if theirs == ours:
        return
    if theirs is None and len(answers) == 0:
        answers[OWNER] = ours
        answers.commit()
        return
    raise AdapterError(
        f"--use_cache: {answers.filename} holds answers of {_name(theirs)}, not of {_name(ours)}; "
        "give each model a file of its own, or delete that one"
    )


def flush(answers: Any) -> None:
    """See to it that all answers are in the file."""
    if answers is not None:
        answers.commit()


def _name(owner: dict[str, Any] | None) -> str:
    if owner is None:
        return "an unknown model"
    exact = ", exact=true" if owner["exact"] else ""
    return f"{owner['model']}{exact} (scoring version {owner['scoring_version']})"
