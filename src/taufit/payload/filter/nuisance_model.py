"""What is unknown when a known arm carries something, and its prior.

    y = W_n phi + Y d + extras + noise

phi are the ten parameters of the payload, d the error of the model's own base parameters (its
covariance, wider for friction, which changes with temperature and load), extras what no model
holds: friction at low speed and under load, and where friction stood before the motion began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.gaussian import scaled_inverse
from taufit.core.parameters import PER_LINK, joint_parameter, parse_name
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.friction_level import friction_level, typical_friction
from taufit.payload.filter.sliding_direction import BREAKAWAY_SHARES, fading_widths
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS, LOW_SPEEDS
from taufit.terms import CONSTANT, DISSIPATIVE, INERTIAL, LEVEL, MEMORY, has_memory, needs

# Typical speed at which friction terms are compared [rad/s or m/s].
TYPICAL_SPEED = 0.5
# Relative standard deviation of base parameters where a model has no covariance.
UNKNOWN_COVARIANCE = 0.05
# Change of the drives since the model was fitted, as a share of how well their gains are known.
DRIFT_SHARE = 0.15
# Part of the residual's standard deviation that ripple may have where nothing is known of it.
_RIPPLE_SHARE = 0.35
# Ratio of friction to carried torque that a model may have missed: known to it, or not at all.
LOAD_STD = (0.01, 0.02)
# A friction term may appear that was not there, as a share of how much friction may change.
_UNSEEN = 0.5
# Change of ripple since the model was fitted, relative to the residual.
_RIPPLE_CHANGE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class NuisanceModel:
    """The columns of a payload's equations and the prior of all but the payload.

    Attributes:
        base: Positions of the model's base parameters in its names.
        names: Of all columns: shared by joints first, then each joint's own.
        order: Where each column stands among payload, base parameters and extras by joint.
        shared: How many columns joints share.
        prior: Information (inverse covariance) of all columns; zero for the payload's ten.
        target: Information times the prior mean.
        rows: Per joint, the columns its rows have.
        fading: Torque per unit of each element's unknown state, per motor [N m].
        level: Friction at low speed per motor [N m].
        density: Noise density per joint [(N m)^2 s].
        rms: Noise per joint [N m].
        parts: Which part of the error each column belongs to: payload, links, friction.
        covariance: Whether the model came with one.
    """

    base: Int[Array, " b"]
    names: tuple[str, ...]
    order: Int[Array, " p"]
    shared: int
    prior: Float[Array, "p p"]
    target: Float[Array, " p"]
    rows: tuple[Int[Array, " c"], ...]
    fading: Float[Array, "j w"]
    level: Float[Array, " j"]
    density: Float[Array, " j"]
    rms: Float[Array, " j"]
    parts: tuple[str, ...]
    covariance: bool

    def __len__(self) -> int:
        return len(self.names)


def nuisance_model(model: FittedModel, settings: PayloadSettings) -> NuisanceModel:
    """Columns and prior for a fitted model."""
    require_fitted(model, "identify a payload")
    joints = model.robot.joints
    base, spread_of_base, mean, known = base_parameter_prior(model)
    level = friction_level(model)
    density, rms = residual_noise(model, settings)
    widths, fading = _fading(model, level)
    late = ["drift", *(f"start_{i + 1}" for i in range(len(widths)))]
    extra = [*EXTRAS, *late]
    natural = [
        *(f"payload.{i}" for i in range(PER_LINK)),
        *(model.names[i] for i in base),
        *(joint_parameter(i, name) for i in range(joints) for name in extra),
    ]
    coupling = model.robot.drives.coupling
    live = np.array([model.layout.active(j, coupling)[base] for j in range(joints)]).T
    touched = np.concatenate(
        [
            np.ones((PER_LINK, joints), bool),
            live.reshape(len(base), joints),
            np.repeat(np.asarray(coupling) != 0.0, len(extra), axis=0),
        ]
    )
    inertial = [model.layout.kinds[i] == INERTIAL for i in base]
    parts_of = [
        *["payload"] * PER_LINK,
        *("links" if heavy else "friction" for heavy in inertial),
        *["links" if name == "drift" else "friction" for name in extra] * joints,
    ]
    # What belongs to one joint alone stands last, joint by joint.
    single = np.array([parse_name(name).kind == "joint" for name in natural])
    single &= (touched.sum(axis=1) == 1) & np.array_equal(coupling, np.eye(joints))
    groups = [np.flatnonzero(single & touched[:, j]) for j in range(joints)]
    order = np.concatenate([np.flatnonzero(~single), *groups])
    shared = (
        int(np.count_nonzero(~single)) if spread_of_base.information is not None else len(order)
    )
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))

    changed = _changed(model, base, level, rms, settings)
    first = PER_LINK + len(base)
    each = first + np.arange(joints)[:, None] * len(extra) + np.arange(len(extra))
    at = place[np.concatenate([np.arange(PER_LINK, first), each[:, : len(EXTRAS)].ravel()])]
    prior, target = np.zeros((len(order),) * 2), np.zeros(len(order))
    if spread_of_base.information is None:
        inner = _inverse(spread_of_base.covariance + np.diag(changed))
        prior[np.ix_(at, at)] = inner
        target[at] = inner @ mean
    else:
        prior[np.ix_(at, at)] = spread_of_base.information
        target[at] = spread_of_base.information @ mean
        spread = np.zeros(len(order))
        spread[at] = changed
        _loosen(prior, target, spread, shared, [place[group] for group in groups])
    late_std = np.full((joints, len(late)), 0.7)
    late_std[:, 0] = max(DRIFT_SHARE * settings.gain_std, 1e-6)
    rest = place[each[:, len(EXTRAS) :].ravel()]
    prior[rest, rest] = 1.0 / late_std.ravel() ** 2

    names = tuple(natural[i] for i in order)
    rows = tuple(np.flatnonzero(touched[order, j]) for j in range(joints))
    parts = tuple(parts_of[i] for i in order)
    return NuisanceModel(
        base, names, order, shared, prior, target, rows, fading, level, density, rms, parts, known
    )


def _inverse(spread: Float[Array, "p p"]) -> Float[Array, "p p"]:
    size = np.sqrt(np.maximum(np.diag(spread), 0.0))
    size[size == 0.0] = 1e-9
    values, vectors = np.linalg.eigh(spread / np.outer(size, size))
    # Base parameters that one motion could not tell apart are still finite in number.
    return (vectors / np.maximum(values, 1e-6)) @ vectors.T / np.outer(size, size)


def _loosen(prior: Array, target: Array, spread: Array, shared: int, groups: list[Array]) -> None:
    """What belongs to a joint alone may have changed since, by a variance each; in place.

    Given what is shared, the joints' own are independent: own | shared ~ N(m - P^-1 B shared, P^-1)
    becomes N(., P^-1 + D), and the sparsity stays.
    """
    for group in groups:
        mine = group[np.diag(prior)[group] > 0.0]
        inner, beside = prior[np.ix_(mine, mine)], prior[np.ix_(mine, np.arange(shared))]
        whole = scaled_inverse(inner)
        looser = np.linalg.inv(whole + np.diag(spread[mine]))
        gain = whole @ beside
        mean = whole @ target[mine]
        prior[:shared, :shared] -= gain.T @ (inner - looser) @ gain
        target[:shared] -= gain.T @ (inner - looser) @ mean
        prior[np.ix_(mine, mine)] = looser
        prior[np.ix_(mine, np.arange(shared))] = looser @ gain
        prior[np.ix_(np.arange(shared), mine)] = (looser @ gain).T
        target[mine] = looser @ mean


class NuisanceUncertainty(NamedTuple):
    """Errors of base parameters and extras: their information, or else their covariance."""

    information: Float[Array, "p p"] | None
    covariance: Float[Array, "p p"]


def base_parameter_prior(
    model: FittedModel,
) -> tuple[Int[Array, " b"], NuisanceUncertainty, Float[Array, " p"], bool]:
    """Base parameters in the model's order, what is known of their errors, whether it was given."""
    joints, k = model.robot.joints, len(EXTRAS)
    names = list(model.names)
    fitted, structure = model.training.base, model.training.residuals.structure
    ours = tuple(joint_parameter(j, extra) for j in range(joints) for extra in EXTRAS)
    if fitted is not None and structure is not None and structure.names[-joints * k :] == ours:
        size = len(structure.names)
        base = np.array([names.index(name) for name in structure.names[: size - joints * k]])
        order = np.concatenate([np.argsort(base), np.arange(len(base), size)])
        information = structure.information[np.ix_(order, order)]
        mean = structure.mean[order]
        return np.sort(base), NuisanceUncertainty(information, np.zeros((0, 0))), mean, True
    known = fitted is not None and bool(np.all(np.isfinite(fitted.covariance)))
    if fitted is not None and known:
        base = np.array([names.index(name) for name in fitted.names])
        own = fitted.covariance
    else:
        base, own = _guessed(model)
    order = np.argsort(base)
    base, own = base[order], own[np.ix_(order, order)]
    spread = np.zeros((len(base) + joints * k,) * 2)
    spread[: len(base), : len(base)] = 0.5 * (own + own.T)
    rms = residual_noise(model, PayloadSettings())[1]
    std = np.empty((joints, k))
    slow = len(LOW_SPEEDS)
    std[:, :slow] = rms[:, None]
    std[:, slow] = LOAD_STD[0 if needs(model.term_sum, "load") else 1]
    std[:, slow + 1 :] = _RIPPLE_SHARE * rms[:, None]
    at = np.arange(len(base), len(spread))
    spread[at, at] = std.ravel() ** 2
    return base, NuisanceUncertainty(None, spread), np.zeros(len(spread)), known


