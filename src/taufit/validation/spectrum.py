"""Which frequencies the model leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.signals.samples import Samples


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Power of measured torque and of what is left over.

    Densities integrate to variances: sum(density) * step of frequency = mean square.

    Attributes:
        frequency: [Hz].
        measured: Power density of the conditioned torque per joint [(N m)^2/Hz].
        residual: Of measured less predicted torque.
    """

    frequency: Float[Array, " f"]
    measured: Float[Array, "f j"]
    residual: Float[Array, "f j"]

    @property
    def median_frequency(self) -> Float[Array, " j"]:
        """Frequency below which half of the residual's power lies, per joint [Hz]."""
        total = np.cumsum(self.residual, axis=0)
        half = 0.5 * total[-1]
        at = np.argmax(total >= half, axis=0)
        return self.frequency[at]


def residual_spectrum(
    model: FittedModel, samples: Samples, *, predicted: Float[Array, "n j"] | None = None
) -> Spectrum:
    """Welch's averaged periodograms over the intervals in motion, up to the low-pass."""
    from scipy.signal import welch

    if predicted is None:
        predicted = predicted_torque(model, samples)
    error = samples.torque - predicted
    moving = samples.in_motion
    intervals = [
        np.flatnonzero(moving[run]) + run.start
        for run in samples.run_slices()
        if np.count_nonzero(moving[run]) >= 64
    ]
    if not intervals:
        raise ValueError("there is too little motion for a spectrum")
    length = min(int(8.0 * samples.rate_hz), *(len(rows) for rows in intervals))
    sums: list[Array] = []
    weight = 0
    for rows in intervals:
        for i, signal in enumerate((samples.torque, error)):
            frequency, density = welch(
                signal[rows], samples.rate_hz, nperseg=length, axis=0, detrend="constant"
            )
            if len(sums) <= i:
                sums.append(len(rows) * density)
            else:
                sums[i] = sums[i] + len(rows) * density
        weight += len(rows)
    top = min(2.0 * samples.cutoff_hz, 0.5 * samples.rate_hz)
    below = frequency <= top
    return Spectrum(frequency[below], sums[0][below] / weight, sums[1][below] / weight)
