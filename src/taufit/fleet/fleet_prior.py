"""What robots of one type have in common, and each of them by the light of the others.

    rows of robot r     y = W theta_r + e,           e: as many independent ones as residuals show
    robot r             theta_r ~ N(mu, Lambda)
    the type            mu ~ N(nominal arm, links known to about 30 %)

Lambda has one scale per link (of the metric of the log-det divergence) and one variance per
friction term, rotor and offset; mu and Lambda are found by expectation maximisation over robots
that are like the others. A robot's parameters are then the mean of its posterior: what its own data
show stays, what they do not show comes from its siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.gaussian import Gaussian
from taufit.dynamics import BaseParameters
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.constraints import is_consistent
from taufit.estimators.estimator import EstimationProblem
from taufit.fitting.selection.friction_terms import NOMINAL_WEIGHT, gaussian_prior
from taufit.fleet.robot_information import RobotInformation
from taufit.model.columns import steady_drive_columns
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.regression.regression import expand_to_standard_parameters
from taufit.regression.rows import weighted_sum
from taufit.terms import DRAG, INERTIAL, LEVEL, LOAD

# Rounds of expectation maximisation, and robots that take part at most.
_ROUNDS, _MOST = 40, 400
# Before anything is seen links of siblings are taken to differ by 3 %, friction terms by 30 % of
# the joint's friction; as if so many robots had shown it.
_LINKS, _FRICTION, _WORTH = 0.03, 0.3, 2.0
# A type's friction terms are within so many times their size; friction is about such a part of the
# torque's spread, and with the load it grows by about so much.
_WIDE, _PART, _LOAD = 10.0, 0.3, 0.05
# When robots are compared, a joint's friction may be off by so many spreads of its siblings'.
_LOOSE = 10.0
# A last link with another tool may be off by so many.
_OTHER_LINK = 1e3
# Added to unit diagonals: directions that no robot shows stay finite.
_RIDGE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class RobotEvidence:
    """What a robot's rows say, each counted as often as residuals are independent.

    Attributes:
        square, right: W'W and W'y over the noise's variance.
        noise: Root mean square residual per joint [N m].
    """

    square: Float[Array, "p p"]
    right: Float[Array, " p"]
    noise: Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class FleetPrior:
    """What robots of a type have in common.

    Attributes:
        model: The structure.
        base: Its base parameters.
        mean: mu.
        precision: Of a robot's parameters about it.
        robots: How many it was learnt from.
    """

    model: TorqueModel
    base: BaseParameters
    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]
    robots: int

    def posterior(
        self, evidence: RobotEvidence, loose: Bool[Array, " p"] | None = None
    ) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
        """A robot's parameters and their covariance; `loose` ones hardly follow the siblings."""
        prior = self.precision
        if loose is not None:
            links = ~_rest(self.model)
            size = np.where(loose, np.where(links, 1.0 / _OTHER_LINK, 1.0 / _LOOSE), 1.0)
            prior = prior * np.outer(size, size)
        total = Gaussian(evidence.square, evidence.right) + Gaussian.about(self.mean, prior)
        return total.solve(_RIDGE)

    def alike(self, most: float) -> Float[Array, "p p"]:
        """The precision where links of siblings are taken to differ by no more than `most`."""
        layout = self.model.layout
        links, out = _nominal(self.model)[0], self.precision.copy()
        for k in range(layout.joints):
            at = layout.link(k)
            own = links[at, at] / most**2
            if np.trace(out[at, at]) < np.trace(own):
                out[at, at] = own
        return out

    def possible(
        self, evidence: RobotEvidence | None = None, loose: Bool[Array, " p"] | None = None
    ) -> Float[Array, " p"]:
        """A robot's parameters, or the type's, as near to the posterior's as physics allows."""
        if evidence is None:
            theta, covariance = self.mean, np.linalg.inv(self.precision)
        else:
            theta, covariance = self.posterior(evidence, loose)
        if is_consistent(self.model, theta):
            return theta
        # Only base parameters have an effect: any arm with these is as good, a possible one better.
        base = self.base
        own = base.mapping @ covariance @ base.mapping.T
        size = np.sqrt(np.diag(own))
        upper = np.linalg.cholesky(np.linalg.inv(own / np.outer(size, size))).T / size
        names = tuple(base.parameter_names[c] for c in base.columns)
        count = 10**6  # noise of one: rows are in units of it already
        known = Information(names, upper, upper @ (base.mapping @ theta), float(count), count)
        arm = self.model.robot.with_parameters(prior_arm(self.model))
        model = replace(self.model, robot=arm)
        return (
            ConsistentSdp()
            .solve(expand_to_standard_parameters(known, base), EstimationProblem(model, base))
            .values
        )


def prior_arm(model: TorqueModel) -> Float[Array, " l"]:
    """Links that parameters without effect are taken from."""
    return _nominal(model)[1][model.layout.links]


@lru_cache(maxsize=4)
def _nominal(model: TorqueModel) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    return gaussian_prior(model)[:2]


def evidence_of(
    model: TorqueModel, base: BaseParameters, own: RobotInformation, theta: Float[Array, " p"]
) -> RobotEvidence:
    """What a robot's rows say, with the noise that parameters near its own leave."""
    values = base.mapping @ theta
    n = np.maximum(own.count, 1)
    cost = np.array([one.cost(values) for one in own.information])
    floor = 1e-4 * own.spread
    noise = np.maximum(np.sqrt(cost / n), np.maximum(floor, 1e-9))
    each = max(own.correlation / max(own.samples, 1), 1.0)
    together = weighted_sum(own.information, 1.0 / (noise * np.sqrt(each)))
    rows, aim = together.factor @ base.mapping, together.target
    return RobotEvidence(rows.T @ rows, rows.T @ aim, noise)


