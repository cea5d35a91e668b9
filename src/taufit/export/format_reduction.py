"""Reduction of a model to the terms of a format: exact, refitted, or with terms dropped.

Training rows are stored in the model file as triangular factors over simple terms, so the refit
needs no recording: least squares with the terms of the format,

    min |y - W_format x|^2      over physically consistent x,

with links near the model's unless the data require others (if the format lacks rotor inertia or
offsets, the links compensate), and friction near the model's curve at speeds with little training
data.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.terms import (
    CONSERVATIVE,
    DISSIPATIVE,
    TERMS,
    Term,
    TermInput,
    friction_model,
    needs,
    steady_friction_model,
    sum_of,
    typical_channels,
)
from taufit.terms.friction import Friction

if TYPE_CHECKING:
    from taufit.regression.simple_terms import TrainingRegression

# Prior weights of the model's links in a refit, in squared noise levels: large if the format has
# rotors and offsets, small if it lacks some, which links then compensate. Number of training rows
# that the model's friction curve counts for, per speed. Chosen on robots other than the
# benchmark's (LWR4, TX40 and xMate).
PRIOR_WEIGHT = 100.0
WEAK_PRIOR_WEIGHT = 0.1
CURVE_ROWS = 10.0


@dataclass(frozen=True, slots=True)
class FormatTerms:
    """Terms of a format besides links.

    Attributes:
        friction: Joint friction model of the format.
        rotor_inertia: Whether joints have rotor inertia.
        offset: Whether joints have a constant torque.
        mounting: Whether it has a gravity direction.
        terms: Names of further terms.
    """

    friction: Friction
    rotor_inertia: bool
    offset: bool
    mounting: bool
    terms: tuple[str, ...] = ()

    def further(self, model: FittedModel) -> tuple[Term, ...]:
        """Further terms of the model that the format can represent."""
        term_types = {TERMS[name] for name in self.terms}
        return tuple(term for term in model.terms if type(term) in term_types)


URDF_TERMS = FormatTerms(
    friction_model("linear"), rotor_inertia=False, offset=False, mounting=False
)
SDF_TERMS = FormatTerms(
    friction_model("linear"), rotor_inertia=False, offset=False, mounting=True, terms=("spring",)
)
MJCF_TERMS = FormatTerms(
    friction_model("polynomial"), rotor_inertia=True, offset=True, mounting=True, terms=("spring",)
)


@dataclass(frozen=True, slots=True, eq=False)
class ReducedModel:
    """Model with the terms of a format.

    Attributes:
        model: Model with the terms of the format only, as written to the files.
        dropped: A phrase for each part of the full model that is missing.
        refitted: Whether the remaining terms were refitted to compensate.
        rmse: RMSE on the training rows per joint [N m]; None if those are unknown.
    """

    model: FittedModel
    dropped: tuple[str, ...] = ()
    refitted: bool = False
    rmse: Float[Array, " j"] | None = None


def without_reduction(model: FittedModel) -> ReducedModel:
    """Reduction for a format that represents everything."""
    score = model.training.score
    return ReducedModel(model, rmse=None if score is None else score.rmse)


@lru_cache(maxsize=8)
def reduce_to_format(model: FittedModel, terms: FormatTerms) -> ReducedModel:
    """Reduce a model to the terms of a format.

    A known payload is not part of the training rows: it is added after the refit.
    """
    payload, model = model.payload, model.with_payload(None)
    robot = model.robot
    uncoupled = replace(robot, drives=replace(robot.drives, coupling=np.eye(robot.joints)))
    structure = TorqueModel(
        uncoupled, terms.friction, terms.rotor_inertia, terms.offset, terms=terms.further(model)
    )
    reduced = structure.with_values(_copy_values(model, structure))
    record = model.training.simple_terms
    rows = None
    if record is not None:
        from taufit.regression.simple_terms import TrainingRegression

        rows = TrainingRegression(record, structure, model.terms)
    dropped = _dropped_parts(model, terms, rows)
    missing = [part for part in dropped if not part.startswith("the mounting")]
    refitted = bool(missing) and rows is not None
    if refitted and rows is not None:
        lacks_terms = any(
            model.has(name) and not structure.has(name) for name in ("rotor", "offset")
        )
        speeds = _rated_speed(model)
        from taufit.estimators import ConsistentSdp
        from taufit.fitting.fit_samples import solve_rows

        # Simulators take friction that falls with speed for a drive.
        estimator = ConsistentSdp(
            prior_weight=WEAK_PRIOR_WEIGHT if lacks_terms else PRIOR_WEIGHT,
            speeds=tuple(speeds),
            rising=True,
        )
        _add_curve_rows(rows, model, structure)
        solution, _, _ = solve_rows(rows, structure, estimator)
        reduced = structure.with_values(solution.values)
    result_model = replace(reduced, training=model.training)
    rmse = None if rows is None else rows.rmse(result_model.values)
    return ReducedModel(result_model.with_payload(payload), dropped, refitted, rmse)


def _copy_values(model: FittedModel, structure: TorqueModel) -> Float[Array, " p"]:
    """Links, rotors and offsets unchanged; friction as near as the terms allow."""
    parts, layout = model.layout.split(model.values), structure.layout
    values = np.zeros(layout.size)
    values[layout.links] = parts.links.ravel()
    if structure.has("rotor"):
        values[layout.block_slice("rotor")] = np.maximum(parts.rotors, 0.0)
    if structure.has("offset"):
        values[layout.block_slice("offset")] = parts.offsets
    values[layout.of_kind(DISSIPATIVE)] = _nearest_friction(model, structure).ravel()
    for i in np.flatnonzero(layout.of_kind(CONSERVATIVE)):
        values[i] = model.values[model.layout.index(layout.names[i])]
    return values


def _curve(
    model: FittedModel, target: Term, joint: int, speeds: Float[Array, " m"]
) -> tuple[Float[Array, "n k"], Float[Array, " n"]]:
    """Target columns at speeds in both directions, and the model's steady friction there."""
    v = np.concatenate([-speeds, speeds])
    zeros, temperature = np.zeros_like(v), np.full_like(v, model.typical_temperature[joint])
    inputs = TermInput(v, zeros, zeros, temperature, v)
    columns = target.columns(inputs, np.empty(0))
    coefficients = model.layout.split(model.values).drive[joint]
    steady = steady_friction_model(model.term_sum.of_joint(joint))
    inputs = TermInput(
        v, zeros, zeros, temperature, v, channels=typical_channels(model.term_sum, v)
    )
    return columns, steady.columns(inputs, model.joint_shape[joint]) @ coefficients


