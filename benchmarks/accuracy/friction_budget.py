"""Friction tests within a budget: all joints of a Panda at once, 20 and 7 minutes, five seeds.

Relative rms error of the curve that `taufit friction` fits against the twin's own, at 60 speeds
between the slowest and the fastest tested, at the median load. Two twins: the preset, whose curve
is a form of the fit, and one whose curve is none of these forms (viscous friction that
flattens, static friction that decays more slowly than a Gaussian). Seeds here are others than those
the method was chosen with.

    python -m benchmarks.accuracy.friction_budget [TWIN MINUTES SEED]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import Row
from taufit.calibration.friction_identification import identify_friction
from taufit.excitation import plan
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.sim import Twin, read_preset
from taufit.terms import TermInput
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.stribeck import Stribeck

FIRST_SEED, SEEDS = 700, 5


@dataclass(frozen=True, slots=True)
class FlatteningFriction(Stribeck):
    """viscous asinh(3 v)/2 + Coulomb (1 - d) + static d with d = exp(-(|v|/shape_2)^0.7)."""

    def columns_at(self, inputs: TermInput, shape: np.ndarray) -> np.ndarray:
        """Columns of viscous, Coulomb and static friction."""
        v = inputs.velocity
        s = smooth_sign(v, self.width)
        decay = np.exp(-((np.sqrt(v * v) / shape[1]) ** 0.7))
        return np.stack([np.arcsinh(3 * v) / 2, s * (1 - decay), s * decay], -1)


def twin(kind: str) -> Twin:
    """Simulated Panda: `preset` or `foreign`."""
    arm = read_preset("franka").twin
    if kind == "preset":
        return arm
    friction = replace(arm.effects.friction, model=FlatteningFriction(degree=1))
    return replace(arm, effects=replace(arm.effects, friction=friction))


def errors(kind: str, minutes: float, seed: int) -> tuple[str, np.ndarray]:
    """Chosen model and relative rms error of every joint [%]."""
    robot, arm = read_robot("panda"), twin(kind)
    motion = plan("friction-test", robot, minutes=minutes).motion
    run = arm.run(motion, seed=seed, rate_hz=100.0)
    result = identify_friction(robot, [condition([run.recording], cutoff_hz=10.0)])
    friction, share = arm.effects.friction, arm.effects.sensing.friction_share
    out = []
    for joint in result.joints:
        i, speeds = joint.joint - 1, joint.pairs.tested_speeds
        v = np.geomspace(speeds[0], speeds[-1], 60)
        load = np.full(60, np.median(np.abs(joint.pairs.load)))
        curve = friction.model.columns(TermInput(v), np.asarray(friction.shape)[i])
        truth = share * (curve @ np.asarray(friction.coefficients)[i] + friction.load_factor * load)
        out.append(100 * np.sqrt(np.mean((joint.fit.torque(v, load) / truth - 1) ** 2)))
    return result.name, np.array(out)


def rows() -> Iterator[Row]:
    for minutes, limits in ((20.0, ((4.0, 90.0), (6.0, 100.0))), (7.0, ((8.0, 100.0),))):
        for kind in ("preset", "foreign"):
            values = [errors(kind, minutes, FIRST_SEED + k)[1] for k in range(SEEDS)]
            table = np.array(values)
            label = f"{minutes:g} minutes, {kind} twin"
            note = "worst by joint " + " ".join(f"{x:.1f}" for x in table.max(axis=0))
            yield Row(f"{label}: median error", float(np.median(table)), "%", "", note)
            yield Row(f"{label}: largest error", float(table.max()), "%", f"<= {limits[-1][0]:g}")
            for limit, share in limits:
                inside = 100.0 * float(np.mean(table <= limit))
                yield Row(f"{label}: joints within {limit:g} %", inside, "%", f">= {share:g}")


if __name__ == "__main__":
    print(*errors(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
