"""Reduction of a model to the terms of a format: exact, refitted, or with terms dropped.

Training rows are stored in the model file as triangular factors over simple terms, so the refit
needs no recording: least squares with the terms of the format,

    min |y - W_format x|^2      over physically consistent x,

with links near the model's unless the data require others (if the format lacks rotor inertia or
offsets, the links compensate), and friction near the model's curve at speeds with little training
data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import joint_parameter
from taufit.estimators import ConsistentSdp
from taufit.fitting.fit_samples import solve_rows
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.regression.simple_terms import TrainingRegression
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
    usual_channels,
)
from taufit.terms.friction import Friction

# Prior weights of the model's links in a refit, in squared noise levels: large if the format has
# rotors and offsets, small if it lacks some, which links then compensate. Number of training rows
# that the model's friction curve counts for, per speed. Chosen on robots other than the
# benchmark's (LWR4, TX40 and xMate).
NEAR = 100.0
FREE = 0.1
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
        held = {TERMS[name] for name in self.terms}
        return tuple(term for term in model.terms if type(term) in held)


URDF_TERMS = FormatTerms(
    friction_model("linear"), rotor_inertia=False, offset=False, mounting=False
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


def keep_all_terms(model: FittedModel) -> ReducedModel:
    """Reduction for a format that represents everything."""
    score = model.training.score
    return ReducedModel(model, rmse=None if score is None else score.rmse)


@lru_cache(maxsize=8)
def reduce_to_format(model: FittedModel, terms: FormatTerms) -> ReducedModel:
    """Reduce a model to the terms of a format."""
    robot = model.robot
    flat = replace(robot, drives=replace(robot.drives, coupling=np.eye(robot.joints)))
    structure = TorqueModel(
        flat, terms.friction, terms.rotor_inertia, terms.offset, terms=terms.further(model)
    )
    copied = structure.with_values(_copied(model, structure))
    record = model.training.simple_terms
    rows = None if record is None else TrainingRegression(record, structure, model.terms)
    dropped = _dropped(model, terms, rows)
    missing = [part for part in dropped if not part.startswith("the mounting")]
    refitted = bool(missing) and rows is not None
    if refitted and rows is not None:
        lacks = any(model.has(name) and not structure.has(name) for name in ("rotor", "offset"))
        speeds = _rated(model)
        # Simulators take friction that falls with speed for a drive.
        estimator = ConsistentSdp(
            prior_weight=FREE if lacks else NEAR, speeds=tuple(speeds), rising=True
        )
        _lean_on_curve(rows, model, structure)
        solution, _, _ = solve_rows(rows, structure, estimator)
        copied = structure.with_values(solution.values)
    form = replace(copied, training=model.training)
    rmse = None if rows is None else rows.rmse(form.values)
    return ReducedModel(form, dropped, refitted, rmse)


def _copied(model: FittedModel, structure: TorqueModel) -> Float[Array, " p"]:
    """Links, rotors and offsets unchanged; friction as near as the terms allow."""
    own, layout = model.layout.split(model.values), structure.layout
    out = np.zeros(layout.size)
    out[layout.links] = own.links.ravel()
    if structure.has("rotor"):
        out[layout.of("rotor")] = np.maximum(own.rotors, 0.0)
    if structure.has("offset"):
        out[layout.of("offset")] = own.offsets
    out[layout.of_kind(DISSIPATIVE)] = _nearest_friction(model, structure).ravel()
    for i in np.flatnonzero(layout.of_kind(CONSERVATIVE)):
        out[i] = model.values[model.layout.index(layout.names[i])]
    return out


def _curve(
    model: FittedModel, target: Term, joint: int, speeds: Float[Array, " m"]
) -> tuple[Float[Array, "n k"], Float[Array, " n"]]:
    """Target columns at speeds in both directions, and the model's steady friction there."""
    v = np.concatenate([-speeds, speeds])
    zero, warm = np.zeros_like(v), np.full_like(v, model.typical_temperature[joint])
    inputs = TermInput(v, zero, zero, warm, v)
    columns = target.columns(inputs, np.empty(0))
    own = model.layout.split(model.values).drive[joint]
    steady = steady_friction_model(model.term_sum.of_joint(joint))
    inputs = TermInput(v, zero, zero, warm, v, channels=usual_channels(model.term_sum, v))
    return columns, steady.columns(inputs, model.joint_shape[joint]) @ own


def _seen(model: FittedModel) -> Float[Array, " j"]:
    """Highest speed of the training data, or else the rated speed [rad/s]."""
    top, span = _rated(model), model.training.ranges.velocity
    return np.maximum(top if span is None else np.minimum(top, span.largest), 1e-3)


