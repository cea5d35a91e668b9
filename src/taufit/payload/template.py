"""Residual template: residual of the same motion recorded without payload, subtracted.

With y the residual of the model and the same motion twice, y_loaded - y_empty = W_n phi + friction
changes + noise of both: errors of the robot model and ripple are equal in both and cancel.
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

# Largest distance of positions in the same motion [rad or m].
_MATCH_DISTANCE = 0.03
# Largest change of phase from one time bin to the next, backwards and forwards [bins].
_BINS_BACK, _BINS_AHEAD = 4, 30
# Weight of velocity against position in the distance [s].
_VELOCITY_WEIGHT_S = 0.1
# Smallest fraction of a further run that must match the first.
_MATCH_FRACTION = 0.7
# Upper limit of the frequency band of motions [Hz].
_BAND_HZ = 2.0
# Remaining fraction of the model's error variance after cancellation.
_REMAINING_VARIANCE = 1e-2


class Template:
    """Mean residual of runs of one motion without payload, looked up by position and velocity.

    The mean of n runs has noise density S / n; with two or more runs, S is estimated from their
    differences, after removal of friction changes between runs.

    Attributes:
        runs: Number of runs.
        missed: Number of time bins whose motion is not in the template.
        bins: Number of all time bins.
    """

    def __init__(
        self, model: FittedModel, sources: Sequence[Stream], payload_filter: PayloadFilter
    ) -> None:
        replays = [_replay(model, source, payload_filter) for source in sources]
        q, v, y = replays[0]
        self._key = np.concatenate([q, _VELOCITY_WEIGHT_S * v], 1)
        self._phase = 0
        self.bins = self.missed = 0
        self.runs = len(replays)
        total, count = y.copy(), np.ones(len(y))
        aligned_runs = []
        for source, (q_other, v_other, y_other) in zip(sources[1:], replays[1:], strict=True):
            match_phases, is_matched = self._match(q_other, v_other)
            if is_matched.mean() < _MATCH_FRACTION:
                raise RecordingError(
                    f"{source.name} is another motion than {sources[0].name}: only "
                    f"{100 * is_matched.mean():.0f} % of it agree. Templates are runs of one "
                    f"motion."
                )
            phases, first_index = np.unique(match_phases[is_matched], return_index=True)
            aligned = np.full_like(y, np.nan)
            aligned[phases] = y_other[is_matched][first_index]
            total[phases] += aligned[phases]
            count[phases] += 1.0
            aligned_runs.append(aligned)
            self._phase = 0
        self._mean_residual = total / count[:, None]
        self.bins = self.missed = 0
        density = None
        if len(replays) > 1:
            density = _run_noise_density([y, *aligned_runs], self._mean_residual, v, payload_filter)
        payload_filter.cancel_arm(_REMAINING_VARIANCE, density, self.runs)

    def _match(self, q: Array, v: Array) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
        """Phase in the template of each time bin, and whether its motion matches."""
        keys = np.concatenate([q, _VELOCITY_WEIGHT_S * v], 1)
        phases, is_matched = np.zeros(len(q), int), np.zeros(len(q), bool)
        last = len(self._key) - 1
        for i, key in enumerate(keys):
            low, high = max(self._phase - _BINS_BACK, 0), min(self._phase + _BINS_AHEAD, last)
            distances = np.abs(self._key[low : high + 1] - key).max(axis=1)
            nearest = int(distances.argmin())
            self.bins += 1
            if distances[nearest] > _MATCH_DISTANCE:
                self.missed += 1
                self._phase = min(self._phase + 1, last)
                continue
            self._phase = low + nearest
            phases[i], is_matched[i] = self._phase, True
        return phases, is_matched

    def residual(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n j"], Float[Array, " n"]]:
        """Template residual at this motion, and 1 if the motion matches, else 0."""
        phases, is_matched = self._match(q, v)
        return np.where(is_matched[:, None], self._mean_residual[phases], 0.0), is_matched.astype(
            float
        )

    @property
    def match_fraction(self) -> float:
        """Fraction of time bins found in the template."""
        return 1.0 - self.missed / max(self.bins, 1)


def _replay(
    model: FittedModel, source: Stream, payload_filter: PayloadFilter
) -> tuple[Array, Array, Array]:
    """Position, velocity and residual of a run without payload, from the start of its motion."""
    from taufit.payload.filter import PayloadFilter

    replay = PayloadFilter(
        model,
        replace(payload_filter.settings, detect_changes=False),
        gain_std=payload_filter.gain_std,
    )
    replay.residual_log = []
    for sample in source.samples():
        replay.feed(*sample)
    replay.flush()
    if not replay.residual_log:
        raise RecordingError(f"the template {source.name} is too short to be one.")
    q, v, y = (np.concatenate([part[k] for part in replay.residual_log]) for k in range(3))
    moving = np.flatnonzero(np.any(np.abs(v) > payload_filter.settings.standstill_speed, axis=1))
    if len(moving) == 0:
        raise RecordingError(f"nothing moves in the template {source.name}.")
    # Standstill before the motion has no phase.
    first = max(int(moving[0]) - 5, 0)
    return q[first:], v[first:], y[first:]


def _run_noise_density(
    runs: list[Array], mean_residual: Array, v: Array, payload_filter: PayloadFilter
) -> Float[Array, " j"]:
    """Noise density of one run, from the differences of runs in the frequency band of motions."""
    n, rate = len(runs), payload_filter.rate_hz
    out = np.zeros(v.shape[1])
    frequency = np.fft.rfftfreq(len(mean_residual), 1.0 / rate)
    band = (frequency > 0.0) & (frequency <= _BAND_HZ)
    for j in range(v.shape[1]):
        moving = np.abs(v[:, j]) > payload_filter.settings.standstill_speed
        columns = np.column_stack([np.ones(len(v)), np.sign(v[:, j]), v[:, j]])
        powers = []
        for run in runs:
            keep = moving & np.isfinite(run[:, j])
            if np.count_nonzero(keep) < rate:
                continue
            deviation = run[keep, j] - mean_residual[keep, j]
            deviation = (
                deviation - columns[keep] @ np.linalg.lstsq(columns[keep], deviation, rcond=None)[0]
            )
            padded = np.zeros(len(v))
            padded[keep] = deviation
            power = np.abs(np.fft.rfft(padded))[band] ** 2 / (rate * np.count_nonzero(keep))
            powers.append(power.mean())
        out[j] = np.mean(powers) * n / (n - 1) if powers else np.nan
    return out
