"""What is wrong with a recording is named by row, column and value, and nothing goes silently."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recording, recording_quality, timing, write_recording

N = 1000
TIME = np.arange(N) * 0.01
FREQUENCY = np.array([1.0, 2.0, 3.0])
POSITION = np.sin(TIME[:, None] * FREQUENCY)
VELOCITY = FREQUENCY * np.cos(TIME[:, None] * FREQUENCY)
SIGNAL = np.random.default_rng(1).normal(size=(N, 3))
NAMES = ["t", *(f"{p}{j}" for p in ("q", "v", "tau") for j in (1, 2, 3))]
MAP = {
    "columns": {"time": "t", "position": "q{joint}", "velocity": "v{joint}", "torque": "tau{joint}"}
}


def read(tmp_path, values=None, time=TIME, position=POSITION, velocity=VELOCITY, signal=SIGNAL):
    table = np.column_stack([time, position, velocity, signal]).tolist()
    cells = [[repr(x) for x in row] for row in table]
    for (row, name), text in (values or {}).items():
        cells[row - 1][NAMES.index(name)] = text
    lines = [",".join(NAMES), *(",".join(row) for row in cells)]
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    return read_recording(tmp_path / "run.csv", column_map=MAP)


def found(recording):
    return {finding.kind: finding for finding in recording.findings}


def test_a_clean_recording_has_nothing_but_the_assumed_gain(tmp_path):
    recording = read(tmp_path)
    assert set(found(recording)) == {"gain_assumed"}
    assert len(recording) == N and recording.meta["rows"] == N


def test_corrupt_cells_are_named(tmp_path):
    bad = {(7, "q2"): "nan", (20, "tau1"): "abc", (21, "v3"): "1e200", (500, "t"): ""}
    recording = read(tmp_path, bad)
    finding = found(recording)["corrupt_rows"]
    assert finding.rows == (7, 20, 21, 500)
    for part in ("row 7: column q2 holds nan", "row 20: column tau1 holds 'abc'", "1e+200"):
        assert part in finding.message
    assert len(recording) == N - 4
    assert TIME[6] not in recording.time


def test_a_mostly_broken_file_is_refused(tmp_path):
    bad = {(row, "q1"): "x" for row in range(1, N, 4)}
    with pytest.raises(RecordingError, match=r"250 of 1000 rows.*row 1: column q1 holds 'x'"):
        read(tmp_path, bad)


def test_a_channel_that_is_mostly_missing_is_left_out_as_a_whole(tmp_path):
    velocity = VELOCITY.copy()
    velocity[::2] = np.nan
    recording = read(tmp_path, velocity=velocity)
    assert recording.velocity is None and len(recording) == N
    assert "missing_values" in found(recording)


def test_repeated_time_stamps_go(tmp_path):
    repeat = np.sort(np.concatenate([np.arange(N), [10, 10, 700]]))
    recording = read(
        tmp_path,
        time=TIME[repeat],
        position=POSITION[repeat],
        velocity=VELOCITY[repeat],
        signal=SIGNAL[repeat],
    )
    assert found(recording)["duplicates"].rows == (12, 13, 704)
    np.testing.assert_array_equal(recording.time, TIME)


def test_late_rows_are_sorted_and_stray_clocks_dropped(tmp_path):
    order = np.arange(N)
    order[[300, 301]] = [301, 300]
    recording = read(
        tmp_path,
        time=TIME[order],
        position=POSITION[order],
        velocity=VELOCITY[order],
        signal=SIGNAL[order],
    )
    np.testing.assert_array_equal(recording.signal, SIGNAL)
    assert "sorted" in found(recording)["time_order"].action

    recording = read(tmp_path, {(400, "t"): "1e6"})
    assert found(recording)["time_order"].rows == (400,)
    assert len(recording) == N - 1


def test_two_runs_in_one_file_are_not_taken_for_one(tmp_path):
    with pytest.raises(RecordingError, match=r"several runs.*`run`"):
        read(tmp_path, time=np.concatenate([TIME[:500], TIME[:500]]))


def test_a_clock_that_leaps_at_the_end_does_not_make_a_year_long_run(tmp_path):
    recording = read(tmp_path, {(N, "t"): "31536000.0"})
    assert recording.time[-1] < 11
    assert found(recording)["impossible_rows"].rows == (N,)


def test_rows_the_arm_cannot_have_been_in(tmp_path):
    bad = {(33, "q1"): "0.0", (200, "q3"): "253.0", (201, "q3"): "30.8"}
    recording = read(tmp_path, bad)
    # Row 33 lies 0.3 rad off: 30 rad/s there and back.
    assert found(recording)["impossible_rows"].rows == (33, 200, 201)


def test_fast_but_real_motion_stays(tmp_path):
    time = np.arange(N) * 0.002
    angle = 1.2 * np.tanh((time - 1.0) * 40)[:, None] * [1, 0, 0] + 0.1
    speed = np.gradient(angle, time, axis=0)
    assert np.abs(speed).max() > 40
    recording = read(tmp_path, time=time, position=angle, velocity=speed)
    assert len(recording) == N
    without = {"columns": {k: v for k, v in MAP["columns"].items() if k != "velocity"}}
    assert len(read_recording(tmp_path / "run.csv", column_map=without)) == N


def test_jumps_between_long_intervals_are_told_not_cured(tmp_path):
    position = POSITION + np.where(TIME > 5, 1.5, 0)[:, None] * [0, 1, 0]
    recording = read(tmp_path, position=position)
    jump = found(recording)["jump"]
    assert jump.joint == 2 and jump.severity == "error" and len(recording) == N


def test_gaps_are_counted_and_located(tmp_path):
    keep = np.ones(N, bool)
    keep[100:103] = keep[600:620] = False
    recording = read(
        tmp_path,
        time=TIME[keep],
        position=POSITION[keep],
        velocity=VELOCITY[keep],
        signal=SIGNAL[keep],
    )
    gaps = found(recording)["gaps"]
    assert gaps.rows == (101, 598) and gaps.value == 23
    assert gaps.time == pytest.approx(5.99)
    assert recording.meta["lost_samples"] == 23


@pytest.mark.parametrize(
    ("scale", "kind", "guess"),
    [
        (180 / np.pi, "unit", "degrees per second"),
        (-1, "velocity_sign", "other sign"),
        (3, "unit", "scale"),
    ],
)
def test_velocities_that_do_not_fit_the_positions(tmp_path, scale, kind, guess):
    recording = read(tmp_path, velocity=VELOCITY * [1, scale, 1])
    finding = found(recording)[kind]
    assert finding.joint == 2 and guess in finding.message
    assert finding.value == pytest.approx(scale, rel=0.01)


def test_degrees_called_radians_are_suspected(tmp_path):
    recording = read(tmp_path, position=np.degrees(POSITION))
    assert "positions are in degrees" in found(recording)["unit"].message


@pytest.mark.parametrize(
    ("factor", "kind", "words"),
    [
        (180 / np.pi, "unit", "deg/s"),
        (60 / (2 * np.pi), "unit", "rpm"),
        (1e3, "unit", "time is in ms"),
        (101.0, "unit", "motor's own speed"),
        (2.0, "clock_scale", "rate_hz"),
        (-1.0, "velocity_sign", "other sign"),
    ],
)
def test_one_finding_names_the_unit_of_all_joints(tmp_path, factor, kind, words):
    recording = read(tmp_path, velocity=VELOCITY * factor)
    named = [f for f in recording.findings if f.severity == "error"]
    assert len(named) == 1 and named[0].kind == kind and words in named[0].message


def test_stuck_channels_and_resting_joints_are_told(tmp_path):
    recording = read(
        tmp_path,
        position=POSITION * [1, 0, 1],
        velocity=VELOCITY * [1, 0, 1],
        signal=SIGNAL * [1, 1, 0],
    )
    assert found(recording)["constant_position"].joint == 2
    assert found(recording)["constant_signal"].joint == 3


def test_a_file_cut_within_a_number_loses_its_last_row(tmp_path):
    read(tmp_path)
    path = tmp_path / "run.csv"
    path.write_text(path.read_text()[:-6])
    recording = read_recording(path, column_map=MAP)
    assert found(recording)["cut_row"].rows == (N,)
    assert len(recording) == N - 1


def test_a_damaged_gzip_gives_what_comes_before(tmp_path):
    import gzip

    read(tmp_path)
    packed = gzip.compress((tmp_path / "run.csv").read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    recording = read_recording(tmp_path / "cut.csv.gz", column_map=MAP)
    assert 100 < len(recording) < 900 and "truncated" in found(recording)
    np.testing.assert_array_equal(recording.signal, SIGNAL[: len(recording)])


def test_timing_of_a_jittered_clock():
    rng = np.random.default_rng(0)
    steps = rng.normal(0.002, 1e-4, 5000)
    steps[[100, 2000]] = 0.010
    clock = timing(np.cumsum(steps))
    assert clock.nominal_hz == 500
    assert clock.gaps.tolist() == [99, 1999] and clock.lost == 8
    assert clock.jitter == pytest.approx(1e-4, rel=0.05)


def test_rest_and_motion_windows():
    time = np.arange(0, 10, 0.01)
    moving = (time > 2) & (time < 7)
    speed = np.where(moving, np.sin((time - 2) * 3) + 1.5, 0)
    position = np.cumsum(speed)[:, None] * 0.01
    signal = np.ones_like(position)
    for velocity in (speed[:, None], None):
        recording = Recording(time=time, position=position, signal=signal, velocity=velocity)
        page = recording_quality(recording)
        # Without a velocity it is taken over 100 ms, so windows end half of that off.
        np.testing.assert_allclose(page.rest, [(0, 2), (7, 9.99)], atol=0.06)
        np.testing.assert_allclose(page.motion, (2, 7), atol=0.06)


def test_angles_logged_modulo_a_turn_become_continuous(tmp_path):
    turning = POSITION + TIME[:, None] * [2.0, 0, -3.0]
    wrapped = (turning + np.pi) % (2 * np.pi) - np.pi
    recording = read(tmp_path, position=wrapped, velocity=VELOCITY + [2.0, 0, -3.0])
    turns = np.round((turning[0] - recording.position[0]) / (2 * np.pi))
    np.testing.assert_allclose(recording.position + 2 * np.pi * turns, turning, atol=1e-12)
    assert {f.joint for f in recording.findings if f.kind == "wrapped"} == {1, 3}
    assert len(recording) == N and "jump" not in found(recording)


def test_milliseconds_taken_for_seconds_are_suspected(tmp_path):
    finding = found(read(tmp_path, time=TIME * 1e3, velocity=VELOCITY * 1e-3))["unit"]
    assert "`unit: ms` at time" in finding.message and finding.value == pytest.approx(0.1)


def test_a_logger_faster_than_the_robot_is_found_out(tmp_path):
    hold = np.arange(N) // 2 * 2
    parts = (POSITION[hold], VELOCITY[hold], SIGNAL[hold])
    recording = read(tmp_path, None, TIME, *parts)
    assert found(recording)["stale_rows"].value == N // 2 - 2
    resting = read(tmp_path, None, TIME, POSITION * 0, VELOCITY * 0, SIGNAL * 0)
    assert "stale_rows" not in found(resting)


def test_our_own_csv_with_damaged_cells_loses_those_rows_only(tmp_path):
    whole = Recording(TIME, POSITION, SIGNAL, velocity=VELOCITY)
    path = tmp_path / "run.csv"
    write_recording(whole, path)
    lines = path.read_text().split("\n")
    cells = lines[100].split(",")
    lines[100] = ",".join([*cells[:-1], "oops"])
    path.write_text("\n".join(lines))
    found = read_recording(path)
    assert len(found) == N - 1
    (finding,) = [f for f in found.findings if f.kind == "corrupt_rows"]
    assert len(finding.rows) == 1
