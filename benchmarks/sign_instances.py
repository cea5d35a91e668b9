"""Simulated recordings without torque signs: the KR5 experiment of the literature and its kin.

The KR5's parameters are round numbers that reproduce the 27 printed base coefficients; entries no
printed coefficient contains are set to plausible values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.signal import butter, sosfiltfilt

from taufit.core.arrays import Array, Float, Int
from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot, from_dh
from taufit.robot.inertia import from_centre_of_mass, transform_parameters
from taufit.robot.robot import Link
from taufit.signals import Samples
from taufit.terms.friction import Linear

KR5_DH = (
    (0.0, 0.132, 0.075, -np.pi / 2),
    (0.0, 0.0, 0.27, 0.0),
    (0.0, 0.0, 0.09, np.pi / 2),
    (0.0, -0.295, 0.0, -np.pi / 2),
    (0.0, 0.0, 0.0, np.pi / 2),
    (0.0, -0.08, 0.0, np.pi),
)
_MASS = (13.0, 6.0, 4.0, 3.0, 1.5, 0.5)
_CENTRE = (
    (-0.1, 0.02, 0.02),
    (-0.15, 0.02, 0.02),
    (-0.1, 0.02, -0.02),
    (0.03, -0.15, 0.02),
    (0.02, 0.02, -0.05),
    (0.02, -0.02, 0.01),
)
_DIAGONAL = (1.0, 1.0, 1.0, 1.0, 0.5, 0.2)
_PRODUCT = (0.0, 0.2, 0.2, 0.2, 0.1, 0.05)


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One simulated recording whose torque lost its signs, and what was hidden.

    Attributes:
        model: What is fitted (no values).
        samples: Motion and absolute torque.
        torque: True torque, no noise.
        truth: Parameters of the model behind `torque`.
        noise: Standard deviation of the torque noise, per joint.
        measured: Torque with noise and sign.
    """

    model: TorqueModel
    samples: Samples
    torque: Float[Array, "n j"]
    truth: Float[Array, " p"]
    noise: Float[Array, " j"]
    measured: Float[Array, "n j"]

    @property
    def signed(self) -> Samples:
        """The same recording had the signs been recorded."""
        return replace(
            self.samples, torque=self.measured, signed=np.ones(self.samples.joints, bool)
        )


def kr5() -> Robot:
    """The KR5 with parameters that reproduce every printed base coefficient."""
    rows = np.zeros((6, 10))
    for i in range(6):
        h = _MASS[i] * np.array(_CENTRE[i])
        d, p = _DIAGONAL[i], _PRODUCT[i]
        rows[i] = [_MASS[i], *h, d, p, d, p, p, d]
    return from_dh(np.array(KR5_DH), name="kr5", parameters=rows)


def seven_joint_arm(seed: int) -> Robot:
    """A seven-joint arm of alternating axes with random, physically possible links."""
    rng = np.random.default_rng(seed)
    rows = np.array(
        [
            [0.0, 0.34, 0.0, -np.pi / 2],
            [0.0, 0.0, 0.0, np.pi / 2],
            [0.0, 0.40, 0.05, np.pi / 2],
            [0.0, 0.0, -0.05, -np.pi / 2],
            [0.0, 0.40, 0.0, -np.pi / 2],
            [0.0, 0.0, 0.08, np.pi / 2],
            [0.0, 0.12, 0.0, 0.0],
        ]
    )
    mass = np.array([5.0, 4.5, 4.0, 3.0, 2.5, 1.5, 0.8]) * rng.uniform(0.8, 1.25, 7)
    return from_dh(rows, name="seven", parameters=np.array([_body(m, rng) for m in mass]))


def gantry(seed: int) -> Robot:
    """Three prismatic axes at right angles: no coefficient is shared between them."""
    rng = np.random.default_rng(seed)
    robot = from_dh(
        np.array(
            [[0.0, 0.0, 0.0, -np.pi / 2], [-np.pi / 2, 0.0, 0.0, -np.pi / 2], [0.0, 0.0, 0.0, 0.0]]
        ),
        name="gantry",
        prismatic=(True, True, True),
    )
    bodies = [_body(m, rng) for m in (20.0, 12.0, 5.0)]
    links: list[Link] = [
        replace(link, parameters=body) for link, body in zip(robot.links, bodies, strict=True)
    ]
    return replace(robot, links=tuple(links))


@dataclass(frozen=True, slots=True, eq=False)
class Weightless(Robot):
    """An arm in free fall: no torque holds it."""

    @property
    def gravity(self) -> Float[Array, " 3"]:
        return np.zeros(3)


def weightless(robot: Robot) -> Robot:
    """The same arm without gravity."""
    return Weightless(robot.name, robot.links, robot.limits, robot.drives)


def _body(mass: float, rng: np.random.Generator) -> Float[Array, " 10"]:
    size = rng.uniform(0.05, 0.15, 3)
    tensor = mass * np.diag((size**2).sum() - size**2)
    body = from_centre_of_mass(mass, np.zeros(3), tensor)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    placement = np.eye(4)
    placement[:3, :3] = turn * np.sign(np.linalg.det(turn))
    placement[:3, 3] = rng.uniform(-0.1, 0.1, 3)
    return transform_parameters(body, placement)


