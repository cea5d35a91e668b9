"""Fitted model as C99: no allocation, no library but libm, constants in tables."""

from __future__ import annotations

from taufit.export.c import c_texts
from taufit.model.fitted_model import FittedModel


def to_c(model: FittedModel, header_name: str | None = None) -> tuple[str, str, tuple[str, ...]]:
    """C source, its header, and the dropped parts of the model (none).

    Functions have the robot's name as prefix. `step` is the full model: the torque of the next
    sample, with the friction state in the caller's `state`; `torque` is that of a single sample.
    Further functions: inverse dynamics, gravity, Coriolis torque, mass matrix, acceleration,
    forward kinematics, regressor and the residual of a measured torque.
    """
    texts = c_texts(model, None if header_name is None else header_name.removesuffix(".h"))
    return texts.source, texts.header, ()