def single_robot_estimate(
    model: TorqueModel, base: BaseParameters, own: RobotInformation
) -> tuple[Float[Array, " p"], RobotEvidence]:
    """A robot by itself, its links near the nominal ones."""
    prior, centre = _nominal(model)
    wide = _WIDE * _sizes(model, _PART * own.spread)
    held = NOMINAL_WEIGHT * prior + np.diag(np.where(_rest(model), 1.0 / wide**2, 0.0))
    theta = centre
    for _ in range(3):
        evidence = evidence_of(model, base, own, theta)
        total = Gaussian(evidence.square, evidence.right) + Gaussian.about(centre, held)
        theta = total.mean(_RIDGE)
    return theta, evidence_of(model, base, own, theta)


def fit_fleet_prior(
    model: TorqueModel,
    base: BaseParameters,
    each: Sequence[RobotEvidence],
    first: Sequence[Float[Array, " p"]],
) -> FleetPrior:
    """What robots have in common.

    Args:
        model: Of the type, with its nominal links.
        base: Its base parameters.
        each: What each robot's rows say.
        first: Parameters of each by itself.
    """
    step = max(1, -(-len(each) // _MOST))
    each, first = each[::step], first[::step]
    layout = model.layout
    links, centre = _nominal(model)
    rest = _rest(model)
    mean = np.where(rest, np.median(np.stack(first), axis=0), centre)
    size = _sizes(model, _levels(model, mean))
    held = NOMINAL_WEIGHT * links + np.diag(np.where(rest, 1.0 / (_WIDE * size) ** 2, 0.0))
    start = np.where(rest, 0.0, centre)
    scale = np.full(layout.joints, _LINKS**2)
    variance = (_FRICTION * size) ** 2
    usual_links, usual = scale.copy(), variance.copy()
    n = len(each)
    for _ in range(_ROUNDS):
        precision = _precision(model, links, scale, variance)
        prior = Gaussian.about(mean, precision)
        found = [(Gaussian(one.square, one.right) + prior).solve(_RIDGE) for one in each]
        total = sum(theta for theta, _ in found)
        mean = Gaussian(held + n * precision, held @ start + precision @ total).mean(_RIDGE)
        mean = np.where(model.nonnegative & rest, np.maximum(mean, 0.0), mean)
        off = np.stack([theta - mean for theta, _ in found])
        spread = np.mean([np.diag(own) for _, own in found], axis=0) + np.mean(off**2, axis=0)
        variance[rest] = ((n * spread + _WORTH * usual) / (n + _WORTH))[rest]
        for k in range(layout.joints):
            at = layout.link(k)
            q = links[at, at]
            seen = np.mean(
                [
                    o[at] @ q @ o[at] + np.sum(q * own[at, at])
                    for o, (_, own) in zip(off, found, strict=True)
                ]
            )
            width = at.stop - at.start
            scale[k] = (n * seen / width + _WORTH * usual_links[k]) / (n + _WORTH)
    return FleetPrior(model, base, mean, _precision(model, links, scale, variance), n)


def _rest(model: TorqueModel) -> Bool[Array, " p"]:
    """Which parameters are not of links."""
    return np.arange(model.layout.size) >= model.layout.after_links.start


def _levels(model: TorqueModel, theta: Float[Array, " p"]) -> Float[Array, " j"]:
    """About how much friction the joints have [N m]."""
    layout = model.layout
    speed = _rated(model.robot.limits.velocity, 2.0)
    out = 1e-3 * _rated(model.robot.limits.torque, 50.0)
    for i in range(layout.after_links.start, layout.size):
        one, j = layout.parameters[i], int(layout.owner[i])
        assert one is not None
        if one.group == LEVEL:
            out[j] = max(out[j], abs(float(theta[i])))
        elif one.power == 1:
            out[j] = max(out[j], 0.3 * speed[j] * abs(float(theta[i])))
    return out


def _sizes(model: TorqueModel, level: Float[Array, " j"]) -> Float[Array, " p"]:
    """About how large friction terms, rotors and offsets are where joints have so much friction."""
    layout = model.layout
    out = np.ones(layout.size)
    drag = steady_drive_columns(model, _rated(model.robot.limits.velocity, 2.0))
    for i in range(layout.after_links.start, layout.size):
        one, j = layout.parameters[i], int(layout.owner[i])
        assert one is not None
        if one.group == LOAD:
            out[i] = _LOAD
        elif one.group == DRAG:
            out[i] = level[j] / drag[j, layout.drive_names.index(one.name)]
        elif layout.kinds[i] == INERTIAL:
            out[i] = 0.1 * level[j]
        else:
            out[i] = level[j]
    return out


def _rated(values: Array, instead: float) -> Float[Array, " j"]:
    own = np.asarray(values, float)
    return np.where(np.isfinite(own) & (own > 0.0), own, instead)


def _precision(
    model: TorqueModel,
    links: Float[Array, "p p"],
    scale: Float[Array, " j"],
    variance: Float[Array, " p"],
) -> Float[Array, "p p"]:
    layout = model.layout
    out = np.diag(np.where(_rest(model), 1.0 / variance, 0.0))
    for k in range(layout.joints):
        at = layout.link(k)
        out[at, at] = links[at, at] / scale[k]
    return out
