"""Estimation of a torque model from samples, with settings chosen automatically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.core.names import renamed_keywords
from taufit.core.threads import one_blas_thread
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.constraints import is_consistent
from taufit.estimators.estimator import Estimator
from taufit.fitting.data_sufficiency import DataAmount, require_sufficient_data
from taufit.fitting.fit_samples import fit_samples
from taufit.fitting.selection.friction_terms import gaussian_prior
from taufit.fitting.selection.prior_scales import (
    PriorScales,
    estimate_prior_scales,
    rated_speed,
)
from taufit.fitting.unidirectional_joints import confounded_terms
from taufit.model.fitted_model import FittedModel
from taufit.model.score import MAX_NOISE
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    BaseRecord,
    Conditioning,
    GravityTilt,
    Range,
    Ranges,
    Residuals,
    ThermalState,
    TrainingRecord,
)
from taufit.regression.covariance import posterior_covariance
from taufit.regression.estimate import Estimate
from taufit.regression.result_reuse import reusable_load_parameters
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import STATES, Term, friction_model, further_term
from taufit.terms.layout import DRIVE

if TYPE_CHECKING:
    from taufit.fitting.friction_prior import FrictionPrior

# A base parameter is identifiable if the posterior variance is below this ratio of the prior's.
_MAX_VARIANCE_RATIO = 0.9
# Largest fraction of unidentifiable base parameters of the links without a described robot.
_MAX_UNIDENTIFIABLE = 0.6
# Median nrmse above which the model does not explain the torque.
_MAX_NRMSE = 0.6


def _check_term(term: Term) -> Term:
    """Term, checked if its class is a user's."""
    if not type(term).__module__.startswith("taufit."):
        from taufit.terms.law_check import require_valid_term

        require_valid_term(term)
    return term


def _parse_friction(friction: Term | str | None) -> Term | None:
    """Friction model, given as object or by name."""
    if not isinstance(friction, str):
        return None if friction is None else _check_term(friction)
    if friction == "none":
        return None
    return friction_model("presliding" if friction == "auto" else friction)


def _parse_terms(robot: Robot, terms: Sequence[Term | str]) -> tuple[Term, ...]:
    """Further terms, given as objects or by name, and those that the robot's description has."""
    further = tuple(
        further_term(term) if isinstance(term, str) else _check_term(term) for term in terms
    )
    for term in further:
        if term.block != DRIVE:
            raise TaufitError(
                f"{type(term).__name__} is no further term: ask for it with `{term.block}` "
                "(rotor_inertia=, offset=)."
            )
    return (*further, *_compensators(robot), *_friction_places(robot))


def _friction_places(robot: Robot) -> tuple[Term, ...]:
    rows = robot.drives.place_rows
    return (further_term("friction_places", rows),) if rows else ()


def _compensators(robot: Robot) -> tuple[Term, ...]:
    if not robot.compensators:
        return ()
    coupling = robot.drives.coupling
    for compensator in robot.compensators:
        uncoupled = np.eye(robot.joints)[compensator.joint]
        if np.any(coupling[compensator.joint] != uncoupled) or np.any(
            coupling[:, compensator.joint] != uncoupled
        ):
            raise TaufitError(
                f"joint {compensator.joint + 1} of {robot.name} has a gravity compensator and a "
                "motor that "
                "is coupled with others, which is not supported: describe the joint without one of "
                "them."
            )
    return (further_term("gravity_compensator", robot.compensators),)


def automatic_model(
    robot: Robot,
    *,
    side: str | None = None,
    friction: Term | str | None = "auto",
    rotor_inertia: bool | None = None,
    offset: bool = True,
    terms: Sequence[Term | str] = (),
) -> TorqueModel:
    """Default torque model for a robot.

    Friction is `Presliding` with load and quadratic viscous friction, whose terms `fit` keeps as
    far as the data support them. Rotor inertia is included if torque is measured on the motor side
    of the gear.

    Args:
        robot: Robot with its drives.
        side: Side of the torque measurement, "motor" or "link"; by default that of the robot's
            drives.
        friction: Friction model, its name, "none", or "auto".
        rotor_inertia: Whether each joint has a rotor inertia; by default on the motor side.
        offset: Whether each joint has a constant torque offset.
        terms: Further terms or their names, e.g. "spring"; the robot's gravity compensators are
            always included.
    """
    side = side or robot.drives.side
    return TorqueModel(
        robot
        if side == robot.drives.side
        else replace(robot, drives=replace(robot.drives, side=side)),
        _parse_friction(friction),
        side != "link" if rotor_inertia is None else rotor_inertia,
        offset,
        terms=_parse_terms(robot, terms),
    )


