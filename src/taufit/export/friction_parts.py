"""Friction coefficients and offsets of a fitted model, by joint and by place."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.terms import Term


@dataclass(frozen=True, slots=True, eq=False)
class TermPlaces:
    """Terms that act at the motors, or at one further place per joint.

    Attributes:
        label: C name of its torques.
        term: Terms of any joint.
        shape: Their shape parameters, one row per joint.
        reach: Matrix R with the motion R q of the place, and joint torque R' f.
        coefficients: Coefficients of the terms, one row per joint.
        columns: Columns of these among all drive columns.
    """

    label: str
    term: Term
    shape: Float[Array, "j s"]
    reach: Float[Array, "j j"]
    coefficients: Float[Array, "j k"]
    columns: slice


def term_places(model: FittedModel, term: Term) -> list[TermPlaces]:
    """Motors, then every other place where terms act.

    Args:
        model: Fitted model.
        term: Its sum of terms, or the steady state of that.
    """
    drive = model.layout.split(model.values).drive
    at_motors, places = drive.copy(), []
    for k, placed in enumerate(model.columns.placed_terms):
        at_motors[:, placed.columns] = 0.0
        part, shape = drive[:, placed.columns], model.joint_shape[:, placed.shapes]
        if np.any(part):
            places.append(
                TermPlaces(f"place_{k}", placed.term, shape, placed.reach, part, placed.columns)
            )
    coupling = model.robot.drives.coupling
    all_columns = slice(0, drive.shape[1])
    motors = TermPlaces("motor", term, model.joint_shape, coupling, at_motors, all_columns)
    return [motors, *places]


def friction_coefficients(model: FittedModel) -> Float[Array, "j k"]:
    """Coefficients of friction and further terms at the motors, one row per joint."""
    model.columns.require_at_motors(model.values)
    return model.layout.split(model.values).drive


def offsets(model: FittedModel) -> Float[Array, " j"]:
    """Fitted torque offsets [N m]."""
    return model.layout.split(model.values).offsets
