"""Room for what an arm carries: a gripper, a tool, a payload that its description does not have.

Nothing of it shows in the description, so what the last link may differ by is told by the arm
alone: a body of some share of its mass, within some share of its reach of the last link's centre.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics import forward_kinematics
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass, pseudo_inertia

# Mass of what is carried over the arm's, and its distance from the last link's centre over the
# arm's reach: standard deviations. Rated payloads are 0.17 to 0.47 of an arm's mass.
_MASS, _OFF = 0.2, 0.25
# Angles to either side at which reach is looked for where there are no limits [rad], or lengths [m].
_TURN, _POSES = 1.5, 20


def carried_covariance(robot: Robot, links: Float[Array, "j 10"]) -> Float[Array, "10 10"]:
    """Second moments of the ten parameters of a point mass that the last link may carry.

    With phi(c) the parameters of 1 kg at c, E[m^2 phi(c) phi(c)'] for a mass m of standard
    deviation sigma_m and, independent of it, c normal about the link's centre: what has size is
    many points.

    Args:
        robot: The arm; only how it moves matters.
        links: Its parameters, with masses.
    """
    centre = links[-1, 1:4] / links[-1, 0]
    off = _OFF * _reach(robot, links[-1], centre)
    # Three points on each axis are exact for polynomials of fifth degree; these have the fourth.
    nodes, weights = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)]), np.array([1.0, 4.0, 1.0]) / 6.0
    out = np.zeros((10, 10))
    for at in product(range(3), repeat=3):
        phi = from_centre_of_mass(1.0, centre + off * nodes[list(at)], np.zeros((3, 3)))
        out += np.prod(weights[list(at)]) * np.outer(phi, phi)
    return (_MASS * links[:, 0].sum()) ** 2 * out


def _reach(robot: Robot, link: Float[Array, " 10"], centre: Float[Array, " 3"]) -> float:
    """Half of the way that the last link's centre can be moved, and the link's own size.

    Independent of where link frames are.
    """
    slides = np.array([one.prismatic for one in robot.links])
    limits = robot.limits
    low = np.where(slides & np.isfinite(limits.lower), limits.lower, -_TURN)
    high = np.where(slides & np.isfinite(limits.upper), limits.upper, _TURN)
    share = np.random.default_rng(0).uniform(0.0, 1.0, (_POSES, robot.joints))
    pose = forward_kinematics(robot, low + share * (high - low))[:, -1]
    points = pose[:, :3, :3] @ centre + pose[:, :3, 3]
    way = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    spread: Array = pseudo_inertia(link)[:3, :3] / link[0] - np.outer(centre, centre)
    return 0.5 * float(way) + float(np.sqrt(max(np.trace(spread), 0.0)))
