"""The fitted arm as plain C99: no allocation, no library but libm, constants in tables."""

from __future__ import annotations

from taufit.export.c import c_texts
from taufit.model.fitted_model import FittedModel


def to_c(model: FittedModel, header_name: str | None = None) -> tuple[str, str, tuple[str, ...]]:
    """C source, its header, and what of the model it could not hold: nothing.

    Functions have the prefix of the robot's name. `step` is the model itself: the torque of the
    next sample, with friction that remembers its path in the caller's `state`; `torque` is that of
    a sample which follows no other. Beside them inverse dynamics, gravity, Coriolis torque, mass
    matrix, acceleration, forward kinematics, regressor and the residual of a measured torque.
    """
    texts = c_texts(model, None if header_name is None else header_name.removesuffix(".h"))
    return texts.source, texts.header, ()
