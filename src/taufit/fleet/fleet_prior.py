"""Hierarchical prior of a fleet, and posterior of each robot.

    rows of robot r     y = W theta_r + e,           e: independent samples only
    robot r             theta_r ~ N(mu, Lambda)
    the type            mu ~ N(nominal robot, links known to about 30 %)

Lambda has one scale per link (of the metric of the log-det divergence) and one variance per
friction term, rotor and offset; mu and Lambda are estimated by expectation maximisation over robots
without outliers. A robot's parameters are the mean of its posterior: values that its data determine
are kept, the others come from the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
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
from taufit.regression.rows import sum_expression
from taufit.terms import DRAG, INERTIAL, LEVEL, LOAD

# Iterations of expectation maximisation, and largest number of robots used.
_ROUNDS, _MAX_ROBOTS = 40, 400
# Prior of the variation between robots: links 3 %, friction terms 30 % of the joint's friction;
# weight of this prior in robots.
_LINK_STD, _FRICTION_STD, _PRIOR_ROBOTS = 0.03, 0.3, 2.0
# Prior width of a type's friction terms relative to their typical size; typical friction relative
# to the standard deviation of torque; typical load friction [-].
_TYPE_WIDTH, _FRICTION_FRACTION, _LOAD_FRICTION = 10.0, 0.3, 0.05
# Width of a joint's friction relative to the fleet's variation when robots are compared.
_FREE_FRICTION_WIDTH = 10.0
# Likewise of a last link with another tool.
_FREE_LINK_WIDTH = 1e3
# Ridge on unit diagonals, for directions that no robot identifies.
_RIDGE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class RobotEvidence:
    """Normal equations of a robot's rows, by their effective number of independent samples.

    Attributes:
        square, right: W'W and W'y over the noise variance.
        noise: RMS residual per joint [N m].
    """

    square: Float[Array, "p p"]
    right: Float[Array, " p"]
    noise: Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class FleetPrior:
    """Prior distribution of the parameters of robots of one type.

    Attributes:
        model: Structure of the torque model.
        base: Base parameters.
        mean: Mean mu.
        precision: Precision of a robot's parameters about the mean.
        robots: Number of robots it was estimated from.
    """

    model: TorqueModel
    base: BaseParameters
    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]
    robots: int

    def posterior(
        self, evidence: RobotEvidence, is_free: Bool[Array, " p"] | None = None
    ) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
        """Posterior mean and covariance of a robot's parameters; `is_free` ones have a wide
        prior.
        """
        prior = self.precision
        if is_free is not None:
            links = ~_is_term(self.model)
            size = np.where(
                is_free, np.where(links, 1.0 / _FREE_LINK_WIDTH, 1.0 / _FREE_FRICTION_WIDTH), 1.0
            )
            prior = prior * np.outer(size, size)
        total = Gaussian(evidence.square, evidence.right) + Gaussian.from_precision(
            self.mean, prior
        )
        return total.solve(_RIDGE)

    def limited_precision(self, max_link_std: float) -> Float[Array, "p p"]:
        """Precision with the variation of links limited to `max_link_std`."""
        layout = self.model.layout
        links, out = _nominal(self.model)[0], self.precision.copy()
        for k in range(layout.joints):
            link_slice = layout.link(k)
            link_precision = links[link_slice, link_slice] / max_link_std**2
            if np.trace(out[link_slice, link_slice]) < np.trace(link_precision):
                out[link_slice, link_slice] = link_precision
        return out

    def consistent_parameters(
        self, evidence: RobotEvidence | None = None, is_free: Bool[Array, " p"] | None = None
    ) -> Float[Array, " p"]:
        """Physically consistent parameters closest to the posterior of a robot, or to the type's
        mean.
        """
        if evidence is None:
            theta, covariance = self.mean, np.linalg.inv(self.precision)
        else:
            theta, covariance = self.posterior(evidence, is_free)
        if is_consistent(self.model, theta):
            return theta
        # Only base parameters have an effect: find consistent parameters with the same ones.
        base = self.base
        base_covariance = base.mapping @ covariance @ base.mapping.T
        size = np.sqrt(np.diag(base_covariance))
        upper = np.linalg.cholesky(np.linalg.inv(base_covariance / np.outer(size, size))).T / size
        names = tuple(base.parameter_names[c] for c in base.columns)
        count = 10**6  # unit noise: rows are already scaled by it
        information = Information(names, upper, upper @ (base.mapping @ theta), float(count), count)
        robot = self.model.robot.with_parameters(prior_links(self.model))
        model = replace(self.model, robot=robot)
        return (
            ConsistentSdp()
            .solve(expand_to_standard_parameters(information, base), EstimationProblem(model, base))
            .values
        )


def prior_links(model: TorqueModel) -> Float[Array, " l"]:
    """Links for parameters without effect."""
    return _nominal(model)[1][model.layout.links]


@lru_cache(maxsize=4)
def _nominal(model: TorqueModel) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    return gaussian_prior(model)[:2]


def robot_evidence(
    model: TorqueModel, base: BaseParameters, robot: RobotInformation, theta: Float[Array, " p"]
) -> RobotEvidence:
    """Normal equations of a robot's rows, with the noise of residuals at `theta`."""
    values = base.mapping @ theta
    n = np.maximum(robot.count, 1)
    cost = np.array([joint_information.cost(values) for joint_information in robot.information])
    floor = 1e-4 * robot.torque_std
    noise = np.maximum(np.sqrt(cost / n), np.maximum(floor, 1e-9))
    correlation = max(robot.correlation_sum / max(robot.samples, 1), 1.0)
    total = sum_expression(robot.information, 1.0 / (noise * np.sqrt(correlation)))
    rows, target = total.factor @ base.mapping, total.target
    return RobotEvidence(rows.T @ rows, rows.T @ target, noise)


