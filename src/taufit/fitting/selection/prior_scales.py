"""How far to lean on what was known before, from the data: trust per link, size of friction terms.

    links           theta_k ~ N(nominal_k, (w_k Q_k)^-1)      Q_k: of the log-det divergence
    drag            theta_i ~ N(0, (kappa_j s_i)^2)           s_i: all friction seen, at rated speed
    load            theta_i ~ N(0, (l_j s_i)^2)               the same, at rated torque
    ripple          theta_i ~ N(0, (a_j f_j)^2)
    coulomb         theta_i ~ N(0, f_j^2)                     f_j: friction seen in joint j
    offset          theta_i ~ N(0, (o f_j)^2)                 o: of all joints together
    pre-sliding     theta_i ~ N(0, (b_j f_j)^2)               steps wider than the first

Where a joint turned one way only, friction, offset and slow changes of either are nearly one
column: there an offset is expected to be small beside friction, and v |v| to be next to nothing.

w_k, kappa_j, l_j, o, a_j and b_j maximise the evidence (MacKay's fixed point) under weak
hyperpriors; rows count as often as their residuals are independent. Nothing is dropped: a term that
the data do not show has a small scale. Cross-validation inside one recording cannot do this: ten
seconds hold a few dozen independent residuals per joint, and terms would be chosen by noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.gaussian import inverse_within
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.friction_terms import (
    GUESSED_WEIGHT,
    NOMINAL_WEIGHT,
    WEAKEST,
    correlation_samples,
    fit_with_prior,
    gaussian_prior,
    normal_equations,
    solve_normal,
)
from taufit.model.columns import terms_at
from taufit.model.information_share import InformationShare
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import Regression
from taufit.regression.rows import Load, RowBuilder, SampleRows
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import CONSTANT, DRAG, LEVEL, LOAD, MEMORY, WAVE, needs

# Weight of the hyperpriors "links known to 30 %" and "drag as large as all friction seen", in
# parameters.
_NU_LINK, _NU_DRAG = 10.0, 4.0
# Trust in a link never falls below this share of the trust in a described one.
_LEAST_TRUST = 0.1
# Prior standard deviation of Coulomb friction over the friction seen, and what offsets are expected
# to be beside it before any is seen.
_COULOMB = 1.0
_OFFSET, _NU_OFFSET = 1.0, 2.0
# The same of an offset, and v |v| over what it may be elsewhere, where a joint turned one way only.
_ONE_WAY_OFFSET, _ONE_WAY_CURVED = 0.2, 0.03
# The same of wider steps of pre-sliding where nothing shows them: a second of motion holds no more
# than the beginning of such a step, and would make of it any friction at all.
_WIDER, _NU_WIDER = 0.5, 4.0
# Rounds of the fixed point, always as many: a stopping rule would turn rounding into a choice.
_ROUNDS = 25


@dataclass(frozen=True, slots=True, eq=False)
class PriorScales:
    """What is believed before the fit, as strongly as the data support.

    Attributes:
        link_weight: Of each nominal link, in squared noise levels of a row.
        precision: Of every parameter about zero, in the same unit; 0 where nothing is believed.
        correlation_samples: Rows whose residuals are correlated: N rows are worth N over this many.
        load: Parameters whose links' torque friction depends on, else None. Those of the settled
            search: they are nearer to the fit that follows than an unconstrained fit's.
        ripple: Prior std of ripple terms per joint over the friction seen; 0 without.
        theta: The parameters the evidence was evaluated at.
        from_data: How much of each link and friction term came from the data.
    """

    link_weight: Float[Array, " j"]
    precision: Float[Array, " p"]
    correlation_samples: float
    load: Float[Array, " p"] | None
    ripple: Float[Array, " j"]
    theta: Float[Array, " p"]
    from_data: InformationShare


def estimate_prior_scales(
    model: TorqueModel,
    samples: Samples | SampleSource,
    *,
    dropped: tuple[str, ...] = (),
    least_noise: Float[Array, " j"] | None = None,
    load: Float[Array, " p"] | None = None,
    one_way: tuple[int, ...] = (),
) -> PriorScales:
    """Prior scales from the samples.

    Args:
        model: What explains the torque.
        samples: Conditioned motion and torque, in memory or part by part.
        dropped: Parameters held at zero.
        least_noise: Below which no joint's noise is taken to be [N m].
        load: Parameters whose links' torque load-dependent friction begins with; by default those
            of a fit with the measured torque in that place.
        one_way: Joints, counted from 0, that turned one way only.
    """
    search = maximise_evidence(model, as_source(samples), dropped, least_noise, load, one_way)
    rippled = bool(np.any(search.scales.is_ripple))
    return PriorScales(
        search.trust * search.correlation,
        search.precision() * search.correlation,
        search.correlation,
        search.theta if needs(model.term_sum, "load") else None,
        np.sqrt(search.ripple) if rippled else np.zeros(model.layout.joints),
        search.theta,
        search.from_data(),
    )


def maximise_evidence(
    model: TorqueModel,
    source: SampleSource,
    dropped: tuple[str, ...],
    least_noise: Float[Array, " j"] | None = None,
    begin: Float[Array, " p"] | None = None,
    one_way: tuple[int, ...] = (),
) -> EvidenceMaximisation:
    """The settled search for the scales; friction that depends on the load begins with `begin`."""
    prior, centre, guessed = gaussian_prior(model)
    trusted = GUESSED_WEIGHT if guessed else NOMINAL_WEIGHT
    base = base_parameters(model)
    loaded = needs(model.term_sum, "load")
    load: Load = (begin if begin is not None else "measured") if loaded else None
    # Residuals show their correlation only where no prior keeps the fit from its best.
    weak = WEAKEST * trusted * source.correlation_guess * prior
    theta = None
    for _ in range(2 if isinstance(load, str) else 1):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        theta, scale = fit_with_prior(regression, weak, centre, model.nonnegative, least_noise)
    assert theta is not None
    rows = regression.excerpt
    assert isinstance(rows, SampleRows)
    each = correlation_samples(rows.residuals(theta), rows.keep, rows.run)
    search = EvidenceMaximisation(model, regression, theta, scale, float(np.mean(each)))
    search.prior, search.centre, search.trusted = prior, centre, trusted
    search.scales = _turned_one_way(_scales(model, source, rows, theta), model, one_way)
    search.used = ~np.isin(model.names, dropped)
    search.run()
    return search


def rated_speed(model: TorqueModel, source: SampleSource) -> Float[Array, " j"]:
    """The joints' rated speed; twice the fastest seen where the robot's is not known."""
    extent = source.summary.extents["velocity"]
    seen = np.nan_to_num(np.maximum(np.abs(extent.low), np.abs(extent.high)))
    return _at_least(model.robot.limits.velocity, seen)


@dataclass(frozen=True, slots=True, eq=False)
class _Scales:
    """Prior standard deviations at kappa = 1 and a = 1, and who has which.

    Attributes:
        unit: 1 / s_i^2 of drag terms, else 0.
        load: The same of load terms.
        fixed: Of Coulomb friction, else 0.
        wider: 1 / f_j^2 of wider steps of pre-sliding, else 0.
        offset: The same of offsets.
        is_ripple: Which terms are ripple.
        friction: Spread of the friction seen.
        owner: Joint of every parameter.
    """

    unit: Float[Array, " p"]
    load: Float[Array, " p"]
    fixed: Float[Array, " p"]
    wider: Float[Array, " p"]
    offset: Float[Array, " p"]
    is_ripple: Bool[Array, " p"]
    friction: Float[Array, " j"]
    owner: Array


def _scales(
    model: TorqueModel, source: SampleSource, rows: SampleRows, theta: Float[Array, " p"]
) -> _Scales:
    layout = model.layout
    joints, p = layout.joints, layout.size
    rigid = rows.rigid_torque(theta)
    rest = np.where(rows.keep, rows.torque - rigid, 0.0)
    count = np.maximum(rows.keep.sum(axis=0), 1)
    mean = rest.sum(axis=0) / count
    spread = np.sqrt(np.sum(np.where(rows.keep, rest - mean, 0.0) ** 2, axis=0) / count)
    friction = np.maximum(spread, 1e-9)
    torque = source.summary.torque_std + np.abs(source.summary.torque_mean)
    level = np.minimum(np.maximum(spread, np.abs(rest).sum(axis=0) / count), torque)
    level = np.maximum(level, 1e-9)
    speed = rated_speed(model, source)
    carried = np.abs(rigid).max(axis=0, initial=0.0)
    full = _at_least(model.robot.limits.torque, carried)
    drag = terms_at(model, speed)
    unit, load, fixed, wider, offset = np.zeros((5, p))
    ripple = np.zeros(p, bool)
    for i in range(layout.rest.start, p):
        one, j = layout.parameters[i], int(layout.owner[i])
        assert one is not None
        if one.group == DRAG and one.power:
            # A joint that turned one way shows friction without a spread.
            unit[i] = (drag[j, layout.drive_names.index(one.name)] / level[j]) ** 2
        elif one.group == LOAD and not one.modifies:
            load[i] = (full[j] / friction[j]) ** 2
        elif one.group == WAVE:
            ripple[i] = True
        elif layout.kinds[i] == CONSTANT:
            offset[i] = 1.0 / level[j] ** 2
        elif one.group == LEVEL:
            fixed[i] = 1.0 / (_COULOMB * level[j]) ** 2
        elif one.group == MEMORY:
            wider[i] = 1.0 / level[j] ** 2
    assert len(friction) == joints
    return _Scales(unit, load, fixed, wider, offset, ripple, friction, np.asarray(layout.owner))


def _turned_one_way(scales: _Scales, model: TorqueModel, joints: tuple[int, ...]) -> _Scales:
    """The same with what cannot be told from friction on these joints expected to be small."""
    curved = model.layout.where(lambda one: one.power == 2)
    here = np.isin(scales.owner, joints)
    return replace(
        scales,
        unit=scales.unit / np.where(here & curved, _ONE_WAY_CURVED, 1.0) ** 2,
        offset=scales.offset / np.where(here, _ONE_WAY_OFFSET, 1.0) ** 2,
    )


def _at_least(rated: Float[Array, " j"], seen: Float[Array, " j"]) -> Float[Array, " j"]:
    """Rated values, twice the seen ones where there are none, never less than the seen ones."""
    rated = np.asarray(rated, float)
    known = np.isfinite(rated) & (rated > 0.0)
    return np.asarray(np.maximum(np.maximum(np.where(known, rated, 2.0 * seen), seen), 1e-9))


class EvidenceMaximisation:
    """The fixed point: a ridge solve, then every scale from the parameters it explains.

    Attributes:
        first: Parameters of a fit with hardly any prior.
        correlation: Rows whose residuals are correlated.
        trust, drag, load, ripple, wider, offset: w_k, kappa_j^2, l_j^2, a_j^2, b_j^2 and o^2.
        theta: Parameters under them.
        used: Which parameters are not held at zero.
    """

    prior: Float[Array, "p p"]
    centre: Float[Array, " p"]
    trusted: float
    scales: _Scales
    used: Bool[Array, " p"]

    def __init__(
        self,
        model: TorqueModel,
        regression: Regression,
        first: Float[Array, " p"],
        scale: Float[Array, " j"],
        correlation: float,
    ) -> None:
        self.model, self.regression, self.first = model, regression, first
        self.correlation = correlation
        self.square, self.right = normal_equations(regression, scale / correlation)
        self.theta = first

    def precision(self) -> Float[Array, " p"]:
        """Of every parameter about zero, by the scales as they are."""
        s = self.scales
        ripple = np.where(s.is_ripple, 1.0 / (self.ripple * s.friction**2)[s.owner], 0.0)
        drag, load = s.unit / self.drag[s.owner], s.load / self.load[s.owner]
        wider, offset = s.wider / self.wider[s.owner], s.offset / self.offset
        return np.asarray(s.fixed + drag + load + wider + offset + ripple)

    def run(self) -> None:
        """To the fixed point."""
        joints = self.model.layout.joints
        self.trust = np.full(joints, self.trusted)
        self.drag, self.load = np.ones(joints), np.ones(joints)
        self.ripple = np.full(joints, 0.01)
        self.wider = np.full(joints, _WIDER**2)
        self.offset = _OFFSET**2
        for _ in range(_ROUNDS):
            self._round()

    def believed(self) -> Float[Array, "p p"]:
        """Second derivative of the nominal links' prior."""
        layout = self.model.layout
        links = np.zeros_like(self.prior)
        for k in range(layout.joints):
            own = layout.link(k)
            links[own, own] = self.trust[k] * self.prior[own, own]
        return links

    def solved(self, used: Bool[Array, " p"]) -> Float[Array, " p"]:
        """The parameters under the scales as they are, others held at zero."""
        links = self.believed()
        total = self.square + links + np.diag(self.precision())
        return solve_normal(total, self.right + links @ self.centre, self.model.nonnegative, used)

    def from_data(self) -> InformationShare:
        """Shares of links and friction terms that the data determine, by the settled scales."""
        layout = self.model.layout
        precision, links = self.precision(), self.believed()
        total = self.square + links + np.diag(precision)
        free = self.used & ((self.theta != 0.0) | ~self.model.nonnegative) & (np.diag(total) > 0.0)
        covariance = inverse_within(total, free, 1e-9)
        shown = np.where(free, 1.0 - precision * np.diag(covariance), 0.0)
        own = [layout.link(k) for k in range(layout.joints)]
        kept = [np.trace(links[at, at] @ covariance[at, at]) / (at.stop - at.start) for at in own]
        terms = shown[layout.drive].reshape(layout.joints, len(layout.drive_names))
        return InformationShare(np.clip(1.0 - np.array(kept), 0.0, 1.0), np.clip(terms, 0.0, 1.0))

    def _round(self) -> None:
        model, s = self.model, self.scales
        layout = model.layout
        precision = self.precision()
        total = self.square + self.believed() + np.diag(precision)
        theta = self.solved(self.used)
        free = self.used & ((theta != 0.0) | ~model.nonnegative) & (np.diag(total) > 0.0)
        covariance = inverse_within(total, free, 1e-9)
        self.theta = theta
        explained = np.where(free, 1.0 - precision * np.diag(covariance), 0.0)
        every = np.ones(layout.size, bool)
        self.offset = _scale(s.offset, every, theta, explained, _NU_OFFSET, _OFFSET**2)
        for k in range(layout.joints):
            own = layout.link(k)
            q = self.prior[own, own]
            off = theta[own] - self.centre[own]
            size = own.stop - own.start
            gamma = size - self.trust[k] * float(np.trace(q @ covariance[own, own]))
            shown = float(np.clip(gamma, 0.0, size))
            trust = (shown + _NU_LINK) / (off @ q @ off + _NU_LINK / self.trusted)
            self.trust[k] = max(trust, _LEAST_TRUST * self.trusted)
            own_terms = s.owner == k, theta, explained
            self.drag[k] = _scale(s.unit, *own_terms, _NU_DRAG, 1.0)
            self.load[k] = _scale(s.load, *own_terms, _NU_DRAG, 1.0)
            self.wider[k] = _scale(s.wider, *own_terms, _NU_WIDER, _WIDER**2)
            mine = (s.owner == k) & s.is_ripple & self.used
            if np.any(mine):
                shown = max(float(explained[mine].sum()), 1e-3)
                power = float(np.sum(theta[mine] ** 2)) / s.friction[k] ** 2
                self.ripple[k] = float(np.clip(power / shown, 1e-8, 1e2))


def _scale(
    unit: Float[Array, " p"],
    own: Bool[Array, " p"],
    theta: Float[Array, " p"],
    explained: Float[Array, " p"],
    nu: float,
    usual: float,
) -> float:
    """Squared scale of a joint's terms: their power over how many of them the data show.

    Args:
        unit: 1 / variance at scale 1; 0 for other terms.
        own: The joint's parameters.
        theta: Parameters.
        explained: Share of each that the data show.
        nu: Weight of the hyperprior, in parameters.
        usual: Squared scale it expects.
    """
    mine = own & (unit > 0.0)
    shown = max(float(explained[mine].sum()), 0.0)
    power = float(np.sum(unit[mine] * theta[mine] ** 2))
    return (power + nu * usual) / (shown + nu)