@renamed_keywords(known="friction_prior")
@one_blas_thread
def fit(  # noqa: PLR0913 - one parameter per setting
    model: TorqueModel,
    samples: Samples | SampleSource,
    estimator: Estimator | None = None,
    *,
    select: bool = False,
    require_excitation: bool | None = None,
    dropped: tuple[str, ...] = (),
    friction_prior: FrictionPrior | None = None,
    load: Float[Array, " p"] | None = None,
    ignore_contradictions: bool = False,
    allow_standing_joints: bool = False,
) -> Estimate:
    """Estimate the parameters of a model from samples, with their uncertainty.

    Without an estimator the result is physically consistent, and links that the data do not
    determine stay near the nominal robot: an entropic prior of about 30 % per link, against rows
    weighted by their effective number of independent samples.

    Args:
        model: Structure of the torque model, e.g. from `automatic_model`.
        samples: Conditioned motion and torque of one or several runs, in memory or part by part.
        estimator: Estimator in place of the automatic one.
        select: With an explicit estimator: whether to drop friction terms that do not improve
            cross-validation.
        require_excitation: Whether unidentifiable base parameters raise an error; by default only
            with an estimator without prior.
        dropped: Parameters fixed at zero.
        friction_prior: Prior of friction for the automatic estimator; others only leave out the
            terms dropped in it.
        load: Parameters whose rigid-body torque is the initial load of load-dependent friction, if
            known.
        ignore_contradictions: Whether torque that the robot does not explain is a warning only,
            and motion too short for a fit no error.
        allow_standing_joints: Whether joints that do not move are no error.

    Raises:
        RecordingError: If the recording is too short or contradicts the robot.
        PoorExcitationError: If joints do not move or too few parameters are identifiable.

    Example:
        >>> import taufit
        >>> samples = taufit.condition(taufit.read_recording("run.parquet"))
        >>> model = taufit.TorqueModel(taufit.read_robot("ur3e"), friction=taufit.Linear())
        >>> estimate = taufit.fit(model, samples, taufit.Wls())
        >>> len(estimate.values) == len(model.names)
        True
    """
    automatic = estimator is None
    source = as_source(samples)
    require_sufficient_data(
        model,
        source,
        with_prior=automatic,
        allow_standing_joints=allow_standing_joints,
        allow_short_motion=ignore_contradictions,
    )
    amount = DataAmount.from_samples(model, source)
    confounded = confounded_terms(model, source.excerpt)
    dropped = (*dropped, *parameters_without_data(model, source))
    dropped = (*dropped, *(friction_prior.dropped if friction_prior is not None else ()))
    if not automatic:
        # Without priors, one of two equal columns must be dropped.
        dropped = (*dropped, *confounded.dropped)
    evidence: PriorScales | None = None
    rounds = 12
    if estimator is None:
        minimum_noise = amount.minimum_noise(source)
        if load is not None:
            load = reusable_load_parameters(model, source, load, "search")
        evidence = estimate_prior_scales(
            model,
            source,
            dropped=dropped,
            minimum_noise=minimum_noise,
            load=load,
            unidirectional=confounded.joints,
        )
        # The load of the converged search is closer to the final fit than one without priors.
        load = evidence.load
        if load is not None:
            load, rounds = reusable_load_parameters(model, source, load, "fit"), 0
        precision, expected = evidence.precision, evidence.mean
        if friction_prior is not None:
            has_prior, tested, prior_precision = friction_prior.parameter_prior(model)
            expected = np.where(has_prior, tested, expected)
            precision = np.where(
                has_prior, prior_precision * evidence.correlation_samples, precision
            )
        estimator = ConsistentSdp(
            prior_weight=tuple(evidence.link_weight.tolist()),
            precision=tuple(precision.tolist()),
            expected=tuple(expected.tolist()),
            speeds=tuple(rated_speed(model, source).tolist()),
            # A friction test has seen more of friction than this recording.
            drive_torque=() if friction_prior else tuple(evidence.drive_torque.tolist()),
            least_noise=tuple(minimum_noise.tolist()),
        )
    elif select:
        from taufit.fitting.selection.term_selection import select_friction_terms

        selection = select_friction_terms(model, source, dropped=dropped)
        dropped, load = selection.dropped, selection.load
        rounds = 12 if load is None else 1
    strict = not automatic if require_excitation is None else require_excitation
    estimate = fit_samples(
        model,
        source,
        estimator,
        dropped=dropped,
        require_excitation=strict,
        load_rounds=rounds,
        load=load,
    )
    values = np.where(np.isin(estimate.names, dropped), 0.0, estimate.values)
    warnings = [*confounded.warnings, *estimate.warnings]
    residual_warnings = _residual_findings(model, source, estimate, ignore_contradictions)
    if evidence is not None:
        warnings += amount.findings()
        warnings += unidentifiable_findings(model, estimate, evidence.link_weight)
    warnings += residual_warnings
    if friction_prior is not None:
        from taufit.fitting.friction_prior import friction_mismatch_warnings

        warnings += friction_mismatch_warnings(friction_prior, estimate.names, values)
    settings: dict[str, Any] = {**estimate.settings}
    posterior = None
    if evidence is not None:
        settings["correlation_samples"] = evidence.correlation_samples
        variance = _residual_noise(estimate) ** 2
        prior = variance * (_link_prior(model, evidence.link_weight) + np.diag(precision))
        posterior = posterior_covariance(estimate, prior, variance * evidence.correlation_samples)
    return replace(
        estimate,
        values=values,
        posterior=posterior,
        tied=confounded.tied,
        warnings=tuple(warnings),
        settings=settings,
        from_data=None if evidence is None else evidence.from_data,
    )


