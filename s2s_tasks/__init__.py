"""Speech tasks and speech models for lm-evaluation-harness.

Imported whenever Python starts (by the start-up hook, see `_autoload`): it imports nothing.
"""

__version__ = "0.1.0"
__all__ = ["TASK_CONFIGS", "__version__", "register"]

TYPE_CHECKING = False  # what type checkers take as true; `typing` itself would cost start-up time
if TYPE_CHECKING:
    from pathlib import Path

    TASK_CONFIGS: Path
    """The folder of the task files, as `lm_eval --include_path` takes it."""


def register() -> None:
    """Hand our models and tasks to lm-eval, in this process; once is enough, twice is harmless."""
    from s2s_tasks import plugin

    plugin.register()


def __getattr__(name: str) -> object:
    if name == "TASK_CONFIGS":
        from importlib import import_module
        from pathlib import Path

        # An import and not a path beside this file: editable installs map the folder.
        return Path(import_module("s2s_tasks.task_configs").__path__[0])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
