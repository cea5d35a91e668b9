"""Stuck and repeated channels: named where they are, not where a joint rests or returns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taufit.diagnosis.channels import channel_findings
from taufit.recording import Recording, crop, read_recording
from taufit.workflow.draft import draft_map

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
STEP = 2 * np.pi / 4096
RATE = 50.0


def _recording(velocity=True, period=5.0, seconds=60.0):
    """A servo arm with a 12-bit encoder at 50 Hz, in periodic motion, dead stops included."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    phase = (t[:, None] + [0.0, 0.4, 0.9]) % period / period
    # A ramp that stops at once and stands for a third of the period.
    q = np.where(phase < 2 / 3, 0.6 * np.abs(3 * phase - 1), 0.6)
    noise = np.random.default_rng(2).normal(size=q.shape)
    coarse = np.round(q / STEP) * STEP
    tau = np.round(2.0 * np.sin(q) + 0.5 * np.sign(np.gradient(q, axis=0)) + 0.1 * noise, 1)
    v = np.gradient(coarse, t, axis=0) if velocity else None
    return Recording(time=t, position=coarse, velocity=v, signal=tau, signal_unit="N m")


def _kinds(recording):
    return {finding.kind for finding in channel_findings(recording)}


def test_joints_that_stop_dead_and_return_are_neither_stuck_nor_repeated():
    assert not _kinds(_recording()) & {"stuck_encoder", "repeated_log"}


@pytest.mark.parametrize("velocity", [True, False])
def test_a_position_that_stays_while_the_joint_moves_is_stuck(velocity):
    recording = _recording(velocity)
    q = recording.position.copy()
    q[1000:1090, 1] = q[1000, 1]
    if velocity:
        assert "stuck_encoder" in _kinds(replace(recording, position=q))
    else:
        q[1090:, 1] += 0.5
        assert "stuck_encoder" in _kinds(replace(recording, position=q))


def test_an_appended_copy_is_named_and_shuffled_rows_are_not():
    recording = _recording()
    order = np.r_[0 : len(recording), 0 : len(recording) // 2]
    time = np.arange(len(order)) / RATE

    def pick(rows):
        return replace(
            recording,
            time=time,
            position=recording.position[rows],
            velocity=recording.velocity[rows],
            signal=recording.signal[rows],
        )

    assert "repeated_log" in _kinds(pick(order))
    shuffled = np.random.default_rng(3).permutation(order[len(recording) :])
    assert "repeated_log" not in _kinds(pick(np.r_[order[: len(recording)], shuffled]))


def test_times_of_a_remedy_count_from_the_start_of_the_file():
    recording = _recording()
    q = recording.position.copy()
    q[2000:2090, 1] = q[2000, 1]
    whole = replace(recording, position=q)
    [finding] = [f for f in channel_findings(whole) if f.kind == "stuck_encoder"]
    [later] = [f for f in channel_findings(crop(whole, 12.0, None)) if f.kind == "stuck_encoder"]
    assert finding.remedy.options == later.remedy.options
    # The part that the remedy names has no finding left.
    option, value = finding.remedy.options
    kept = crop(whole, *((None, float(value)) if option == "--to" else (float(value), None)))
    assert "stuck_encoder" not in _kinds(kept)


REAL = [*sorted((SHARED / "so101").glob("*.gz")), *sorted((SHARED / "am_d02").glob("*.npz"))]


@pytest.mark.skipif(not REAL, reason="the shared recordings are not here")
def test_no_shared_servo_run_is_called_stuck_or_appended():
    for path in REAL:
        robot = next(path.parent.glob("*.urdf"))
        recording = read_recording(path, column_map=draft_map(path, robot=robot).page)
        assert not _kinds(recording) & {"stuck_encoder", "repeated_log"}, path.name
