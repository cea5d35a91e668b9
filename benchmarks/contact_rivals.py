"""Classic detectors of contact: external torque against thresholds by joint and friction state.

A momentum observer and inverse dynamics behind a causal low-pass. What each of them looks at is
measured in levels, the quantile of contact-free runs by joint and friction state; its score is the
largest over the joints. One threshold of the score is set for a rate of alarms as that of the test
for a change is: an exponential tail of the largest scores of blocks. Evidence is a square, so the
tail is one of squares here as well, which finds more contacts than one of the scores themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from taufit.contact import ExternalTorqueBlock
from taufit.contact.external_torque import observer_gain
from taufit.core.arrays import Array
from taufit.model.noise_by_state import NoiseByState
from taufit.payload.filter.causal_lowpass import CausalLowpass
from taufit.terms.friction.states import STATES

# Of inverse dynamics' low-pass [Hz].
CUTOFF = 10.0
# Of blocks whose largest values make a tail [s], and the share of them that is beyond its start.
BLOCK_S, SHARE = 2.0, 0.1


class Rival(NamedTuple):
    """A classic detector: what it looks at, and the quantile that its levels are."""

    signal: str
    quantile: float

    def __str__(self) -> str:
        return f"{self.signal}, {100 * self.quantile:.0f} % levels"


RIVALS = tuple(
    Rival(signal, quantile)
    for signal in ("momentum observer", "inverse dynamics")
    for quantile in (0.95, 0.99)
)


def signal_of(felt: ExternalTorqueBlock, rival: Rival, rate_hz: float) -> Array:
    """External torque behind the detector's own low-pass; friction is the model's, as it is."""
    torque = felt.torque + felt.drift
    if rival.signal == "momentum observer":
        response = -np.expm1(-observer_gain(CUTOFF) / rate_hz)
        return np.abs(lfilter([response], [1.0, response - 1.0], torque, axis=0))
    return np.abs(CausalLowpass(rate_hz, CUTOFF)(torque))


def levels_of(felt: Sequence[ExternalTorqueBlock], rival: Rival, noise: NoiseByState) -> Array:
    """Quantile of the signal by friction state and joint."""
    signal = np.concatenate([signal_of(one, rival, noise.rate_hz) for one in felt])
    state = np.concatenate([one.state for one in felt])
    out = np.array(noise.level)
    for k in range(len(STATES)):
        for j in range(signal.shape[1]):
            own = signal[state[:, j] == k, j]
            if len(own) > 300:
                out[k, j] = max(float(np.quantile(own, rival.quantile)), 1e-9)
    return out


def score_of(
    felt: Sequence[ExternalTorqueBlock], rival: Rival, levels: Array, rate_hz: float
) -> Array:
    """The largest of the joints, cell by cell.

    Cells in which nothing moves, or that follow an acceleration beyond the training's, do not
    count: its thresholds would be useless otherwise.
    """
    joints = np.arange(levels.shape[1])
    return np.concatenate(
        [
            np.where(
                (f.state < STATES.index("standing")).any(axis=1) & (f.max_excess <= 0.0),
                (signal_of(f, rival, rate_hz) / levels[f.state, joints]).max(axis=1),
                0.0,
            )
            for f in felt
        ]
    )


def blocks_of(values: Array, rate_hz: float) -> list[float]:
    """The largest of each block."""
    size = round(BLOCK_S * rate_hz)
    return [float(values[i : i + size].max()) for i in range(0, len(values) - size + 1, size)]


def once_per_hour(blocks: Sequence[float]) -> float:
    """Of evidence or squares: what blocks exceed once per hour, along an exponential tail."""
    start = np.quantile(blocks, 1.0 - SHARE)
    over = np.array([x - start for x in blocks if x > start])
    return float(start + over.mean() * np.log(SHARE * 3600.0 / BLOCK_S))