def single_robot_estimate(
    model: TorqueModel, base: BaseParameters, robot: RobotInformation
) -> tuple[Float[Array, " p"], RobotEvidence]:
    """Estimate of a robot by its own data, with links near the nominal ones."""
    prior, centre = _nominal(model)
    width = _TYPE_WIDTH * _term_sizes(model, _FRICTION_FRACTION * robot.torque_std)
    prior_precision = NOMINAL_WEIGHT * prior + np.diag(
        np.where(_is_term(model), 1.0 / width**2, 0.0)
    )
    theta = centre
    for _ in range(3):
        evidence = robot_evidence(model, base, robot, theta)
        total = Gaussian(evidence.square, evidence.right) + Gaussian.from_precision(
            centre, prior_precision
        )
        theta = total.mean(_RIDGE)
    return theta, robot_evidence(model, base, robot, theta)


def fit_fleet_prior(
    model: TorqueModel,
    base: BaseParameters,
    evidences: Sequence[RobotEvidence],
    initial: Sequence[Float[Array, " p"]],
) -> FleetPrior:
    """Estimate the common prior of robots by expectation maximisation.

    Args:
        model: Torque model of the type, with its nominal links.
        base: Base parameters of the model.
        evidences: Normal equations of each robot.
        initial: Estimate of each robot by its own data.
    """
    step = max(1, -(-len(evidences) // _MAX_ROBOTS))
    evidences, initial = evidences[::step], initial[::step]
    layout = model.layout
    links, centre = _nominal(model)
    is_term = _is_term(model)
    mean = np.where(is_term, np.median(np.stack(initial), axis=0), centre)
    size = _term_sizes(model, _friction_levels(model, mean))
    type_precision = NOMINAL_WEIGHT * links + np.diag(
        np.where(is_term, 1.0 / (_TYPE_WIDTH * size) ** 2, 0.0)
    )
    start = np.where(is_term, 0.0, centre)
    scale = np.full(layout.joints, _LINK_STD**2)
    variance = (_FRICTION_STD * size) ** 2
    prior_scale, prior_variance = scale.copy(), variance.copy()
    n = len(evidences)
    for _ in range(_ROUNDS):
        precision = _precision(model, links, scale, variance)
        prior = Gaussian.from_precision(mean, precision)
        posteriors = [
            (Gaussian(evidence.square, evidence.right) + prior).solve(_RIDGE)
            for evidence in evidences
        ]
        total = sum(theta for theta, _ in posteriors)
        mean = Gaussian(
            type_precision + n * precision, type_precision @ start + precision @ total
        ).mean(_RIDGE)
        mean = np.where(model.nonnegative & is_term, np.maximum(mean, 0.0), mean)
        deviations = np.stack([theta - mean for theta, _ in posteriors])
        second_moment = np.mean(
            [np.diag(covariance) for _, covariance in posteriors], axis=0
        ) + np.mean(deviations**2, axis=0)
        variance[is_term] = (
            (n * second_moment + _PRIOR_ROBOTS * prior_variance) / (n + _PRIOR_ROBOTS)
        )[is_term]
        for k in range(layout.joints):
            link_slice = layout.link(k)
            q = links[link_slice, link_slice]
            link_moment = np.mean(
                [
                    o[link_slice] @ q @ o[link_slice]
                    + np.sum(q * covariance[link_slice, link_slice])
                    for o, (_, covariance) in zip(deviations, posteriors, strict=True)
                ]
            )
            width = link_slice.stop - link_slice.start
            scale[k] = (n * link_moment / width + _PRIOR_ROBOTS * prior_scale[k]) / (
                n + _PRIOR_ROBOTS
            )
    return FleetPrior(model, base, mean, _precision(model, links, scale, variance), n)


def _is_term(model: TorqueModel) -> Bool[Array, " p"]:
    """Mask of parameters that do not belong to links."""
    return np.arange(model.layout.size) >= model.layout.after_links.start


def _friction_levels(model: TorqueModel, theta: Float[Array, " p"]) -> Float[Array, " j"]:
    """Approximate friction of the joints [N m]."""
    layout = model.layout
    speed = _limit_or_default(model.robot.limits.velocity, 2.0)
    out = 1e-3 * _limit_or_default(model.robot.limits.torque, 50.0)
    for i in range(layout.after_links.start, layout.size):
        parameter, j = layout.parameters[i], int(layout.owner[i])
        assert parameter is not None
        if parameter.group == LEVEL:
            out[j] = max(out[j], abs(float(theta[i])))
        elif parameter.power == 1:
            out[j] = max(out[j], 0.3 * speed[j] * abs(float(theta[i])))
    return out


def _term_sizes(model: TorqueModel, level: Float[Array, " j"]) -> Float[Array, " p"]:
    """Approximate size of friction terms, rotors and offsets at given friction levels."""
    layout = model.layout
    out = np.ones(layout.size)
    viscous_columns = steady_drive_columns(
        model, _limit_or_default(model.robot.limits.velocity, 2.0)
    )
    for i in range(layout.after_links.start, layout.size):
        parameter, j = layout.parameters[i], int(layout.owner[i])
        assert parameter is not None
        if parameter.group == LOAD:
            out[i] = _LOAD_FRICTION
        elif parameter.group == DRAG:
            out[i] = level[j] / viscous_columns[j, layout.drive_names.index(parameter.name)]
        elif layout.kinds[i] == INERTIAL:
            out[i] = 0.1 * level[j]
        else:
            out[i] = level[j]
    return out


def _limit_or_default(values: Array, default: float) -> Float[Array, " j"]:
    ratings = np.asarray(values, float)
    return np.where(np.isfinite(ratings) & (ratings > 0.0), ratings, default)


def _precision(
    model: TorqueModel,
    links: Float[Array, "p p"],
    scale: Float[Array, " j"],
    variance: Float[Array, " p"],
) -> Float[Array, "p p"]:
    layout = model.layout
    out = np.diag(np.where(_is_term(model), 1.0 / variance, 0.0))
    for k in range(layout.joints):
        link_slice = layout.link(k)
        out[link_slice, link_slice] = links[link_slice, link_slice] / scale[k]
    return out
