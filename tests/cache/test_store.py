"""Results are found again by key, by whoever kept them and by nobody else, whatever lies there."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import secrets
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from taufit.core.compute.cache import MISSING, open_cache, store as store_module
from taufit.core.compute.cache.digest import code_digest
from taufit.core.compute.cache.pack import DamagedError, pack, unpack
from taufit.regression import Information
from taufit.regression.noise_model import AutoregressiveNoise

SECRET = bytes(range(32))
KEY = b"entry"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own: its key, its cache."""
    folder = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return folder


def files(cache):
    return [path for path in cache.path.glob("??/*") if path.is_file()]


def same(one, other):
    """Equal in kind and content."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and all(map(same, one, other)) and len(one) == len(other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    return type(one) is type(other) and (one == other or one != one)


def test_what_is_kept_is_found_by_the_next(tmp_path):
    value = Information.from_rows(("a", "b"), np.arange(8.0).reshape(4, 2), np.ones(4))
    with open_cache(tmp_path) as cache:
        assert cache.get(b"key") is MISSING
        cache.put(b"key", (value, {"rate": 3.0}))
    with open_cache(tmp_path) as cache:
        found, more = cache.get(b"key")
        assert cache.existing_keys([b"key", b"other"]) == {b"key"}

    np.testing.assert_array_equal(found.factor, value.factor)
    assert (found.names, found.residual, found.count) == (value.names, value.residual, value.count)
    assert more == {"rate": 3.0}


VALUES = [
    None, True, 3, -2.5, float("inf"), float("nan"), "\x1b\ud800 text", b"\0\xff", 1 - 2j,
    (1, [2.0, (3,)], {"a": {1, 2}, 4: frozenset("x")}), slice(1, None, 2), Path("a/b"),
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(4)[::2], np.array([True, False]), np.float32(2.5), np.int64(7), np.zeros((0, 3)),
    np.array(["a", "bcd"]), np.array([1 + 2j]), np.array([np.nan, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_in_kind_and_content(value):
    assert same(unpack(pack(value, KEY, SECRET), KEY, SECRET), value)


def test_an_array_in_two_places_is_kept_once_and_comes_back_writable():
    array = np.zeros(1000)
    data = pack((array, array), KEY, SECRET)
    one, other = unpack(data, KEY, SECRET)
    assert len(data) < 9000 and one is other and one.flags.writeable


def test_information_keeps_the_triangle_only():
    p = 60
    rng = np.random.default_rng(0)
    names = tuple(f"p{i}" for i in range(p))
    value = Information.from_rows(names, rng.normal(size=(200, p)), rng.normal(size=200))
    data = pack(value, KEY, SECRET)
    found = unpack(data, KEY, SECRET)
    assert len(data) < 1.1 * len(pickle.dumps(value, protocol=5))
    np.testing.assert_array_equal(found.factor, value.factor)


def test_a_class_of_plain_attributes_comes_back():
    noise = AutoregressiveNoise([np.array([1.0, -0.5])], np.eye(1), np.ones(1), np.ones(1))
    found = unpack(pack(noise, KEY, SECRET), KEY, SECRET)
    np.testing.assert_array_equal(found.filters[0], noise.filters[0])


@dataclass(frozen=True)
class Elsewhere:
    x: int = 0


class Hostile:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize("value", [Elsewhere(), Hostile(), os.path.join, np.array([object()])])
def test_what_is_not_a_result_is_not_kept(value, tmp_path):
    with pytest.raises(TypeError):
        pack(value, KEY, SECRET)
    with open_cache(tmp_path) as cache:
        cache.put(KEY, value)
        assert cache.get(KEY) is MISSING and cache.warning == ""


@pytest.mark.parametrize(
    "page",
    [
        '["object","os:system","true"]',
        '["object","taufit.core.files:replacing"]',
        '["state","builtins:set",[]]',
        '["object","tests.cache.test_store:Elsewhere",1]',
        '["unheard",1]',
        '["array",3]',
        "[" * 100_000,
    ],
)
def test_a_signed_page_makes_results_only(page):
    """Even with the right hash: no class of others, no function."""
    from taufit.core.compute.cache import pack as module

    head = f"[[],{page}]".encode()
    body = [len(head).to_bytes(8, "little"), module._pad(head)]
    with pytest.raises(DamagedError):
        unpack(b"".join((module._MARK, module._hash(KEY, SECRET, body), *body)), KEY, SECRET)


def test_a_signed_array_of_another_type_is_refused():
    from taufit.core.compute.cache import pack as module

    head = b'[[["|O",[1],"C"]],["array",0]]'
    body = [len(head).to_bytes(8, "little"), module._pad(head), b"A" * 8]
    with pytest.raises(DamagedError, match="not kept"):
        unpack(b"".join((module._MARK, module._hash(KEY, SECRET, body), *body)), KEY, SECRET)


def test_every_bit_counts():
    data = pack((np.arange(3.0), "x"), KEY, SECRET)
    for place in range(len(data)):
        for bit in (0, 7):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            with pytest.raises(DamagedError):
                unpack(bytes(changed), KEY, SECRET)
    for length in range(len(data)):
        with pytest.raises(DamagedError):
            unpack(data[:length], KEY, SECRET)
    for more in (b"\0", data):
        with pytest.raises(DamagedError):
            unpack(data + more, KEY, SECRET)


def test_entries_of_others_and_of_other_keys_are_as_good_as_none(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.put(b"one", 1.0)
        cache.put(b"two", 2.0)
        one, two = cache._file(b"one"), cache._file(b"two")
        whole = one.read_bytes()
        damaged = {
            "swapped": two.read_bytes(),
            "foreign": pack(3.0, b"one", secrets.token_bytes(32)),
            "pickled": pickle.dumps(Hostile()),
            "cut": whole[:-1],
            "empty": b"",
        }
    for name, content in damaged.items():
        one.write_bytes(content)
        with open_cache(tmp_path) as cache:
            assert cache.get(b"one") is MISSING, name
            assert "made again" in cache.warning
            assert cache.get(b"two") == 2.0
            cache.put(b"one", 1.0)
            assert cache.get(b"one") == 1.0


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device"])
def test_what_is_no_file_is_as_good_as_none(tmp_path, kind):
    with open_cache(tmp_path) as cache:
        cache.put(b"one", 1.0)
        path = cache._file(b"one")
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero" if kind == "device" else path.with_name("nothing"))
        assert cache.get(b"one") is MISSING


def test_the_key_is_the_users_alone(tmp_path, home):
    with open_cache(tmp_path) as cache:
        cache.put(b"one", 1.0)
    path = home / "state" / "taufit" / "cache.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(path.read_bytes()) == 32
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["cache.key"]
    for spoil, word in (
        (lambda: path.chmod(0o644), "others may read"),
        (lambda: (path.chmod(0o600), path.write_bytes(b"short")), "damaged"),
        (lambda: (path.unlink(), path.symlink_to("/dev/zero")), "not kept"),
    ):
        spoil()
        with open_cache(tmp_path) as cache:
            assert cache.get(b"one") is MISSING and word in cache.warning
            cache.put(b"one", 2.0)
            assert cache.get(b"one") is MISSING


def test_a_lost_key_is_an_empty_cache_and_one_line(tmp_path, home):
    with open_cache(tmp_path) as cache:
        cache.put(b"one", 1.0)
    (home / "state" / "taufit" / "cache.key").unlink()
    with open_cache(tmp_path) as cache:
        assert "lost" in cache.warning and cache.get(b"one") is MISSING
        cache.put(b"one", 1.0)
    with open_cache(tmp_path) as cache:
        assert cache.warning == "" and cache.get(b"one") == 1.0


def test_a_folder_that_others_write_to_is_not_used(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.put(b"one", 1.0)
    cache.path.chmod(0o777)
    with open_cache(tmp_path) as cache:
        assert "others may write" in cache.warning and cache.get(b"one") is MISSING


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_not_used(tmp_path):
    with open_cache(tmp_path) as cache:
        pass
    os.chown(cache.path, 12345, 12345)
    with open_cache(tmp_path) as cache:
        assert "another user" in cache.warning


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "XDG_STATE_HOME"])
def test_an_odd_home_is_a_warning(tmp_path, monkeypatch, variable):
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    with open_cache() as cache:
        cache.put(b"key", 1)
        assert cache.get(b"key") is MISSING
        assert "--cache off" in cache.warning


def test_a_full_disk_is_a_warning_and_what_was_kept_stays(tmp_path, monkeypatch):
    with open_cache(tmp_path) as cache:
        cache.put(b"small", 1)

    def full(path, data):
        path.write_bytes(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, open_cache(tmp_path) as cache:
        patch.setattr(store_module, "_write", full)
        cache.put(b"large", np.zeros(10**6))
        assert "No space" in cache.warning and "--cache off" in cache.warning
        cache.put(b"more", 2)
    with open_cache(tmp_path) as cache:
        assert cache.get(b"small") == 1 and cache.warning == ""
        assert cache.get(b"large") is MISSING and cache.get(b"more") is MISSING
        assert len(files(cache)) == 1


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


def test_results_come_in_the_order_they_are_asked_for(tmp_path):
    keys = [f"{k:04d}".encode() for k in range(250)]
    with open_cache(tmp_path) as cache:
        for k in range(0, 250, 2):
            cache.put(keys[k], k)
        found = list(cache.in_order(keys, set(keys)))
        assert [key for key, _ in found] == keys
        assert [value for _, value in found] == [k if k % 2 == 0 else MISSING for k in range(250)]
        assert list(cache.in_order(keys[:2], {})) == [(keys[0], MISSING), (keys[1], MISSING)]


def test_old_temporaries_and_the_oldest_results_are_swept(tmp_path, monkeypatch):
    with open_cache(tmp_path) as cache:
        for k in range(10):
            cache.put(bytes([k]), np.full(100, float(k)))
            os.utime(cache._file(bytes([k])), (k, k))
        (cache.path / "00" / ".new-dead").touch()
        os.utime(cache.path / "00" / ".new-dead", (0, 0))
        (cache.path / "00" / ".new-alive").touch()
    assert not (cache.path / "00" / ".new-dead").exists()
    assert (cache.path / "00" / ".new-alive").exists()
    assert len(files(cache)) == 11

    monkeypatch.setattr(store_module, "_MAX_BYTES", 5000)
    (cache.path / "swept").unlink()
    with open_cache(tmp_path) as cache:
        pass
    with open_cache(tmp_path) as cache:
        left = [k for k in range(10) if cache.get(bytes([k])) is not MISSING]
    assert left == list(range(10 - len(left), 10)) and 3 <= len(left) <= 5


def _work(folder, seed, wrong, rounds=400):
    rng = np.random.default_rng(seed)
    with open_cache(folder) as cache:
        for _ in range(rounds):
            k = int(rng.integers(40))
            found = cache.get(bytes([k]))
            if found is MISSING:
                cache.put(bytes([k]), np.full(500, k))
            elif not np.array_equal(found, np.full(500, k)):
                wrong.value += 1
            if rng.random() < 0.1:
                cache._file(bytes([k])).unlink(missing_ok=True)


def test_eight_at_once_and_one_killed(tmp_path):
    context = multiprocessing.get_context("fork")
    wrong = context.Value("i", 0)
    # The first goes on until it is killed.
    rounds = [10**9, *[400] * 7]
    workers = [
        context.Process(target=_work, args=(tmp_path, seed, wrong, rounds[seed]))
        for seed in range(8)
    ]
    for worker in workers:
        worker.start()
    time.sleep(0.1)
    os.kill(workers[0].pid, signal.SIGKILL)
    for worker in workers:
        worker.join()
    assert wrong.value == 0
    assert [worker.exitcode for worker in workers[1:]] == [0] * 7
    with open_cache(tmp_path) as cache:
        there = [k for k in range(40) if cache.existing_keys([bytes([k])])]
        assert all(np.array_equal(cache.get(bytes([k])), np.full(500, k)) for k in there)
        assert cache.warning == ""


def test_a_change_of_any_room_is_another_version(monkeypatch, tmp_path):
    """The digest of the code covers the package, not a folder of it."""
    import shutil

    import taufit

    before = code_digest()
    copy = tmp_path / "taufit"
    left_out = shutil.ignore_patterns("__pycache__", "*.so", "*.json")
    shutil.copytree(Path(taufit.__file__).parent, copy, ignore=left_out)
    monkeypatch.setattr(taufit, "__file__", str(copy / "__init__.py"))
    assert code_digest.__wrapped__() == before
    path = copy / "regression" / "information.py"
    path.write_text(path.read_text() + "\n")
    assert code_digest.__wrapped__() != before
