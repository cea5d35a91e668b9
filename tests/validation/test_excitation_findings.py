"""What a motion shows of an arm, and which way torque goes, told before any fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.calibration.excitation_check import excitation_findings, model_findings
from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording
from taufit.robot import read_robot
from taufit.signals import condition


@pytest.fixture(scope="module")
def arm():
    return read_robot("ur10")


def _recording(arm, moving=range(6), *, sign=1.0):
    rng = np.random.default_rng(0)
    time = np.arange(0, 20, 0.01)
    q = np.tile([0.2, -1.3, 0.7, -1.0, 0.5, 0.1], (len(time), 1))
    v, a = np.zeros_like(q), np.zeros_like(q)
    for j in moving:
        for k in range(1, 6):
            w = 2 * np.pi * 0.2 * k
            s, phase = rng.normal(0, 0.5 / k), rng.uniform(0, 6)
            q[:, j] += s * np.sin(w * time + phase)
            v[:, j] += s * w * np.cos(w * time + phase)
            a[:, j] -= s * w**2 * np.sin(w * time + phase)
    torque = inverse_dynamics(arm, q, v, a) + 3 * np.tanh(v / 0.01)
    return Recording(
        time=time,
        position=q,
        velocity=v,
        signal=sign * torque + 0.05 * rng.normal(size=q.shape),
        meta={"file": "run.csv"},
    )


def test_a_rich_motion_shows_more_than_one_joint_alone(arm):
    (rich,) = excitation_findings(arm, condition(_recording(arm)))
    (poor,) = excitation_findings(arm, condition(_recording(arm, [1])))
    assert rich.severity == "info" and rich.value > 30
    assert poor.severity == "warning" and poor.value < 10
    assert "of 36 base parameters" in rich.message and "hardly link_" in poor.message


def test_reversed_torque_is_told_by_gravity(arm):
    kinds = [f.kind for f in model_findings(arm, _recording(arm))]
    assert kinds == ["excitation"]
    told = [f for f in model_findings(arm, _recording(arm, sign=-1.0)) if f.kind == "sign"]
    assert any("joint 2" in f.message for f in told)


def test_what_cannot_be_conditioned_is_left_to_the_report(arm):
    still = _recording(arm, [])
    assert model_findings(arm, still) == ()
    assert model_findings(arm, replace(still, signal_unit="A")) == ()