def _trained_speed(model: FittedModel) -> Float[Array, " j"]:
    """Highest speed of the training data, or else the rated speed [rad/s]."""
    top, span = _rated_speed(model), model.training.ranges.velocity
    return np.maximum(top if span is None else np.minimum(top, span.largest), 1e-3)


def _add_curve_rows(rows: TrainingRegression, model: FittedModel, structure: TorqueModel) -> None:
    """Add rows of the model's steady friction.

    Linear friction gets rows for trained speeds, where it must be accurate. Powers of speed could
    diverge beyond, so they get rows for all speeds up to the rated one.
    """
    target = structure.friction
    assert target is not None
    is_linear = all(parameter.power < 2 for parameter in target.parameters)
    top_speed = _trained_speed(model) if is_linear else _rated_speed(model)
    for j in range(model.robot.joints):
        columns, torque = _curve(model, target, j, np.linspace(0.05, 1.0, 10) * top_speed[j])
        names = tuple(joint_parameter(j, term.name) for term in target.parameters)
        scale = np.sqrt(CURVE_ROWS)
        rows.with_rows(j, names, scale * columns, scale * torque)


def _nearest_friction(model: FittedModel, structure: TorqueModel) -> Float[Array, "j k"]:
    """Least squares over trained speeds, or else up to the rated speed, without load.

    Exact if the model's friction has no other terms.
    """
    target = structure.friction
    assert target is not None
    top_speed, coefficients = _trained_speed(model), []
    for j in range(model.robot.joints):
        columns, torque = _curve(model, target, j, np.linspace(0.02, 1.0, 50) * top_speed[j])
        solution = np.linalg.lstsq(columns, torque, rcond=None)[0]
        minimum = [0.0 if term.nonnegative else -np.inf for term in target.parameters]
        rounded = np.where(np.abs(solution) < 1e-12 * max(np.abs(torque).max(), 1.0), 0.0, solution)
        coefficients.append(np.maximum(rounded, minimum))
    return np.array(coefficients)


