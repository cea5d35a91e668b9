"""Whose recording a file is, and of which day."""

from __future__ import annotations

import pytest

from taufit.core.errors import RecordingError
from taufit.fleet.places import find_places


@pytest.mark.parametrize(
    ("name", "robot", "day"),
    [
        ("cell_7/monday/run.parquet", "cell_7", "monday"),
        ("cell_7/2026-03-01.parquet", "cell_7", "2026-03-01"),
        ("cell_7/20260301_120000.parquet", "cell_7", "2026-03-01"),
        ("cell_7/2026-03-01/run_3.csv", "cell_7", "2026-03-01"),
        ("robot=R9/day=17/a.parquet", "R9", "17"),
        ("day=17/robot=R9/a.parquet", "R9", "17"),
        ("cell_7_2026-03-01.parquet", "cell_7", "2026-03-01"),
        ("cell_7.parquet", "cell_7", ""),
    ],
)
def test_names_below_the_path_say_robot_and_day(tmp_path, name, robot, day):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12")

    (place,) = find_places(str(tmp_path))
    assert (place.robot, place.day, place.name, place.size) == (robot, day, name, 2)
    (place,) = find_places(str(tmp_path), by=("robot",))
    assert (place.robot, place.day) == (robot, "")


def test_a_memory_store_gives_the_same_places(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for name in ("a/1.parquet", "b/2.parquet", "b/notes.txt"):
        system.pipe(f"/plant/{name}", b"123")
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"123")

    remote = find_places("memory://plant")
    assert [(p.name, p.robot, p.day, p.size) for p in remote] == [
        (p.name, p.robot, p.day, p.size) for p in find_places(str(tmp_path))
    ]
    with remote[0].local() as path:
        assert path.read_bytes() == b"123" and path.suffix == ".parquet"
    assert not path.exists()


@pytest.mark.parametrize("path", ["memory://nothing", "nowhere://x", "s3:///"])
def test_a_path_without_recordings_is_refused(path):
    pytest.importorskip("fsspec")
    with pytest.raises(RecordingError):
        find_places(path)
