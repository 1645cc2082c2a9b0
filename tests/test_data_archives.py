"""Archives in the data folder: unpacked once, safely, and not again."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from published_layout import QUESTIONS, STORIES, cache, publish, tone  # noqa: F401

from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published import archives
from s2s_tasks.data.published.archives import find_archives, unpack
from s2s_tasks.data.sources import load_rows

SUFFIXES = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"]


def pack(archive: Path, folder: Path, inside: str = "") -> Path:
    """Pack the files of a folder, below a folder `inside` the archive."""
    names = {path: Path(inside, path.relative_to(folder)) for path in sorted(folder.rglob("*"))}
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path, name in names.items():
                file.write(path, name)
    else:
        mode = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}
        with tarfile.open(archive, mode.get(archive.suffix, "w")) as tar:  # type: ignore[call-overload]
            for path, name in names.items():
                tar.add(path, name, recursive=False)
    return archive


def packed_copy(tmp_path: Path, suffix: str, inside: str = "") -> Path:
    """A copy whose recordings lie in archives and whose tables lie beside them."""
    source, root = publish(tmp_path / "source"), tmp_path / "data"
    root.mkdir()
    for folder in (f"{STORIES}/s-story-firstspeech", f"{STORIES}/zh_story"):
        pack(root / f"{Path(folder).name}{suffix}", source / folder, inside)
    for table in source.rglob("*.jsonl"):
        (root / table.name).write_bytes(table.read_bytes())
    return root


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_recordings_in_archives(tmp_path: Path, suffix: str) -> None:
    root = packed_copy(tmp_path, suffix)
    assert len(find_archives(root)) == 2
    rows = load_rows("zh_sstorycloze", root)
    assert len(rows) == 3
    sounds = {row.audio_for(row.gold).read() for row in rows}
    assert sounds == {tone(400), tone(402), tone(404)}


@pytest.mark.parametrize("inside", ["zh_story", "S2S/StoryCloze/anything"])
def test_folders_in_archives(tmp_path: Path, inside: str) -> None:
    source, root = publish(tmp_path / "source"), tmp_path / "data"
    root.mkdir()
    pack(root / "audio.zip", source / STORIES / "zh_story", inside)
    table = source / STORIES / "zh_story.jsonl"
    (root / table.name).write_bytes(table.read_bytes())
    assert len(load_rows("zh_sstorycloze", root)) == 3


@pytest.mark.parametrize("mapped", [True, False])
def test_everything_in_one_archive(tmp_path: Path, mapped: bool) -> None:
    source, root = publish(tmp_path / "source", mapped=mapped), tmp_path / "data"
    root.mkdir()
    pack(root / "S2SBench.tar.gz", source)
    assert len(load_rows("scmmlu", root)) == 4


def test_archives_are_left_alone_where_they_are_not_needed(tmp_path: Path, cache: Path) -> None:  # noqa: F811
    root = publish(tmp_path)
    (root / "extra.zip").write_bytes(b"not even an archive")
    assert len(load_rows("scmmlu", root)) == 4
    assert not (cache / "archives").exists()


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_a_killed_run_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    source = publish(tmp_path / "source")
    archive = pack(tmp_path / f"a{suffix}", source / QUESTIONS / "cmmlu_rewrite")
    write, written = archives._write, []

    def killed_at_the_third(member: archives.Member, path: Path) -> None:
        if len(written) == 2:
            path.with_name(f".{path.name}.1.part").write_bytes(b"half")
            raise KeyboardInterrupt
        write(member, path)
        written.append(member.name)

    monkeypatch.setattr(archives, "_write", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive)
    again = []
    monkeypatch.setattr(archives, "_write", lambda m, p: (again.append(m.name), write(m, p)))
    folder = unpack(archive)
    assert (written, again) == (["0.wav", "1.wav"], ["2.wav", "3.wav"])
    assert {path.name for path in folder.rglob("*.wav")} == {f"{n}.wav" for n in range(4)}
    again.clear()
    assert unpack(archive) == folder and not again


def test_an_archive_that_changed_is_unpacked_again(tmp_path: Path) -> None:
    source = publish(tmp_path / "source")
    archive = tmp_path / "a.zip"
    first = unpack(pack(archive, source / QUESTIONS))
    assert unpack(pack(archive, source / STORIES)) != first


def zip_with(name: str, mode: int = 0, content: bytes = b"x") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        info = zipfile.ZipInfo("0.wav")
        info.external_attr = mode << 16
        info.filename = name
        archive.writestr(info, content)
    return file.getvalue()


def tar_with(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        archive.addfile(info, io.BytesIO())
    return file.getvalue()


UNSAFE: dict[str, Callable[[], bytes]] = {
    "up.zip": lambda: zip_with("../evil.wav"),
    "hidden-up.zip": lambda: zip_with("a/../../evil.wav"),
    "absolute.zip": lambda: zip_with("/tmp/evil.wav"),
    "drive.zip": lambda: zip_with("C:/evil.wav"),
    "backslash.zip": lambda: zip_with("..\\evil.wav"),
    "link.zip": lambda: zip_with("evil.wav", stat.S_IFLNK | 0o777, b"/etc/passwd"),
    "up.tar": lambda: tar_with("../evil.wav"),
    "absolute.tar": lambda: tar_with("/tmp/evil.wav"),
    "link.tar": lambda: tar_with("evil.wav", tarfile.SYMTYPE, "/etc/passwd"),
    "link-up.tar": lambda: tar_with("a/evil.wav", tarfile.SYMTYPE, "../../secret.wav"),
    "hard-link.tar": lambda: tar_with("evil.wav", tarfile.LNKTYPE, "../secret.wav"),
    "dangling.tar": lambda: tar_with("evil.wav", tarfile.LNKTYPE, "gone.wav"),
    "link-loop.tar": lambda: tar_with("evil.wav", tarfile.SYMTYPE, "evil.wav"),
    "device.tar": lambda: tar_with("evil.wav", tarfile.CHRTYPE),
    "pipe.tar": lambda: tar_with("evil.wav", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_members_stop_the_archive(tmp_path: Path, cache: Path, name: str) -> None:  # noqa: F811
    archive = tmp_path / name
    archive.write_bytes(UNSAFE[name]())
    with pytest.raises(DataError, match=rf"{name}: not unpacked: 1 members are unsafe: .*evil"):
        unpack(archive)
    assert not list(cache.rglob("*evil*")) and not list(tmp_path.rglob("evil*"))


def test_links_inside_a_tar_become_files(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        info = tarfile.TarInfo("a/0.wav")
        info.size = len(tone())
        tar.addfile(info, io.BytesIO(tone()))
        for name, kind, link in [
            ("a/1.wav", tarfile.LNKTYPE, "a/0.wav"),
            ("b/2.wav", tarfile.SYMTYPE, "../a/0.wav"),
        ]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            tar.addfile(info)
    folder = unpack(archive)
    sounds = list(folder.rglob("*.wav"))
    assert len(sounds) == 3
    assert all(path.read_bytes() == tone() and not path.is_symlink() for path in sounds)


def test_other_files_stay_in_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("0.wav", "__MACOSX/._0.wav", "._1.wav", "run.sh", "../no.py", "f/"):
            file.writestr(name, b"x")
    files = [path.name for path in unpack(archive).rglob("*") if path.is_file()]
    assert sorted(files) == [".complete", "0.wav"]


def test_an_archive_larger_than_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pack(tmp_path / "a.zip", publish(tmp_path / "source") / STORIES)
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DataError, match=r"a\.zip: not unpacked: it unpacks to .* has 1,000 free"):
        unpack(archive)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("keep", [0.6, 0.05])
def test_a_cut_archive_is_named(tmp_path: Path, suffix: str, keep: float) -> None:
    archive = pack(tmp_path / f"a{suffix}", publish(tmp_path / "source") / STORIES)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(DataError, match=rf"a\{suffix}: .*corrupt or incomplete.*download it again"):
        unpack(archive)


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.zip", publish(tmp_path / "source") / STORIES)
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 0xFF
    archive.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.zip: cannot be unpacked, .*BadZipFile"):
        unpack(archive)


def test_a_disk_that_refuses_is_not_blamed_on_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pack(tmp_path / "a.zip", publish(tmp_path / "source") / STORIES)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_write", full)
    with pytest.raises(DataError, match="check the disk, or set S2S_TASKS_CACHE"):
        unpack(archive)
