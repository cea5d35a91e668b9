"""The quality report sees what is wrong, and nothing where nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.recording import Recording
from taufit.signals import quality_report


def _kinds(recording, *severities, **more):
    report = quality_report(recording, **more)
    return {f.kind for f in report if not severities or f.severity in severities}


def _one(recording, kind, **more):
    found = [f for f in quality_report(recording, **more) if f.kind == kind]
    assert found, f"no finding {kind}"
    return found[0]


def test_a_clean_recording_raises_no_alarm(truth):
    recording = truth.recorded(torque_noise=0.3)
    assert _kinds(recording, "warning", "error") == set()
    assert {"rate", "motion", "delay", "noise"} <= _kinds(recording, "info")


def test_rate_jitter_and_gaps_are_told(truth):
    recording = truth.recorded(jitter_s=0.002)
    kept = np.ones(len(recording), bool)
    kept[500:506] = kept[1000:1003] = False
    finding = _one(
        Recording(
            time=recording.time[kept],
            position=recording.position[kept],
            velocity=recording.velocity[kept],
            signal=recording.signal[kept],
        ),
        "gaps",
    )
    assert "2 gaps" in finding.message and finding.value == 9
    rate = _one(recording, "rate")
    assert rate.severity == "warning" and abs(rate.value - 100.0) < 0.1


def test_rest_and_motion_windows_are_right(truth):
    finding = _one(truth.recorded(), "motion")
    assert 2.0 <= finding.time < 2.2
    assert "of rest before" in finding.message
    assert "2.0" in finding.message.split("of rest before")[0].split(";")[1]


def test_static_poses_are_told_apart(truth):
    recording = truth.recorded()
    still = replace(
        recording, position=0 * recording.position + 1.0, velocity=0 * recording.velocity
    )
    assert "static poses" in _one(still, "motion").message


def test_repeating_motion_is_recognised(make_truth):
    finding = _one(make_truth(duration=36.0).recorded(), "period")
    assert abs(finding.value - 10.0) < 0.01


def test_saturated_frozen_and_missing_channels_are_named(truth):
    recording = truth.recorded(torque_noise=0.1)
    signal = recording.signal.copy()
    signal[:, 1] = np.clip(signal[:, 1], -1e9, np.percentile(signal[:, 1], 90))
    signal[900:1000, 3] = signal[900, 3]
    signal[:, 4] = 0.0
    broken = replace(recording, signal=signal)
    assert _one(broken, "saturation").joint == 2
    assert _one(broken, "frozen_signal").joint == 4
    assert _one(broken, "constant_signal").joint == 5
    signal = signal.copy()
    signal[:, 5] = np.nan
    assert _one(replace(recording, signal=signal), "missing_joint").joint == 6


def test_joints_that_only_move_together_are_named(truth):
    recording = truth.recorded()
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 3], velocity[:, 3] = -2 * position[:, 0], -2 * velocity[:, 0]
    finding = _one(replace(recording, position=position, velocity=velocity), "moves_together")
    assert "joints 1 and 4" in finding.message


def test_currents_called_torque_are_suspected(truth, ur10):
    recording = truth.recorded(torque_noise=0.1)
    current = replace(
        recording,
        signal=recording.signal / 12.0,
        target_torque=recording.signal,
        target_current=recording.signal / 12.0,
    )
    assert "current" in _one(current, "unit_suspicion").message


def test_degrees_are_suspected_from_the_joints_range(truth, ur10):
    recording = truth.recorded(velocity=False)
    degrees = replace(recording, position=np.degrees(recording.position))
    limits = replace(ur10.limits, lower=np.full(6, -2 * np.pi), upper=np.full(6, 2 * np.pi))
    robot = replace(ur10, limits=limits)
    assert "degrees" in _one(degrees, "unit_suspicion", robot=robot).message


def test_a_delayed_command_is_measured(truth):
    recording = truth.recorded()
    ahead = truth.motion(recording.time - 100.0 + 0.012)[0]
    finding = _one(replace(recording, commanded_position=ahead), "tracking_delay")
    assert abs(finding.value - 0.012) < 5e-4


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_few_rows_are_reported_not_crashed_on(truth, rows):
    recording = truth.recorded()
    tiny = Recording(
        time=recording.time[:rows],
        position=recording.position[:rows],
        signal=recording.signal[:rows],
    )
    assert _kinds(tiny, "error") == {"too_short"}


def test_unusable_currents_still_get_a_report(truth):
    recording = replace(truth.recorded(), signal_unit="A")
    report = quality_report(recording)
    assert report[-1].severity == "error" and "drive gains" in report[-1].message
    assert {"rate", "motion", "noise"} <= {f.kind for f in report}


def test_the_readers_findings_come_first(truth):
    from taufit.recording.finding import Finding

    mine = Finding("corrupt_rows", "warning", "ten rows", "dropped")
    assert quality_report(replace(truth.recorded(), findings=(mine,)))[0] is mine
