"""Reader of GGUF version 3 files (github.com/ggml-org/ggml, docs/gguf.md): metadata and tensors.

The package `gguf` knows the quantised formats and is used for them. Its own reader makes a NumPy
view of every token of the vocabulary, 11 s for Gemma's; this one takes well under a second.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from s2s_tasks.errors import S2STasksError

VERSION = 3
# Value types by GGUF's number; 8 is a string, 9 an array.
NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies: its shape (rows first), its block format, its bytes."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    data: NDArray[np.uint8]

    def float32(self) -> NDArray[np.float32]:
        """The tensor, de-quantised."""
        values: NDArray[np.float32] = dequantize(self.data, self.kind)
        return values.reshape(self.shape).astype(np.float32, copy=False)


@dataclass(frozen=True)
class GGUF:
    """A GGUF file: metadata by key, tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, Tensor]


class _Cursor:
    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self.at = 0

    def numbers(self, kind: str, count: int) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{count}{kind}", self.data.data, self.at)
        self.at += struct.calcsize(f"<{count}{kind}")
        return values

    def number(self, kind: str) -> Any:
        return self.numbers(kind, 1)[0]

    def string(self) -> str:
        size = self.number("Q")
        self.at += size
        return bytes(self.data[self.at - size : self.at]).decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.number(NUMBERS[kind])
        item, count = self.number("I"), self.number("Q")
        if item in NUMBERS:
            return self.numbers(NUMBERS[item], count)
        return tuple(self.value(item) for _ in range(count))


def read(path: Path) -> GGUF:
    """Read the metadata, map the tensors."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    cursor = _Cursor(data)
    magic, version = bytes(data[:4]), cursor.numbers("I", 2)[1]
    if magic != b"GGUF" or version != VERSION:
        raise S2STasksError(f"{path} is not a GGUF file of version {VERSION}")
    tensor_count, metadata_count = cursor.numbers("Q", 2)
    metadata = {cursor.string(): cursor.value(cursor.number("I")) for _ in range(metadata_count)}
    heads = [_head(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)  # bytes
    start = -(-cursor.at // alignment) * alignment
    tensors = {
        name: _tensor(data, tuple(reversed(sizes)), GGMLQuantizationType(kind), start + offset)
        for name, sizes, kind, offset in heads
    }
    return GGUF(metadata, tensors)


def _head(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Name, sizes (fastest first), kind and offset of a tensor, in the file's order."""
    name = cursor.string()
    sizes = cursor.numbers("Q", cursor.number("I"))
    return name, sizes, cursor.number("I"), cursor.number("Q")


def _tensor(
    data: NDArray[np.uint8], shape: tuple[int, ...], kind: GGMLQuantizationType, start: int
) -> Tensor:
    block, size = GGML_QUANT_SIZES[kind]  # values and bytes a block
    row = shape[-1] // block * size
    rows = math.prod(shape[:-1])
    return Tensor(shape, kind, data[start : start + rows * row].reshape(rows, row))
