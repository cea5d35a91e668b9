"""What is known of an arm's links before any torque: its description, and what it may carry.

A gripper, a tool or a payload is seldom in a description, so how far the last link may be from its
own is not told by it: it may have, besides, a body of some share of the arm's mass within some
share of the arm's reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK
from taufit.dynamics import forward_kinematics
from taufit.fitting.selection.friction_terms import gaussian_prior
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass, pseudo_inertia

# Trust in the last link's description beside that in the others', and in links nobody described.
_LAST_LINK_WEIGHT, _GUESSED_WEIGHT = 0.05, 1e-3
# Mass of what is carried over the arm's, and its distance from the last link's centre over the
# arm's reach: standard deviations. Rated payloads are mostly a sixth to a half of an arm's mass.
_LOAD_MASS_STD, _LOAD_OFFSET_STD = 0.2, 0.25
# Poses by which reach is found, and how far joints without limits go to either side [rad or m].
_POSES, _UNLIMITED_RANGE = 20, 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    """Normal distributions of theta.

    Attributes:
        described: Inverse covariance of links as they are described.
        loaded: The same where the last one carries something.
        centre: Their mean, the nominal links.
    """

    described: Float[Array, "p p"]
    loaded: Float[Array, "p p"]
    centre: Float[Array, " p"]

    def load_distance(self, links: Float[Array, " p"]) -> float:
        """Squared distance of the last link from its description, where it may carry something."""
        difference = (links - self.centre)[-PER_LINK:]
        return float(difference @ self.loaded[-PER_LINK:, -PER_LINK:] @ difference)


def link_priors(robot: Robot) -> Priors:
    """Of the links alone: mounting and motion do not matter."""
    model = TorqueModel(robot, None, rotor_inertia=False, offset=False)
    described, centre, is_guessed = gaussian_prior(model)
    last = model.layout.link(-1)
    described[last, last] *= _LAST_LINK_WEIGHT
    loaded = described.copy()
    extra_covariance = load_covariance(robot, model.layout.split(centre).links)
    loaded[last, last] = _add_covariance(described[last, last], extra_covariance)
    weight = _GUESSED_WEIGHT if is_guessed else 1.0
    return Priors(weight * described, weight * loaded, centre)


def load_covariance(robot: Robot, links: Float[Array, "j 10"]) -> Float[Array, "10 10"]:
    """Second moments of the ten parameters of a point mass that the last link may carry.

    With phi(c) the parameters of 1 kg at c, E[m^2 phi(c) phi(c)'] for a mass m and, independent of
    it, c normal about the link's centre: whatever has size is many points.

    Args:
        robot: The arm; only how it moves matters.
        links: Its parameters, with masses.
    """
    centre = links[-1, 1:4] / links[-1, 0]
    off = _LOAD_OFFSET_STD * load_reach(robot, links[-1])
    # Three nodes on each axis are exact up to the fifth degree; phi phi' has the fourth.
    nodes, weights = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0]), np.array([1.0, 4.0, 1.0]) / 6.0
    out = np.zeros((PER_LINK, PER_LINK))
    for at in product(range(3), repeat=3):
        phi = from_centre_of_mass(1.0, centre + off * nodes[list(at)], np.zeros((3, 3)))
        out += np.prod(weights[list(at)]) * np.outer(phi, phi)
    return (_LOAD_MASS_STD * float(links[:, 0].sum())) ** 2 * out


def load_reach(robot: Robot, link: Float[Array, " 10"]) -> float:
    """Half of the way that the last link's centre can be moved, and the link's own size.

    Independent of where frames of links are.
    """
    centre = link[1:4] / link[0]
    is_prismatic = np.array([joint_link.prismatic for joint_link in robot.links])
    limits = robot.limits
    low = np.where(is_prismatic & np.isfinite(limits.lower), limits.lower, -_UNLIMITED_RANGE)
    high = np.where(is_prismatic & np.isfinite(limits.upper), limits.upper, _UNLIMITED_RANGE)
    fraction = np.random.default_rng(0).uniform(0.0, 1.0, (_POSES, robot.joints))
    pose = forward_kinematics(robot, low + fraction * (high - low))[:, -1]
    points = pose[:, :3, :3] @ centre + pose[:, :3, 3]
    largest_distance = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    second_moment: Array = pseudo_inertia(link)[:3, :3] / link[0] - np.outer(centre, centre)
    return 0.5 * float(largest_distance) + float(np.sqrt(max(np.trace(second_moment), 0.0)))


def _add_covariance(
    described: Float[Array, "10 10"], load: Float[Array, "10 10"]
) -> Float[Array, "10 10"]:
    """The inverse of the sum of two covariances, one of them given by its inverse."""
    size = np.sqrt(np.diag(described))
    scale = np.outer(size, size)
    covariance = np.linalg.inv(described / scale) + load * scale
    out: Array = np.linalg.inv(0.5 * (covariance + covariance.T)) * scale
    return 0.5 * (out + out.T)
