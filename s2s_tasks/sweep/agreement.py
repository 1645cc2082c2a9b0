"""Several processes of one sweep decide alike: what is done, and what has failed."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TypeVar

from accelerate.utils import broadcast_object_list
from torch.distributed import DistError, TCPStore  # type: ignore[attr-defined]

from s2s_tasks.errors import S2STasksError
from s2s_tasks.processes import PATIENCE, Processes

T = TypeVar("T")

ALONE = timedelta(minutes=30)
"""How long a process whose checkpoint failed waits for the others to be through with it."""


class Agreement:
    """The processes of a sweep, of which this is one.

    A checkpoint that fails in all processes (it does not load, is refused, does not fit) has
    failed, and the sweep goes on. Where it fails in one process only, the others wait for that
    one inside lm-eval, and nothing can call them back: after `ALONE` it gives up with an error,
    upon which the launcher ends all. Started again, the sweep goes on with that checkpoint.
    """

    def __init__(self, device: str | None = None) -> None:
        """Join the others; `device` as lm-eval's `--device`."""
        self._processes = Processes(device)
        self._store = self._open_store() if self._processes.count > 1 else None
        self._asked = 0

    @property
    def main(self) -> bool:
        """Whether this process speaks and writes for all."""
        return self._processes.rank == 0

    def tell(self, item: T) -> T:
        """Return the main process's item in all of them."""
        if self._store is None:
            return item
        told = [item]
        broadcast_object_list(told)
        return told[0]

    def failure(self, own: str | None) -> str | None:
        """Return why a checkpoint failed, in whichever process it did; None if it went well.

        Raises:
            S2STasksError: when it failed here, and the others are not through with it in time.
        """
        if self._store is None:
            return own
        self._asked += 1
        keys = [f"{self._asked}/{rank}" for rank in range(self._processes.count)]
        self._store.set(keys[self._processes.rank], own or "")
        try:
            self._store.wait(keys, PATIENCE if own is None else ALONE)
        except DistError as error:
            raise S2STasksError(
                f"{own}\nThis happened in process {self._processes.rank} only, and the others wait "
                "for it. Start the sweep again; if it happens again, leave this checkpoint out."
            ) from error
        reasons = [self._store.get(key).decode() for key in keys]
        return next((reason for reason in reasons if reason), None)

    def part(self) -> None:
        """Wait until no process needs the others any more."""
        self._processes.wait()

    def _open_store(self) -> TCPStore:
        # A failed process may wait here with a limit. One that leaves a collective operation of
        # torch unfinished does not even end.
        host = os.environ["MASTER_ADDR"]
        store = TCPStore(host, 0, None, True, PATIENCE, False) if self.main else None
        port = [store.port if store else 0]
        broadcast_object_list(port)
        return store or TCPStore(host, port[0], None, False, PATIENCE)