def residual_noise(
    model: FittedModel, settings: PayloadSettings
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Noise density and rms per joint, from the model's residuals in training.

    Residuals are correlated over a time T_c, so a second of them is worth 1/(2 T_c) values; the
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


def _guessed(model: FittedModel) -> tuple[Array, Array]:
    """Base parameters and a wide covariance for a model that has none."""
    from taufit.dynamics import base_parameters

    found = base_parameters(model.structure)
    values = found.mapping @ np.asarray(model.values)
    floor = np.median(np.abs(values[values != 0.0])) if np.any(values) else 1.0
    std = UNKNOWN_COVARIANCE * np.maximum(np.abs(values), 0.2 * floor)
    return np.asarray(found.columns), np.diag(std**2)


def _changed(
    model: FittedModel, base: Array, level: Array, rms: Array, settings: PayloadSettings
) -> Float[Array, " p"]:
    """Variance of what may have changed since the fit: friction, its shape, and a little ripple."""
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
    """Variance of friction since the fit: its own coefficients, and its level at typical speed."""
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
                out[i] += (_UNSEEN * change * level[j] / per_unit) ** 2
        elif kind == CONSTANT:
            out[i] = (0.2 * change * level[j]) ** 2
    return out


def _fading(model: FittedModel, level: Array) -> tuple[Array, Array]:
    """Widths, and torque per unit of unknown state: c_1 = F - sum P, c_k = P_k for Presliding."""
    widths = fading_widths(model.term_sum)
    if not has_memory(model.term_sum):
        return widths, np.outer(np.maximum(level, 1e-3), BREAKAWAY_SHARES)
    own = model.layout.split(np.asarray(model.values)).drive
    groups = [entry.parameter.group for entry in model.layout.drive_entries]
    out = np.abs(own[:, [groups.index(LEVEL), *(k for k, g in enumerate(groups) if g == MEMORY)]])
    out[:, 0] = np.maximum(out[:, 0] - out[:, 1:].sum(axis=1), 0.2 * out[:, 0])
    return widths, out
