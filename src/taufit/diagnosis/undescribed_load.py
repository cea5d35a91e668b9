"""Undescribed load: payload, tool or links visible in the torque but not in the description."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_torque import gravity_factors
from taufit.diagnosis.priors import load_reach
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass

# A mass is reported from this many standard deviations and these fractions of the masses of robot
# and last link; less is an inaccurate description. Otherwise a first moment is reported from these
# log odds (twice).
_SIGMAS, _ROBOT_MASS_FRACTION, _LINK_MASS_FRACTION, _MIN_LOG_ODDS = 3.0, 0.015, 0.5, 20.0
# Gravity over nominal, in the median and at the last joint that shows it, above which links may be
# missing. Set on cut chains of shared arms; whole, all but Airbot, KR300 and Gen3 have 1.4 at most.
_GRAVITY_FACTOR = 1.5
# Cosine between neighbouring axes above which they are parallel.
_PARALLEL = 0.9

# Radius of a load relative to its distance from the last link's origin.
_RADIUS_RATIO = 0.3


def load_finding(evidence: HypothesisTest) -> Finding | None:
    """Finding on an undescribed load of the last link, or None if none is visible."""
    layout = evidence.rows.robot.layout
    if not evidence.has_enough_data or layout.tip is None:
        return None
    values, covariance = evidence.estimate_load()
    mass, std = float(values[0]), np.sqrt(np.diag(covariance))
    nominal_masses = evidence.rows.robot.parameters[layout.masses]
    if mass > max(
        _SIGMAS * std[0],
        _ROBOT_MASS_FRACTION * nominal_masses.sum(),
        _LINK_MASS_FRACTION * nominal_masses[layout.tip],
    ):
        description = f"about {mass:.1f} kg (+- {2.0 * std[0]:.1f} kg)"
    elif evidence.load_log_odds > _MIN_LOG_ODDS:
        moment, moment_limit = float(np.linalg.norm(values[1:4])), 2.0 * float(std[1:4].max())
        description = (
            f"a first moment of about {moment:.2f} kg m (+- {moment_limit:.2f} kg m; "
            "mass not shown)"
        )
    else:
        return None
    return Finding(
        "undescribed_load",
        "warning",
        f"the last link carries what its description does not have: {description}. The model "
        "contains it. To weigh loads with `taufit payload`, fit a recording without it",
        value=mass,
    )


def missing_links_finding(evidence: HypothesisTest) -> Finding | None:
    """Warning if gravity towards the tip is far above nominal: a load, or links left out."""
    gravity = gravity_factors(evidence)
    joints = np.flatnonzero(np.isfinite(gravity))
    factors = gravity[joints]
    if len(factors) == 0 or factors[-1] < _GRAVITY_FACTOR or np.median(factors) < _GRAVITY_FACTOR:
        return None
    return Finding(
        "missing_links",
        "warning",
        f"gravity at joint {joints[-1] + 1} is {factors[-1]:.1f} times that of the nominal robot: "
        "a load, links that the description leaves out, or wrong nominal masses. The model "
        "contains it; check that the description goes on to the flange (--tip)",
        joint=int(joints[-1]) + 1,
        value=float(factors[-1]),
    )


def chain_end_finding(robot: Robot) -> Finding | None:
    """Remark on an arm described without a tip and with fewer joints than others of its build.

    Where axis 2 is normal to axis 1, arms with axis 3 parallel to axis 2 have six joints, and those
    with all neighbouring axes normal have seven. Torque does not show links left out that are
    light. The rule was written with 20 arms in view; it holds for five bundled since.
    """
    has_tip = not np.allclose(robot.tip, np.eye(4))
    if robot.is_tree or robot.joints < 3 or has_tip or robot.is_prismatic.any():
        return None
    cosines = np.array(
        [
            abs(link.screw[:3] @ following.placement[:3, :3] @ following.screw[:3])
            for link, following in pairwise(robot.links)
        ]
    )
    usual = 6 if cosines[1] > _PARALLEL else 7
    if cosines[0] > _PARALLEL or robot.joints >= usual:
        return None
    return Finding(
        "chain_end",
        "info",
        f"the description ends at joint {robot.joints} without a tip, and most arms with such axes "
        f"have {usual} joints. If this one goes on, the fit takes what follows for a part of the "
        "last link, as if it stood still: describe the robot to its flange (--tip)",
        value=float(robot.joints),
    )


def with_load(robot: Robot, evidence: HypothesisTest) -> Robot:
    """Robot with the estimated load added to its last link.

    A prior of a nearly massless last link could not represent a load many times as heavy.
    """
    values, _ = evidence.estimate_load()
    if values[0] <= 0.0:
        return robot
    # If only the first moment is identifiable, the load is assumed within the robot's reach.
    last = robot.layout.link(-1)
    nominal_link = robot.parameters[last]
    point = from_centre_of_mass(1.0, np.zeros(3), np.zeros((3, 3)))
    far = load_reach(robot, nominal_link if nominal_link[0] > 0.0 else point)
    mass = max(float(values[0]), float(np.linalg.norm(values[1:4])) / far)
    centre = values[1:4] / mass
    inertia = mass * (_RADIUS_RATIO * float(np.linalg.norm(centre))) ** 2
    links = robot.parameters.copy()
    links[last] += from_centre_of_mass(mass, centre, 2.0 * inertia * np.eye(3))
    return robot.with_parameters(links)
