"""Archives that lie in a data folder, unpacked safely into the cache."""

from __future__ import annotations

import lzma
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tqdm import tqdm

from s2s_tasks.cache import cache_folder, file_key
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published.layout import AUDIO_SUFFIXES

_ZIP = ".zip"
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_WANTED = (*AUDIO_SUFFIXES, ".jsonl", ".parquet", ".yaml", ".yml")
"""What is unpacked; everything else in an archive is left there."""
_CORRUPT = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)
"""What Python's readers raise on damaged archives (bz2 and gzip: OSError)."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive."""

    name: str
    size: int
    """Unpacked, in bytes, as the archive declares it."""
    unsafe: str | None
    """Why it must not be unpacked, or None."""
    open: Callable[[], IO[bytes]]


def find_archives(folder: Path) -> list[Path]:
    """Return the archives below a folder."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.name.lower().endswith((_ZIP, *_TAR)) and path.is_file()
    )


def unpack(archive: Path) -> Path:
    """Unpack the data files of an archive into the cache and return the folder they are in.

    A killed run goes on where it stopped; an archive that was unpacked is not opened again.

    Raises:
        DataError: when the archive is corrupt, holds members that would land elsewhere, or does
            not fit on the disk. Nothing is written in the last two cases.
    """
    root = cache_folder("archives") / file_key(archive)
    done = root / ".complete"
    if done.exists():
        return root
    # The archive's own name as a folder: a map or a table may call its recordings by it.
    target = root / archive.name.split(".")[0]
    with _members(archive, target) as members:
        wanted = [m for m in members if _is_wanted(m.name)]
        _refuse_unsafe(archive, wanted)
        todo = [m for m in wanted if not _is_there(target / m.name, m.size)]
        _refuse_too_large(archive, root, sum(member.size for member in todo))
        for member in tqdm(todo, desc=f"unpacking {archive.name}", unit="file"):
            _write(member, target / member.name)
    done.touch()
    return root


def _is_wanted(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith(("__MACOSX", "._")) for part in path.parts)
    return path.suffix.lower() in _WANTED and not hidden


def _is_there(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _refuse_unsafe(archive: Path, members: list[Member]) -> None:
    if unsafe := [f"{member.name!r} ({member.unsafe})" for member in members if member.unsafe]:
        raise DataError(
            f"{archive}: not unpacked: {len(unsafe)} members are unsafe: {', '.join(unsafe[:10])}. "
            "What to do: get the archive from its publisher again, or unpack it by hand with care."
        )


def _refuse_too_large(archive: Path, root: Path, size: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if size > free:
        raise DataError(
            f"{archive}: not unpacked: it unpacks to {size:,} bytes and {root} has {free:,} free. "
            "What to do: free some space, or set S2S_TASKS_CACHE to a larger disk."
        )


def _write(member: Member, path: Path) -> None:
    """Write one member under a temporary name, so that what has its own name is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with member.open() as source, part.open("wb") as file:
            left = member.size
            while block := source.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise tarfile.TarError(f"{member.name} is larger than declared")
                file.write(block)
            if left:
                raise EOFError(f"{member.name} ends {left} bytes early")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _members(archive: Path, folder: Path) -> Iterator[list[Member]]:
    """Open an archive and list its files, which are to land in `folder`."""
    try:
        if archive.name.lower().endswith(_ZIP):
            with zipfile.ZipFile(archive) as file:
                yield [_zip_member(file, info) for info in file.infolist() if not info.is_dir()]
        else:
            with tarfile.open(archive) as tar:
                yield [_tar_member(tar, i, folder) for i in tar.getmembers() if not i.isdir()]
    except _CORRUPT as error:
        # What the system refuses has a number; what a decompressor cannot read has none.
        if isinstance(error, OSError) and error.errno is not None:
            what = f"it could not be read, or written to {folder}"
            remedy = "check the disk, or set S2S_TASKS_CACHE to another one"
        else:
            what, remedy = "it looks corrupt or incomplete", "copy or download it again"
        raise DataError(
            f"{archive}: cannot be unpacked, {what} "
            f"({type(error).__name__}: {' '.join(str(error).split())}). "
            f"What to do: {remedy}."
        ) from error


def _zip_member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    kind = stat.S_IFMT(info.external_attr >> 16)
    unsafe = _unsafe_name(info.orig_filename)
    if kind not in (0, stat.S_IFREG):
        unsafe = "a link or a device"
    elif info.flag_bits & 1:
        unsafe = "encrypted"
    return Member(info.filename, info.file_size, unsafe, lambda: file.open(info))


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo, folder: Path) -> Member:
    unsafe = _unsafe_name(info.name)
    target = info
    try:
        tarfile.data_filter(info, str(folder))
        if info.islnk() or info.issym():
            # tar stores a file that is there twice as a link to the first: its bytes are copied.
            base = "" if info.islnk() else posixpath.dirname(info.name)
            target = tar.getmember(posixpath.normpath(posixpath.join(base, info.linkname)))
    except (tarfile.FilterError, KeyError) as error:
        unsafe = str(error)
    if not target.isfile():
        unsafe = unsafe or "not a file"

    def open_() -> IO[bytes]:
        stream = tar.extractfile(target)
        if stream is None:
            raise tarfile.TarError(f"{info.name} is not a file")
        return stream

    return Member(info.name, target.size, unsafe, open_)


def _unsafe_name(name: str) -> str | None:
    path = PurePosixPath(name)
    drive = ":" in name.split("/")[0]
    if path.is_absolute() or drive or "\\" in name or ".." in path.parts:
        return "it would land outside the folder"
    return None
