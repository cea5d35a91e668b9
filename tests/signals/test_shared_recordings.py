"""What signals makes of the shared recordings: rates, gaps, windows, gains as described there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import read_recording, read_recordings
from taufit.signals import (
    Gains,
    condition,
    controller_gains,
    lowpass,
    quality_report,
    zero_phase,
)
from taufit.signals.motion_intervals import intervals

MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
CONTROLLER = np.array([11.976, 11.976, 9.839, 10.763, 10.763])

# Rows (from 1) the recordings' authors used; before and after the arm rests or moves into place.
WINDOWS = {
    "ur-20_02_10-30sec_12harm": (635, 3510),
    "ur-20_02_12-40sec_12harm": (500, 4460),
    "ur-20_02_05-20sec_8harm": (320, 2310),
    "ur-20_02_05-20sec_12harm": (605, 2710),
    "ur-20_02_06-20sec_5harm": (545, 2417),
    "ur-20_02_10-20sec_7harm": (544, 2500),
    "ur-20_01_31-unload": (300, 2623),
    "ur-20_02_19_14harm50sec": (195, 4966),
    "ur-20_02_19_14harm50secLoad": (308, 5071),
    "ur-20_01_31-load": (370, 2881),
    "ur-20_01_13-load_2600": (250, 2274),
    "ur-19_12_23_free": (1, 2005),
}


def _ur10e(data_dir, name):
    folder = data_dir / "ur10e"
    (path,) = folder.glob(f"*/{name}.csv.gz")
    return read_recording(path, column_map=MAPS / "ur10e_csv.yaml")


# The folders this file knows; others may lie beside them.
MAP_OF = {
    "ur10e": "ur10e",
    "panda": "panda",
    "kuka_lwr4": "lwr4",
    "kuka_kr300": "kr300",
    "staubli_tx40": "tx40",
    "schunk_6dof": "schunk",
}


def _everything(data_dir):
    for folder, robot in MAP_OF.items():
        for path in sorted((data_dir / folder).glob("**/*.csv.gz")):
            yield path, read_recordings(path, column_map=MAPS / f"{robot}_csv.yaml")


def test_every_shared_recording_gets_a_report_with_the_right_rate(data_dir):
    rates = {"ur10e": 94, "panda": 984, "kuka_lwr4": 200, "kuka_kr300": 250}
    rates |= {"staubli_tx40": 5000, "schunk_6dof": 250}
    count = 0
    for path, recordings in _everything(data_dir):
        expected = rates[path.relative_to(data_dir).parts[0]]
        for recording in recordings[:3]:
            report = quality_report(recording)
            (rate,) = [f for f in report if f.kind == "rate"]
            assert abs(rate.value / expected - 1) < 0.02, path
            assert any(f.kind == "motion" for f in report), path
            count += 1
    assert count >= 37


def test_the_pandas_missing_cycles_are_told(data_dir):
    ((_, (recording,)),) = [x for x in _everything(data_dir) if "panda" in x[0].name]
    (gaps,) = [f for f in quality_report(recording) if f.kind == "gaps"]
    assert "269 gaps" in gaps.message
    samples = condition(recording)
    # Up to 8.8 ms are bridged: at 10 Hz nothing happens in between.
    assert len(samples.run_slices()) == 1 and samples.rate_hz == 250.0


@pytest.mark.parametrize("name", WINDOWS)
def test_motion_windows_agree_with_the_authors(data_dir, name):
    recording = _ur10e(data_dir, name)
    samples = condition(recording, gains=np.ones(6))
    first, last = WINDOWS[name]
    time = recording.time - recording.time[0]
    theirs = (time[first - 1], time[min(last, len(time)) - 1])
    main = max(intervals(samples.in_motion), key=lambda s: s[1] - s[0])
    ours = (samples.time[main[0]], samples.time[main[1] - 1])
    overlap = min(ours[1], theirs[1]) - max(ours[0], theirs[0])
    # Their windows keep up to 2.4 s of rest; two start in the middle of a move.
    assert overlap > 0.95 * (ours[1] - ours[0])
    # At rest the controller reports a velocity of exactly zero: none of it may be in the window.
    speed = np.abs(samples.friction_velocity).max(axis=1)
    pauses = [b - a for a, b in intervals(speed[main[0] : main[1]] == 0)]
    assert max(pauses, default=0) <= 30


def test_jointwise_runs_keep_only_the_joint_that_moves(data_dir):
    for joint in (1, 4):
        samples = condition(_ur10e(data_dir, f"ur-20_01_22-joint_{joint}"), gains=np.ones(6))
        shares = samples.keep.mean(axis=0)
        assert np.argmax(shares) == joint - 1 and shares[joint - 1] > 0.9
        assert np.delete(shares, joint - 1).max() < 0.1


def test_static_poses_are_refused_for_a_fit_and_taken_when_asked_for(data_dir):
    recording = _ur10e(data_dir, "ur-20_01_17-p2")
    with pytest.raises(RecordingError, match="trim=False"):
        condition(recording)
    samples = condition(recording, trim=False)
    assert samples.keep.all() and np.std(samples.torque[:, 1]) < 0.5


@pytest.mark.parametrize("name", ["ur-20_02_10-30sec_12harm", "ur-20_02_12-40sec_12harm"])
def test_automatic_gains_of_one_log_are_the_controllers(data_dir, name):
    gains = controller_gains(_ur10e(data_dir, name))
    np.testing.assert_allclose(gains.value[:5], CONTROLLER, rtol=1e-3)
    sixth = [f for f in gains.findings if f.joint == 6]
    assert "not measurable" in sixth[0].message and "joint 5" in sixth[0].action
    assert gains.value[5] == gains.value[4] and gains.std[5] > gains.std[4]


def test_pooled_gains_of_all_logs_are_the_controllers(data_dir):
    folder = data_dir / "ur10e"
    recordings = [
        read_recording(path, column_map=MAPS / "ur10e_csv.yaml")
        for path in sorted(folder.glob("*/*.csv.gz"))
    ]
    gains = controller_gains(recordings)
    np.testing.assert_allclose(gains.value[:5], CONTROLLER, rtol=1e-3)
    assert [f.joint for f in gains.findings] == [6]


def test_files_without_targets_say_what_to_do(data_dir):
    recording = _ur10e(data_dir, "ur-19_09_27-11_28_22")
    with pytest.raises(RecordingError, match="ur-19_09_27-11_28_22") as caught:
        condition(recording)
    assert "column map" in str(caught.value)
    pooled = condition([_ur10e(data_dir, "ur-20_02_10-30sec_12harm"), recording])
    assert len(pooled.run_slices()) == 2 and np.isfinite(pooled.torque).all()


def test_noise_of_the_log_is_near_what_a_rest_shows(data_dir):
    """At rest the signal is noise on a slow drift: an independent check, within a factor."""
    recording = _ur10e(data_dir, "ur-20_01_17-p2")
    samples = condition(recording, trim=False, cutoff_hz=None, gains=Gains.from_values(np.ones(6)))
    drift = zero_phase(samples.raw_torque, samples.rate_hz, 3.0)
    rest = np.std(samples.raw_torque - drift, axis=0)
    assert np.all((samples.noise > 0.6 * rest) & (samples.noise < 1.7 * rest))


def test_friction_columns_of_a_real_log_filter_like_its_torque(data_dir):
    samples = condition(_ur10e(data_dir, "ur-20_02_10-30sec_12harm"), cutoff_hz=5.0)
    np.testing.assert_allclose(
        lowpass(samples, samples.friction_velocity), samples.velocity, atol=1e-12
    )
