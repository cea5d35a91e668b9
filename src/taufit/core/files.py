"""The one place where outputs are written.

A regular file appears whole or not at all: it is written in a scratch directory beside its target,
flushed to disk and renamed over it. Symbolic links are followed, permissions kept, devices and
pipes written through. What an interrupted run leaves behind, the next run in that directory
removes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from taufit.core import ending
from taufit.core.errors import TaufitError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

_SCRATCH = re.compile(r"\.taufit-[0-9a-f]{12}")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self|proc/(\d+))/fd/(\d+)")
# File systems that cannot lock or flush a directory say so with one of these.
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EPERM)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; what lies there when the block ends well takes the place of `path`.

    The name is the target's own, in a directory of its own, so a library may look at the ending,
    write beside it, or make a directory of it.
    """
    asked = Path(path)
    try:
        with _writing(asked) as place:
            yield place
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _refused(asked, error.strerror or str(error)) from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a file, whole or not at all."""
    with replacing(path) as temporary:
        # File names need not be UTF-8; what cannot be written is spelled out.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write data as JSON, whole or not at all."""
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of an existing file: one process at a time reads it and writes it anew.

    The lock lies on the file itself. Whoever waited for one that was replaced meanwhile takes the
    new file's, so the block always begins with the newest. Locks of a process that dies are
    released by the system.
    """
    handle = _held(Path(path))
    try:
        yield
    finally:
        os.close(handle)


def _held(path: Path) -> int:
    """A descriptor that holds the lock of the file that `path` names now."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR)
        except PermissionError:
            handle = os.open(path, os.O_RDONLY)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            os.close(handle)
            if error.errno not in _UNSUPPORTED:
                raise
            reason = "its file system has no locks, so two runs could overwrite each other"
            raise _refused(path, reason) from None
        if _same(path, handle):
            return handle
        os.close(handle)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or an open descriptor: written through, never replaced."""
    if _own_descriptor(Path(path)) is not None:
        return True
    with suppress(OSError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


@contextmanager
def _writing(asked: Path) -> Iterator[Path]:
    descriptor = _own_descriptor(asked)
    target = Path(os.path.realpath(asked))
    old = None if descriptor is not None else _status(target)
    if descriptor is not None or (old is not None and not stat.S_ISREG(old.st_mode)):
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise _refused(asked, "it is a directory")
        if old is not None and stat.S_ISBLK(old.st_mode):
            raise _refused(asked, "it is a disk")
        with _scratch(Path(tempfile.gettempdir())) as folder:
            place = folder / (asked.name or "output")
            yield place
            _pour(place, target if descriptor is None else descriptor)
        return
    _outside_the_system(asked, target)
    if old is not None and not os.access(target, os.W_OK):
        raise _refused(asked, os.strerror(errno.EACCES))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _refused(asked, f"{target.parent} is not a directory") from None
    with _scratch(target.parent) as folder:
        place = folder / target.name
        yield place
        if old is not None:
            _like(place, old)
        _flush(place)
        os.replace(place, target)
        _flush_directory(target.parent)


def _refused(path: Path, reason: str) -> TaufitError:
    return TaufitError(f"{path} cannot be written: {reason}.")


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _own_descriptor(path: Path) -> int | None:
    """The open descriptor a path such as /dev/stdout stands for, followed link by link."""
    name = os.path.abspath(path)
    for _ in range(40):
        match = _DESCRIPTOR.fullmatch(name)
        if match and match[1] in (None, str(os.getpid())):
            return int(match[2])
        try:
            link = os.readlink(name)
        except OSError:
            return None
        name = os.path.normpath(os.path.join(os.path.dirname(name), link))
    return None


def _outside_the_system(asked: Path, target: Path) -> None:
    """Files have no place among devices and the kernel's tables."""
    for folder in ("/proc", "/sys"):
        if target.is_relative_to(folder):
            raise _refused(asked, f"{folder} belongs to the system")
    if str(target.parent) == "/dev":
        raise _refused(asked, "there is no such device, and /dev is not a place for files")


def _pour(source: Path, target: Path | int) -> None:
    """Copy into what exists: a device, a pipe, an open descriptor."""
    if isinstance(target, int):
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):
                stream.flush()
        handle = os.dup(target)
    else:
        handle = os.open(target, os.O_WRONLY | os.O_NOCTTY)
    try:
        with source.open("rb") as file, os.fdopen(handle, "wb", buffering=0, closefd=False) as sink:
            while piece := file.read(1 << 20):
                view = memoryview(piece)
                while view:
                    view = view[sink.write(view) :]
    finally:
        os.close(handle)


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """A locked directory in `parent`, gone after the block; abandoned ones are removed first."""
    _sweep(parent)
    folder, handle = _new_scratch(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        ending.drop(folder)
        os.close(handle)


def _new_scratch(parent: Path) -> tuple[Path, int]:
    for _ in range(100):
        folder = parent / f".taufit-{secrets.token_hex(6)}"
        # Noted before it exists: a signal may arrive at any moment.
        ending.keep(folder)
        folder.mkdir(mode=0o700)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            # Swept by another process between the two lines.
            ending.drop(folder)
            continue
        if _lock(handle) is not False and _same(folder, handle):
            return folder, handle
        os.close(handle)
        ending.drop(folder)
    raise OSError(errno.EAGAIN, "another program keeps removing the temporary directory")


def _lock(handle: int) -> bool | None:
    """Whether the lock is ours; None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _same(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(folder), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sweep(parent: Path) -> None:
    """Remove scratch directories whose process is gone: nobody holds their lock."""
    try:
        names = [entry.name for entry in os.scandir(parent) if _SCRATCH.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        folder = parent / name
        if ending.is_kept(folder):
            continue
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                mine = not hasattr(os, "geteuid") or os.fstat(handle).st_uid == os.geteuid()
                if mine and _lock(handle):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _like(place: Path, old: os.stat_result) -> None:
    """Owner and permissions of the file that is replaced."""
    new = place.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.chown(place, old.st_uid, old.st_gid)
    place.chmod(stat.S_IMODE(old.st_mode))


def _flush(place: Path) -> None:
    """Everything below `place` is on the disk, not only in memory."""
    if not place.is_dir():
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return
    for entry in place.iterdir():
        _flush(entry)
    _flush_directory(place)


def _flush_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)
