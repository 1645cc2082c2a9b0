"""A line of the log as a judgement, or what is wrong with it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from s2s_tasks.arena.records import CRITERIA, Judgement, Level, Probe, Winner

Check = Callable[[Any], bool]


def parse(line: Any) -> Judgement:
    """Return the judgement that decoded JSON holds.

    Raises:
        ValueError: when it holds none; the message names the field.
    """
    if not isinstance(line, dict) or not isinstance(line.get("battle"), dict):
        raise ValueError("no object with the object battle in it")
    try:
        judgement = Judgement.from_json(line)
    except TypeError as error:  # something is missing, or unknown
        raise ValueError(str(error)) from error
    for owner, fields in ((judgement, _FIELDS), (judgement.battle, _BATTLE)):
        for name, (is_right, expected) in fields.items():
            value = getattr(owner, name)
            if not is_right(value):
                raise ValueError(f"{name} is {json.dumps(value)[:80]}, and should be {expected}")
    return judgement


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:  # half of a character, which no report can hold
        return False


def _is_label(value: Any) -> bool:
    return value == "" or _is_name(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _one_of(known: tuple[object, ...]) -> Check:
    return lambda value: isinstance(value, str) and value in known


def _mapping(of_keys: Check, of_values: Check) -> Check:
    return lambda value: (
        isinstance(value, Mapping)
        and all(map(of_keys, value))
        and all(map(of_values, value.values()))
    )


_NAME: tuple[Check, str] = (_is_name, "a name")
_LABEL: tuple[Check, str] = (_is_label, "text")
_TEXT: tuple[Check, str] = (_is_text, "text")
_LEVELS, _PROBES, _WINNERS = get_args(Level), get_args(Probe), get_args(Winner)
_BATTLE: Mapping[str, tuple[Check, str]] = {
    "instruction": _NAME,
    "first": _NAME,
    "second": _NAME,
    "propensity": (lambda value: _is_number(value) and 0 < value <= 1, "above 0 and at most 1"),
    "seed": (_is_whole, "a whole number"),
    "probe": (
        lambda value: value is None or _one_of(_PROBES)(value),
        f"null or one of {', '.join(_PROBES)}",
    ),
}
_FIELDS: Mapping[str, tuple[Check, str]] = {
    "judge": _NAME,
    "domain": _LABEL,
    "task": _LABEL,
    "level": (
        lambda value: value is None or (_is_whole(value) and value in _LEVELS),
        "null or 1 to 4",
    ),
    "language": _LABEL,
    "winners": (
        _mapping(_one_of(CRITERIA), _one_of(_WINNERS)),
        f"an object from {', '.join(CRITERIA)} to {', '.join(_WINNERS)}",
    ),
    "reply": _TEXT,
    "prompt_sha256": _TEXT,
    "answers": (_mapping(_is_text, _is_text), "an object of texts"),
    "features": (_mapping(_is_text, _is_number), "an object of finite numbers"),
    "time": _TEXT,
    "version": _TEXT,
}
