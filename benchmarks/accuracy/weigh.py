"""The online loop, closed: `taufit weigh` on a virtual UR10 and a virtual Panda, then a hand.

The model is fitted to recordings of the empty robot, one of them of the payload motion. Every seed
has a virtual controller of its own that carries the payload. The command plays the payload motion
(the Panda repeats it by its own program), stops by itself, sets the payload at the controller and
reads it back. A simulated hand then leads the arm around a rectangle, without compensation and with
the payload that the controller holds. The arm guided has the friction of the arm weighed; 0.9 N of
the force are the weight of the sensor in the hand, which nobody compensates.

    python -m benchmarks.accuracy.weigh [ARM SEED]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import taufit
from benchmarks import Row
from taufit.core.arrays import Array
from taufit.excitation import plan
from taufit.robot.inertia import from_centre_of_mass
from taufit.sim import CarriedPayload, Preset, read_preset
from taufit.sim.effects import DriveFriction
from taufit.sim.hand_guiding import simulate_hand_guiding
from taufit.terms import TermInput
from taufit.virtual.controllers import RepeatingRobot, UrController, VirtualFranka, VirtualUr
from taufit.workflow import identify

# Other seeds than those with which the shortest motion was chosen.
SEEDS, FIRST_SEED = 20, 1900
GRAVITY = 9.81
# As in the other benchmarks of hand guiding [rad/s].
GUIDED_SPEED = 0.2
PANDA_PAYLOAD = CarriedPayload.lump(2.02, (0.0, 0.0, 0.157))
# The ready pose of the maker: the rectangle around it is within reach.
PANDA_POSE = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)


@dataclass(frozen=True, slots=True)
class Weighing:
    """Result of one loop.

    Attributes:
        stopped: Whether the motion stopped by itself, accurate.
        error: Error of the mass that the controller holds [%].
        read_back: Whether the payload was set and read back.
        seconds: Time of motion [s].
        force, force_before: Mean force of the hand in z with and without compensation [N].
        protective_stop: Whether the controller stopped for a limit.
    """

    stopped: bool
    error: float
    read_back: bool
    seconds: float
    force: float
    force_before: float
    protective_stop: bool


@cache
def _prepared(arm: str) -> tuple[Preset, Any, Path]:
    """Preset, payload and model file of an arm."""
    preset = read_preset({"ur10": "ur10-paper", "panda": "franka"}[arm])
    path = Path(tempfile.mkdtemp()) / f"{arm}.json"
    # As `payload` advises: the empty robot is recorded in the motion that weighs, too.
    empty = replace(plan("payload", preset.twin.robot).motion, periods=4)
    if arm == "ur10":
        motions, rate, payload = [preset.motion(periods=10), empty], 125.0, preset.payload
    else:
        motions = [*(preset.motion(seed, periods=2) for seed in (5, 6)), empty]
        rate, payload = 200.0, PANDA_PAYLOAD
    runs = [preset.twin.run(motion, seed=5, rate_hz=rate).recording for motion in motions]
    taufit.write_model(identify(preset.twin.robot, runs).model, path)
    return preset, payload, path


def weigh(arm: str, seed: int) -> Weighing:
    """Run the loop once."""
    preset, payload, model = _prepared(arm)
    twin = preset.twin
    words = ["--yes", "--json", "--overwrite", "-o", str(model.with_name("weighing.parquet"))]
    if arm == "ur10":
        motion = model.with_name("weighing.motion.json")
        with VirtualUr(UrController(twin, payload=(payload,), seed=seed)) as robot:
            ports = robot.ports
            numbers = f"rtde={ports.rtde},secondary={ports.secondary},dashboard={ports.dashboard}"
            planned = [str(motion)] if motion.exists() else []
            numbers += f",primary={ports.primary},realtime={ports.realtime}"
            words += ["--slow", "0", "--ports", numbers]
            data = _command("127.0.0.1", str(model), *planned, *words)
            held = robot.controller.mass, np.array(robot.controller.centre)
            stopped_for_limit = robot.controller.safety_mode != 1
        start = None
    else:
        motion = plan("payload", twin.robot).motion
        moving = RepeatingRobot(twin, motion, 1000.0, seed=seed, payload=(payload,))
        with VirtualFranka(moving, port=0) as robot:
            data = _command(f"franka:127.0.0.1:{robot.port}", str(model), *words)
            held = robot.load["m_load"][0], np.array(robot.load["F_x_Cload"])
        stopped_for_limit, start = False, np.array(PANDA_POSE)
    flange = twin.robot.tip
    centre = flange[:3, :3] @ held[1] + flange[:3, 3]
    compensation = from_centre_of_mass(held[0], centre, 1e-6 * np.eye(3))
    forces = [
        simulate_hand_guiding(
            twin.robot,
            payload.parameters,
            compensated=x,
            friction=_friction(twin.effects.friction),
            start=start,
            seed=seed,
        ).mean_force[2]
        for x in (None, compensation)
    ]
    true_mass = float(payload.parameters[0])
    return Weighing(
        bool(data["accurate"]),
        100.0 * (held[0] / true_mass - 1.0),
        bool(data["set"]) and abs(data["read_back"]["mass"] - held[0]) < 1e-3,
        float(data["seconds"]),
        float(forces[1]),
        float(forces[0]),
        stopped_for_limit,
    )


def _friction(friction: DriveFriction | None) -> Array:
    """Friction of the simulated joints at a guided speed [N m]."""
    assert friction is not None and friction.shape is not None
    velocity = TermInput(np.array([GUIDED_SPEED]))
    joints = zip(friction.coefficients, friction.shape, strict=True)
    return np.array([(friction.model.columns(velocity, s) @ c)[0] for c, s in joints])


def _command(*words: str) -> dict[str, Any]:
    call = [sys.executable, "-m", "taufit", "weigh", *words]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def rows() -> Iterator[Row]:
    for arm, mass in (("ur10", 3.5256), ("panda", 2.02)):
        loops = [weigh(arm, FIRST_SEED + k) for k in range(SEEDS)]
        errors = np.abs([x.error for x in loops])
        seconds = np.array([x.seconds for x in loops])
        note = f"{mass} kg; {seconds.min():.1f} to {seconds.max():.1f} s of motion"
        yield Row(f"{arm}: stopped by itself", 5.0 * sum(x.stopped for x in loops), "%", ">= 100")
        yield Row(f"{arm}: largest mass error", float(errors.max()), "%", "<= 1", note)
        yield Row(f"{arm}: set and read back", 5.0 * sum(x.read_back for x in loops), "%", ">= 100")
        excess = [x.force - abs(x.error) / 100.0 * mass * GRAVITY for x in loops]
        note = "mean force of the hand less |mass error| g"
        yield Row(f"{arm}: guidance force in z", float(max(excess)), "N", "<= 1.5", note)
        fall = [100.0 * (1.0 - x.force / x.force_before) for x in loops]
        yield Row(f"{arm}: smallest reduction of that force", float(min(fall)), "%", ">= 90")
        yield Row(
            f"{arm}: protective stops", float(sum(x.protective_stop for x in loops)), "", "<= 0"
        )


if __name__ == "__main__":
    print(weigh(sys.argv[1], int(sys.argv[2])))
