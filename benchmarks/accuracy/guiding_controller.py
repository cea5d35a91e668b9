"""Hand guiding by the exported C controller on simulated torque-controlled arms.

A hand, a spring and damper at the flange, follows a smooth random path at a slow pace, holds until
the arm is at rest (at most 4 s; a path out of reach leaves it swinging), and lets go. Compared with
gravity compensation alone; the friction of the robot is that of the model (with its level tracked
in free motion before) or 0.8 of it (not tracked). Net energy is what the compensation gives less
what true friction takes; its largest climb above an earlier low must stay near zero. Fractions,
fading and half the drag were taken from earlier runs on these three arms.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.export.compiled import Compiled

from benchmarks import Row
from benchmarks.accuracy.closed_loop import model_of, robot_of
from taufit.dynamics.batch import engine
from taufit.dynamics.recursion import jacobian
from taufit.sim import random_fourier
from taufit.sim.closed_loop import run_closed_loop

ARMS = ("ur10e", "panda", "iiwa14")
MOTIONS = 67
STEP = 0.002
STIFFNESS, DAMPING = 800.0, 120.0
MOVE, HOLD, LONGEST_HOLD, FREE = 6.0, 1.0, 4.0, 2.0
REST_SPEED = 0.01
PACE = 0.4


class ExportedController:
    """The exported controller of a model, called through its C interface."""

    def __init__(self, model, folder: Path) -> None:
        self.compiled = Compiled(folder, model)
        self.joints, self.states = model.robot.joints, len(self.compiled.state.raw) // 8
        self.buffer = np.zeros(2 * self.states + 10 * self.joints + 18)
        self.start()

    def start(self, level: np.ndarray | None = None) -> None:
        """Begin anew, with a friction level found in free motion or without."""
        self.compiled.call("controller_start", self.buffer)
        if level is not None:
            head = 2 * self.states
            self.buffer[head : head + self.joints] = level
            self.buffer[head + self.joints : head + 2 * self.joints] = 10.0

    def guide(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.empty(self.joints)
        self.compiled.call("guide", self.buffer, q, v, ctypes.c_void_p(), STEP, tau)
        return tau


def hand_path(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Displacement of the hand and its rate, smooth, about a decimetre."""
    time = STEP * np.arange(round((MOVE + LONGEST_HOLD + FREE) / STEP))
    rates = PACE * 2.0 * np.pi * np.array([0.25, 0.5, 0.8])
    sizes = rng.normal(size=(3, 3)) * np.array([0.08, 0.05, 0.025])[:, None]
    begin, end = np.clip(time, 0.0, 1.0), np.clip(MOVE - time, 0.0, 1.0)
    fade = (begin * end) ** 2 * (3.0 - 2.0 * begin) * (3.0 - 2.0 * end)
    path = fade[:, None] * (np.sin(time[:, None] * rates) @ sizes)
    return path, np.gradient(path, STEP, axis=0)


def guide(twin, model, controller, home, seed: int, *, level=None, gravity_only=False):
    """Mean hand force [N], largest climb of net energy [J], drift after release [rad]."""
    arm = twin.start(home, seed=seed, rate_hz=1.0 / STEP)
    plant, robot = arm.plant, twin.robot
    for name in ("stiffness", "damping", "integral_gain", "integral"):
        plant.arrays[name] = np.zeros(robot.joints)
    controller.start(level)
    kinematics = engine(robot)
    origin = kinematics.forward_kinematics(home[None])[0, -1, :3, 3]
    path, rate = hand_path(np.random.default_rng(seed))
    keep, zero = np.zeros(1, np.int64), np.zeros((2, robot.joints))
    rest = np.zeros(robot.joints)
    command = model.torque(home, rest, rest)
    given, energy, lowest, climb, forces = command * 0.0, 0.0, 0.0, 0.0, []
    q, v, released, release = home, rest, home, MOVE + LONGEST_HOLD
    for k in range(len(path)):
        if STEP * k >= release + FREE:
            break
        if MOVE + HOLD <= STEP * k < release and np.abs(v).max() < REST_SPEED:
            release = STEP * k
        push = np.zeros(robot.joints)
        if STEP * k < release:
            at = kinematics.forward_kinematics(q[None])[0, -1, :3, 3]
            lever = jacobian(robot, q[None])[0, 3:]
            force = STIFFNESS * (origin + path[k] - at) + DAMPING * (rate[k] - lever @ v)
            push = lever.T @ force
            if STEP * k < MOVE:
                forces.append(float(np.linalg.norm(force)))
            released = q
        tick = plant.tick
        states = plant.advance(zero, zero, np.tile(command + push, (2, 1)), keep)
        row = {name: values[0] for name, values in states.items()}
        q, v = row["position"], row["velocity"]
        true = row["friction"] - plant.arrays["offset"]
        energy += float((given - true) @ v) * STEP
        lowest = min(lowest, energy)
        climb = max(climb, energy - lowest)
        measured_q, measured_v, *_ = arm.sensors.read(tick, row)
        # Given from the next step on: one step late.
        held = model.torque(measured_q, rest, rest)
        command = held if gravity_only else controller.guide(measured_q, measured_v)
        given = command - held
    return float(np.mean(forces)), climb, float(np.abs(q - released).max())


