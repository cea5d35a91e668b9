"""Friction of every joint against the healthy model, followed while the arm moves."""

from __future__ import annotations

import numpy as np

from taufit.contact.external_torque import Felt
from taufit.core.arrays import Array
from taufit.health import FrictionTracker
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_level import friction_level
from taufit.terms.friction.states import STATES

_SLIDES = (STATES.index("fast"), STATES.index("slow"))
# Friction is followed in steps of this length [s].
_EVERY_S = 0.1
# Beyond this share and so many standard deviations, for this long in motion, friction has changed.
_CHANGED, _SIGMAS, _LASTS_S = 0.25, 4.0, 5.0


class FrictionWatch:
    """The friction index 1 + (dFc + dFv speed) / level of each joint, with its uncertainty.

    dFc and dFv are what a `FrictionTracker` finds beside the model; `level` is the model's friction
    at creeping speed and `speed` a third of the fastest in training.

    Attributes:
        index, std: Of each joint.
    """

    def __init__(self, model: FittedModel, rate_hz: float) -> None:
        joints = model.robot.joints
        self._skip = max(1, round(_EVERY_S * rate_hz))
        self._tracker = FrictionTracker(model, rate_hz / self._skip)
        level = np.maximum(friction_level(model), 1e-3)
        span = model.training.ranges.velocity
        fastest = np.ones(joints) if span is None else np.maximum(-span.low, span.high)
        parts = np.stack([np.ones(joints), fastest / 3.0, np.zeros(joints)], -1)
        self._weight = parts / level[:, None]
        self._said = np.zeros(joints, bool)
        self._seconds = np.zeros(joints)
        self._count = 0
        self.index = np.ones(joints)
        self.std = np.full(joints, np.nan)

    def clear(self) -> None:
        """The next step follows on none; what was learnt stays."""
        self._count = 0

    def add(self, felt: Felt, i: int, *, known: bool) -> list[int]:
        """One step of the grid; joints whose friction has just been seen to have changed.

        Args:
            felt: Steps of the grid.
            i: Which of them.
            known: Whether all that acts on the arm is known: no contact, payload found.
        """
        self._count += 1
        if not known or self._count % self._skip:
            return []
        state, velocity = felt.state[i], felt.velocity[i]
        moves = (state == _SLIDES[0]) | (state == _SLIDES[1])
        residual = -felt.smooth[i]
        self._tracker.correct(felt.friction[i], velocity, residual, moves)
        own, weight = self._tracker, self._weight
        self.index = 1.0 + (weight * own.state).sum(axis=1)
        reach = (own.covariance @ weight[:, :, None])[:, :, 0]
        self.std = np.sqrt(np.maximum((weight * reach).sum(axis=1), 0.0))
        away = np.abs(self.index - 1.0)
        beyond = (away > _CHANGED) & (away > _SIGMAS * self.std)
        self._seconds = np.where(beyond, self._seconds + _EVERY_S * moves, 0.0)
        changed: Array = self._seconds > _LASTS_S
        new = changed & ~self._said
        self._said |= changed
        return [int(j) for j in np.flatnonzero(new)] if new.any() else []