def parameters_without_data(model: TorqueModel, source: SampleSource) -> tuple[str, ...]:
    """Terms that joints do not have, and all terms of joints without torque."""
    layout = model.layout
    is_term = layout.select(lambda parameter: True)
    mask = np.zeros(len(model.names), bool)
    for joint in np.flatnonzero(source.summary.kept_rows == 0).tolist():
        mask |= layout.active(joint) & is_term
    return (*model.absent, *(model.names[k] for k in np.flatnonzero(mask)))


def fitted_model(
    model: TorqueModel,
    estimate: Estimate,
    samples: Samples | SampleSource,
    *,
    thermal: ThermalState | None = None,
    tilt: GravityTilt | None = None,
) -> FittedModel:
    """Fitted model with the training record of the fit.

    Args:
        model: Structure that was fitted.
        estimate: Result of the fit.
        samples: Training samples.
        thermal: State of the thermal model, if temperature was estimated.
        tilt: Tilt that the mounting of the model includes, if it was estimated.
    """
    source = as_source(samples)
    ranges = _ranges(source)
    held = model if ranges.position is None else model.restrict_to_range(ranges.position)
    fitted = replace(
        held,
        shape=estimate.shape if estimate.shape is not None else model.shape,
    ).with_values(estimate.values)
    if model.has("rotor"):
        rotors = estimate.values[model.layout.block_slice("rotor")]
        fitted = fitted.with_robot(fitted.robot.with_rotor_inertias(rotors))
    correlation = estimate.settings.get("correlation_samples")
    # Initially equal for all friction states.
    residuals = Residuals(by_state=np.tile(estimate.torque_rms, (len(STATES), 1)))
    if correlation is not None:
        residuals = replace(residuals, correlation_s=float(correlation) / float(source.rate_hz))
    return fitted.with_training(
        TrainingRecord(
            conditioning=Conditioning.from_samples(source.head),
            ranges=ranges,
            std=estimate.std,
            verdicts=estimate.verdicts,
            base=BaseRecord(
                estimate.base_names,
                estimate.base_expressions,
                estimate.base_values,
                estimate.base_covariance,
                estimate.posterior,
            ),
            residuals=residuals,
            friction_scatter=estimate.friction_scatter,
            from_data=estimate.from_data,
            thermal=thermal,
            tilt=tilt,
            warnings=estimate.warnings,
        )
    )


def _ranges(source: SampleSource) -> Ranges:
    """Ranges of motion, torque and temperature in training."""
    names = {range_field.name for range_field in fields(Ranges)}
    extents = source.summary.ranges.items()
    return Ranges(**{name: Range(x.low, x.high) for name, x in extents if name in names})


def identifiable_from_data(
    model: TorqueModel, estimate: Estimate, link_weight: Float[Array, "*l"] | float
) -> Bool[Array, " b"]:
    """Base parameters that the data, rather than the prior, determine.

    A base parameter is identifiable if the data reduce its prior variance by at least a tenth.
    Rotors, friction and offsets have no prior: combinations with them are identifiable if the
    motion excites them at all.
    """
    base = estimate.base
    prior = _link_prior(model, link_weight)
    links = np.flatnonzero(np.diag(prior) > 0.0)
    b = base.mapping
    inverse = np.linalg.inv(prior[np.ix_(links, links)])
    variance = np.einsum("bi,ij,bj->b", b[:, links], inverse, b[:, links])
    variance[np.any(np.abs(np.delete(b, links, axis=1)) > 1e-9, axis=1)] = 0.0
    information = estimate.information
    noise = _residual_noise(estimate)
    square = information.factor.T @ information.factor / noise**2
    total = square + prior
    size = np.sqrt(np.diag(total))
    alive = size > 0.0
    scaled = total[np.ix_(alive, alive)] / np.outer(size[alive], size[alive])
    covariance = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True)
    rows = b[:, alive] / size[alive]
    posterior_variance = np.einsum("bi,ij,bj->b", rows, covariance, rows)
    identifiable = np.empty(len(b), bool)
    for i in range(len(b)):
        if variance[i] > 0.0:
            identifiable[i] = posterior_variance[i] < _MAX_VARIANCE_RATIO * variance[i]
        else:
            identifiable[i] = bool(np.any(np.diag(square)[np.abs(b[i]) > 1e-9] > 0.0))
    return identifiable


