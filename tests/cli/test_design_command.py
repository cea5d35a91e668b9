"""`taufit design`: every kind of motion in words, and the options that only some of them have."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.cli import main
from taufit.excitation import read_motion


def run(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main(["design", *map(str, words)])
    printed = capsys.readouterr()
    return stop.value.code or 0, printed.out, printed.err


def test_a_friction_test_names_its_joints_and_speeds_and_comes_in_every_form(tmp_path, capsys):
    forms = [tmp_path / f"m.{ending}" for ending in ("json", "csv", "script", "yaml")]
    code, out, err = run(
        capsys, "ur3", "--kind", "friction-test", "--joint", 2, "--speeds", "5,15,40",
        "-o", forms[0], "--csv", forms[1], "--urscript", forms[2], "--ros2", forms[3],
    )  # fmt: skip
    assert code == 0, err
    assert "joint 2: 3 speeds up to 0.698 rad/s" in out and "`taufit friction`" in out
    assert all(path.stat().st_size > 1000 for path in forms)
    motion = read_motion(forms[0])
    position, velocity, _ = motion.at(np.arange(0.0, motion.duration, 0.01))
    assert np.abs(velocity[:, 1]).max() == pytest.approx(np.radians(40.0), rel=5e-3)
    assert np.ptp(position[:, [0, 2, 3, 4, 5]], axis=0).max() < 1e-9
    table = np.loadtxt(forms[1], delimiter=",", skiprows=1)
    assert np.abs(table[:, 1:7] - motion.at(table[:, 0])[0]).max() < 1e-6


def test_a_motion_for_a_parts_inertia_says_what_it_reaches(tmp_path, capsys):
    noise = "1,1,1,0.5,0.5,0.5"
    path = tmp_path / "m.json"
    code, out, err = run(
        capsys, "ur3", "--kind", "payload-inertia", "--part-mass", 2, "--torque-noise", noise,
        "--seconds", 0.2, "-o", path,
    )  # fmt: skip
    assert code == 0, err
    assert "Expected standard deviations" in out and "Ixx" in out and "was wanted" in out


def test_splines_and_harmonics_per_joint_are_the_motion_that_is_written(tmp_path, capsys):
    path = tmp_path / "m.json"
    free = ("ur3", "--free-space", "--seconds", 0.1, "-o", path)
    code, out, err = run(capsys, *free, "--splines", 8)
    assert code == 0 and out.startswith("An identification motion of 10 s"), err
    assert type(read_motion(path)).__name__ == "Spline"
    few = "3,3,3,2,2,2"
    code, _, err = run(capsys, *free, "--joint-harmonics", few)
    assert code == 0, err
    motion = read_motion(path)
    used = np.hypot(motion.sine, motion.cosine) > 1e-12
    assert [int(np.flatnonzero(row).max()) + 1 for row in used] == [3, 3, 3, 2, 2, 2]


@pytest.mark.parametrize(
    "words, says",
    [
        (("--splines", "3"), "at least 6 pieces"),
        (("--joint-harmonics", "9,3,3,2,2,2"), "whole numbers from 2 to"),
        (("--joint-harmonics", "3,3"), "6"),
        (("--kind", "friction-test", "--speeds", "5,-5"), "must be positive"),
        (("--kind", "friction-test", "--joint", "7"), "joints 1 to 6, not 7"),
        (("--kind", "payload-inertia", "--torque-noise", "1,1,1,1,1,0"), "must be positive"),
    ],
)
def test_values_that_cannot_be_meant_are_wrong_usage(tmp_path, capsys, words, says):
    code, _, err = run(capsys, "ur3", *words, "-o", tmp_path / "m.json")
    assert code == 2 and says in " ".join(err.split())
    assert not (tmp_path / "m.json").exists()


def test_an_envelope_bounds_the_next_motion(tmp_path, capsys):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    code, _, err = run(
        capsys, "ur3", "--free-space", "--seconds", 0.1, "--speed", 0.3, "--acceleration", 5,
        "-o", first,
    )  # fmt: skip
    assert code == 0, err
    code, _, err = run(
        capsys, "ur3", "--free-space", "--seconds", 0.2, "--envelope", first, "--seed", 3,
        "-o", second,
    )  # fmt: skip
    assert code == 0, err
    old, new = (read_motion(path) for path in (first, second))
    ranges = [motion.at(np.linspace(0.0, motion.duration, 2000)) for motion in (old, new)]
    (q_old, *rates_old), (q_new, *rates_new) = ranges
    slack = 1e-3 * np.ptp(q_old, axis=0)
    assert (q_new.max(0) <= q_old.max(0) + slack).all()
    assert (q_new.min(0) >= q_old.min(0) - slack).all()
    for before, after in zip(rates_old, rates_new, strict=True):
        assert (np.abs(after).max(0) <= np.abs(before).max(0) * 1.001).all()