def _rated_speed(model: FittedModel) -> Float[Array, " j"]:
    """Speeds up to which friction must be dissipative [rad/s]."""
    span = model.training.ranges.velocity
    trained = np.ones(model.robot.joints) if span is None else 2.0 * span.largest
    limit = model.robot.limits.velocity
    return np.where(np.isfinite(limit), limit, np.maximum(trained, 1e-3))


def _friction_losses(model: FittedModel) -> list[str]:
    """Properties of friction that no format represents."""
    losses = []
    if needs(model.term_sum, "temperature"):
        temperatures = ", ".join(f"{t:.3g}" for t in model.typical_temperature)
        losses.append(f"how friction follows temperature (taken at {temperatures} degC)")
    if isinstance(model.friction_model, Friction) and model.friction_model.has_smooth_sign:
        losses.append("the speed over which friction changes its sign")
    return losses


def _dropped_parts(
    model: FittedModel, terms: FormatTerms, rows: TrainingRegression | None
) -> tuple[str, ...]:
    """Parts outside the terms of the format, each with its torque in training."""
    phrases = []
    record, score = model.training.simple_terms, model.training.score
    torque_std = None if score is None else score.rmse / score.nrmse
    parts = model.layout.split(model.values)

    def describe_size(size: Float[Array, " j"] | None, largest: str) -> str:
        if size is None:
            return f"(up to {largest})"
        j = int(np.argmax(size))
        percent_text = ""
        if torque_std is not None and np.isfinite(torque_std[j]) and torque_std[j] > 0.0:
            percent_text = f", {100.0 * size[j] / torque_std[j]:.2g} % of its torque"
        return (
            f"(up to {largest}; in training {size[j]:.2g} N m rms on joint {j + 1}{percent_text})"
        )

    further = sum_of(terms.friction, *terms.further(model)).parameters
    format_names = {(parameter.name, parameter.unit) for parameter in further}
    for k, (parameter, kind, _) in enumerate(model.layout.drive_entries):
        column = parts.drive[:, k]
        if (parameter.name, parameter.unit) in format_names:
            continue
        if np.max(np.abs(column), initial=0.0) > 1e-6:
            size = None if record is None else record.effect[:, k]
            largest = f"{np.max(np.abs(column)):.3g} {parameter.unit}"
            label = "friction" if kind == DISSIPATIVE else str(kind)
            phrases.append(f"{label} term {parameter.name!r} {describe_size(size, largest)}")
    phrases += _friction_losses(model)
    if np.any(parts.rotors) and not terms.rotor_inertia:
        size = None
        if rows is not None:
            names = model.names[model.layout.block_slice("rotor")]
            column_rms = [rows.column_rms(name, j) for j, name in enumerate(names)]
            size = np.array(column_rms) * parts.rotors
        phrases.append(
            f"rotor inertias {describe_size(size, f'{np.max(parts.rotors):.3g} kg m^2')}"
        )
    if np.any(parts.offsets) and not terms.offset:
        size = None if rows is None else np.abs(parts.offsets)
        phrases.append(
            f"torque offsets {describe_size(size, f'{np.max(np.abs(parts.offsets)):.3g} N m')}"
        )
    if not np.array_equal(model.robot.drives.coupling, np.eye(model.robot.joints)):
        phrases.append("the coupling of motors (friction and rotors act at the joints)")
    if np.any(model.robot.mounting) and not terms.mounting:
        phrases.append("the mounting (URDF has no gravity direction)")
    return tuple(phrases)
