"""Friction level of a fitted model at low speed [N m], the scale for noise and payload."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.terms import DISSIPATIVE, TermInput, needs, typical_channels

# Number of positions over which position-dependent friction is averaged.
_POSITIONS = 24


def friction_level(model: FittedModel) -> Float[Array, " j"]:
    """Friction of each motor at low speed: half the difference of the two directions [N m]."""
    joints = model.robot.joints
    coefficients = model.layout.split(np.asarray(model.values)).drive
    speed, zeros = np.full(joints, 0.05), np.zeros(joints)
    forward, backward = (
        np.einsum("njk,jk->nj", typical_friction(model, sign * speed, zeros), coefficients)
        for sign in (1.0, -1.0)
    )
    return np.asarray(np.mean(np.abs(forward - backward), axis=0) / 2.0)


def typical_friction(
    model: FittedModel, velocity: Float[Array, " j"], load: Float[Array, " j"]
) -> Float[Array, "n j k"]:
    """Steady-state friction of each motor at one speed and load, over the training positions.

    One row, or several if friction depends on position.
    """
    position, rows = None, 1
    steady_friction = model.structure.steady_state().only(DISSIPATIVE)
    if needs(steady_friction.term_sum, "position"):
        span = model.training.ranges.position
        half_turn = np.full(model.robot.joints, np.pi)
        low, high = (-half_turn, half_turn) if span is None else (span.low, span.high)
        position, rows = np.linspace(low, high, _POSITIONS), _POSITIONS
    ones = np.ones((rows, 1))
    channels = typical_channels(model.term_sum, ones * velocity)
    channels["temperature"] = ones * model.typical_temperature
    inputs = TermInput(ones * velocity, position, ones * load, channels=channels)
    return steady_friction.columns.drive_columns(inputs)
