"""What URDF and MJCF can hold of a friction model: one damping and one dry friction per joint."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.model.fitted_model import FittedModel


def friction_coefficients(model: FittedModel) -> Float[Array, "j k"]:
    """The fitted friction terms, one row per joint."""
    return model.layout.split(model.values).friction


def offsets(model: FittedModel) -> Float[Array, " j"]:
    """The fitted torque offsets."""
    return model.layout.split(model.values).offsets


def linear_part(
    model: FittedModel,
) -> tuple[Float[Array, " j"], Float[Array, " j"], tuple[str, ...]]:
    """Damping, dry friction, and a sentence for every part that had to be left out."""
    joints = model.robot.joints
    damping, dry = np.zeros(joints), np.zeros(joints)
    dropped: list[str] = []
    coefficients = friction_coefficients(model)
    terms = model.friction.terms if model.friction else ()
    for term, column in zip(terms, coefficients.T, strict=True):
        # A power law's coefficient has the same name and another unit: it is no damping.
        if (term.name, term.unit) == ("viscous", "N m s/rad"):
            damping = np.maximum(column, 0.0)
        elif term.name == "coulomb":
            dry = np.maximum(column, 0.0)
        elif np.max(np.abs(column), initial=0.0) > 1e-6:
            largest = np.max(np.abs(column))
            dropped.append(f"friction term {term.name!r} (up to {largest:.3g} {term.unit})")
    if np.any(offsets(model)):
        dropped.append(f"torque offsets (up to {np.max(np.abs(offsets(model))):.3g} N m)")
    return damping, dry, tuple(dropped)
