"""Reader of CTranslate2's `model.bin`, the binary of faster-whisper's models.

The layout (little-endian; `python/ctranslate2/specs/model_spec.py` of CTranslate2 writes it): u32
version, string specification, u32 revision, then the variables (string name, u8 rank, u32 for each
dimension, u8 type, u32 bytes, data) and the aliases (string alias, string name), each after a u32
count. A string is a u16 length, the final zero byte included, and its bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from s2s_tasks.errors import S2STasksError

VERSION = 6
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)  # by CTranslate2's type number


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, kind: str) -> int:
        value: int = struct.unpack_from(f"<{kind}", self.data, self.at)[0]
        self.at += struct.calcsize(f"<{kind}")
        return value

    def bytes(self, size: int) -> memoryview:
        self.at += size
        return memoryview(self.data)[self.at - size : self.at]

    def string(self) -> str:
        return bytes(self.bytes(self.number("H"))).rstrip(b"\0").decode()


def read(path: Path) -> dict[str, NDArray[np.generic]]:
    """The variables of a version 6 file by name, aliases included, in the types of the file."""
    cursor = _Cursor(path.read_bytes())
    if (version := cursor.number("I")) != VERSION:
        raise S2STasksError(f"{path}: CTranslate2 version {version}, only {VERSION} is read here")
    cursor.string()  # the specification's name
    cursor.number("I")  # and revision
    variables: dict[str, NDArray[np.generic]] = {}
    for _ in range(cursor.number("I")):
        name = cursor.string()
        shape = [cursor.number("I") for _ in range(cursor.number("B"))]
        kind = TYPES[cursor.number("B")]
        data = cursor.bytes(cursor.number("I"))
        variables[name] = np.frombuffer(data, kind).reshape(shape)
    for _ in range(cursor.number("I")):
        alias = cursor.string()
        variables[alias] = variables[cursor.string()]
    return variables
