"""Constants of the C file: kinematics, link parameters, rotors, offsets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from taufit.contact.external_torque import DRIFT_SCATTER, observer_gain
from taufit.contact.regime_noise import default_noise
from taufit.core.names import c_comment
from taufit.core.parameters import PER_LINK
from taufit.export.friction_parts import offsets
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level
from taufit.model.noise_by_state import NoiseByState
from taufit.robot import Link
from taufit.robot.tree import TreeRobot
from taufit.terms.friction.states import STANDING


def tables(model: FittedModel) -> str:
    """All constants as C definitions."""
    robot = model.robot
    if isinstance(robot, TreeRobot) and robot.tip_link is None:
        robot = robot.with_tip(robot.tips[0].name)
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
            *(_tree(robot) if isinstance(robot, TreeRobot) else ()),
        ]
    )


def _tree(robot: TreeRobot) -> list[str]:
    """Parents of the links, binding of their joints, and link of the tip."""
    parents = ", ".join(map(str, robot.parents))
    return [
        f"static const int parent[{robot.bodies}] = {{{parents}}};",
        f"/* Flange and payload are at the tip {c_comment(robot.tip_name)}. */",
        f"static const int tip_link = {robot.tip_link};",
        table("binding", robot.binding, robot.joints),
        vector("binding_offset", robot.binding_offset),
    ]


def contact_noise(model: FittedModel) -> NoiseByState:
    """Noise of contact-free motion: learnt at the fit, or derived from friction."""
    return model.training.noise or default_noise(model)


def _contact(model: FittedModel) -> list[str]:
    """Noise by friction regime, limits of the regimes, and the observer gain."""
    noise = contact_noise(model)
    limits = noise.states
    numbers = {
        "standstill": limits.standstill,
        "slow": limits.slow,
        "displaced": limits.displaced,
        "slow_for": limits.slow_for,
        "reversal": limits.reversal,
        "change": limits.change,
        "settle": limits.settle,
        "quiet": limits.quiet,
        "gain": observer_gain(noise.cutoff_hz),
    }
    constants = [f"static const double {name} = {float(x)!r};" for name, x in numbers.items()]
    # The exported observer does not track the drift of friction: thresholds allow for it.
    level = np.array(noise.level)
    level[:STANDING] = np.hypot(level[:STANDING], DRIFT_SCATTER * coulomb_level(model))
    return [table("level", level, model.robot.joints), *constants]


def _pose_factors(link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Constants of the pose of a link in the previous one, placement times exp(screw q):

    R = R0 + sin(q) R1 + (1 - cos(q)) R2,      p = p0 + sin(q) p1 + (1 - cos(q)) p2 + q p3.
    """
    w, u = link.screw[:3], link.screw[3:]
    r, p = link.placement[:3, :3], link.placement[:3, 3]
    zero = np.zeros((3, 3))
    if link.is_prismatic:
        return np.concatenate([r, zero, zero]).ravel(), np.concatenate([p, zero[:2].ravel(), r @ u])
    hat = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    turn = np.concatenate([r, r @ hat, r @ (np.outer(w, w) - np.eye(3))])
    moment = np.cross(w, u)
    shift = np.concatenate([p, -r @ np.cross(w, moment), r @ moment, r @ (w * (w @ u))])
    return turn.ravel(), shift


def table(name: str, rows: Iterable[np.ndarray], width: int) -> str:
    """C array with one row per link."""
    text = [_row(row) for row in rows]
    inner = ",\n  ".join(f"{{{row}}}" for row in text)
    return f"static const double {name}[{len(text)}][{width}] = {{\n  {inner}}};"


def vector(name: str, values: np.ndarray) -> str:
    """C array with all values in one row."""
    return f"static const double {name}[{values.size}] = {{{_row(values)}}};"


def _row(values: np.ndarray) -> str:
    return ", ".join(repr(float(x) + 0.0) for x in np.asarray(values, float).ravel())
