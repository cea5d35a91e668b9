"""The same motion recorded empty: what the model leaves over there is taken off here.

With y the residual of the model and the same motion twice, y_loaded - y_empty = W_n phi + friction
that changed + noise of both: errors of the arm's model and ripple are the same in both and cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.payload.stream import Stream

if TYPE_CHECKING:
    from taufit.payload.filter import PayloadFilter

# Positions further apart than this are another motion [rad or m].
_SAME = 0.03
# How far the phase may jump from cell to cell, back and ahead.
_BACK, _AHEAD = 4, 30
# Velocity counts like this much time of position [s].
_HORIZON = 0.1
# Share of a further run that has to be the same motion.
_ENOUGH = 0.7
# Motions have their power below this [Hz].
_BAND_HZ = 2.0
# What is left of the arm's own uncertainty when it cancels, in variance.
_CANCELLED = 1e-2


class Template:
    """Residuals of empty runs of one motion, averaged, and found again by where the arm is.

    n runs leave S / n of their noise in the average, and from the second on what differs between
    them says how large S is; friction that changes from run to run has columns of its own and is
    taken out of the differences first.

    Attributes:
        runs: How many there are.
        missed: Cells whose motion was not in the template.
        seen: All cells.
    """

    def __init__(self, model: FittedModel, sources: Sequence[Stream], owner: PayloadFilter) -> None:
        played = [_played(model, source, owner) for source in sources]
        q, v, y = played[0]
        self._key = np.concatenate([q, _HORIZON * v], 1)
        self._at = 0
        self.seen = self.missed = 0
        self.runs = len(played)
        total, count = y.copy(), np.ones(len(y))
        others = []
        for source, (q_other, v_other, y_other) in zip(sources[1:], played[1:], strict=True):
            at, there = self._found(q_other, v_other)
            if there.mean() < _ENOUGH:
                raise RecordingError(
                    f"{source.name} is another motion than {sources[0].name}: only "
                    f"{100 * there.mean():.0f} % of it agree. Templates are runs of one motion."
                )
            places, first = np.unique(at[there], return_index=True)
            own = np.full_like(y, np.nan)
            own[places] = y_other[there][first]
            total[places] += own[places]
            count[places] += 1.0
            others.append(own)
            self._at = 0
        self._left = total / count[:, None]
        self.seen = self.missed = 0
        density = None
        if len(played) > 1:
            density = _scatter([y, *others], self._left, v, owner)
        owner.cancel_arm(_CANCELLED, density, self.runs)

    def _found(self, q: Array, v: Array) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
        """Where in the template each cell is, and whether it is there at all."""
        keys = np.concatenate([q, _HORIZON * v], 1)
        at, there = np.zeros(len(q), int), np.zeros(len(q), bool)
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
            at[i], there[i] = self._at, True
        return at, there

    def residual(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n j"], Float[Array, " n"]]:
        """Residuals of the model at this motion, and 1 where there was such a motion, else 0."""
        at, there = self._found(q, v)
        return np.where(there[:, None], self._left[at], 0.0), there.astype(float)

    @property
    def matched(self) -> float:
        """Share of cells found in the template."""
        return 1.0 - self.missed / max(self.seen, 1)


def _played(model: FittedModel, source: Stream, owner: PayloadFilter) -> tuple[Array, Array, Array]:
    """Position, velocity and residual of an empty run, from just before it starts to move."""
    from taufit.payload.filter import PayloadFilter

    play = PayloadFilter(model, replace(owner.settings, detect=False), gain_std=owner.gain_std)
    play.kept = []
    for sample in source.samples():
        play.feed(*sample)
    play.flush()
    if not play.kept:
        raise RecordingError(f"the template {source.name} is too short to be one.")
    q, v, y = (np.concatenate([part[k] for part in play.kept]) for k in range(3))
    moving = np.flatnonzero(np.any(np.abs(v) > owner.settings.standstill, axis=1))
    if len(moving) == 0:
        raise RecordingError(f"nothing moves in the template {source.name}.")
    # Rest before the motion has no phase.
    first = max(int(moving[0]) - 5, 0)
    return q[first:], v[first:], y[first:]


def _scatter(
    runs: list[Array], middle: Array, v: Array, owner: PayloadFilter
) -> Float[Array, " j"]:
    """Noise density of one run, from how runs differ where motions have their power."""
    n, rate = len(runs), owner.rate_hz
    out = np.zeros(v.shape[1])
    frequency = np.fft.rfftfreq(len(middle), 1.0 / rate)
    band = (frequency > 0.0) & (frequency <= _BAND_HZ)
    for j in range(v.shape[1]):
        fast = np.abs(v[:, j]) > owner.settings.standstill
        columns = np.column_stack([np.ones(len(v)), np.sign(v[:, j]), v[:, j]])
        powers = []
        for run in runs:
            keep = fast & np.isfinite(run[:, j])
            if np.count_nonzero(keep) < rate:
                continue
            apart = run[keep, j] - middle[keep, j]
            apart = apart - columns[keep] @ np.linalg.lstsq(columns[keep], apart, rcond=None)[0]
            whole = np.zeros(len(v))
            whole[keep] = apart
            power = np.abs(np.fft.rfft(whole))[band] ** 2 / (rate * np.count_nonzero(keep))
            powers.append(power.mean())
        out[j] = np.mean(powers) * n / (n - 1) if powers else np.nan
    return out
