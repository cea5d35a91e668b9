"""Mistakes are named by the change that puts them right, and that change does put them right."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.traps import TRAPS, log_of, recordings_of

from taufit.diagnosis import Cause, RefusedError, declared_torque, recording_causes, sample_causes
from taufit.dynamics import inverse_dynamics
from taufit.errors import RecordingError
from taufit.recording import Finding, Recording
from taufit.robot import read_robot
from taufit.signals import condition

RATE = 100.0


@pytest.fixture(scope="module")
def run():
    """A UR5e with friction and noise that follows sums of sines between two rests."""
    robot = read_robot("ur5e")
    rng = np.random.default_rng(11)
    time = np.arange(0.0, 22.0, 1.0 / RATE)
    inside = np.clip((time - 1.0) / 20.0, 0.0, 1.0)
    shape = 10 * inside**3 - 15 * inside**4 + 6 * inside**5
    tau_ = 20.0 * shape
    w = 2 * np.pi * np.array([0.12, 0.21, 0.33, 0.47])
    a = rng.uniform(0.1, 0.45, (4, 6))
    phase = rng.uniform(0, 6.28, (4, 6))
    q = sum(a[k] * np.sin(w[k] * tau_[:, None] + phase[k]) for k in range(4))
    q = q + np.array([0, -1.2, 1.0, -0.5, 1.2, 0])
    v = np.gradient(q, time, axis=0)
    acc = np.gradient(v, time, axis=0)
    torque = inverse_dynamics(robot, q, v, acc) + 4.0 * np.tanh(v / 0.01) + 2.0 * v + 0.2
    torque += rng.normal(0.0, 0.2, torque.shape)
    return Recording(
        time=time, position=q, velocity=v, signal=torque, gain=np.ones(6),
        signed=np.ones(6, bool), meta={"file": "run.csv"},
    )  # fmt: skip


def causes(robot, recordings) -> list[Cause]:
    first = recording_causes(robot, recordings)
    if any(cause.finding.severity == "error" for cause in first):
        return first
    return [*first, *sample_causes(robot, recordings, condition(recordings), first)]


def test_nothing_is_found_in_a_clean_recording(run):
    assert causes(read_robot("ur5e"), [run]) == []


NAMED = [
    "degrees",
    "velocity in deg/s",
    "velocity in rpm",
    "velocity sign of all joints",
    "velocity of the motor",
    "clock 2 times",
    "torque sign of joint 1",
    "torque sign of joint 2",
    "torque sign of all joints",
    "torque of 2 and 3 swapped",
    "joints 1 and 3 swapped (alphabet)",
    "zero of joint 2 off by 90 deg",
    "torque clipped at 60 %",
    "encoder 3 sticks half way",
    "log twice, time goes on",
    "torque of joint 3 zero",
    "gravity subtracted",
    "mounted on a wall",
    "torque 100 ms late",
    "magnitudes only",
    "torque in mN m",
]


@pytest.mark.parametrize("name", NAMED)
def test_a_mistake_is_named_and_its_remedy_leaves_nothing(run, name):
    trap = next(one for one in TRAPS if one.name == name)
    log = log_of(run, "ur5e")
    trap.spoil(log)
    robot = read_robot("ur5e", mounting=log.mounting)
    recordings = recordings_of(log)
    found = causes(robot, recordings)
    assert {cause.finding.kind for cause in found} & trap.kinds, [str(c.finding) for c in found]
    changes = [cause.change for cause in found if cause.change is not None]
    if not changes:
        return
    mended = [changes[0].recording(one) for one in recordings]
    mended, _ = declared_torque(robot, mended)
    left = causes(changes[0].robot(robot), mended)
    assert not [cause for cause in left if cause.finding.severity == "error"]


def test_a_refusal_survives_another_process(run):
    error = RefusedError([Cause(Finding("unit", "error", "it is in degrees"))])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.findings == error.findings


def test_effort_nobody_declared_is_refused_with_the_option_to_type(run):
    raw = replace(run, signal_unit="", gain=None)
    with pytest.raises(RecordingError, match=r"--effort torque \(N m\).*likely torque"):
        declared_torque(read_robot("ur5e"), [raw])


def test_currents_without_gains_take_the_nominal_robots_scale(run):
    gain = np.array([12.0, 12.0, 9.0, 10.0, 10.0, 10.0])
    current = replace(
        run, signal=run.signal / gain, signal_unit="A", gain=None, meta={"gains": "unknown"}
    )
    (filled,), found = declared_torque(read_robot("ur5e"), [current])
    np.testing.assert_allclose(filled.gain[1:3], gain[1:3], rtol=0.1)
    assert found[0].kind == "gains_unknown" and "taufit gains" in found[0].message
