"""The start-up hook: lm-eval finds our models and tasks without being told.

Python calls `install` when it starts: `s2s_tasks.start` names it (PEP 829, Python 3.15 on) and so
does the line in `s2s_tasks.pth` (before). lm-eval 0.4.13 offers plugins no other way in. The hook
waits until lm-eval's registries are imported and then calls `plugin`; a program that never
imports lm-eval pays for two small imports. `S2S_TASKS_AUTOLOAD=0` switches it off, and
`s2s-tasks lm-eval ...` does without it.

It must never stop Python or lm-eval: what goes wrong is logged as one warning. It runs in every
Python process, so it imports only what is loaded anyway, and has no `__future__` import.
"""

import os
import sys

TYPE_CHECKING = False  # see s2s_tasks/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

HOOKS = {"lm_eval.models": "register_models", "lm_eval.tasks": "register_tasks"}
"""Module of lm-eval -> the function of `plugin` to call once that module is imported."""


def install() -> None:
    """Wait for lm-eval, or register at once what it has imported already; idempotent."""
    if os.environ.get("S2S_TASKS_AUTOLOAD") == "0" or _watcher in sys.meta_path:
        return
    sys.meta_path.insert(0, _watcher)
    for name in HOOKS:
        if name in sys.modules:
            _register(name)


class _Watcher:
    """A meta-path finder that finds nothing itself: it marks the modules in HOOKS."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in HOOKS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                try:
                    _call_after(spec.loader, name)
                except Exception as error:
                    _warn(error)
                return spec
        return None


_watcher = _Watcher()


def _call_after(loader: "Loader | None", name: str) -> None:
    """Let `loader` register our part once it has run the module `name`.

    Set on the instance, so that the loader keeps its class: lm-eval's and Python's own checks of
    it see no difference.
    """
    assert loader is not None
    exec_module = loader.exec_module

    def exec_then_register(module: "ModuleType") -> None:
        exec_module(module)
        if module.__name__ == name:  # some loaders, as for zip files, serve several modules
            _register(name)

    loader.exec_module = exec_then_register  # type: ignore[method-assign]


def _register(name: str) -> None:
    try:
        from s2s_tasks import plugin

        getattr(plugin, HOOKS[name])()
    except Exception as error:
        _warn(error)


def _warn(error: Exception) -> None:
    """Say once what is wrong and how to go on, and stand down."""
    if _watcher in sys.meta_path:
        sys.meta_path.remove(_watcher)
    import logging

    logging.getLogger("s2s_tasks").warning(
        "s2s-tasks could not add its models and tasks to lm-eval (%s: %s). lm-eval itself works. "
        "Reinstall s2s-tasks, or set S2S_TASKS_AUTOLOAD=0 to go without it.",
        type(error).__name__,
        error,
    )