def _link_prior(model: TorqueModel, link_weight: Float[Array, "*l"] | float) -> Float[Array, "p p"]:
    """Information of the nominal links, in units of the residual variance."""
    prior: Array = gaussian_prior(model)[0]
    weights = np.broadcast_to(np.asarray(link_weight, float), (model.layout.bodies,))
    for k in range(model.layout.bodies):
        link_slice = model.layout.link(k)
        prior[link_slice, link_slice] *= max(float(weights[k]), 1e-6)
    return prior


def unidentifiable_findings(
    model: TorqueModel, estimate: Estimate, link_weight: Array
) -> list[str]:
    """Warnings on base parameters that are not identifiable from the motion.

    Raises if they are the majority and the robot has no nominal values.
    """
    identifiable = identifiable_from_data(model, estimate, link_weight)
    names = np.asarray(estimate.base_names)
    links = np.array([name.startswith("link") for name in names])
    unidentifiable = names[links & ~identifiable]
    has_masses = bool(np.any(model.robot.parameters))
    plan = "" if model.robot.is_tree else " `taufit design` plans a motion that shows them."
    if len(unidentifiable) > _MAX_UNIDENTIFIABLE * np.count_nonzero(links) and not has_masses:
        raise PoorExcitationError(
            f"{np.count_nonzero(links & identifiable)} of {np.count_nonzero(links)} base "
            "parameters of the links are identifiable from this motion; not identifiable: "
            f"{_join_names(unidentifiable)}.\n"
            f"Add a recording in which all joints accelerate and reverse at different times.{plan}"
        )
    if len(unidentifiable) == 0:
        return []
    return [
        f"{len(unidentifiable)} of {np.count_nonzero(links)} base parameters of the links are not "
        f"identifiable from this motion ({_join_names(unidentifiable)}): their effect is below the "
        f"noise, and nominal values are used.{plan}"
    ]


def _residual_findings(
    model: TorqueModel, source: SampleSource, estimate: Estimate, ignore_contradictions: bool
) -> list[str]:
    """Warnings on implausible residuals; raises if the torque, beyond noise, is unexplained."""
    std = np.where(source.summary.kept_rows > 0, source.summary.torque_std, 1.0)
    nrmse = estimate.torque_rms / np.maximum(std, 1e-12)
    measured = ~(source.excerpt.white_noise_share > MAX_NOISE)
    out = []
    if np.any(measured) and np.median(nrmse[measured]) > _MAX_NRMSE:
        joints = np.flatnonzero(measured & (source.summary.kept_rows > 0))
        nrmse_text = ", ".join(f"{100 * nrmse[j]:.0f} % (joint {j + 1})" for j in joints)
        message = (
            f"this robot does not explain these torques: {nrmse_text} is unexplained. Is it the "
            "right robot, are columns, signs, units and drive gains right (--map), and is it "
            "mounted as declared (--mounting)?"
        )
        if model.friction is None:
            message = f"{nrmse_text} of the torque is unexplained: the model is without friction."
        elif not ignore_contradictions:
            raise RecordingError(message)
        out.append(message)
    if not is_consistent(model, estimate.values):
        out.append(
            "the parameters are not physically possible (a negative mass, inertia or friction); "
            "use estimator consistent_sdp for simulation and control."
        )
    weights = estimate.joint_weights
    if weights is not None and is_consistent(model, estimate.values):
        ratio = estimate.torque_rms * weights
        out += [
            f"joint {i + 1}: the physically consistent fit is {ratio[i]:.1f} times worse than the "
            "unconstrained one. Check the sign and gain of its torque, and the mounting."
            for i in np.flatnonzero((ratio > 1.6) & (nrmse > 0.1))
        ]
    return out


def _residual_noise(estimate: Estimate) -> float:
    degrees_of_freedom = max(estimate.information.count - len(estimate.base.columns), 1)
    signal = np.sqrt(np.sum(estimate.information.target**2) / max(estimate.information.count, 1))
    residual_std = np.sqrt(
        estimate.information.minimum_cost(estimate.base.columns) / degrees_of_freedom
    )
    return float(max(residual_std, 1e-6 * signal, np.finfo(float).tiny))


def _join_names(names: Any, limit: int = 8) -> str:
    remaining = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + remaining
