"""Recordings encoded once for all checkpoints: outputs of an audio tower, kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.fingerprint import checksum
from s2s_tasks.tensor_store import TensorStore

TOWERS = ("audio_tower", "audio_encoder")
"""What models call the part that hears: it is large, and training often leaves it alone."""
GIGABYTE = 10**9


class AudioFront:
    """A model's audio tower, which looks up what it has encoded before.

    What follows the tower (projector, embedding) is small, is trained most of the time, and is
    computed anew. Entries are kept by the checksum of the tower's weights: a tower that was
    trained makes its own.
    """

    def __init__(
        self,
        model: Any,
        feature_extractor: Any,
        folder: str,
        most_gigabytes: float,
        path: str | None = None,
    ) -> None:
        """Put a store before the model's audio tower.

        Args:
            model: of transformers.
            feature_extractor: what makes the tower's input.
            folder: of the store.
            most_gigabytes: how large it may become.
            path: of the tower in the model, where it has none of the usual names.

        Raises:
            AdapterError: when the model has no part of a known name that hears.
        """
        if not isinstance(most_gigabytes, int | float) or most_gigabytes <= 0:
            raise AdapterError(f"audio_cache_gb={most_gigabytes}: give a positive number")
        owner, tower = _find_tower(model, path)
        settings = (type(tower).__name__, feature_extractor.to_json_string())
        maker = checksum(tower, *settings)
        self._store = TensorStore(folder, maker, int(most_gigabytes * GIGABYTE))
        self._model = model
        self._heard: str | None = None
        self._calls = 0
        self._found: set[str] = set()
        self._made: set[str] = set()
        method = "encode_audio" if hasattr(owner, "encode_audio") else "forward"
        self._remember(owner if method == "encode_audio" else tower, method)

    def __str__(self) -> str:
        found, made = len(self._found), len(self._made)
        return f"audio_cache: {found:,} encodings were there, {made:,} were made"

    @contextmanager
    def hearing(self, recordings: Sequence[str]) -> Iterator[None]:
        """Look up, or keep, what the tower makes of recordings (sha256 of each)."""
        self._heard = hashlib.sha256("\n".join(recordings).encode()).hexdigest()
        self._calls = 0
        try:
            yield
        finally:
            self._heard = None

    def _remember(self, owner: Any, method: str) -> None:
        encode = getattr(owner, method)

        def looked_up(*inputs: Any, **options: Any) -> Any:
            if self._heard is None:
                return encode(*inputs, **options)
            # A model may call its tower for each recording, or each window of one.
            key = f"{self._heard}-{self._calls}"
            self._calls += 1
            kept = self._store.get(key)
            if kept is not None:
                # What this run has made itself, the self-test for one, was not there.
                self._found |= {key} - self._made
                device = next(owner.parameters()).device
                return _rebuild({name: tensor.to(device) for name, tensor in kept.items()})
            self._made.add(key)
            made = encode(*inputs, **options)
            self._store.put(key, _tensors(made))
            return made

        setattr(owner, method, looked_up)


def _find_tower(model: Any, path: str | None) -> tuple[Any, Any]:
    if path:
        return model.get_submodule(path.rpartition(".")[0]), model.get_submodule(path)
    for owner in (model, getattr(model, "model", None)):
        for name in TOWERS:
            if (tower := getattr(owner, name, None)) is not None:
                return owner, tower
    raise AdapterError(
        f"audio_cache: {type(model).__name__} has no part called {' or '.join(TOWERS)} whose "
        "outputs could be kept; leave audio_cache out"
    )


def _tensors(made: Any) -> dict[str, torch.Tensor]:
    if isinstance(made, torch.Tensor):
        return {"tensor": made}
    # Copies: two names of one tensor cannot be written to a file.
    return {name: value.clone() for name, value in made.items() if isinstance(value, torch.Tensor)}


def _rebuild(kept: dict[str, torch.Tensor]) -> Any:
    if "tensor" in kept:
        return kept["tensor"]
    output = BaseModelOutputWithPooling(last_hidden_state=cast(Any, kept["last_hidden_state"]))
    for name, tensor in kept.items():
        setattr(output, name, tensor)
    return output
