"""Prior scales from the data: weight of each nominal link, magnitude of friction terms.

    links           theta_k ~ N(nominal_k, (w_k Q_k)^-1)      Q_k: of the log-det divergence
    viscous         theta_i ~ N(0, (kappa_j s_i)^2)           s_i: observed friction, at rated speed
    coulomb         theta_i ~ N(0, f_j^2)                     f_j: observed friction of joint j
    load            theta_i ~ N(0, (l_j s_i)^2)               likewise, at rated torque
    ripple          theta_i ~ N(0, (a_j f_j)^2)
    offset          theta_i ~ N(0, (o f_j)^2)                 o: common to all joints
    pre-sliding     theta_i ~ N(0, (b_j f_j)^2)               widths above the first

In short motion, viscous terms have means (`usual_friction`).

For unidirectional joints, friction, offset and slow changes of either are nearly confounded: there
the prior of the offset is small against friction, and that of v |v| very small.

w_k, kappa_j, l_j, o, a_j and b_j maximise the evidence (MacKay's fixed point) under weak
hyperpriors, with rows weighted by their effective number of independent samples. No term is
dropped: terms without support get a small scale. Cross-validation within one recording cannot
replace this: ten seconds hold a few dozen independent residuals per joint, and terms would be
selected by noise.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import inverse_on_subset
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.data_sufficiency import DataAmount
from taufit.fitting.selection.friction_terms import (
    GUESSED_WEIGHT,
    MIN_PRIOR_FRACTION,
    NOMINAL_WEIGHT,
    correlation_samples,
    fit_with_prior,
    gaussian_prior,
    normal_equations,
    solve_normal,
)
from taufit.model.columns import steady_drive_columns
from taufit.model.information_share import InformationShare
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.regression.regression import Regression
from taufit.regression.rows import Load, RowBuilder, SampleRows, sum_expression
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import CONSTANT, DRAG, LEVEL, LOAD, MEMORY, WAVE, needs

if TYPE_CHECKING:
    from taufit.fitting.selection.usual_friction import UsualFriction

# Weights of the hyperpriors "links known to 30 %" and "viscous friction as large as all observed
# friction", in parameters.
_NU_LINK, _NU_VISCOUS = 10.0, 4.0
# Smallest weight of a link relative to that of a described one.
_MIN_LINK_WEIGHT = 0.1
# Prior standard deviations of Coulomb friction and of offsets relative to the observed friction.
_COULOMB_SCALE = 1.0
# Offsets: on ten shared arms .01 to 1.1 of it, .3 in the median. Scale and weight: one of (1, 2),
# (.3, 1), (.1, 1), (.1, 2), (.03, 1) on first splits of these arms and the first seconds of six.
_OFFSET_SCALE, _NU_OFFSET = 0.1, 1.0
# Prior of wider pre-sliding terms relative to the observed friction: a second of motion shows only
# the beginning of such a term.
_PRESLIDING_SCALE, _NU_PRESLIDING = 0.5, 4.0
# Prior amplitude of a wave of ripple relative to the observed friction, and its upper limit: a wave
# larger than all friction is no ripple. Limit: one of 0.3, 1 and 10, chosen on the LWR4 alone.
_RIPPLE_SCALE, _NU_RIPPLE, _MAX_RIPPLE_SCALE = 0.3, 2.0, 1.0
# Upper limit of friction at low speed relative to the largest torque beyond that of the links:
# motion shows only a part of pre-sliding terms wider than itself. A limit of 1 costs 6 to 12 % on
# the Panda (all splits); 1.5 costs nothing on the ten shared arms, on which it was chosen.
_LARGEST_LEVEL = 1.5
# Smallest upper limit [N m], so that an arm without friction leaves room inside the constraints.
_SMALLEST_LIMIT = 0.01
# Iterations of the fixed point; constant, since a stopping rule would depend on rounding.
_ROUNDS = 25


@dataclass(frozen=True, slots=True, eq=False)
class PriorScales:
    """Prior scales estimated from the data.

    Attributes:
        link_weight: Weight of each nominal link, in squared noise levels of a row.
        precision: Prior precision of every parameter, in the same unit; 0 without prior.
        mean: Prior mean of every parameter beside the links; 0 for most.
        correlation_samples: Number of rows over which residuals are correlated.
        load: Parameters whose rigid-body torque is the load of friction, else None; those of the
            converged search.
        ripple: Prior standard deviation of ripple terms per joint, relative to the observed
            friction; 0 without ripple.
        theta: Parameters at which the evidence was evaluated.
        drive_torque: Upper limit of each joint's friction at low speed and offset [N m]; infinite
            where motors are coupled or nothing was measured.
        from_data: Information share of each link and friction term.
    """

    link_weight: Float[Array, " l"]
    precision: Float[Array, " p"]
    mean: Float[Array, " p"]
    correlation_samples: float
    load: Float[Array, " p"] | None
    ripple: Float[Array, " j"]
    theta: Float[Array, " p"]
    drive_torque: Float[Array, " j"]
    from_data: InformationShare


def estimate_prior_scales(
    model: TorqueModel,
    samples: Samples | SampleSource,
    *,
    dropped: tuple[str, ...] = (),
    minimum_noise: Float[Array, " j"] | None = None,
    load: Float[Array, " p"] | None = None,
    unidirectional: tuple[int, ...] = (),
) -> PriorScales:
    """Estimate the prior scales by evidence maximisation.

    Args:
        model: Torque model.
        samples: Conditioned motion and torque, in memory or part by part.
        dropped: Parameters fixed at zero.
        minimum_noise: Lower limit of each joint's noise [N m].
        load: Parameters whose rigid-body torque is the initial load; by default those of a fit with
            the measured torque as load.
        unidirectional: Joints, counted from 0, that moved in one direction only.
    """
    return prior_scales(
        maximise_evidence(model, as_source(samples), dropped, minimum_noise, load, unidirectional)
    )


def prior_scales(search: EvidenceMaximisation) -> PriorScales:
    """Result of a converged search."""
    model = search.model
    has_ripple = bool(np.any(search.scales.is_ripple))
    return PriorScales(
        search.link_weight * search.correlation,
        search.precision() * search.correlation,
        search.mean,
        search.correlation,
        search.theta if needs(model.term_sum, "load") else None,
        np.sqrt(search.ripple) if has_ripple else np.zeros(model.layout.joints),
        search.theta,
        _largest_drive_torque(search),
        search.information_share(),
    )


def _largest_drive_torque(search: EvidenceMaximisation) -> Float[Array, " j"]:
    """Upper limit of friction at low speed and offset, from the torque beyond that of the links."""
    rows = search.regression.excerpt
    assert isinstance(rows, SampleRows)
    drive_torque = np.abs(rows.torque - rows.rigid_torque(search.theta))
    largest = np.max(np.where(rows.keep, drive_torque, 0.0), axis=0)
    coupling = search.model.robot.drives.coupling
    is_coupled = np.any((coupling != 0.0) & ~np.eye(len(coupling), dtype=bool), axis=0)
    limit = np.maximum(_LARGEST_LEVEL * largest, _SMALLEST_LIMIT)
    return np.where(is_coupled | (largest == 0.0), np.inf, limit)


def maximise_evidence(
    model: TorqueModel,
    source: SampleSource,
    dropped: tuple[str, ...],
    minimum_noise: Float[Array, " j"] | None = None,
    initial_load: Float[Array, " p"] | None = None,
    unidirectional: tuple[int, ...] = (),
) -> EvidenceMaximisation:
    """Converged search for the scales; load-dependent friction starts with `initial_load`."""
    search = prepare_evidence(model, source, dropped, minimum_noise, initial_load, unidirectional)
    search.run()
    return search


def prepare_evidence(
    model: TorqueModel,
    source: SampleSource,
    dropped: tuple[str, ...],
    minimum_noise: Float[Array, " j"] | None = None,
    initial_load: Float[Array, " p"] | None = None,
    unidirectional: tuple[int, ...] = (),
) -> EvidenceMaximisation:
    """Search for the scales before its first iteration, with a fit under a weak prior."""
    prior, centre, is_guessed = gaussian_prior(model)
    nominal_weight = GUESSED_WEIGHT if is_guessed else NOMINAL_WEIGHT
    base = base_parameters(model)
    has_load = needs(model.term_sum, "load")
    load: Load = (initial_load if initial_load is not None else "measured") if has_load else None
    # The correlation of residuals is estimated with a weak prior.
    weak_prior = MIN_PRIOR_FRACTION * nominal_weight * source.filter_correlation_length * prior
    theta = None
    for _ in range(2 if isinstance(load, str) else 1):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        theta, scale = fit_with_prior(
            regression, weak_prior, centre, model.nonnegative, minimum_noise
        )
    assert theta is not None
    rows = regression.excerpt
    assert isinstance(rows, SampleRows)
    correlation = correlation_samples(rows.residuals(theta), rows.keep, rows.run)
    search = EvidenceMaximisation(model, regression, theta, scale, float(np.mean(correlation)))
    search.prior, search.centre, search.nominal_weight = prior, centre, nominal_weight
    search.scales = _scales(model, source, rows, theta)
    if unidirectional:
        from taufit.fitting.selection.unidirectional_scales import restrict_unidirectional

        search.scales = restrict_unidirectional(search.scales, model, unidirectional)
    search.included = ~np.isin(model.names, dropped)
    search.weak_prior = weak_prior
    return search


def rated_speed(model: TorqueModel, source: SampleSource) -> Float[Array, " j"]:
    """Rated speed of the joints; twice the largest observed speed if unknown."""
    extent = source.summary.ranges["velocity"]
    largest = np.nan_to_num(np.maximum(np.abs(extent.low), np.abs(extent.high)))
    return _limit_or_observed(model.robot.limits.velocity, largest)


@dataclass(frozen=True, slots=True, eq=False)
class TermScales:
    """Prior precisions at unit scales, by kind of term.

    Attributes:
        viscous: 1 / s_i^2 of viscous terms, else 0.
        load: 1 / s_i^2 of load terms, else 0.
        coulomb: Precision of Coulomb friction, else 0.
        presliding: 1 / f_j^2 of wider pre-sliding terms, else 0.
        offset: 1 / f_j^2 of offsets, else 0.
        is_ripple: Mask of ripple terms.
        friction_std: Standard deviation of the observed friction.
        owner: Joint of every parameter.
        usual: Friction terms with a common mean.
    """

    viscous: Float[Array, " p"]
    load: Float[Array, " p"]
    coulomb: Float[Array, " p"]
    presliding: Float[Array, " p"]
    offset: Float[Array, " p"]
    is_ripple: Bool[Array, " p"]
    friction_std: Float[Array, " j"]
    owner: Array
    usual: tuple[UsualFriction, ...]


def _scales(
    model: TorqueModel, source: SampleSource, rows: SampleRows, theta: Float[Array, " p"]
) -> TermScales:
    layout, p = model.layout, model.layout.size
    rigid = rows.rigid_torque(theta)
    drive_torque = np.where(rows.keep, rows.torque - rigid, 0.0)
    count = np.maximum(rows.keep.sum(axis=0), 1)
    mean = drive_torque.sum(axis=0) / count
    drive_std = np.sqrt(np.sum(np.where(rows.keep, drive_torque - mean, 0.0) ** 2, axis=0) / count)
    friction_std = np.maximum(drive_std, 1e-9)
    torque = source.summary.torque_std + np.abs(source.summary.torque_mean)
    friction_level = np.minimum(
        np.maximum(drive_std, np.abs(drive_torque).sum(axis=0) / count), torque
    )
    friction_level = np.maximum(friction_level, 1e-9)
    speed = rated_speed(model, source)
    largest_load = np.abs(rigid).max(axis=0, initial=0.0)
    rated_load = _limit_or_observed(model.robot.limits.torque, largest_load)
    viscous_columns = steady_drive_columns(model, speed)
    viscous, load, coulomb, presliding, offset = np.zeros((5, p))
    ripple = np.zeros(p, bool)
    for i in range(layout.after_links.start, p):
        parameter, j = layout.parameters[i], int(layout.owner[i])
        assert parameter is not None
        if parameter.group == DRAG and parameter.power:
            # Friction of a unidirectional joint has no variance.
            viscous[i] = (
                viscous_columns[j, layout.drive_names.index(parameter.name)] / friction_level[j]
            ) ** 2
        elif parameter.group == LOAD and not parameter.modifies:
            load[i] = (rated_load[j] / friction_std[j]) ** 2
        elif parameter.group == WAVE:
            ripple[i] = True
        elif layout.kinds[i] == CONSTANT:
            offset[i] = 1.0 / friction_level[j] ** 2
        elif parameter.group == LEVEL:
            coulomb[i] = 1.0 / (_COULOMB_SCALE * friction_level[j]) ** 2
        elif parameter.group == MEMORY:
            presliding[i] = 1.0 / friction_level[j] ** 2
    # Links have no scale of a joint's terms; a tree has more links than joints.
    owner = np.minimum(layout.owner, layout.joints - 1)
    usual: tuple[UsualFriction, ...] = ()
    # Without further terms, so that the search for ripple has the same prior.
    if DataAmount.from_samples(replace(model, terms=()), source).is_small:
        from taufit.fitting.selection.usual_friction import usual_friction

        usual = usual_friction(model, viscous)
    for term in usual:
        viscous[term.indices] /= term.within**2
    return TermScales(
        viscous, load, coulomb, presliding, offset, ripple, friction_std, owner, usual
    )


def _limit_or_observed(
    rated: Float[Array, " j"], observed: Float[Array, " j"]
) -> Float[Array, " j"]:
    """Rated values, twice the observed ones where unknown, never less than observed."""
    rated = np.asarray(rated, float)
    has_rating = np.isfinite(rated) & (rated > 0.0)
    return np.asarray(
        np.maximum(np.maximum(np.where(has_rating, rated, 2.0 * observed), observed), 1e-9)
    )


class EvidenceMaximisation:
    """Fixed point of MacKay: a ridge solution, then every scale from its parameters.

    Attributes:
        initial: Parameters of a fit with a weak prior.
        correlation: Number of rows over which residuals are correlated.
        link_weight, viscous, load, ripple, presliding, offset: w_k, kappa_j^2, l_j^2, a_j^2, b_j^2
            and o^2.
        theta: Parameters under these scales.
        mean: Prior mean of every parameter beside the links.
        included: Mask of parameters not fixed at zero.
    """

    prior: Float[Array, "p p"]
    centre: Float[Array, " p"]
    nominal_weight: float
    scales: TermScales
    included: Bool[Array, " p"]
    weak_prior: Float[Array, "p p"]

    def __init__(
        self,
        model: TorqueModel,
        regression: Regression,
        initial: Float[Array, " p"],
        scale: Float[Array, " j"],
        correlation: float,
    ) -> None:
        self.model, self.regression, self.initial = model, regression, initial
        self.correlation = correlation
        self.joint_weights = scale / correlation
        self.square, self.right = normal_equations(regression, self.joint_weights)
        self.theta, self.mean = initial, np.zeros_like(initial)

    def weighted_equations(
        self, by_joint: tuple[Information, ...]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Part of `square` and `right` from the information of some rows, joint by joint."""
        mapping = self.regression.base.mapping
        total = sum_expression(by_joint, np.sqrt(self.joint_weights))
        factor = total.factor @ mapping
        return factor.T @ factor, factor.T @ total.target

    def precision(self) -> Float[Array, " p"]:
        """Prior precision of every parameter beside the links, at the current scales."""
        s = self.scales
        ripple = np.where(s.is_ripple, 1.0 / (self.ripple * s.friction_std**2)[s.owner], 0.0)
        viscous, load = s.viscous / self.viscous[s.owner], s.load / self.load[s.owner]
        presliding, offset = s.presliding / self.presliding[s.owner], s.offset / self.offset
        return np.asarray(s.coulomb + viscous + load + presliding + offset + ripple)

    def run(self) -> None:
        """Iterate to the fixed point."""
        joints = self.model.layout.joints
        self.link_weight = np.full(self.model.layout.bodies, self.nominal_weight)
        self.viscous, self.load = np.ones(joints), np.ones(joints)
        self.ripple = np.full(joints, 0.01)
        self.presliding = np.full(joints, _PRESLIDING_SCALE**2)
        self.offset = _OFFSET_SCALE**2
        self._update_means(np.zeros_like(self.theta))
        for _ in range(_ROUNDS):
            self._iterate()

    @property
    def free(self) -> Bool[Array, " p"]:
        """Mask of parameters that are neither fixed nor at their bound of zero."""
        return np.asarray(self.included & ((self.theta != 0.0) | ~self.model.nonnegative))

    def prior_precision(self) -> Float[Array, "p p"]:
        """Precision of the prior of the nominal links."""
        links = np.zeros_like(self.prior)
        rows, columns = self._link_blocks
        links[rows, columns] = self.link_weight[:, None, None] * self.prior[rows, columns]
        return links

    def prior_right(self) -> Float[Array, " p"]:
        """Product of the prior precision and the prior mean of all parameters."""
        links = self.prior_precision()
        return np.asarray(links @ self.centre + self.precision() * self.mean)

    @cached_property
    def _link_blocks(self) -> tuple[Int[Array, "l s 1"], Int[Array, "l 1 s"]]:
        """Rows and columns of every link's block in a matrix over all parameters."""
        layout = self.model.layout
        indices = np.array([np.r_[layout.link(k)] for k in range(layout.bodies)])
        return indices[:, :, None], indices[:, None, :]

    def weak_estimate(self, included: Bool[Array, " p"]) -> Float[Array, " p"]:
        """Parameters under the weak prior of the first fit, others fixed at zero."""
        prior = self.weak_prior / self.correlation
        return solve_normal(
            self.square + prior, self.right + prior @ self.centre, self.model.nonnegative, included
        )

    def map_estimate(self, included: Bool[Array, " p"]) -> Float[Array, " p"]:
        """Maximum a posteriori parameters at the current scales, others fixed at zero."""
        total = self.square + self.prior_precision() + np.diag(self.precision())
        right = self.right + self.prior_right()
        return solve_normal(total, right, self.model.nonnegative, included)

    def information_share(self) -> InformationShare:
        """Information shares of links and friction terms, at the final scales."""
        layout = self.model.layout
        precision, links = self.precision(), self.prior_precision()
        total = self.square + links + np.diag(precision)
        free = self.free & (np.diag(total) > 0.0)
        covariance = inverse_on_subset(total, free, 1e-9)
        term_shares = np.where(free, 1.0 - precision * np.diag(covariance), 0.0)
        link_slices = [layout.link(k) for k in range(layout.bodies)]
        prior_shares = [
            np.trace(links[link_slice, link_slice] @ covariance[link_slice, link_slice])
            / (link_slice.stop - link_slice.start)
            for link_slice in link_slices
        ]
        terms = term_shares[layout.drive].reshape(layout.joints, len(layout.drive_names))
        return InformationShare(
            np.clip(1.0 - np.array(prior_shares), 0.0, 1.0), np.clip(terms, 0.0, 1.0)
        )

    def _iterate(self) -> None:
        s = self.scales
        precision, links = self.precision(), self.prior_precision()
        total = self.square + links + np.diag(precision)
        right = self.right + self.prior_right()
        theta = self.theta = solve_normal(total, right, self.model.nonnegative, self.included)
        free = self.free & (np.diag(total) > 0.0)
        covariance = inverse_on_subset(total, free, 1e-9)
        data_share = np.where(free, 1.0 - precision * np.diag(covariance), 0.0)
        one_group = np.zeros(len(theta), int)
        offset = _scales_by_group(
            s.offset, one_group, 1, theta, data_share, _NU_OFFSET, _OFFSET_SCALE**2
        )
        self.offset = float(offset[0])
        self._update_links(theta, covariance)
        joints = s.owner, self.model.layout.joints, theta, data_share
        deviation = np.where(self.included, theta - self.mean, 0.0)
        viscous = s.viscous, *joints[:2], deviation, data_share
        self.viscous = _scales_by_group(*viscous, _NU_VISCOUS, 1.0)
        self._update_means(data_share)
        self.load = _scales_by_group(s.load, *joints, _NU_VISCOUS, 1.0)
        self.presliding = _scales_by_group(
            s.presliding, *joints, _NU_PRESLIDING, _PRESLIDING_SCALE**2
        )
        is_ripple = s.is_ripple & self.included
        if np.any(is_ripple):
            unit = np.where(is_ripple, 1.0 / s.friction_std[s.owner] ** 2, 0.0)
            ripple = _scales_by_group(unit, *joints, _NU_RIPPLE, _RIPPLE_SCALE**2)
            has_ripple = np.bincount(s.owner[is_ripple], minlength=len(ripple)) > 0
            limited = np.minimum(ripple, _MAX_RIPPLE_SCALE**2)
            self.ripple = np.where(has_ripple, limited, self.ripple)

    def _update_means(self, data_share: Float[Array, " p"]) -> None:
        """Prior means of friction from the joints of this arm and those usual on others."""
        mean = np.zeros_like(self.theta)
        for term in self.scales.usual:
            mean[term.indices] = term.level * term.arm_mean(self.theta, data_share)
        self.mean = mean

    def _update_links(self, theta: Float[Array, " p"], covariance: Float[Array, "p p"]) -> None:
        """Weight of every link from its deviation and the number determined by data."""
        rows, columns = self._link_blocks
        q, size = self.prior[rows, columns], rows.shape[1]
        deviation = (theta - self.centre)[rows]
        gamma = size - self.link_weight * np.einsum("kij,kji->k", q, covariance[rows, columns])
        squares = (deviation.swapaxes(1, 2) @ q @ deviation)[:, 0, 0]
        weight = (np.clip(gamma, 0.0, size) + _NU_LINK) / (squares + _NU_LINK / self.nominal_weight)
        self.link_weight = np.maximum(weight, _MIN_LINK_WEIGHT * self.nominal_weight)


def _scales_by_group(
    unit: Float[Array, " p"],
    group: Int[Array, " p"],
    groups: int,
    theta: Float[Array, " p"],
    data_share: Float[Array, " p"],
    nu: float,
    prior_scale: float,
) -> Float[Array, " g"]:
    """Squared scale of each group's terms: their power over the effective number in the data.

    Args:
        unit: 1 / variance at scale 1; 0 for other terms.
        group: Group of each parameter, such as its joint.
        groups: Number of groups.
        theta: Parameters.
        data_share: Information share of each parameter.
        nu: Weight of the hyperprior, in parameters.
        prior_scale: Squared scale of the hyperprior.
    """
    number = np.bincount(group, np.where(unit > 0.0, data_share, 0.0), groups)
    power = np.bincount(group, unit * theta**2, groups)
    return np.asarray((power + nu * prior_scale) / (np.maximum(number, 0.0) + nu))
