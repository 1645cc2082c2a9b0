"""What stands in `--model_args`: every name is one that the model takes."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from s2s_tasks.adapters.contract import Adapter, AdapterError

OF_ALL_MODELS = ("exact", "speech")
"""What `SpeechLM` takes itself."""
NOT_GIVEN = ("self", "device", "speaks")
"""What adapters take and users do not name so: lm-eval has `--device`, `speech` says who speaks."""


def check_arguments(build: Callable[..., Adapter], arguments: Mapping[str, Any]) -> None:
    """Refuse model arguments that the adapter does not take, and name those it does.

    Raises:
        AdapterError: for a name that is not known, and for one that is missing.
    """
    known = {
        name: parameter
        for name, parameter in inspect.signature(build).parameters.items()
        if name not in NOT_GIVEN
    }
    names = [*known, *OF_ALL_MODELS]
    for name in arguments:
        if name not in known:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise AdapterError(
                f"no model argument is called {name!r}: {hint}There are: {', '.join(names)}"
            )
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise AdapterError(f"the model argument {name} is missing: --model_args {name}=…")
