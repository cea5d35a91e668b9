"""Friction of a fitted model at low speed [N m], by which noise and payload are judged."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.terms import DISSIPATIVE, TermInput, needs, usual_channels

# Positions at which friction that follows position is averaged.
_POSITIONS = 24


def friction_level(model: FittedModel) -> Float[Array, " j"]:
    """Friction of each motor at low speed, half of what separates the two directions [N m]."""
    joints = model.robot.joints
    own = model.layout.split(np.asarray(model.values)).drive
    slow, still = np.full(joints, 0.05), np.zeros(joints)
    forth, back = (
        np.einsum("njk,jk->nj", typical_friction(model, sign * slow, still), own)
        for sign in (1.0, -1.0)
    )
    return np.asarray(np.mean(np.abs(forth - back), axis=0) / 2.0)


def typical_friction(
    model: FittedModel, velocity: Float[Array, " j"], load: Float[Array, " j"]
) -> Float[Array, "n j k"]:
    """Steady friction of each motor at one speed and load, over the positions of the training.

    One row, or several where friction depends on position.
    """
    position, rows = None, 1
    alone = model.structure.steady().only(DISSIPATIVE)
    if needs(alone.term_sum, "position"):
        span = model.training.ranges.position
        full = np.full(model.robot.joints, np.pi)
        low, high = (-full, full) if span is None else (span.low, span.high)
        position, rows = np.linspace(low, high, _POSITIONS), _POSITIONS
    every = np.ones((rows, 1))
    channels = usual_channels(model.term_sum, every * velocity)
    channels["temperature"] = every * model.typical_temperature
    inputs = TermInput(every * velocity, position, every * load, channels=channels)
    return alone.columns.drive_columns(inputs)
