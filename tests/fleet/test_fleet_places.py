"""Whose recording a file is, and of which day."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from taufit.core.errors import RecordingError
from taufit.fleet.fleet_files import find_fleet_files, without_repeats
from taufit.fleet.result import FleetResult


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

    (place,) = find_fleet_files(str(tmp_path))
    assert (place.robot, place.day, place.name, place.size) == (robot, day, name, 2)
    (place,) = find_fleet_files(str(tmp_path), by=("robot",))
    assert (place.robot, place.day) == (robot, "")


def test_a_memory_store_gives_the_same_places(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for name in ("a/1.parquet", "b/2.parquet", "b/notes.txt"):
        system.pipe(f"/plant/{name}", b"123")
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"123")

    remote = find_fleet_files("memory://plant")
    assert [(p.name, p.robot, p.day, p.size) for p in remote] == [
        (p.name, p.robot, p.day, p.size) for p in find_fleet_files(str(tmp_path))
    ]
    with remote[0].local() as path:
        assert path.read_bytes() == b"123" and path.suffix == ".parquet"
    assert not path.exists()


@pytest.mark.parametrize("path", ["memory://nothing", "nowhere://x", "s3:///"])
def test_a_path_without_recordings_is_refused(path):
    pytest.importorskip("fsspec")
    with pytest.raises(RecordingError):
        find_fleet_files(path)


@pytest.mark.parametrize(
    ("name", "robot", "day"),
    [
        ("gain=2/monday/run.parquet", "gain=2", "monday"),
        ("robot=R9/rate=500/a.parquet", "R9", "rate=500"),
        ("robot=/a=b/c.parquet", "robot=", "a=b"),
    ],
)
def test_names_with_an_equals_sign_are_names(tmp_path, name, robot, day):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12")
    (place,) = find_fleet_files(str(tmp_path))
    assert (place.robot, place.day) == (robot, day)


def test_repeats_are_refused_and_shared_ones_are_nobodys(tmp_path):
    for name, content in (
        ("r1/a.csv", b"1"), ("r1/a (1).csv", b"1"), ("r1/b.csv", b"2"), ("r2/b.csv", b"2"),
        ("r2/c.csv", b"3"),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "r2" / "loop").symlink_to("..")
    kept, refused = without_repeats(find_fleet_files(str(tmp_path)))
    assert [place.name for place in kept] == ["r1/a (1).csv", "r2/c.csv"]
    assert {place.name: "whose" in why for place, why in refused} == {
        "r1/a.csv": False, "r1/b.csv": True, "r2/b.csv": True,
    }  # fmt: skip
    kept, refused = without_repeats(find_fleet_files(str(tmp_path)), allow=True)
    assert len(kept) == 5 and refused == []


def test_robots_that_differ_in_case_have_files_of_their_own():
    robots = [SimpleNamespace(robot=name) for name in ("R0", "r0", "r1", "a\x1b", "a")]
    fleet = SimpleNamespace(robots=robots)
    files = [FleetResult.file_name(fleet, one.robot) for one in robots]
    assert len({name.casefold() for name in files}) == 5
    assert files[2] == "r1.json"
