"""Friction of a fitted model at low speed [N m], by which noise and payload are judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.terms.friction import FrictionInput, level, needs

# Positions at which friction that follows position is averaged.
_POSITIONS = 24


def friction_level(model: FittedModel) -> Float[Array, " j"]:
    """Friction of each motor at low speed, half of what separates the two directions [N m]."""
    joints = model.robot.joints
    if model.friction is None:
        return np.zeros(joints)
    own = model.layout.split(np.asarray(model.values)).friction
    slow, still = np.full(joints, 0.05), np.zeros(joints)
    forth, back = (
        np.einsum("njk,jk->nj", typical_friction(model, sign * slow, still), own)
        for sign in (1.0, -1.0)
    )
    return np.mean(np.abs(forth - back), axis=0) / 2.0


def typical_friction(
    model: FittedModel, velocity: Float[Array, " j"], load: Float[Array, " j"]
) -> Float[Array, "n j k"]:
    """Steady friction of each motor at one speed and load, over the positions of the training.

    One row, or several where friction depends on position.
    """
    position, rows = None, 1
    alone = None if model.friction is None else level(model.friction)
    if needs(alone, "position"):
        span = model.training.ranges.position
        full = np.full(model.robot.joints, np.pi)
        low, high = (-full, full) if span is None else (span.low, span.high)
        position, rows = np.linspace(low, high, _POSITIONS), _POSITIONS
    every = np.ones((rows, 1))
    inputs = FrictionInput(
        every * velocity, position, every * load, every * model.typical_temperature
    )
    return replace(model.structure, friction=alone).columns.motor_friction(inputs)
