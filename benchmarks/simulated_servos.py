"""Simulated servo arms with known parameters: random links, servos, floors and commands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.recording import Recording
from taufit.robot import Drives, JointLimits, Link, Robot
from taufit.robot.inertia import from_centre_of_mass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

TRUE_STEP = 1e-3  # integration of the truth [s]; the fit uses 5 ms


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedServoArm:
    """Arm, its true servos and floor, and its recordings."""

    robot: Robot
    servo: ServoParameters
    floor: Floor | None
    training: list[Recording]
    test: list[Recording]


def simulated_arm(seed: int, *, payload: float = 0.0, mixed: bool = False) -> SimulatedServoArm:
    """Arm number `seed`: 5-7 joints, delay 0-60 ms, 10-12 bit, 30-100 Hz.

    With `mixed`, servos of three types: strong ones at the base, weak ones at the wrist.
    """
    rng = np.random.default_rng(seed)
    robot = random_robot(rng)
    servo = random_servos(rng, robot.joints)
    if mixed:
        size = np.array([2.5, 2.5, *(robot.joints - 4) * [1.0], 0.4, 0.4])
        names = ("kp", "damping", "coulomb", "armature")
        servo = servo.replace(**{name: size * getattr(servo, name) for name in names})
    bits, rate = int(rng.integers(10, 13)), float(rng.uniform(30.0, 100.0))
    commands = [random_commands(rng, robot.joints, rate) for _ in range(7)]
    axes = JointAxes.of_robot(robot)
    floor = None
    if rng.random() < 0.5:
        lowest = [float(axes.heights(command).min()) for _, command in commands]
        floor = Floor(float(np.median(lowest)) + 0.01)
    step = 2 * np.pi / 2**bits
    loaded = with_payload(robot, payload) if payload else robot
    runs = [measure(loaded, servo, floor, step, *c, f"run_{k}") for k, c in enumerate(commands)]
    return SimulatedServoArm(robot, servo, floor, runs[:5], runs[5:])


def random_robot(rng: np.random.Generator) -> Robot:
    """Upright arm of 5-7 links of 80-160 g, with alternating axes."""
    joints = int(rng.integers(5, 8))
    links = []
    for j in range(joints):
        placement = np.eye(4)
        turn = (0.0, np.pi / 2, 0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, np.pi / 2)[j]
        c, s = np.cos(turn), np.sin(turn)
        placement[:3, :3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
        length = 0.06 if j in (0, 1) else float(rng.uniform(0.08, 0.13))
        placement[:3, 3] = [0, 0, length] if j < 2 else [length, 0, 0]
        mass = float(rng.uniform(0.08, 0.16))
        centre = np.array([0.5 * length, 0.0, 0.01]) + rng.normal(0, 0.004, 3)
        tensor = mass * np.diag(rng.uniform(4e-4, 8e-4, 3))
        links.append(
            Link(
                f"link_{j + 1}",
                f"joint_{j + 1}",
                placement,
                np.array([0, 0, 1.0, 0, 0, 0]),
                from_centre_of_mass(mass, centre, tensor),
            )
        )
    tip = np.eye(4)
    tip[0, 3] = 0.08
    limits = JointLimits.unlimited(joints)
    return Robot("simulated", tuple(links), limits, Drives.direct_drive(joints), tip=tip)


def random_servos(rng: np.random.Generator, joints: int) -> ServoParameters:
    """Servos of one type, alike as the priors of the fit state: 10 % in kp, 30 % in damping and
    armature, offsets of 1 mrad.
    """

    def scatter(std: float) -> np.ndarray:
        return np.exp(rng.normal(0.0, std, joints))

    kp = rng.uniform(8.0, 16.0) * scatter(0.1)
    return ServoParameters(
        kp=kp,
        damping=kp * rng.uniform(0.04, 0.08) * scatter(0.3),
        coulomb=kp * rng.uniform(0.006, 0.03, joints),
        armature=rng.uniform(0.002, 0.01) * scatter(0.3),
        offset=rng.normal(0.0, 1e-3, joints),
        delay=np.full(joints, rng.uniform(0.0, 0.06)),
        acceleration_limit=float(rng.uniform(20.0, 45.0)),
    )


def random_commands(
    rng: np.random.Generator, joints: int, rate: float, seconds: float = 40.0
) -> tuple[np.ndarray, np.ndarray]:
    """Waypoints and sinusoids, with a faster part at the end."""
    time = np.arange(0.0, seconds, 1.0 / rate)
    home = np.zeros(joints)
    home[1:3] = rng.uniform(-0.5, 0.5, 2)
    out = np.tile(home, (len(time), 1))
    for frequency in (0.06, 0.17, 0.43):
        phase = rng.uniform(0, 2 * np.pi, joints)
        amplitude = rng.uniform(0.1, 0.5, joints) / (1 + 3 * frequency)
        wave = np.sin(2 * np.pi * frequency * time[:, None] + phase) - np.sin(phase)
        out += amplitude * wave
    fast = (time > 0.6 * seconds)[:, None] * np.sin(2 * np.pi * rng.uniform(1.2, 2.5) * time)[
        :, None
    ]
    out += rng.uniform(0.05, 0.12, joints) * fast
    for _ in range(4):
        start = rng.uniform(2.0, 0.6 * seconds)
        ramp = np.clip((time - start) / rng.uniform(0.3, 1.0), 0.0, 1.0)[:, None]
        out += rng.uniform(-0.4, 0.4, joints) * ramp
    return time, out


def measure(
    robot: Robot,
    servo: ServoParameters,
    floor: Floor | None,
    step: float,
    time: np.ndarray,
    command: np.ndarray,
    name: str,
) -> Recording:
    """Recording of the arm; commands are cut to whole encoder steps on the bus."""
    sent = np.floor(command / step) * step
    start = np.zeros_like(sent)
    start[0] = sent[0]
    motion = CommandedMotion.from_arrays(time, sent, start)
    q = replay(JointAxes.of_robot(robot), servo, motion, floor, max_step=TRUE_STEP)
    q = np.column_stack([np.interp(time, np.arange(len(q)) * motion.step, c) for c in q.T])
    q = np.round(q / step) * step
    return Recording(
        time, q, 0 * q, torque_source="none", commanded_position=command, meta={"name": name}
    )


def with_payload(robot: Robot, mass: float) -> Robot:
    """Robot with a point mass at its tip."""
    load = from_centre_of_mass(mass, robot.tip[:3, 3], 1e-6 * np.eye(3))
    parameters = robot.parameters.reshape(robot.joints, -1).copy()
    parameters[-1] += load
    return robot.with_parameters(parameters)
