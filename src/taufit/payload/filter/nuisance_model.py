"""Nuisance parameters of payload estimation and their prior.

    y = W_n phi + Y d + extras + noise

phi are the ten parameters of the payload, d the error of the model's base parameters (with the
model's covariance, wider for friction, which changes with temperature and load), extras are
effects outside the model: low-speed and load-dependent friction, and the initial friction state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import inverse_at_unit_diagonal
from taufit.core.parameters import PER_LINK, joint_parameter, parse_name
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.friction_level import friction_level, typical_friction
from taufit.payload.filter.sliding_direction import BREAKAWAY_SHARES, initial_state_widths
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS, LOW_SPEEDS
from taufit.terms import CONSTANT, DISSIPATIVE, INERTIAL, LEVEL, MEMORY, has_memory, needs

# Typical speed for the comparison of friction terms [rad/s or m/s].
TYPICAL_SPEED = 0.5
# Relative standard deviation of base parameters of a model without covariance.
DEFAULT_BASE_STD = 0.05
# Drift of the drives since the fit, relative to the standard deviation of their gains.
DRIFT_SHARE = 0.15
# Prior standard deviation of ripple relative to the residual, if unknown.
_RIPPLE_SHARE = 0.35
# Prior standard deviation of load-dependent friction: with and without such a term in the model.
LOAD_STD = (0.01, 0.02)
# Standard deviation of a new friction term, relative to the change of friction.
_NEW_TERM_SHARE = 0.5
# Standard deviation of the change of ripple since the fit, relative to the residual.
_RIPPLE_CHANGE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class NuisanceModel:
    """Columns of the payload regression and the prior of the nuisance parameters.

    Attributes:
        base: Indices of the model's base parameters in its names.
        names: Names of all columns: shared ones first, then those of single joints.
        order: Index of each column among payload, base parameters and extras by joint.
        shared: Number of columns shared by joints.
        prior: Prior information (inverse covariance) of all columns; zero for the payload's ten.
        target: Prior information times prior mean.
        rows: Per joint, the columns in its rows.
        fading: Torque per unit of each element's initial state, per motor [N m].
        level: Low-speed friction per motor [N m].
        density: Noise density per joint [(N m)^2 s].
        rms: Noise RMS per joint [N m].
        parts: Error source of each column: payload, links, friction.
        covariance: Whether the model has a covariance.
    """

    base: Int[Array, " b"]
    names: tuple[str, ...]
    order: Int[Array, " p"]
    shared: int
    prior: Float[Array, "p p"]
    target: Float[Array, " p"]
    rows: tuple[Int[Array, " _"], ...]
    fading: Float[Array, "j w"]
    level: Float[Array, " j"]
    density: Float[Array, " j"]
    rms: Float[Array, " j"]
    parts: tuple[str, ...]
    covariance: bool

    def __len__(self) -> int:
        return len(self.names)


def nuisance_model(model: FittedModel, settings: PayloadSettings) -> NuisanceModel:
    """Build columns and prior for a fitted model."""
    require_fitted(model, "identify a payload")
    joints = model.robot.joints
    base, base_uncertainty, mean, has_covariance = base_parameter_prior(model)
    level = friction_level(model)
    density, rms = residual_noise(model, settings)
    widths, fading = _initial_state_torque(model, level)
    initial_extras = ["drift", *(f"start_{i + 1}" for i in range(len(widths)))]
    extra = [*EXTRAS, *initial_extras]
    natural = [
        *(f"payload.{i}" for i in range(PER_LINK)),
        *(model.names[i] for i in base),
        *(joint_parameter(i, name) for i in range(joints) for name in extra),
    ]
    coupling = model.robot.drives.coupling
    affects_base = np.array([model.layout.active(j, coupling)[base] for j in range(joints)]).T
    affects = np.concatenate(
        [
            np.ones((PER_LINK, joints), bool),
            affects_base.reshape(len(base), joints),
            np.repeat(np.asarray(coupling) != 0.0, len(extra), axis=0),
        ]
    )
    inertial = [model.layout.kinds[i] == INERTIAL for i in base]
    parts_of = [
        *["payload"] * PER_LINK,
        *("links" if is_inertial else "friction" for is_inertial in inertial),
        *["links" if name == "drift" else "friction" for name in extra] * joints,
    ]
    # Columns of single joints come last, joint by joint.
    single = np.array([parse_name(name).kind == "joint" for name in natural])
    single &= (affects.sum(axis=1) == 1) & np.array_equal(coupling, np.eye(joints))
    groups = [np.flatnonzero(single & affects[:, j]) for j in range(joints)]
    order = np.concatenate([np.flatnonzero(~single), *groups])
    shared = (
        int(np.count_nonzero(~single)) if base_uncertainty.information is not None else len(order)
    )
    position = np.empty(len(order), int)
    position[order] = np.arange(len(order))

    variance = _change_variance(model, base, level, rms, settings)
    first_extra = PER_LINK + len(base)
    extra_index = first_extra + np.arange(joints)[:, None] * len(extra) + np.arange(len(extra))
    prior_index = position[
        np.concatenate([np.arange(PER_LINK, first_extra), extra_index[:, : len(EXTRAS)].ravel()])
    ]
    prior, target = np.zeros((len(order),) * 2), np.zeros(len(order))
    if base_uncertainty.information is None:
        inner = _inverse_covariance(base_uncertainty.covariance + np.diag(variance))
        prior[np.ix_(prior_index, prior_index)] = inner
        target[prior_index] = inner @ mean
    else:
        prior[np.ix_(prior_index, prior_index)] = base_uncertainty.information
        target[prior_index] = base_uncertainty.information @ mean
        variance_by_column = np.zeros(len(order))
        variance_by_column[prior_index] = variance
        _add_joint_variance(
            prior, target, variance_by_column, shared, [position[group] for group in groups]
        )
    initial_std = np.full((joints, len(initial_extras)), 0.7)
    initial_std[:, 0] = max(DRIFT_SHARE * settings.gain_std, 1e-6)
    initial_index = position[extra_index[:, len(EXTRAS) :].ravel()]
    prior[initial_index, initial_index] = 1.0 / initial_std.ravel() ** 2

    names = tuple(natural[i] for i in order)
    rows = tuple(np.flatnonzero(affects[order, j]) for j in range(joints))
    parts = tuple(parts_of[i] for i in order)
    return NuisanceModel(
        base,
        names,
        order,
        shared,
        prior,
        target,
        rows,
        fading,
        level,
        density,
        rms,
        parts,
        has_covariance,
    )


def _inverse_covariance(covariance: Float[Array, "p p"]) -> Float[Array, "p p"]:
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    size[size == 0.0] = 1e-9
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    # Bound the eigenvalues of combinations that the motion did not separate.
    return (vectors / np.maximum(values, 1e-6)) @ vectors.T / np.outer(size, size)


def _add_joint_variance(
    prior: Array, target: Array, variance: Array, shared: int, groups: list[Array]
) -> None:
    """Add a variance to the parameters of single joints, in place.

    Given the shared parameters, joints are independent: joint | shared ~ N(m - P^-1 B shared, P^-1)
    becomes N(., P^-1 + D), and sparsity is kept.
    """
    for group in groups:
        indices = group[np.diag(prior)[group] > 0.0]
        inner, coupling = prior[np.ix_(indices, indices)], prior[np.ix_(indices, np.arange(shared))]
        covariance = inverse_at_unit_diagonal(inner)
        wider = np.linalg.inv(covariance + np.diag(variance[indices]))
        gain = covariance @ coupling
        mean = covariance @ target[indices]
        prior[:shared, :shared] -= gain.T @ (inner - wider) @ gain
        target[:shared] -= gain.T @ (inner - wider) @ mean
        prior[np.ix_(indices, indices)] = wider
        prior[np.ix_(indices, np.arange(shared))] = wider @ gain
        prior[np.ix_(np.arange(shared), indices)] = (wider @ gain).T
        target[indices] = wider @ mean


class NuisanceUncertainty(NamedTuple):
    """Uncertainty of base parameters and extras: information, or else covariance."""

    information: Float[Array, "p p"] | None
    covariance: Float[Array, "p p"]


def base_parameter_prior(
    model: FittedModel,
) -> tuple[Int[Array, " b"], NuisanceUncertainty, Float[Array, " p"], bool]:
    """Base parameters in the model's order, their uncertainty and mean, and whether it is known."""
    joints, k = model.robot.joints, len(EXTRAS)
    names = list(model.names)
    fitted, structure = model.training.base, model.training.residuals.structure
    extra_names = tuple(joint_parameter(j, extra) for j in range(joints) for extra in EXTRAS)
    if (
        fitted is not None
        and structure is not None
        and structure.names[-joints * k :] == extra_names
    ):
        size = len(structure.names)
        base = np.array([names.index(name) for name in structure.names[: size - joints * k]])
        order = np.concatenate([np.argsort(base), np.arange(len(base), size)])
        information = structure.information[np.ix_(order, order)]
        mean = structure.mean[order]
        return np.sort(base), NuisanceUncertainty(information, np.zeros((0, 0))), mean, True
    has_covariance = fitted is not None and bool(np.all(np.isfinite(fitted.covariance)))
    if fitted is not None and has_covariance:
        base = np.array([names.index(name) for name in fitted.names])
        base_covariance = fitted.covariance
    else:
        base, base_covariance = _default_base_covariance(model)
    order = np.argsort(base)
    base, base_covariance = base[order], base_covariance[np.ix_(order, order)]
    covariance = np.zeros((len(base) + joints * k,) * 2)
    covariance[: len(base), : len(base)] = 0.5 * (base_covariance + base_covariance.T)
    rms = residual_noise(model, PayloadSettings())[1]
    std = np.empty((joints, k))
    slow = len(LOW_SPEEDS)
    std[:, :slow] = rms[:, None]
    std[:, slow] = LOAD_STD[0 if needs(model.term_sum, "load") else 1]
    std[:, slow + 1 :] = _RIPPLE_SHARE * rms[:, None]
    extra_index = np.arange(len(base), len(covariance))
    covariance[extra_index, extra_index] = std.ravel() ** 2
    return base, NuisanceUncertainty(None, covariance), np.zeros(len(covariance)), has_covariance


