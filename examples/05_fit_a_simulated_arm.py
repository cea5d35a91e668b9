"""Fit an arm whose truth is known: no recordings needed.

Run: python examples/05_fit_a_simulated_arm.py
"""

import tempfile
from pathlib import Path

import numpy as np

import taufit
from taufit.workflow import identify

RATE = 200.0
robot = taufit.read_robot("ur5e")
rng = np.random.default_rng(0)

# The truth: every link a tenth heavier than its maker says, and friction with a memory.
friction = taufit.Presliding()
per_joint = {"coulomb": 4.0, "presliding_3": 1.5, "viscous": 3.0, "load": 0.05}
terms = [per_joint.get(term.name, 0.0) for term in friction.parameters]
truth = taufit.TorqueModel(robot, friction).with_values(
    np.concatenate([1.1 * robot.parameters, np.full(6, 0.3), np.tile(terms, 6), np.zeros(6)])
)


def record(seed: int) -> taufit.Recording:
    """Twenty seconds of random motion, logged at 200 Hz with 2 % torque noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(20 * RATE)) / RATE
    phase = rng.uniform(0, 2 * np.pi, (5, 6))
    size = rng.uniform(0.2, 0.8, (5, 6)) / np.arange(1, 6)[:, None]
    w = 2 * np.pi * 0.08 * np.arange(1, 6)
    angle = w[:, None, None] * t[None, :, None] + phase[:, None, :]
    q = np.sum(size[:, None] * np.sin(angle), 0) + np.linspace(-1.2, 0.6, 6)
    v = np.sum(size[:, None] * w[:, None, None] * np.cos(angle), 0)
    a = -np.sum(size[:, None] * w[:, None, None] ** 2 * np.sin(angle), 0)
    rigid = truth.structure.regressor(q, v, a, load=0 * q)[..., :60] @ truth.robot.parameters
    rest = truth.structure.joint_columns(v, a, load=rigid, travel=v / RATE)
    torque = rigid + rest @ truth.values[60:]
    torque += 0.02 * torque.std(axis=0) * rng.normal(size=torque.shape)
    return taufit.Recording(t, q, torque, velocity=v, meta={"file": f"run {seed}"})


done = identify(robot, [record(0)], holdout={"unseen run": [record(1)]})
print(f"training nrmse {done.training_score.mean_nrmse:.4f}")
print(f"unseen   nrmse {done.holdout_scores[0].mean_nrmse:.4f}, the noise is about 0.006")
print(f"physically possible: {done.consistent}")
found = dict(zip(done.estimate.names, done.estimate.values, strict=True))
print(
    "Coulomb friction (4.0 is right):", [round(found[f"joint_{j}.coulomb"], 2) for j in range(1, 7)]
)

# The model file holds everything a later check needs.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.json"
    taufit.write_model(done.model, path)
    again = taufit.read_model(path)
    score = taufit.check(again, done.holdout_samples[0])[0]
    print(f"read back: nrmse {score.mean_nrmse:.4f}, file of {path.stat().st_size // 1024} kB")
