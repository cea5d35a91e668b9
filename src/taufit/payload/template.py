"""The same motion recorded empty: what the model leaves over there is taken off here.

With y the residual of the model and the same motion twice, y_loaded - y_empty = W_n phi + friction
that changed + noise of both: errors of the arm's model and ripple are the same in both and cancel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.payload.stream import Stream
from taufit.torque_model import TorqueModel

if TYPE_CHECKING:
    from taufit.payload.filter import PayloadFilter

# Positions further apart than this are another motion [rad or m].
_SAME = 0.03
# How far the phase may jump from cell to cell, back and ahead.
_BACK, _AHEAD = 4, 30
# Velocity counts like this much time of position [s].
_HORIZON = 0.1
# What is left of the arm's own uncertainty when it cancels, in variance.
_CANCELLED = 1e-2


class Template:
    """Residuals of an empty run, found again by where the arm is.

    Attributes:
        missed: Cells whose motion was not in the template.
        seen: All cells.
    """

    def __init__(self, model: TorqueModel, source: Stream, owner: PayloadFilter) -> None:
        from taufit.payload.filter import PayloadFilter

        quiet = replace(owner.settings, detect=False)
        play = PayloadFilter(model, quiet, gain_std=owner.gain_std)
        play.kept = []
        for sample in source.samples():
            play.update(*sample)
        play.flush()
        if not play.kept:
            raise RecordingError(f"the template {source.name} is too short to be one.")
        q, v, y = (np.concatenate([part[k] for part in play.kept]) for k in range(3))
        moving = np.flatnonzero(np.any(np.abs(v) > owner.settings.standstill, axis=1))
        if len(moving) == 0:
            raise RecordingError(f"nothing moves in the template {source.name}.")
        # Rest before the motion has no phase.
        first = max(int(moving[0]) - 5, 0)
        self._key = np.concatenate([q[first:], _HORIZON * v[first:]], 1)
        self._left = y[first:]
        self._at = 0
        self.seen = self.missed = 0
        owner.cancel_arm(_CANCELLED)

    def residual(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n j"], Float[Array, " n"]]:
        """What the model left over at this motion, and 1 where there was such a motion, else 0."""
        keys = np.concatenate([q, _HORIZON * v], 1)
        out, there = np.zeros_like(q), np.zeros(len(q))
        last = len(self._key) - 1
        for i, key in enumerate(keys):
            low, high = max(self._at - _BACK, 0), min(self._at + _AHEAD, last)
            away = np.abs(self._key[low : high + 1] - key).max(axis=1)
            best = int(away.argmin())
            self.seen += 1
            if away[best] > _SAME:
                self.missed += 1
                self._at = min(self._at + 1, last)
                continue
            self._at = low + best
            out[i], there[i] = self._left[self._at], 1.0
        return out, there

    @property
    def matched(self) -> float:
        """Share of cells found in the template."""
        return 1.0 - self.missed / max(self.seen, 1)
