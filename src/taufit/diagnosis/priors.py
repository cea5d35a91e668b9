"""Priors of the links before any torque: description, and an undescribed load.

A gripper, tool or payload is often missing in a description: the last link may additionally carry
a body with some fraction of the robot's mass within some fraction of its reach.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import PER_LINK
from taufit.dynamics import engine
from taufit.fitting.selection.friction_terms import gaussian_prior
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass, pseudo_inertia

# Prior weight of the last link relative to the others, and of links without a description.
_LAST_LINK_WEIGHT, _GUESSED_WEIGHT = 0.05, 1e-3
# Standard deviations of the load's mass relative to the robot's, and of its distance from the last
# link's centre relative to the reach. Rated payloads are mostly 1/6 to 1/2 of a robot's mass.
_LOAD_MASS_STD, _LOAD_OFFSET_STD = 0.2, 0.25
# Number of poses for the reach, and range of joints without limits to either side [rad or m].
_POSES, _UNLIMITED_RANGE = 20, 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    """Normal distributions of the link parameters theta.

    Attributes:
        described: Precision of links as described.
        loaded: Precision if the last link carries a load.
        centre: Mean, the nominal links.
        load_columns: Parameters of the links that may carry a load.
    """

    described: Float[Array, "p p"]
    loaded: Float[Array, "p p"]
    centre: Float[Array, " p"]
    load_columns: Int[Array, " l"]

    def load_distance(self, links: Float[Array, " p"]) -> float:
        """Squared distance of the last link from its description under the load prior."""
        difference = (links - self.centre)[self.load_columns]
        return float(difference @ self.loaded[np.ix_(*[self.load_columns] * 2)] @ difference)


def link_priors(robot: Robot) -> Priors:
    """Priors of the links; independent of mounting and motion."""
    model = TorqueModel(robot, None, rotor_inertia=False, offset=False)
    described, centre, is_guessed = gaussian_prior(model)
    loaded, columns = described.copy(), np.arange(model.layout.size)
    tips = robot.tip_robots
    for tip in tips:
        last = tip.layout.link(-1)
        described[last, last] *= _LAST_LINK_WEIGHT
        extra_covariance = load_covariance(tip, model.layout.split(centre).links)
        loaded[last, last] = _add_covariance(described[last, last], extra_covariance)
    weight = _GUESSED_WEIGHT if is_guessed else 1.0
    load_columns = np.concatenate([columns[tip.layout.link(-1)] for tip in tips])
    return Priors(weight * described, weight * loaded, centre, load_columns)


def load_covariance(robot: Robot, links: Float[Array, "b 10"]) -> Float[Array, "10 10"]:
    """Second moments of the ten parameters of a point mass that the link at the tip may carry.

    With phi(c) the parameters of 1 kg at c, E[m^2 phi(c) phi(c)'] for a mass m and, independent of
    it, c normal about the link's centre; an extended body is a sum of points.

    Args:
        robot: Robot; only its kinematics matter.
        links: Link parameters, with masses.
    """
    last = links.ravel()[robot.layout.link(-1)]
    centre = last[1:4] / last[0]
    off = _LOAD_OFFSET_STD * load_reach(robot, last)
    # Three nodes on each axis are exact up to the fifth degree; phi phi' has the fourth.
    nodes, weights = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0]), np.array([1.0, 4.0, 1.0]) / 6.0
    out = np.zeros((PER_LINK, PER_LINK))
    for at in product(range(3), repeat=3):
        phi = from_centre_of_mass(1.0, centre + off * nodes[list(at)], np.zeros((3, 3)))
        out += np.prod(weights[list(at)]) * np.outer(phi, phi)
    return (_LOAD_MASS_STD * float(links[:, 0].sum())) ** 2 * out


def load_reach(robot: Robot, link: Float[Array, " 10"]) -> float:
    """Half of the largest distance of the last link's centre over poses, plus the link's size [m].

    Independent of the choice of link frames.
    """
    centre = link[1:4] / link[0]
    is_prismatic = robot.is_prismatic
    limits = robot.limits
    low = np.where(is_prismatic & np.isfinite(limits.lower), limits.lower, -_UNLIMITED_RANGE)
    high = np.where(is_prismatic & np.isfinite(limits.upper), limits.upper, _UNLIMITED_RANGE)
    fraction = np.random.default_rng(0).uniform(0.0, 1.0, (_POSES, robot.joints))
    pose = engine(robot).forward_kinematics(low + fraction * (high - low))[:, -1]
    points = pose[:, :3, :3] @ centre + pose[:, :3, 3]
    largest_distance = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    second_moment: Array = pseudo_inertia(link)[:3, :3] / link[0] - np.outer(centre, centre)
    return 0.5 * float(largest_distance) + float(np.sqrt(max(np.trace(second_moment), 0.0)))


def _add_covariance(
    described: Float[Array, "10 10"], load: Float[Array, "10 10"]
) -> Float[Array, "10 10"]:
    """Precision of the sum of a variable with given precision and one with given covariance."""
    size = np.sqrt(np.diag(described))
    scale = np.outer(size, size)
    covariance = np.linalg.inv(described / scale) + load * scale
    out: Array = np.linalg.inv(0.5 * (covariance + covariance.T)) * scale
    return 0.5 * (out + out.T)
