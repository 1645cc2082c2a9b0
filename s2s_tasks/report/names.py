"""What models are called in a report, and which are checkpoints of one training run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from s2s_tasks.sweep.steps import StepError, find_steps

WEIGHTS = ("pretrained", "peft", "asr", "lm", "model", "base_url")
"""Arguments that say which model it is."""
IRRELEVANT = ("audio_cache", "audio_cache_gb", "device", "device_map", "exact", "asr_batch_size")
"""Arguments that change no score."""


@dataclass(frozen=True)
class ModelName:
    """A model in a report."""

    label: str
    training: str | None = None
    """The training run that it is a checkpoint of, where several of one were found."""
    step: int | None = None
    """Of that training run."""


@dataclass(frozen=True)
class _Identity:
    kind: str
    folder: str
    """Where the weights that vary within a training run lie."""
    short: tuple[str, ...]
    """Last parts of the names of its weights."""
    whole: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]


def name_models(results: Sequence[tuple[Mapping[str, Any], int | None]]) -> list[ModelName]:
    """Return the name of the model of each of lm-eval's results.

    Args:
        results: each with the step that is known for it; else the step is found in the names of
            checkpoints of one training run.

    Labels are as short as tells all models apart: the last part of the path, then the settings,
    then the whole path.
    """
    identities = [_identity(one["config"]) for one, _ in results]
    distinct = list(dict.fromkeys(identities))
    labels = dict(zip(distinct, _labels(distinct), strict=True))
    names = {identity: ModelName(label) for identity, label in labels.items()}
    known = dict(zip(identities, (step for _, step in results), strict=True))
    families: dict[tuple[Any, ...], list[_Identity]] = {}
    for one in distinct:
        families.setdefault((one.kind, one.folder, one.settings, one.short[1:]), []).append(one)
    trained = []
    for family in (family for family in families.values() if len(family) > 1):
        with suppress(StepError):
            trained.append((family, _steps(family, known)))
    titles = _shortest(
        [
            (_title(family[0]), _title(family[0]) + _settings(family[0]), repr(family[0]))
            for family, _ in trained
        ]
    )
    for title, (family, steps) in zip(titles, trained, strict=True):
        for one, step in zip(family, steps, strict=True):
            names[one] = replace(names[one], training=title, step=step)
    return [names[identity] for identity in identities]


def _steps(family: Sequence[_Identity], known: Mapping[_Identity, int | None]) -> list[int]:
    noted = [step for one in family if (step := known[one]) is not None]
    if len(set(noted)) == len(family):
        return noted
    names = [one.short[0] for one in family]
    # Numbers alone may be sizes or versions of different models.
    if not all(re.search("step|iter|checkpoint|ckpt|epoch", name.lower()) for name in names):
        raise StepError("nothing says that these are steps")
    return find_steps(names)


def _title(one: _Identity) -> str:
    return PurePath(one.folder).name or "training run"


def _identity(config: Mapping[str, Any]) -> _Identity:
    arguments = _arguments(config.get("model_args"))
    weights = [arguments[key] for key in WEIGHTS if arguments.get(key)] or [str(config["model"])]
    # The adapter is what is trained where there is one.
    weights.sort(key=lambda weight: weight != arguments.get("peft"))
    settings = {k: v for k, v in arguments.items() if k not in (*WEIGHTS, *IRRELEVANT)}
    return _Identity(
        kind=str(config["model"]),
        folder=str(PurePath(weights[0]).parent),
        short=tuple(PurePath(weight).name for weight in weights),
        whole=tuple(weights),
        settings=tuple(sorted(settings.items())),
    )


def _arguments(given: Any) -> dict[str, str]:
    if isinstance(given, Mapping):
        return {str(key): str(value) for key, value in given.items()}
    pairs = (item.partition("=") for item in str(given or "").split(",") if item)
    return {key.strip(): value for key, _, value in pairs}


def _labels(identities: Sequence[_Identity]) -> list[str]:
    return _shortest(
        [(" + ".join(one.short), _with_settings(one), _with_paths(one)) for one in identities]
    )


def _shortest(forms: Sequence[tuple[str, ...]]) -> list[str]:
    """Return one of several names for each, from short to long, that no other has."""
    chosen = [names[0] for names in forms]
    for length in range(1, len(forms[0]) if forms else 0):
        chosen = [
            names[length] if chosen.count(name) > 1 else name
            for name, names in zip(chosen, forms, strict=True)
        ]
    return chosen


def _with_settings(one: _Identity) -> str:
    return " + ".join(one.short) + _settings(one)


def _with_paths(one: _Identity) -> str:
    return " + ".join(one.whole) + _settings(one)


def _settings(one: _Identity) -> str:
    words = [f"{key}={value}" for key, value in one.settings]
    return f" ({', '.join([one.kind, *words])})"
