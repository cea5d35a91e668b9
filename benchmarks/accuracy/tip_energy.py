"""Kinetic energy and effective mass at the tip: against Pinocchio, and how often intervals hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import taufit
from benchmarks import Row
from benchmarks.accuracy import intervals
from benchmarks.pinocchio_arm import arrays_of, pinocchio_model
from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.tip_energy import TipEnergy, tip_energy
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.signals import Samples

ARMS = 200


def known_model(robot: Robot, seed: int) -> FittedModel:
    """The robot's own links with some rotors, no friction."""
    model = TorqueModel(robot, None, True, False)
    values = np.array(model.nominal)
    rotors = np.random.default_rng(seed).uniform(0.02, 0.5, robot.joints)
    values[model.layout.block_slice("rotor")] = rotors
    return model.with_values(values)


def directly(
    model: FittedModel, q: Float[Array, "n j"], v: Float[Array, "n j"]
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """Kinetic energy, effective mass and effective energy by Pinocchio, state by state."""
    import pinocchio as pin

    arm = pinocchio_model(arrays_of(model.robot))
    parts = model.layout.split(model.values)
    # The last joint's frame is on its axis; the tip is where the robot has it.
    screw = model.robot.screws[-1]
    shift = np.cross(screw[:3], screw[3:]) if np.any(screw[:3]) else np.zeros(3)
    place = pin.SE3(np.eye(3), -shift) * pin.SE3(model.robot.tip[:3, :3], model.robot.tip[:3, 3])
    frame = arm.addFrame(pin.Frame("tip", arm.njoints - 1, 0, place, pin.FrameType.OP_FRAME))
    data = arm.createData()
    out = []
    for one, speed in zip(q, v, strict=True):
        matrix = np.array(pin.crba(arm, data, one))
        matrix = np.triu(matrix) + np.triu(matrix, 1).T + np.diag(parts.rotors)
        pin.computeJointJacobians(arm, data, one)
        linear = pin.getFrameJacobian(arm, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
        tip = linear @ speed
        along = tip / np.linalg.norm(tip)
        mass = 1.0 / (along @ linear @ np.linalg.solve(matrix, linear.T) @ along)
        out.append((0.5 * speed @ matrix @ speed, mass, 0.5 * mass * (tip @ tip)))
    return tuple(np.array(out).T)  # type: ignore[return-value]


def difference(name: str, seed: int, states: int = 50) -> float:
    """Largest relative difference of the three from Pinocchio's."""
    robot = taufit.read_robot(name)
    model = known_model(robot, seed)
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-2.0, 2.0, (2, states, robot.joints))
    own, theirs = tip_energy(model, q, v), directly(model, q, v)
    mine = (own.kinetic, own.effective_mass, own.effective)
    return max(float(np.abs(a / b - 1.0).max()) for a, b in zip(mine, theirs, strict=True))


def held(seed: int) -> tuple[float, float]:
    """Of one fitted arm: shares of states whose kinetic and effective energies intervals hold."""
    rng = np.random.default_rng((seed, 21))
    arm = intervals.robot()
    own, waves = intervals.truth(arm, rng), rng.uniform(0, 6, intervals.JOINTS)
    path = intervals.motion(rng, int(rng.integers(1, 6)))
    runs = [intervals.run(own, rng, path, waves) for _ in range(int(rng.integers(1, 4)))]
    model, _ = intervals.fitted(arm, own.friction_model, Samples.concatenate(runs))
    q, v, _ = intervals.motion(rng, 1)
    found, true = tip_energy(model, q, v), tip_energy(own, q, v)
    return _inside(found, true)


def _inside(found: TipEnergy, true: TipEnergy) -> tuple[float, float]:
    moves = true.speed > 0.05
    low, high = found.kinetic_interval()
    kinetic = (low <= true.kinetic) & (true.kinetic <= high)
    low, high = found.effective_interval()
    effective = (low <= true.effective) & (true.effective <= high)
    return float(kinetic[moves].mean()), float(effective[moves].mean())


def rows() -> Iterator[Row]:
    worst = max(difference(name, seed) for seed, name in enumerate(("ur5e", "kr5", "panda")))
    yield Row(
        "largest relative difference from Pinocchio",
        worst,
        "",
        "<= 1e-9",
        "kinetic energy, effective mass and energy; ur5e, kr5, panda, 50 states each",
    )
    each = np.array([held(seed) for seed in range(ARMS)])
    note = f"{ARMS} arms within 15 % of nominal, fitted to 1-3 runs; states of another motion"
    yield Row(
        "kinetic energy in its 95 % interval", 100 * float(each[:, 0].mean()), "%", ">= 93", note
    )
    yield Row(
        "effective energy in its 95 % interval", 100 * float(each[:, 1].mean()), "%", ">= 93", note
    )
