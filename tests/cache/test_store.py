"""Results kept in a file: found again where they are whole, made again where they are not."""

from __future__ import annotations

import os
import pickle
import sqlite3

import numpy as np
import pytest

from taufit.core.compute.cache import MISSING, Cache, open_cache
from taufit.core.compute.cache.pack import _MARK, DamagedError, _sum, pack, unpack
from taufit.regression import Information


def test_what_is_kept_is_found_by_the_next(tmp_path):
    value = Information.of(("a", "b"), np.arange(8.0).reshape(4, 2), np.ones(4))
    with open_cache(tmp_path) as cache:
        assert cache.get(b"key") is MISSING
        cache.put(b"key", (value, {"rate": 3.0}))
    with open_cache(tmp_path) as cache:
        found, more = cache.get(b"key")
        assert cache.there([b"key", b"other"]) == {b"key"}

    np.testing.assert_array_equal(found.factor, value.factor)
    assert (found.names, found.residual, found.count) == (value.names, value.residual, value.count)
    assert more == {"rate": 3.0}


@pytest.mark.parametrize("damage", ["flipped", "cut", "another", "empty"])
def test_a_damaged_result_is_as_good_as_none(tmp_path, damage):
    with open_cache(tmp_path) as cache:
        cache.put(b"key", np.arange(50.0))
        cache.put(b"other", 1.0)
    whole = pack(np.arange(50.0))
    bytes_ = {
        "flipped": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:],
        "cut": whole[:-3],
        "another": b"something else",
        "empty": b"",
    }[damage]
    base = sqlite3.connect(tmp_path / ".taufit-cache.sqlite")
    base.execute("UPDATE results SET value = ? WHERE key = ?", (bytes_, b"key"))
    base.commit()
    base.close()

    with open_cache(tmp_path) as cache:
        assert cache.get(b"key") is MISSING
        assert cache.get(b"other") == 1.0


@pytest.mark.parametrize("content", [b"not a database", b"", b"SQLite format 3\0" + b"\1" * 4000])
def test_a_file_that_is_no_cache_is_begun_anew(tmp_path, content):
    path = tmp_path / ".taufit-cache.sqlite"
    path.write_bytes(content)
    with open_cache(tmp_path) as cache:
        cache.put(b"key", 1)
    with open_cache(tmp_path) as cache:
        assert cache.get(b"key") == 1
        assert cache.warning == ""


class Hostile:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize("value", [Hostile(), os.path.join, np.load, Cache])
def test_bytes_from_others_call_nothing(value):
    body = pickle.dumps(value)
    with pytest.raises(DamagedError):
        unpack(_MARK + _sum(body) + body)


def test_a_place_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / ".taufit-cache.sqlite").mkdir()
    with open_cache(tmp_path) as cache:
        cache.put(b"key", 1)
        assert cache.get(b"key") is MISSING
        assert "--cache off" in cache.warning


def test_content_is_read_again_only_when_a_file_has_changed(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("1,2,3")
    with open_cache(tmp_path) as cache:
        first = cache.content(path)
        assert cache.content(path) == first and cache.reads == 1
    with open_cache(tmp_path) as cache:
        assert cache.content(path) == first and cache.reads == 0
        path.write_text("1,2,4")
        assert cache.content(path) != first and cache.reads == 1


def test_a_file_with_its_old_size_and_time_is_still_another(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("1,2,3")
    before = path.stat()
    with open_cache(tmp_path) as cache:
        first = cache.content(path)
    path.write_text("1,2,4")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    with open_cache(tmp_path) as cache:
        assert cache.content(path) != first and cache.reads == 1


def test_a_full_disk_is_a_warning_and_what_was_kept_stays(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.put(b"small", 1)
    with open_cache(tmp_path) as cache:
        # As SQLite sees a disk without room: it refuses with SQLITE_FULL.
        pages = cache._base.execute("PRAGMA page_count").fetchone()[0]
        cache._base.execute(f"PRAGMA max_page_count={pages}")
        cache.put(b"large", np.zeros(10**6))
        assert "full" in cache.warning and "--cache off" in cache.warning
        assert cache.get(b"large") is MISSING
        cache.put(b"more", 2)
    with open_cache(tmp_path) as cache:
        assert cache.get(b"small") == 1 and cache.warning == ""


def test_results_come_in_the_order_they_are_asked_for(tmp_path):
    keys = [f"{k:04d}".encode() for k in range(250)]
    with open_cache(tmp_path) as cache:
        for k in range(0, 250, 2):
            cache.put(keys[k], k)
        found = list(cache.in_order(keys, set(keys)))
        assert [key for key, _ in found] == keys
        assert [value for _, value in found] == [k if k % 2 == 0 else MISSING for k in range(250)]
        assert list(cache.in_order(keys[:2], {})) == [(keys[0], MISSING), (keys[1], MISSING)]


def test_two_at_once_do_not_lose_each_others_results(tmp_path):
    with open_cache(tmp_path) as one, open_cache(tmp_path) as other:
        one.put(b"a", 1)
        one.commit()
        other.put(b"b", 2)
        other.commit()
        assert one.get(b"b") == 2 and other.get(b"a") == 1
