"""Functional mock-up units in the hands of FMPy, an importer that knows nothing of taufit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.terms import Term, start_shape

fmpy = pytest.importorskip("fmpy")

# Sizes of an arm of 10 kg payload, roughly; anything else counts 1.
SIZES = {"coulomb": 8.0, "viscous": 10.0, "viscous2": -1.5, "load": 0.05, "load_static": 0.02}


def moving_arm(robot: Robot, friction: Term, seed: int = 3):
    """A model whose friction takes energy, so that it can be simulated."""
    model = TorqueModel(robot, friction)
    rng, layout = np.random.default_rng(seed), model.layout
    theta = np.zeros(len(model.names))
    theta[layout.links] = robot.parameters
    theta[layout.block_slice("rotor")] = rng.uniform(0.2, 1.0, robot.joints)
    size = np.array([SIZES.get(term.name, 1.0) for term in friction.parameters])
    size = np.where([term.name.startswith("temp") for term in friction.parameters], 0.0, size)
    theta[layout.drive] = (size * rng.uniform(0.5, 1.0, (robot.joints, len(size)))).ravel()
    theta[layout.block_slice("offset")] = rng.normal(size=robot.joints)
    if friction.shapes:
        model = replace(model, shape=np.tile(start_shape(friction), (robot.joints, 1)))
    return model.with_values(theta)


def signals(step: float, **groups) -> np.ndarray:
    """Inputs for FMPy: `position=q` becomes position[1], position[2], ..."""
    names = [f"{g}[{j + 1}]" for g, x in groups.items() for j in range(x.shape[1])]
    rows = len(next(iter(groups.values())))
    out = np.zeros(rows, dtype=[("time", float), *((name, float) for name in names)])
    out["time"] = np.arange(rows) * step
    for group, values in groups.items():
        for j, column in enumerate(values.T):
            out[f"{group}[{j + 1}]"] = column
    return out


def starts(**groups) -> dict[str, float]:
    """Start values for FMPy, likewise."""
    return {f"{g}[{j + 1}]": float(x) for g, values in groups.items() for j, x in enumerate(values)}


def simulated(path: Path, inputs: np.ndarray, step: float, start=None, **outputs):
    """What FMPy reads after each step, one array per group: `torque=6` is torque[1..6]."""
    names = [f"{g}[{j + 1}]" for g, n in outputs.items() for j in range(n)]
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=len(inputs) * step,
        step_size=step,
        output_interval=step,
        input=inputs,
        start_values=start or {},
        output=names,
    )
    return {
        g: np.stack([found[f"{g}[{j + 1}]"] for j in range(n)], 1)[1 : len(inputs) + 1]
        for g, n in outputs.items()
    }


def beside_the_twin(path: Path, model, seconds: float = 10.0):
    """Positions of a forward unit and of the twin that follows the same motion, at 1 kHz.

    The unit has the twin's servo: its gains as parameters, its references and feed-forward as
    inputs. Both stand for 0.4 s first, as the twin does before its first row.
    """
    from taufit.sim import Controller, Twin, random_fourier

    servo = Controller(delay=0.0, friction=0.0)
    twin = Twin.from_model(model, controller=servo, rate_hz=1000.0)
    run = twin.run(random_fourier(model.robot, seed=1, frequency_hz=1.0 / seconds), rest=(0.0, 0.0))
    given, settle, joints = run.recording, 400, model.robot.joints
    still = np.ones((settle, 1))
    gains = run.truth["controller"]
    stiffness = np.array(gains["stiffness"])
    got = simulated(
        path,
        signals(
            1e-3,
            torque=np.concatenate([still * given.target_torque[0], given.target_torque]),
            reference_position=np.concatenate(
                [still * given.commanded_position[0], given.commanded_position]
            ),
            reference_velocity=np.concatenate([still * np.zeros(joints), given.commanded_velocity]),
        ),
        1e-3,
        starts(
            position=given.commanded_position[0],
            presliding=run.truth["presliding"],
            stiffness=stiffness,
            damping=gains["damping"],
            integral_gain=2.0 * np.pi * servo.integral_hz * stiffness,
        ),
        position=joints,
        velocity=joints,
    )
    # After step k of the unit is row k + 1 of the twin.
    rows = slice(settle, settle + len(run.trace.position) - 1)
    return got["position"][rows], run.trace.position[1:]
