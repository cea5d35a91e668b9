"""Encoder zeros and gravity compensators that were fitted, and where they belong."""

from __future__ import annotations

import numpy as np

from taufit.core.parameters import joint_parameter
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.model.fitted_zeros import FittedZero, fitted_zeros
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, table
from taufit.robot import Compensator
from taufit.terms.friction.compensated import TERMS, compensated

_HEADS = ("joint", "value", "± (95 %)", "unit", "what to do with it")
_WORDS = (0, 3, 4)


def zeros_and_compensators(view: ModelView) -> Section | None:
    """Tables of both; None where the model has neither."""
    zeros, held = fitted_zeros(view.model), compensated(view.model.friction)
    body = ""
    if zeros:
        body += paragraph(
            "Encoder zeros: what is added to a recorded position to give the joint's. This model "
            "and its exports contain them and take positions as they are recorded."
        )
        body += table(_HEADS, [_zero_row(zero) for zero in zeros], _WORDS)
    if held is not None:
        body += paragraph(
            "Gravity compensators: torque of a spring or gas cylinder over the joint's position, "
            "beside friction. Prediction, payload, contact, twin, C and FMU have it; URDF and MJCF "
            "cannot hold it."
        )
        rows = [row for own in held.compensators for row in _compensator_rows(view, own)]
        body += table(("joint", "term", *_HEADS[1:]), rows, (0, 1, 4, 5))
    if not body:
        return None
    return Section("Encoder zeros and gravity compensators", body)


def _zero_row(zero: FittedZero) -> tuple[str | float | None, ...]:
    value, std, unit = zero.shown
    if not zero.identifiable:
        motion = "Not identifiable from this motion: left as it was. Check it at its mark."
        return zero.joint, value, None, unit, motion
    if abs(zero.value) < NORMAL_95 * zero.std:
        what = "Nothing: the recorded zero is right within its uncertainty."
    else:
        what = (
            f"Write zero: {zero.value:.6g} ({zero.unit}) at this joint in the robot's YAML file, "
            "or correct the encoder at the controller; not both."
        )
    return zero.joint, value, NORMAL_95 * std, unit, what


def _compensator_rows(view: ModelView, own: Compensator) -> list[tuple[str | float | None, ...]]:
    name = view.model.robot.joint_names[own.joint]
    if own.kind == "unknown":
        what = (
            f"Give --compensator {own.joint + 1} in further fits, or write compensator: unknown at "
            "this joint in the robot's YAML file."
        )
    else:
        what = (
            "Nothing: its geometry is in the robot's description, its force in this model. Compare "
            "it with the data sheet."
        )
    rows: list[tuple[str | float | None, ...]] = []
    for term in TERMS[own.kind]:
        value, std = _known(view.model, joint_parameter(own.joint, term.name))
        spread = None if std is None else NORMAL_95 * std
        first = "Not identifiable by itself. " if spread is None else ""
        if spread is not None and abs(value) < spread:
            first = "Zero within its uncertainty. "
        rows.append((name, term.name, value, spread, term.unit, first + what))
    return rows


def _known(model: FittedModel, name: str) -> tuple[float, float | None]:
    """Value and standard deviation of a parameter; None where the motion shows only sums."""
    k = model.layout.index(name)
    std = None if model.training.std is None else float(model.training.std[k])
    return float(model.values[k]), std if std is not None and np.isfinite(std) else None