def residual_noise(
    model: FittedModel, settings: PayloadSettings
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Noise density and rms per joint, from the model's residuals in training.

    Residuals are correlated over a time T_c, so one second has 1/(2 T_c) independent values; the
    density is their variance times 2 T_c.
    """
    record = model.training
    if record.score is not None and np.all(record.score.rmse > 0.0):
        sigma = record.score.rmse
    else:
        span = record.ranges.torque
        swing = (
            np.maximum(friction_level(model) * 5.0, 1.0) if span is None else span.high - span.low
        )
        sigma = 0.03 * np.maximum(swing, 1e-3)
    density = record.residuals.noise_density
    if density is None:
        density = sigma**2 * record.residuals.correlation_s
    return settings.noise_factor * density, sigma


def _default_base_covariance(model: FittedModel) -> tuple[Array, Array]:
    """Base parameters and a wide covariance, for a model without covariance."""
    from taufit.dynamics import base_parameters

    base = base_parameters(model.structure)
    values = base.mapping @ np.asarray(model.values)
    floor = np.median(np.abs(values[values != 0.0])) if np.any(values) else 1.0
    std = DEFAULT_BASE_STD * np.maximum(np.abs(values), 0.2 * floor)
    return np.asarray(base.columns), np.diag(std**2)


def _change_variance(
    model: FittedModel, base: Array, level: Array, rms: Array, settings: PayloadSettings
) -> Float[Array, " p"]:
    """Variance of changes since the fit: friction coefficients, friction shape, ripple."""
    joints = model.robot.joints
    extras = np.empty((joints, len(EXTRAS)))
    slow = len(LOW_SPEEDS)
    extras[:, :slow] = settings.friction_change * np.maximum(level, 1e-3)[:, None]
    extras[:, slow] = 0.5 * LOAD_STD[0]
    extras[:, slow + 1 :] = _RIPPLE_CHANGE * rms[:, None]
    return np.concatenate([_friction_variance(model, base, level, settings), extras.ravel() ** 2])


def _friction_variance(
    model: FittedModel, base: Array, level: Array, settings: PayloadSettings
) -> Float[Array, " b"]:
    """Variance of friction since the fit: coefficients, and level at typical speed."""
    joints = model.robot.joints
    out = np.zeros(len(base))
    layout = model.layout
    speed = np.full(joints, TYPICAL_SPEED)
    load = np.maximum(level, 1.0) * 3.0
    columns = np.abs(typical_friction(model, speed, load)).mean(axis=0).ravel()
    values = np.asarray(model.values)
    change = settings.friction_change
    for i, column in enumerate(base.tolist()):
        j, kind = layout.owner[column], layout.kinds[column]
        if kind == DISSIPATIVE:
            out[i] = (change * values[column]) ** 2
            per_unit = columns[column - layout.drive.start]
            if per_unit > 1e-3:
                out[i] += (_NEW_TERM_SHARE * change * level[j] / per_unit) ** 2
        elif kind == CONSTANT:
            out[i] = (0.2 * change * level[j]) ** 2
    return out


def _initial_state_torque(model: FittedModel, level: Array) -> tuple[Array, Array]:
    """Widths, and torque per unit of initial state: c_1 = F - sum P, c_k = P_k for Presliding."""
    widths = initial_state_widths(model.term_sum)
    if not has_memory(model.term_sum):
        return widths, np.outer(np.maximum(level, 1e-3), BREAKAWAY_SHARES)
    drive_values = model.layout.split(np.asarray(model.values)).drive
    groups = [entry.parameter.group for entry in model.layout.drive_entries]
    out = np.abs(
        drive_values[:, [groups.index(LEVEL), *(k for k, g in enumerate(groups) if g == MEMORY)]]
    )
    out[:, 0] = np.maximum(out[:, 0] - out[:, 1:].sum(axis=1), 0.2 * out[:, 0])
    return widths, out
