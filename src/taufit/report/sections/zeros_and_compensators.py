"""Section of fitted joint zero offsets and gravity compensators."""

from __future__ import annotations

import numpy as np

from taufit.core.parameters import joint_parameter
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.model.fitted_zeros import FittedZero, zero_offsets_of_model
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, table
from taufit.terms import CONSERVATIVE, Term

_HEADER = ("joint", "value", "± (95 %)", "unit", "what to do with it")
_TEXT_COLUMNS = (0, 3, 4)


def zeros_and_compensators(view: ModelView) -> Section | None:
    """Tables of zero offsets and compensators; None if the model has neither."""
    zeros = zero_offsets_of_model(view.model)
    position_terms = [
        term for term in view.model.terms if term.kind == CONSERVATIVE and not term.orders
    ]
    body = ""
    if zeros:
        body += paragraph(
            "Encoder zeros: value added to a recorded position to give the joint position. This "
            "model "
            "and its exports contain them and take positions as recorded."
        )
        body += table(_HEADER, [_zero_row(zero) for zero in zeros], _TEXT_COLUMNS)
    if position_terms:
        body += paragraph(
            "Gravity compensators and springs: torque over joint position, beside friction. "
            "Included "
            "in prediction, payload, contact, C and FMU; `taufit export` lists what other "
            "formats leave "
            "out."
        )
        rows = [
            row
            for term in position_terms
            for joint in range(view.model.robot.joints)
            for row in _position_rows(view, term, joint)
        ]
        body += table(("joint", "term", *_HEADER[1:]), rows, (0, 1, 4, 5))
    if not body:
        return None
    gist = f"{len(zeros)} zeros, {len(position_terms)} terms"
    return Section("Encoder zeros and gravity compensators", body, gist)


def _zero_row(zero: FittedZero) -> tuple[str | float | None, ...]:
    value, std, unit = zero.display_values
    if not zero.identifiable:
        note = "Not identifiable from this motion: left as it was. Check it at its mark."
        return zero.joint, value, None, unit, note
    if abs(zero.value) < NORMAL_95 * zero.std:
        remedy = "Nothing: the recorded zero is right within its uncertainty."
    else:
        remedy = (
            f"Write zero: {zero.value:.6g} ({zero.unit}) at this joint in the robot's YAML file, "
            "or correct the encoder at the controller; not both."
        )
    return zero.joint, value, NORMAL_95 * std, unit, remedy


def _position_rows(view: ModelView, term: Term, joint: int) -> list[tuple[str | float | None, ...]]:
    robot = view.model.robot
    name, absent = robot.joint_names[joint], term.absent(joint)
    compensator = next(
        (parameter for parameter in robot.compensators if parameter.joint == joint), None
    )
    remedy = "Nothing: part of this model."
    if compensator is not None and compensator.kind == "unknown":
        remedy = (
            f"Give --compensator {joint + 1} in further fits, or write compensator: unknown at "
            "this joint in the robot's YAML file."
        )
    elif compensator is not None:
        remedy = (
            "Nothing: its geometry is in the robot's description, its force in this model. Compare "
            "it with the data sheet."
        )
    rows: list[tuple[str | float | None, ...]] = []
    for parameter in term.parameters:
        if parameter.name in absent:
            continue
        value, std = _value_and_std(view.model, joint_parameter(joint, parameter.name))
        spread = None if std is None else NORMAL_95 * std
        note = "Not identifiable by itself. " if spread is None else ""
        if spread is not None and abs(value) < spread:
            note = "Zero within its uncertainty. "
        rows.append((name, parameter.name, value, spread, parameter.unit, note + remedy))
    return rows


def _value_and_std(model: FittedModel, name: str) -> tuple[float, float | None]:
    """Value and standard deviation of a parameter; None if it is not identifiable alone."""
    k = model.layout.index(name)
    std = None if model.training.std is None else float(model.training.std[k])
    return float(model.values[k]), std if std is not None and np.isfinite(std) else None
