"""Power spectrum of measured torque and residuals."""

from __future__ import annotations

import numpy as np
from numpy.fft import rfft, rfftfreq

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.signals.samples import Samples


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Power spectral density of measured torque and of the residuals.

    Densities integrate to variances: sum(density) * step of frequency = mean square.

    Attributes:
        frequency: Frequencies [Hz].
        measured: Power density of the conditioned torque per joint [(N m)^2/Hz].
        residual: Power density of measured less predicted torque [(N m)^2/Hz].
    """

    frequency: Float[Array, " f"]
    measured: Float[Array, "f j"]
    residual: Float[Array, "f j"]

    @property
    def median_frequency(self) -> Float[Array, " j"]:
        """Frequency below which half of the residual's power lies, per joint [Hz]."""
        total = np.cumsum(self.residual, axis=0)
        half = 0.5 * total[-1]
        index = np.argmax(total >= half, axis=0)
        return self.frequency[index]


def residual_spectrum(
    model: FittedModel, samples: Samples, *, predicted: Float[Array, "n j"] | None = None
) -> Spectrum | None:
    """Estimate the spectrum by Welch's method over the intervals in motion, up to twice the
    cut-off.

    Returns None if no run has 64 samples in motion.
    """
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
        return None
    length = min(int(8.0 * samples.rate_hz), *(len(rows) for rows in intervals))
    sums: list[Array] = []
    weight = 0
    for rows in intervals:
        for i, signal in enumerate((samples.torque, error)):
            frequency, density = welch(signal[rows], samples.rate_hz, length)
            if len(sums) <= i:
                sums.append(len(rows) * density)
            else:
                sums[i] = sums[i] + len(rows) * density
        weight += len(rows)
    maximum_hz = min(2.0 * samples.cutoff_hz, 0.5 * samples.rate_hz)
    in_band = frequency <= maximum_hz
    return Spectrum(frequency[in_band], sums[0][in_band] / weight, sums[1][in_band] / weight)


def welch(
    signal: Float[Array, "n j"], rate_hz: float, length: int
) -> tuple[Float[Array, " f"], Float[Array, "f j"]]:
    """One-sided power spectral density of each column by Welch's method.

    Sections overlap by half, without their mean and with Hann's window.

    Args:
        signal: Signal of at least `length` samples.
        rate_hz: Sampling rate [Hz].
        length: Number of samples of a section.
    """
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    starts = range(0, len(signal) - length + 1, length - length // 2)
    density = np.zeros((length // 2 + 1, signal.shape[1]))
    for start in starts:
        section = signal[start : start + length]
        density += np.abs(rfft((section - section.mean(axis=0)) * window[:, None], axis=0)) ** 2
    density *= 2.0 / (rate_hz * np.sum(window**2) * len(starts))
    density[0] /= 2.0
    if length % 2 == 0:
        density[-1] /= 2.0
    return rfftfreq(length, 1.0 / rate_hz), density
