"""Folders and patterns: every recording once, repeats and links named, whatever links lie there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from taufit.core.errors import RecordingError
from taufit.recording.files import find_recordings
from taufit.recording.repeats import find_repeated_files


def make(top, *names):
    for k, name in enumerate(names):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d," % k * 100)


def names(found, top):
    return [path.relative_to(top).as_posix() for path in found.paths]


def test_loops_and_links_to_folders_are_not_followed(tmp_path):
    top, outside = tmp_path / "runs", tmp_path / "outside"
    make(top, "a.csv", "day/b.csv")
    make(outside, "c.csv")
    (top / "loop").symlink_to("..")
    (top / "day" / "up").symlink_to(top)
    (top / "elsewhere").symlink_to(outside)

    for given in (top, top / "**" / "*"):
        found = find_recordings([given])
        assert names(found, top) == ["a.csv", "day/b.csv"]
        kinds = {finding.kind for finding in found.findings}
        named = " ".join(finding.message for finding in found.findings)
        assert kinds == {"link_not_followed"}
        assert all(str(top / link) in named for link in ("loop", "day/up", "elsewhere"))
    # The folder itself may be a link: it was named.
    (tmp_path / "alias").symlink_to(top)
    assert len(find_recordings([tmp_path / "alias"]).paths) == 2


@pytest.mark.parametrize("kind", ["copy", "hard link", "link", "named twice"])
def test_equal_contents_are_named_and_refused(tmp_path, kind):
    make(tmp_path, "a.csv", "b.csv")
    first, again = tmp_path / "a.csv", tmp_path / "a (1).csv"
    given = [tmp_path]
    if kind == "copy":
        again.write_bytes(first.read_bytes())
    elif kind == "hard link":
        again.hardlink_to(first)
    elif kind == "link":
        again.symlink_to(first)
    else:
        given = [first, first]
    with pytest.raises(RecordingError, match="--allow-repeats") as refused:
        find_recordings(given)
    assert str(first) in str(refused.value)
    found = find_recordings(given, allow_repeats=True)
    assert [finding.kind for finding in found.findings] == ["repeated_file"]
    assert len(found.paths) == (2 if kind == "named twice" else 3)


def test_equal_ends_are_not_equal_contents(tmp_path):
    size = 2**19
    data = bytearray(os.urandom(size))
    (tmp_path / "a.csv").write_bytes(data)
    data[size // 2] ^= 1
    (tmp_path / "b.csv").write_bytes(data)
    assert find_repeated_files([tmp_path / "a.csv", tmp_path / "b.csv"]) == {}


def test_bags_that_are_folders_are_compared_by_all_they_hold(tmp_path):
    for name, content in (("one", b"1"), ("two", b"1"), ("three", b"2")):
        make(tmp_path, f"{name}/metadata.yaml")
        (tmp_path / name / "data.db3").write_bytes(content)
    bags = [tmp_path / name for name in ("one", "two", "three")]
    assert find_repeated_files(bags) == {1: 0}


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    make(tmp_path, "a.csv", "shut/b.csv")
    real = os.scandir

    def scandir(path):
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(RecordingError, match=r"shut cannot be looked through: Permission denied"):
        find_recordings([tmp_path])


def test_ten_thousand_small_files_take_seconds(tmp_path):
    for k in range(10_000):
        folder = tmp_path / f"{k // 500}"
        if k % 500 == 0:
            folder.mkdir()
        (folder / f"{k}.csv").write_bytes(b"%09d" % k)
    began = time.process_time()
    found = find_recordings([tmp_path])
    assert len(found.paths) == 10_000
    # 0.9 s measured.
    assert time.process_time() - began < 10.0
