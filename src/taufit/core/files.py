"""Atomic writing of output files.

A regular file is written in a scratch directory beside its target, flushed to disk and renamed over
it. Symbolic links are followed, permissions kept, devices and pipes written directly. Remains of an
interrupted run are removed by the next run in that directory.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from taufit.core import process_cleanup
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]


@dataclass(slots=True)
class BackupLog:
    """Files that a command has written, and those among them whose earlier contents were kept.

    Attributes:
        enabled: Whether contents are kept.
        written: All written files; only contents from before the command are kept.
        backed_up: Files with earlier contents, which are now in `FILE~`.
    """

    enabled: bool = True
    written: set[Path] = field(default_factory=set)
    backed_up: list[Path] = field(default_factory=list)


_SCRATCH = re.compile(r"\.taufit-[0-9a-f]{12}")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self|proc/(\d+))/fd/(\d+)")
_backup_logs: list[BackupLog] = []
# Errors of file systems without locks or flushing of directories.
FILE_SYSTEM_LACKS = (errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EPERM)


@contextmanager
def replace_file(path: str | os.PathLike[str], *, update: bool = False) -> Iterator[Path]:
    """Context with a temporary path whose content replaces `path` if the block succeeds.

    The file name is that of the target, in a separate directory, so libraries may use its
    extension, write beside it, or create a directory.

    Args:
        path: File to replace.
        update: Whether the block adds to the contents, which are then not kept by `back_up_files`.
    """
    target = Path(path)
    if update and _backup_logs:
        _backup_logs[-1].written.add(Path(os.path.realpath(target)))
    try:
        with _write_replacement(target) as temporary:
            yield temporary
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_writable_error(target, error.strerror or str(error)) from None


def write_text(path: str | os.PathLike[str], text: str, *, update: bool = False) -> None:
    """Write text to a file atomically; `update` as for `replace_file`."""
    with replace_file(path, update=update) as temporary:
        # File names need not be UTF-8; invalid characters are escaped.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write data as JSON atomically."""
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def back_up_file(path: str | os.PathLike[str]) -> None:
    """Keep earlier contents, within `back_up_files`, of a file that is written directly next."""
    target = Path(os.path.realpath(path))
    if _backup_logs and target.is_file():
        with _scratch(target.parent) as folder:
            _back_up(target, folder)
        target.unlink()


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or an open descriptor, which is written directly."""
    if _own_descriptor(Path(path)) is not None:
        return True
    with suppress(OSError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


@contextmanager
def _write_replacement(requested: Path) -> Iterator[Path]:
    descriptor = _own_descriptor(requested)
    target = Path(os.path.realpath(requested))
    status = None if descriptor is not None else _status(target)
    if descriptor is not None or (status is not None and not stat.S_ISREG(status.st_mode)):
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise not_writable_error(requested, "it is a directory")
        if status is not None and stat.S_ISBLK(status.st_mode):
            raise not_writable_error(requested, "it is a disk")
        with _scratch(Path(tempfile.gettempdir())) as folder:
            temporary = folder / (requested.name or "output")
            yield temporary
            from taufit.core.stream_output import copy_to_stream

            copy_to_stream(temporary, target if descriptor is None else descriptor)
        return
    _require_ordinary_target(requested, target)
    if status is not None and not os.access(target, os.W_OK):
        raise not_writable_error(requested, os.strerror(errno.EACCES))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise not_writable_error(requested, f"{target.parent} is not a directory") from None
    with _scratch(target.parent) as folder:
        temporary = folder / target.name
        yield temporary
        if status is not None:
            _copy_permissions(temporary, status)
        _flush(temporary)
        _back_up(target, folder)
        os.replace(temporary, target)
        _flush_directory(target.parent)


@contextmanager
def back_up_files() -> Iterator[BackupLog]:
    """Context in which the earlier contents of every replaced file are kept.

    The first replacement of `FILE` renames its contents to `FILE~`, over an earlier `FILE~`.
    """
    log = BackupLog()
    _backup_logs.append(log)
    try:
        yield log
    finally:
        _backup_logs.pop()


def _back_up(target: Path, folder: Path) -> None:
    """Link earlier contents of a file to its backup name, through a scratch directory."""
    log = _backup_logs[-1] if _backup_logs else None
    if log is None or target in log.written:
        return
    log.written.add(target)
    if not log.enabled or not target.exists():
        return
    log.backed_up.append(target)
    backup = folder / f"{target.name}~"
    try:
        os.link(target, backup)
    except OSError:  # a file system without links, or a file of another user
        shutil.copy2(target, backup)
    os.replace(backup, target.with_name(backup.name))


def not_writable_error(path: Path, reason_text: str) -> TaufitError:
    """Error about a file that cannot be written, with the reason."""
    return TaufitError(f"{path} cannot be written: {reason_text}.")


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _own_descriptor(path: Path) -> int | None:
    """Open descriptor of a path such as /dev/stdout, resolved link by link."""
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


def _require_ordinary_target(requested: Path, target: Path) -> None:
    """Raise for targets among devices and kernel tables."""
    for folder in ("/proc", "/sys"):
        if target.is_relative_to(folder):
            raise not_writable_error(requested, f"{folder} belongs to the system")
    if str(target.parent) == "/dev":
        raise not_writable_error(
            requested, "there is no such device, and /dev is not a place for files"
        )


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """Context with a locked directory in `parent`; abandoned ones are removed first."""
    _sweep(parent)
    folder, handle = _new_scratch(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        process_cleanup.unregister_path(folder)
        os.close(handle)


def _new_scratch(parent: Path) -> tuple[Path, int]:
    for _ in range(100):
        folder = parent / f".taufit-{os.urandom(6).hex()}"
        # Registered before it exists, since a signal may arrive at any time.
        process_cleanup.register_path(folder)
        folder.mkdir(mode=0o700)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            # Removed by another process in between.
            process_cleanup.unregister_path(folder)
            continue
        if _lock(handle) is not False and is_same_file(folder, handle):
            return folder, handle
        os.close(handle)
        process_cleanup.unregister_path(folder)
    raise OSError(errno.EAGAIN, "another program keeps removing the temporary directory")


def _lock(handle: int) -> bool | None:
    """Whether the lock was acquired; None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in FILE_SYSTEM_LACKS:
            return None
        raise
    return True


def is_same_file(folder: Path, handle: int) -> bool:
    """Whether an open descriptor belongs to a path."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sweep(parent: Path) -> None:
    """Remove scratch directories of dead processes, whose lock is free."""
    try:
        names = [entry.name for entry in os.scandir(parent) if _SCRATCH.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        folder = parent / name
        if process_cleanup.is_registered(folder):
            continue
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                is_own = not hasattr(os, "geteuid") or os.fstat(handle).st_uid == os.geteuid()
                if is_own and _lock(handle):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _copy_permissions(temporary: Path, status: os.stat_result) -> None:
    """Apply owner and permissions of the replaced file."""
    temporary_status = temporary.stat()
    if (temporary_status.st_uid, temporary_status.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):
            os.chown(temporary, status.st_uid, status.st_gid)
    temporary.chmod(stat.S_IMODE(status.st_mode))


def _flush(path: Path) -> None:
    """Flush everything below a path to disk."""
    if not path.is_dir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return
    for entry in path.iterdir():
        _flush(entry)
    _flush_directory(path)


def _flush_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in FILE_SYSTEM_LACKS:
            raise
    finally:
        os.close(handle)
