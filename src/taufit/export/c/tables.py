"""The constants of the C file: kinematics, link parameters, rotors, offsets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from taufit.contact.external_torque import observer_gain
from taufit.contact.regime_noise import default_noise
from taufit.core.parameters import PER_LINK
from taufit.export.friction_parts import offsets
from taufit.model.fitted_model import FittedModel
from taufit.model.noise_by_state import NoiseByState
from taufit.robot import Link


def tables(model: FittedModel) -> str:
    """All of them, as static constants."""
    robot = model.robot
    coupling = robot.drives.coupling
    rotor = model.layout.split(model.values).rotors
    return "\n".join(
        [
            table("turn", (_pose_factors(link)[0] for link in robot.links), 27),
            table("shift", (_pose_factors(link)[1] for link in robot.links), 12),
            table("screw", (link.screw for link in robot.links), 6),
            table("link", (link.parameters for link in robot.links), PER_LINK),
            vector("tip_r", robot.tip[:3, :3]),
            vector("tip_p", robot.tip[:3, 3]),
            vector("rotor", coupling.T @ np.diag(rotor) @ coupling),
            vector("offset", offsets(model)),
            vector("pull", robot.gravity),
            vector("usual_temperature", model.typical_temperature),
            *_contact(model),
        ]
    )


def noise_of(model: FittedModel) -> NoiseByState:
    """Of contact-free motion: learnt at the fit, or taken from the size of friction."""
    return model.training.noise or default_noise(model)


def _contact(model: FittedModel) -> list[str]:
    """Noise by friction state, when a joint is in which, and the observer's corner."""
    noise = noise_of(model)
    own = noise.states
    numbers = {
        "standstill": own.standstill,
        "slow": own.slow,
        "displaced": own.displaced,
        "slow_for": own.slow_for,
        "reversal": own.reversal,
        "change": own.change,
        "settle": own.settle,
        "quiet": own.quiet,
        "gain": observer_gain(noise.cutoff_hz),
    }
    constants = [f"static const double {name} = {float(x)!r};" for name, x in numbers.items()]
    return [table("level", noise.level, model.robot.joints), *constants]


def _pose_factors(link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Constants of the link's pose in the one before it, placement times exp(screw q):

    R = R0 + sin(q) R1 + (1 - cos(q)) R2,      p = p0 + sin(q) p1 + (1 - cos(q)) p2 + q p3.
    """
    w, u = link.screw[:3], link.screw[3:]
    r, p = link.placement[:3, :3], link.placement[:3, 3]
    zero = np.zeros((3, 3))
    if link.prismatic:
        return np.concatenate([r, zero, zero]).ravel(), np.concatenate([p, zero[:2].ravel(), r @ u])
    hat = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    turn = np.concatenate([r, r @ hat, r @ (np.outer(w, w) - np.eye(3))])
    across = np.cross(w, u)
    shift = np.concatenate([p, -r @ np.cross(w, across), r @ across, r @ (w * (w @ u))])
    return turn.ravel(), shift


def table(name: str, rows: Iterable[np.ndarray], width: int) -> str:
    """One row per link."""
    text = [_row(row) for row in rows]
    inner = ",\n  ".join(f"{{{row}}}" for row in text)
    return f"static const double {name}[{len(text)}][{width}] = {{\n  {inner}}};"


def vector(name: str, values: np.ndarray) -> str:
    """All values in one row."""
    return f"static const double {name}[{values.size}] = {{{_row(values)}}};"


def _row(values: np.ndarray) -> str:
    return ", ".join(repr(float(x) + 0.0) for x in np.asarray(values, float).ravel())
