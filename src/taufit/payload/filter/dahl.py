"""Friction columns of a stream: `Presliding` with its path remembered from chunk to chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction import Presliding
from taufit.friction.presliding import legs
from taufit.model.fitted_model import FittedModel

# Displacements over which a break-away fades where the friction model has no memory of its own
# [rad or m], and how much of the friction level it may be.
BREAKAWAY_WIDTHS = (0.003, 0.03, 0.3)
BREAKAWAY_SHARES = (0.3, 0.15, 0.05)


class FrictionStream:
    """Friction columns of consecutive chunks of motion.

    Whatever state z0 the elements of a joint had before the first sample, its effect on them fades
    with the path X travelled since, whichever the direction:

        z_k(t) = z_k(t; z0 = 0) + z0_k exp(-X(t) / w_k).

    `fading` are these columns: with a prior on z0 they say how little the first moments of a motion
    are worth.
    """

    def __init__(self, model: FittedModel) -> None:
        self.model = model
        joints = model.robot.joints
        self.remembers = isinstance(model.friction, Presliding)
        self.widths = np.array(
            model.friction.widths if isinstance(model.friction, Presliding) else BREAKAWAY_WIDTHS
        )
        coupling = model.robot.drives.coupling
        self.coupling = None if np.array_equal(coupling, np.eye(joints)) else coupling
        self.terms = len(model.friction.terms) if model.friction else 0
        self.clear()

    def clear(self) -> None:
        """Forget the path."""
        joints = self.model.robot.joints
        self._z = np.zeros((joints, len(self.widths)))
        self._left = np.ones((joints, len(self.widths)))
        self._before: Float[Array, " j"] | None = None

    def columns(
        self,
        velocity: Float[Array, "n j"],
        load: Float[Array, "n j"],
        temperature: Float[Array, "n j"] | None,
        step: float,
    ) -> tuple[Float[Array, "n j k"], Float[Array, "n j"], Float[Array, "n j w"]]:
        """Columns per motor, direction of sliding in [-1, 1], and what is left of each z0."""
        model = self.model
        motor = velocity if self.coupling is None else velocity @ self.coupling.T
        travel = motor * step
        last = travel[0] if self._before is None else self._before
        there, back, turns = legs(np.concatenate([[last], travel[:-1]]), travel)
        self._before = travel[-1]
        decay = np.exp(-np.abs(there)[..., None] / self.widths)
        grown = (1.0 - decay) * np.sign(there)[..., None]
        on = np.exp(-np.abs(back)[..., None] / self.widths)
        decay[turns] *= on
        grown[turns] = grown[turns] * on + (1.0 - on) * np.sign(back)[..., None]
        left = self._left * np.cumprod(decay, axis=0)
        self._left = left[-1]
        if not self.remembers:
            direction = np.sign(motor)
            if model.friction is None:
                return np.zeros((*motor.shape, 0)), direction, left
            raw = model.structure.motor_friction(velocity, load=load, temperature=temperature)
            return raw, direction, left
        z = np.empty_like(grown)
        state = self._z
        for i in range(len(z)):
            state = decay[i] * state + grown[i]
            z[i] = state
        self._z = state
        friction: Any = model.friction
        own = load if self.coupling is None else load @ np.linalg.inv(self.coupling)
        first = z[..., 0]
        out = np.empty((*motor.shape, self.terms))
        out[..., 0] = first
        k = len(self.widths)
        out[..., 1:k] = z[..., 1:] - first[..., None]
        out[..., k] = motor
        if friction.quadratic:
            out[..., k + 1] = np.abs(motor) * motor
        if friction.load:
            out[..., -1] = np.abs(own) * first
        return out, first, left
