"""Hands our models and tasks to lm-eval: the only file that knows how lm-eval takes them.

Written for lm-eval 0.4.13, which lists models in a registry and finds tasks by scanning folders:
its own, then those of `include_path`, a later folder overriding an earlier one.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from s2s_tasks import TASK_CONFIGS
from s2s_tasks.errors import S2STasksError

MODELS = {
    "speech-cascade": "s2s_tasks.models:SpeechCascade",
    "speech-demo": "s2s_tasks.models:SpeechDemo",
    "speech-hf": "s2s_tasks.models:SpeechHF",
}
"""Name for `lm_eval --model` -> class, imported when it is used; as the entry points say."""


def register() -> None:
    """Hand our models and tasks to lm-eval; once is enough, twice is harmless."""
    register_models()
    register_tasks()


def register_models() -> None:
    """Add our models to lm-eval's registry, where it has not found them by itself."""
    # First: lm-eval registers its own models only where its registry is still empty.
    import lm_eval.models  # noqa: F401
    from lm_eval.api.registry import model_registry

    for name, target in MODELS.items():
        if name not in model_registry:
            model_registry.register(name, target=target)
    if not hasattr(sys.excepthook, "shows_s2s_tasks_errors"):
        sys.excepthook = _plain_errors(sys.excepthook)


def register_tasks() -> None:
    """Let each `TaskManager` scan our folder after lm-eval's and before the user's.

    `TaskManager(include_defaults=False)` asks for the user's tasks only, and gets only those.
    """
    from lm_eval.tasks import TaskManager

    init = TaskManager.__init__
    if hasattr(init, "adds_s2s_tasks"):
        return
    signature = inspect.signature(init)
    if missing := {"include_path", "include_defaults"} - signature.parameters.keys():
        raise RuntimeError(f"this version of lm-eval has a TaskManager without {sorted(missing)}")

    @functools.wraps(init)
    def init_with_ours(self: Any, *args: Any, **kwargs: Any) -> None:
        call = signature.bind(self, *args, **kwargs)
        call.apply_defaults()
        theirs = call.arguments["include_path"]
        if call.arguments["include_defaults"]:
            call.arguments["include_path"] = _with_ours(theirs)
        init(*call.args, **call.kwargs)
        self.include_path = theirs

    init_with_ours.adds_s2s_tasks = True  # type: ignore[attr-defined]
    TaskManager.__init__ = init_with_ours


def _plain_errors(previous: Any) -> Any:
    """Show an uncaught error of ours as its message alone, which says what to do.

    lm-eval's command would bury it under its own traceback; with lm-eval's logging at DEBUG it
    may, for those who look for a bug.
    """

    @functools.wraps(previous)
    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, S2STasksError) and not logging.getLogger().isEnabledFor(logging.DEBUG):
            print(f"s2s-tasks: {error}", file=sys.stderr)
        else:
            previous(kind, error, traceback)

    hook.shows_s2s_tasks_errors = True  # type: ignore[attr-defined]
    return hook


def _with_ours(include_path: str | Path | list[str | Path] | None) -> list[str | Path]:
    if not include_path:
        return [TASK_CONFIGS]
    paths = list(include_path) if isinstance(include_path, (list, tuple)) else [include_path]
    # `--include_path "$(s2s-tasks path)"`: scanned twice, each task would override itself.
    if any(Path(path).resolve() == TASK_CONFIGS.resolve() for path in paths):
        return paths
    return [TASK_CONFIGS, *paths]