def multisine(
    joints: int, seed: int, seconds: float, harmonics: int, rate_hz: float, amplitude: float = 1.6
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Position, velocity, acceleration of random harmonics of 1/seconds, peak about `amplitude`."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    order = np.arange(1, harmonics + 1)
    w = 2.0 * np.pi * order / seconds
    a, b = rng.normal(size=(2, harmonics, joints))
    phase = w[:, None] * time
    shape = a.T @ np.sin(phase) + b.T @ np.cos(phase)
    scale = amplitude * rng.uniform(0.7, 1.3, joints) / np.abs(shape).max(1)
    a, b = a * scale, b * scale
    q = (np.sin(phase).T @ a) + (np.cos(phase).T @ b) + rng.uniform(-0.5, 0.5, joints)
    v = (np.cos(phase).T @ (a * w[:, None])) - (np.sin(phase).T @ (b * w[:, None]))
    acc = -(np.sin(phase).T @ (a * w[:, None] ** 2)) - (np.cos(phase).T @ (b * w[:, None] ** 2))
    return q, v, acc


def instance(
    seed: int,
    *,
    robot: Robot | None = None,
    noise: float = 0.05,
    friction: bool = False,
    modelled: bool | None = None,
    stribeck: float = 0.0,
    seconds: float = 13.33,
    harmonics: int = 3,
    rate_hz: float = 50.0,
    amplitude: float = 1.6,
    encoder_noise: float = 0.0,
    encoder_cutoff_hz: float = 4.0,
) -> Instance:
    """Simulate |torque + noise|, noise relative to each joint's rms torque.

    Friction is Coulomb 0.15 rms and viscous 0.15 rms at rms speed, in truth and, unless `modelled`
    says otherwise, in the model. With `encoder_noise` [rad] the samples hold positions with that
    noise, low-passed and differentiated, in place of the exact motion.
    """
    robot = robot or kr5()
    j = robot.joints
    q, v, a = multisine(j, seed, seconds, harmonics, rate_hz, amplitude)
    rigid = inverse_dynamics(robot, q, v, a)
    rms = np.sqrt(np.mean(rigid**2, 0))
    speed = np.sqrt(np.mean(v**2, 0))
    coulomb, viscous = 0.15 * rms * friction, 0.15 * rms / speed * friction
    lift = 1.0 + stribeck * np.exp(-((v / (0.2 * speed)) ** 2))
    torque = rigid + coulomb * lift * np.sign(v) + viscous * v
    rng = np.random.default_rng(seed + 10_000)
    sigma = noise * np.sqrt(np.mean(torque**2, 0))
    measured = torque + sigma * rng.normal(size=torque.shape)
    if encoder_noise:
        q, v, a = differentiated(
            q + encoder_noise * rng.normal(size=q.shape), rate_hz, encoder_cutoff_hz
        )
    samples = replace(
        Samples.from_arrays(q, v, a, np.abs(measured), rate_hz=rate_hz), signed=np.zeros(j, bool)
    )
    has_friction = friction if modelled is None else modelled
    model = TorqueModel(
        robot.with_parameters(np.zeros(10 * j)),
        friction=Linear() if has_friction else None,
        rotor_inertia=False,
        offset=False,
    )
    pairs = np.stack([coulomb, viscous], 1).ravel() if has_friction else np.empty(0)
    truth = np.concatenate([robot.parameters, pairs])
    return Instance(model, samples, torque, truth, sigma, measured)


def boxes(case: Instance) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """Generous bounds around the truth, as the tree search of the literature is given them.

    Masses within half of the truth, centres of mass within 0.3 m, inertias up to twice the largest.
    """
    truth = case.truth
    lower, upper = np.full(len(truth), -np.inf), np.full(len(truth), np.inf)
    for at in range(0, 10 * case.model.robot.joints, 10):
        mass, inertia = truth[at], truth[at + 4 : at + 10].max()
        lower[at], upper[at] = 0.5 * mass, 1.5 * mass
        lower[at + 1 : at + 4], upper[at + 1 : at + 4] = -0.45 * mass, 0.45 * mass
        lower[at + 4 : at + 10], upper[at + 4 : at + 10] = -inertia, 2.0 * inertia
    return lower, upper


def segment_truth(case: Instance, segments: Any) -> Int[Array, " s"]:
    """The sign each segment really has: that of its true torque on the whole."""
    return np.where(segment_sums(case.torque, segments) >= 0.0, 1, -1)


def segment_sums(torque: Float[Array, "n j"], segments: Any) -> Float[Array, " s"]:
    """Torque added up over each segment."""
    return np.array([torque[s.first : s.last + 1, s.joint].sum() for s in segments])


def differentiated(
    position: Float[Array, "n j"], rate_hz: float, cutoff_hz: float
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Zero-phase low-pass, then central differences, as one does with encoder counts."""
    sos = butter(4, cutoff_hz, fs=rate_hz, output="sos")
    q = sosfiltfilt(sos, position, axis=0, padlen=min(len(position) - 1, 60))
    v = np.gradient(q, 1.0 / rate_hz, axis=0, edge_order=2)
    return q, v, np.gradient(v, 1.0 / rate_hz, axis=0, edge_order=2)