def _lean_on_curve(rows: TrainingRegression, model: FittedModel, structure: TorqueModel) -> None:
    """Add rows of the model's steady friction.

    Linear friction gets rows for trained speeds, where it must be accurate. Powers of speed could
    diverge beyond, so they get rows for all speeds up to the rated one.
    """
    target = structure.friction
    assert target is not None
    straight = all(one.power < 2 for one in target.parameters)
    fastest = _seen(model) if straight else _rated(model)
    for j in range(model.robot.joints):
        columns, torque = _curve(model, target, j, np.linspace(0.05, 1.0, 10) * fastest[j])
        names = tuple(joint_parameter(j, term.name) for term in target.parameters)
        scale = np.sqrt(CURVE_ROWS)
        rows.with_rows(j, names, scale * columns, scale * torque)


def _nearest_friction(model: FittedModel, structure: TorqueModel) -> Float[Array, "j k"]:
    """Least squares over trained speeds, or else up to the rated speed, without load.

    Exact if the model's friction has no other terms.
    """
    target = structure.friction
    assert target is not None
    fastest, out = _seen(model), []
    for j in range(model.robot.joints):
        columns, torque = _curve(model, target, j, np.linspace(0.02, 1.0, 50) * fastest[j])
        found = np.linalg.lstsq(columns, torque, rcond=None)[0]
        least = [0.0 if term.nonnegative else -np.inf for term in target.parameters]
        rounded = np.where(np.abs(found) < 1e-12 * max(np.abs(torque).max(), 1.0), 0.0, found)
        out.append(np.maximum(rounded, least))
    return np.array(out)


def _rated(model: FittedModel) -> Float[Array, " j"]:
    """Speeds up to which friction must be dissipative [rad/s]."""
    span = model.training.ranges.velocity
    seen = np.ones(model.robot.joints) if span is None else 2.0 * span.largest
    limit = model.robot.limits.velocity
    return np.where(np.isfinite(limit), limit, np.maximum(seen, 1e-3))


def _ways_of_friction(model: FittedModel) -> list[str]:
    """Properties of friction that no format represents."""
    out = []
    if needs(model.term_sum, "temperature"):
        warm = ", ".join(f"{t:.3g}" for t in model.typical_temperature)
        out.append(f"how friction follows temperature (taken at {warm} degC)")
    if model.friction is not None and model.friction.smooth:
        out.append("the speed over which friction changes its sign")
    return out


def _dropped(
    model: FittedModel, terms: FormatTerms, rows: TrainingRegression | None
) -> tuple[str, ...]:
    """Parts outside the terms of the format, each with its torque in training."""
    out = []
    record, score = model.training.simple_terms, model.training.score
    spread = None if score is None else score.rmse / score.nrmse
    own = model.layout.split(model.values)

    def told(size: Float[Array, " j"] | None, most: str) -> str:
        if size is None:
            return f"(up to {most})"
        j = int(np.argmax(size))
        share = ""
        if spread is not None and np.isfinite(spread[j]) and spread[j] > 0.0:
            share = f", {100.0 * size[j] / spread[j]:.2g} % of its torque"
        return f"(up to {most}; in training {size[j]:.2g} N m rms on joint {j + 1}{share})"

    further = sum_of(terms.friction, *terms.further(model)).parameters
    held_names = {(one.name, one.unit) for one in further}
    for k, (one, kind, _) in enumerate(model.layout.drive_entries):
        column = own.drive[:, k]
        if (one.name, one.unit) in held_names:
            continue
        if np.max(np.abs(column), initial=0.0) > 1e-6:
            size = None if record is None else record.effect[:, k]
            most = f"{np.max(np.abs(column)):.3g} {one.unit}"
            what = "friction" if kind == DISSIPATIVE else str(kind)
            out.append(f"{what} term {one.name!r} {told(size, most)}")
    out += _ways_of_friction(model)
    if np.any(own.rotors) and not terms.rotor_inertia:
        size = None
        if rows is not None:
            names = model.names[model.layout.of("rotor")]
            each = [rows.column_rms(name, j) for j, name in enumerate(names)]
            size = np.array(each) * own.rotors
        out.append(f"rotor inertias {told(size, f'{np.max(own.rotors):.3g} kg m^2')}")
    if np.any(own.offsets) and not terms.offset:
        size = None if rows is None else np.abs(own.offsets)
        out.append(f"torque offsets {told(size, f'{np.max(np.abs(own.offsets)):.3g} N m')}")
    if not np.array_equal(model.robot.drives.coupling, np.eye(model.robot.joints)):
        out.append("the coupling of motors (friction and rotors act at the joints)")
    if np.any(model.robot.mounting) and not terms.mounting:
        out.append("the mounting (URDF has no gravity direction)")
    return tuple(out)
