"""Folders of the user for cached results, and the secret that authenticates them."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

_SECRET = 32


class UntrustedFolderError(Exception):
    """Folder or file that is not safe for results."""


def user_folder(variable: str, below_home: str) -> Path:
    """Folder of taufit in $XDG_CACHE_HOME or $XDG_STATE_HOME, or their defaults."""
    text = os.environ.get(variable, "")
    if os.path.isabs(text):
        return Path(text) / "taufit"
    try:
        return Path.home() / below_home / "taufit"
    except RuntimeError:
        raise UntrustedFolderError("this user has no home folder") from None


def private_folder(path: Path) -> Path:
    """Folder of this user that nobody else can write to; created if it does not exist.

    Raises:
        UntrustedFolderError, OSError: If others can write to it, or it cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        _require_own(path, os.lstat(path), stat.S_ISDIR, 0o022, "a folder")
    return path


def user_secret() -> tuple[bytes, bool]:
    """Secret of the user, and whether it was just created.

    It is created atomically: written under another name and linked, which fails if it exists.
    """
    path = private_folder(user_folder("XDG_STATE_HOME", ".local/state")) / "cache.key"
    is_new = not os.path.lexists(path)
    if is_new:
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_bytes(_SECRET))
            os.fsync(handle)
            os.link(temporary, path)
        except FileExistsError:
            is_new = False  # another process was first
        finally:
            os.close(handle)
            temporary.unlink()
    handle = os.open(
        path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    try:
        _require_own(path, os.fstat(handle), stat.S_ISREG, 0o077, "a file")
        secret = os.read(handle, _SECRET + 1)
    finally:
        os.close(handle)
    if len(secret) != _SECRET:
        raise UntrustedFolderError(f"{path} is damaged. Delete it: a new one is made")
    return secret, is_new


def _require_own(
    path: Path,
    status: os.stat_result,
    is_kind: Callable[[int], bool],
    mode_of_others: int,
    kind: str,
) -> None:
    if not is_kind(status.st_mode):
        raise UntrustedFolderError(f"{path} is not {kind}")
    if not hasattr(os, "geteuid"):  # pragma: no cover - Windows keeps others out of a profile
        return
    if status.st_uid != os.geteuid():
        raise UntrustedFolderError(f"{path} belongs to another user")
    if status.st_mode & mode_of_others:
        verb = "write to" if mode_of_others == 0o022 else "read"
        raise UntrustedFolderError(f"others may {verb} {path} (chmod go-rwx {path})")