def with_friction(twin, factor: float):
    friction = twin.effects.friction
    slow = None if friction.slow is None else factor * np.asarray(friction.slow)
    changed = replace(friction, coefficients=factor * friction.coefficients, slow=slow, scatter=0.0)
    return replace(twin, effects=replace(twin.effects, friction=changed))


def home_of(robot) -> np.ndarray:
    """A bent pose in the middle of the limits."""
    low, high = np.maximum(robot.limits.lower, -2.0), np.minimum(robot.limits.upper, 2.0)
    bent = np.resize([0.3, -0.9, 0.8, -0.7, 0.6, 0.4, 0.2], robot.joints)
    return np.clip(bent, low + 0.4, high - 0.4)


def rows(motions: int = MOTIONS) -> Iterator[Row]:
    ratios, climbs, drifts = {}, [], []
    for name in ARMS:
        twin = with_friction(robot_of(name), 1.0)
        model = model_of(name, twin, 1)
        free = run_closed_loop(twin, random_fourier(twin.robot, seed=77), "taufit-tracked", model)
        home = home_of(twin.robot)
        with tempfile.TemporaryDirectory() as folder:
            controller = ExportedController(model, Path(folder))
            plain = [
                guide(twin, model, controller, home, s, gravity_only=True)[0]
                for s in range(max(3, motions // 8))
            ]
            tracked = [
                guide(twin, model, controller, home, s, level=free.level) for s in range(motions)
            ]
            low = [
                guide(with_friction(twin, 0.8), model, controller, home, s) for s in range(motions)
            ]
        compared = [run[0] for run in tracked[: len(plain)]]
        ratios[name] = float(np.mean(compared) / np.mean(plain))
        climbs += [run[1] for run in (*tracked, *low)]
        drifts += [run[2] for run in (*tracked, *low)]
        print(
            f"      {name}: gravity alone {np.mean(plain):.1f}, guided {np.mean(compared):.1f} N, "
            f"climb {max(run[1] for run in tracked):.2g} / {max(run[1] for run in low):.2g} J, "
            f"drift {1e3 * max(run[2] for run in tracked):.1f} / "
            f"{1e3 * max(run[2] for run in low):.1f} mrad (level tracked / friction 0.8)",
            flush=True,
        )
    note = f"slow pace, {len(ARMS)} simulated arms, exported C at 500 Hz"
    yield Row(
        "hand force over gravity compensation alone", max(ratios.values()), "", "<= 0.65", note
    )
    note = f"worst of {len(climbs)} motions, friction as tracked and 0.8 of the model's"
    yield Row("net energy, largest climb", max(climbs), "J", "<= 0.01", note)
    yield Row("drift after release", 1e3 * max(drifts), "mrad", "<= 10", note)


def main() -> None:
    count: Any = int(sys.argv[1]) if len(sys.argv) > 1 else MOTIONS
    for row in rows(count):
        print(row, flush=True)


if __name__ == "__main__":
    assert subprocess.run(["cc", "--version"], capture_output=True, check=False).returncode == 0
    main()
