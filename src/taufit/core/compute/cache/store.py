"""Results in one SQLite file beside the recordings.

An entry is written whole or not at all, and has a check sum: one that is damaged is as good as
none. A file that cannot be read as a whole is begun anew; one that cannot be written to (a folder
of somebody else, a full disk, another fit at work for long) makes a fit slower, never wrong.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from taufit.core.compute.cache.digest import code_digest, digest
from taufit.core.compute.cache.pack import DamagedError, pack, unpack

NAME = ".taufit-cache.sqlite"
MISSING: Any = object()
# The oldest entries go when a file is larger than this [bytes].
_LARGEST = 8 * 2**30
# Written entries reach the disk at least so often [s].
_COMMIT_S = 1.0
_AT_ONCE = 500
# Results that are read at once.
_READ = 100
# Another fit may hold the file for so long [s].
_PATIENCE_S = 5.0

_TABLES = """
CREATE TABLE IF NOT EXISTS results (
    key BLOB PRIMARY KEY, made REAL, bytes INTEGER, value BLOB);
DROP TABLE IF EXISTS files;
CREATE TABLE IF NOT EXISTS contents (
    path TEXT PRIMARY KEY, size INTEGER, changed INTEGER, touched INTEGER, node INTEGER,
    sha256 TEXT) WITHOUT ROWID;
"""


class Cache:
    """Results by key.

    Args:
        path: Of the file; its folder exists.

    Attributes:
        warning: Why results are not kept, where they are not; else "".
        reads: Contents of recordings that had to be read to know them.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.warning, self.reads = path, "", 0
        self._last = time.monotonic()
        self._base: sqlite3.Connection | None = None
        try:
            self._base = self._opened()
        except sqlite3.DatabaseError:
            self._begin_anew()

    def _opened(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level="DEFERRED")
        try:
            # What a power cut takes away is made again.
            base.execute("PRAGMA synchronous=OFF")
            base.executescript(_TABLES)
            base.execute("SELECT count(*) FROM contents").fetchone()
        except sqlite3.DatabaseError:
            base.close()
            raise
        return base

    def _begin_anew(self) -> None:
        """Without what cannot be read; where that fails, without keeping anything."""
        if self._base is not None:
            with suppress(sqlite3.Error):
                self._base.close()
        self._base = None
        try:
            if self.path.is_file() and not self.path.is_symlink():
                self.path.unlink()
            with suppress(FileNotFoundError):
                self.path.with_name(f"{self.path.name}-journal").unlink()
            self._base = self._opened()
        except (OSError, sqlite3.Error) as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        self._base = None
        self.warning = (
            f"results are not kept in {self.path} ({error}): the next fit reads all recordings "
            "again. Choose another folder (--cache FOLDER) or none (--cache off)."
        )

    def _trying(self, action: Callable[[sqlite3.Connection], Any], default: Any) -> Any:
        if self._base is None:
            return default
        try:
            return action(self._base)
        except sqlite3.OperationalError as error:  # locked, full, read-only
            with suppress(sqlite3.Error):
                self._base.rollback()
            if "locked" not in str(error):
                self._stop(error)
            return default
        except sqlite3.DatabaseError:
            self._begin_anew()
            return default

    def get(self, key: bytes) -> Any:
        """The result, or MISSING."""
        return next(iter(self.many([key]).values()), MISSING)

    def many(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """The results that are there and whole."""
        out: dict[bytes, Any] = {}
        for some in _some(list(keys), _AT_ONCE):
            marks = ",".join("?" * len(some))
            query = f"SELECT key, value FROM results WHERE key IN ({marks})"
            for key, value in self._trying(lambda b: b.execute(query, some).fetchall(), []):  # noqa: B023
                with suppress(DamagedError):
                    out[key] = unpack(value)
        return out

    def in_order(
        self, keys: Sequence[bytes], there: Container[bytes]
    ) -> Iterator[tuple[bytes, Any]]:
        """Every key with its result, or with MISSING; some are read at a time.

        Args:
            keys: Of the results.
            there: Those that are worth looking for.
        """
        for some in _some(list(keys), _READ):
            found = self.many(key for key in some if key in there)
            for key in some:
                yield key, found.get(key, MISSING)

    def there(self, keys: Iterable[bytes]) -> set[bytes]:
        """Which results are there; that they are whole shows when they are read."""
        out: set[bytes] = set()
        for some in _some(list(keys), _AT_ONCE):
            query = f"SELECT key FROM results WHERE key IN ({','.join('?' * len(some))})"
            out |= {row[0] for row in self._trying(lambda b: b.execute(query, some).fetchall(), [])}  # noqa: B023
        return out

    def put(self, key: bytes, value: Any) -> None:
        """Keep a result."""
        data = pack(value)
        row = (key, time.time(), len(data), data)
        line = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)"
        self._trying(lambda base: base.execute(line, row), None)
        if time.monotonic() - self._last > _COMMIT_S:
            self.commit()

    def key(self, *things: Any) -> bytes:
        """Of a result: what decides it, and this version of taufit."""
        return digest(code_digest(), *things)

    def content(self, path: Path) -> str:
        """SHA-256 of a file, read once: as long as nothing about it has changed, it has not.

        Size, inode, and the times at which its content and its entry in the folder changed: a file
        that was written to and given its old time again has another of those. A folder's is that of
        all it holds, read every time.
        """
        if not path.is_file():
            self.reads += 1
            return content_of(path)
        status = path.stat()
        now = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        name = os.path.realpath(path)
        known = self._contents.get(name)
        if known is not None and known[:4] == now:
            return str(known[4])
        found = content_of(path)
        self.reads += 1
        line = "INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?, ?)"
        self._trying(lambda base: base.execute(line, (name, *now, found)), None)
        self._contents[name] = (*now, found)
        return found

    @cached_property
    def _contents(self) -> dict[str, tuple[Any, ...]]:
        """What is known of files, all at once: folders have thousands."""
        rows = self._trying(lambda base: base.execute("SELECT * FROM contents").fetchall(), [])
        return {row[0]: tuple(row[1:]) for row in rows}

    def commit(self) -> None:
        """What was kept so far lasts."""
        self._trying(lambda base: base.commit(), None)
        self._last = time.monotonic()

    def close(self) -> None:
        """Let go of the file; the oldest entries leave one that is too large."""
        self._trying(_shortened, None)
        self.commit()
        if self._base is not None:
            self._base.close()
            self._base = None

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_cache(folder: str | os.PathLike[str]) -> Cache:
    """The results kept in a folder."""
    return Cache(Path(folder) / NAME)


def content_of(path: Path) -> str:
    """SHA-256 of a file's bytes; of the names and bytes of all files for a folder."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        if file is not path:
            total.update(str(file.relative_to(path)).encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                total.update(chunk)
    return total.hexdigest()


def _shortened(base: sqlite3.Connection) -> None:
    size = base.execute("SELECT coalesce(sum(bytes), 0) FROM results").fetchone()[0]
    if size > _LARGEST:
        middle = (
            "SELECT made FROM results ORDER BY made LIMIT 1 OFFSET (SELECT count(*)/2 FROM results)"
        )
        base.execute(f"DELETE FROM results WHERE made < ({middle})")


def _some(things: list[Any], most: int) -> Iterator[list[Any]]:
    for first in range(0, len(things), most):
        yield things[first : first + most]
