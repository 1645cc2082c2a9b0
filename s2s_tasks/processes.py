"""Several processes with one model each, as `accelerate launch` and `torchrun` start them."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather

PATIENCE = timedelta(weeks=52)
"""One process may be done long before another: as lm_eval.models.huggingface waits."""


class Processes:
    """The processes of a run, of which this is one."""

    def __init__(self, device: str | None = None) -> None:
        """Join the others, where a launcher started some; `device="cpu"` keeps off the GPUs."""
        several = int(os.environ.get("WORLD_SIZE", "1")) > 1
        # accelerate joins no processes on a CPU unless it is told that this is meant.
        cpu = device == "cpu" or not torch.accelerator.is_available()
        self._state = PartialState(cpu=cpu, timeout=PATIENCE) if several else None

    @property
    def rank(self) -> int:
        """Which one this is, over all machines."""
        return self._state.process_index if self._state else 0

    @property
    def count(self) -> int:
        """How many there are."""
        return self._state.num_processes if self._state else 1

    @property
    def device(self) -> str | None:
        """The device that is this process's own; None when it is alone and may choose."""
        return str(self._state.device) if self._state else None

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensors of all processes in one."""
        return gather(tensor) if self._state else tensor

    def gather_object(self, item: Any, destination: int) -> list[Any] | None:
        """Return the objects of all processes to one of them, None to the others."""
        if not self._state:
            return [item]
        gathered = [None] * self.count if self.rank == destination else None
        torch.distributed.gather_object(item, gathered, dst=destination)
        return gathered

    def wait(self) -> None:
        """Wait until all have come here."""
        if self._state:
            self._state.wait_for_everyone()
