"""Cache of results in files of the user, one per entry, named by its key.

Entries are written atomically, so any number of processes may share a folder without locks. Damaged
or foreign entries are ignored. An unusable folder (read-only, full, of another user) makes a fit
slower, never wrong.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from taufit.core.compute.cache.content import content_hash
from taufit.core.compute.cache.digest import code_digest, digest

MISSING: Any = object()
# Largest total size [bytes]; the oldest entries are removed above it.
_MAX_BYTES = 8 * 2**30
# Interval of cleaning a folder [s], and amount of written data that also triggers it [bytes].
_SWEEP_S, _SWEEP_BYTES = 86_400.0, 2**30
_UNFINISHED = ".new-"


class Cache:
    """Results by key.

    Args:
        path: Folder of the entries, created if missing; by default this user's.

    Attributes:
        warning: Reason why results are not cached or are recomputed; else "".
        reads: Number of recordings read to determine their content.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.warning, self.reads = path or Path("~/.cache/taufit"), "", 0
        self._written = 0
        self._contents: dict[str, dict[str, tuple[Any, ...]]] = {}
        self._changed: set[str] = set()
        self._secret: bytes | None = None
        from taufit.core.compute.cache.user_folders import (
            UntrustedFolderError,
            private_folder,
            user_folder,
            user_secret,
        )

        try:
            self.path = private_folder(path or user_folder("XDG_CACHE_HOME", ".cache"))
            self._secret, is_new = user_secret()
            if is_new and any(self.path.iterdir()):
                self.warning = (
                    f"the key of the results in {self.path} was lost: they are made again, with a "
                    "new one."
                )
        except (OSError, UntrustedFolderError) as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        self._secret = None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self.warning = (
            f"results are not kept in {self.path} ({reason.rstrip('.')}): the next fit reads all "
            "recordings again. Choose another folder (--cache FOLDER) or none (--cache off)."
        )

    def _file(self, key: bytes) -> Path:
        name = key.hex()
        return self.path / name[:2] / name

    def get(self, key: bytes) -> Any:
        """Result, or MISSING."""
        if self._secret is None:
            return MISSING
        from taufit.core.compute.cache.pack import DamagedError, unpack

        try:
            data = _read(self._file(key))
            return unpack(data, key, self._secret)
        except OSError:
            return MISSING
        except DamagedError as error:
            if not self.warning:
                self.warning = f"a result in {self.path} is made again: {error}."
            return MISSING

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """Valid results of several keys."""
        results = ((key, self.get(key)) for key in keys)
        return {key: value for key, value in results if value is not MISSING}

    def in_order(
        self, keys: Sequence[bytes], available: Container[bytes]
    ) -> Iterator[tuple[bytes, Any]]:
        """Every key with its result or MISSING, read on demand.

        Args:
            keys: Keys of the results.
            available: Keys to look for.
        """
        for key in keys:
            yield key, self.get(key) if key in available else MISSING

    def existing_keys(self, keys: Iterable[bytes]) -> set[bytes]:
        """Keys with an entry; its validity is checked on reading."""
        if self._secret is None:
            return set()
        return {key for key in keys if self._file(key).exists()}

    def put(self, key: bytes, value: Any) -> None:
        """Store a result; types that cannot be stored are recomputed each time."""
        if self._secret is None:
            return
        from taufit.core.compute.cache.pack import pack

        try:
            data = pack(value, key, self._secret)
        except TypeError:
            return
        path = self._file(key)
        unfinished = path.parent / f"{_UNFINISHED}{secrets.token_hex(8)}"
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                _write(unfinished, data)
                os.replace(unfinished, path)
            except BaseException:
                with suppress(OSError):
                    unfinished.unlink()
                raise
        except OSError as error:
            self._stop(error)
        self._written += len(data)

    def key(self, *values: Any) -> bytes:
        """Key of a result: its inputs and this version of taufit."""
        return digest(code_digest(), *values)

    def content(self, path: Path) -> str:
        """SHA-256 of a file, read once while size, inode and times are unchanged.

        The change time detects files that were modified and got their old time again. Folders are
        read every time.
        """
        if not path.is_file():
            self.reads += 1
            return content_hash(path)
        status = path.stat()
        signature = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        folder, name = os.path.split(os.path.realpath(path))
        known_files = self._contents_in(folder)
        if name not in known_files or known_files[name][:4] != signature:
            known_files[name] = (*signature, content_hash(path))
            self.reads += 1
            self._changed.add(folder)
        return str(known_files[name][4])

    def _contents_in(self, folder: str) -> dict[str, tuple[Any, ...]]:
        """Known contents of a folder's files, stored together."""
        if folder not in self._contents:
            stored = self.get(_contents_key(folder))
            self._contents[folder] = {} if stored is MISSING else stored
        return self._contents[folder]

    def commit(self) -> None:
        """Store known contents of files."""
        while self._changed:
            folder = self._changed.pop()
            self.put(_contents_key(folder), self._contents[folder])

    def close(self) -> None:
        """Store known contents of files; remove the oldest entries if the folder is too large."""
        self.commit()
        if self._secret is not None:
            with suppress(OSError):
                self._sweep()

    def _sweep(self) -> None:
        """Remove unfinished files of killed processes, and the oldest results above the limit."""
        mark, current_time = self.path / "swept", time.time()
        with suppress(FileNotFoundError):
            if current_time - mark.stat().st_mtime < _SWEEP_S and self._written < _SWEEP_BYTES:
                return
        mark.touch()
        entries = []
        for folder in os.scandir(self.path):
            if len(folder.name) != 2 or not folder.is_dir(follow_symlinks=False):
                continue
            for entry in os.scandir(folder.path):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.startswith(_UNFINISHED):
                        if current_time - status.st_mtime > _SWEEP_S:
                            os.unlink(entry.path)
                        continue
                    entries.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= _MAX_BYTES:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_cache(folder: str | os.PathLike[str] | None = None) -> Cache:
    """Open the cache of this user in a folder; by default $XDG_CACHE_HOME/taufit.

    Several users may share a folder: each has a private folder in it.
    """
    if folder is None:
        return Cache()
    user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
    return Cache(Path(folder) / f".taufit-cache{user}")


def _contents_key(folder: str) -> bytes:
    return digest("contents", folder)


def _read(path: Path) -> bytes:
    """Bytes of a regular file; pipes and links do not block."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as stream:
        return stream.read(os.fstat(stream.fileno()).st_size)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as stream:
        stream.write(data)
