"""Zero-phase low-pass of motion, torque and regressor columns.

A Butterworth filter of order 4 is run forwards and backwards (zero phase), so its gain is

    |H(f)|^2 = 1 / (1 + (f / fc)^8),     1/2 (-6 dB) at the cut-off.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.signals.recursive_filter import butterworth, filter_sections, steady_state
from taufit.signals.samples import Samples

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

ORDER = 4


def zero_phase(
    signal: Float[Array, "n ..."],
    rate_hz: float,
    cutoff_hz: float,
    *,
    periodic: bool = False,
    out: Float[Array, "n ..."] | None = None,
) -> Float[Array, "n ..."]:
    """Low-pass along the first axis without phase shift; an infinite cut-off changes nothing.

    Args:
        signal: Signal of one run on a uniform grid. Real and imaginary parts are filtered
            separately.
        rate_hz: Rate of the grid [Hz].
        cutoff_hz: Frequency at which half of the amplitude remains [Hz].
        periodic: Treat the signal as one period; otherwise it is continued by point reflection at
            both ends.
        out: Array for the result of a real signal of 1 to 3 axes, by default a new one.
    """
    signal = np.asarray(signal)
    if not np.isfinite(cutoff_hz) or signal.size == 0:
        return np.array(signal)
    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise RecordingError(
            f"a cut-off of {cutoff_hz:g} Hz is not below half the sampling rate "
            f"({0.5 * rate_hz:g} Hz). Choose a lower cut-off, or record faster."
        )
    if np.iscomplexobj(signal):
        real = zero_phase(signal.real, rate_hz, cutoff_hz, periodic=periodic)
        return real + 1j * zero_phase(signal.imag, rate_hz, cutoff_hz, periodic=periodic)
    n = len(signal)
    if out is None:
        out = np.empty_like(signal, float)
    if _kernel is not None and not periodic and n > 1 and signal.ndim <= 3:
        # All columns side by side: their recursions run in parallel.
        sections, state = _butterworth(rate_hz, cutoff_hz)
        pad = min(_padding_length(rate_hz, cutoff_hz), n - 1)
        axes = (..., *(None,) * (3 - signal.ndim))
        _kernel.zero_phase(np.asarray(signal, float)[axes], sections, state, pad, out[axes])
        return out
    flat = np.ascontiguousarray(signal, float).reshape(n, -1)
    # Few columns at a time keep the work in the cache.
    width = max(1, 100_000 // n)
    parts = [
        _filter_columns(flat[:, start : start + width], rate_hz, cutoff_hz, periodic)
        for start in range(0, flat.shape[1], width)
    ]
    out[:] = np.concatenate(parts, axis=1).reshape(signal.shape)
    return out


def _filter_columns(
    columns: Float[Array, "n c"], rate_hz: float, cutoff_hz: float, periodic: bool
) -> Float[Array, "n c"]:
    n = len(columns)
    # Channels become rows: the recursion then runs along contiguous memory.
    rows = np.ascontiguousarray(columns.T)
    sections, state = _butterworth(rate_hz, cutoff_hz)
    padding = _padding_length(rate_hz, cutoff_hz)
    if periodic:
        pad = 2 * padding
        periodic_index = np.arange(-pad, n + pad) % n
        out = _forward_backward(sections, state, rows[:, periodic_index])[:, pad : pad + n]
    elif n < 2:
        out = rows
    else:
        pad = min(padding, n - 1)
        before = 2.0 * rows[:, :1] - rows[:, pad:0:-1]
        after = 2.0 * rows[:, -1:] - rows[:, -2 : -2 - pad : -1]
        padded = np.concatenate([before, rows, after], axis=1)
        out = _forward_backward(sections, state, padded)[:, pad : pad + n]
    return out.T


def _padding_length(rate_hz: float, cutoff_hz: float) -> int:
    """Number of samples of padding at each end."""
    return int(np.ceil(settling_time(cutoff_hz) * 4 * rate_hz))


@lru_cache(maxsize=64)
def _butterworth(
    rate_hz: float, cutoff_hz: float
) -> tuple[Float[Array, "s 6"], Float[Array, "s 2"]]:
    """Second-order sections and their state in a constant input of 1.

    Cached, because searches over friction shapes use one filter thousands of times.
    """
    sections = butterworth(ORDER, cutoff_hz, rate_hz)
    return sections, steady_state(sections)


def settling_time(cutoff_hz: float) -> float:
    """Half-width of the impulse response of the low-pass [s]; beyond it the response is below 5 %
    of its peak.

    Beyond it the impulse response stays below 5 % of its peak.
    """
    return 0.0 if not np.isfinite(cutoff_hz) else 1.0 / cutoff_hz


def lowpass(samples: Samples, columns: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """Filter further columns with the low-pass of the samples, run by run.

    The filter is linear: lowpass(C) @ x = lowpass(C @ x) for columns C.
    """
    if len(columns) != len(samples):
        raise ValueError(f"{len(columns)} rows for {len(samples)} samples")
    if not np.isfinite(samples.cutoff_hz):
        return np.array(columns)
    out = np.empty_like(columns, np.result_type(columns, float))
    for rows in samples.run_slices():
        settings = samples.rate_hz, samples.cutoff_hz
        if np.iscomplexobj(out):
            out[rows] = zero_phase(columns[rows], *settings, periodic=samples.periodic)
        else:
            zero_phase(columns[rows], *settings, periodic=samples.periodic, out=out[rows])
    return out


def dilate_mask(
    mask: Bool[Array, "n ..."], rate_hz: float, reach_s: float, *, periodic: bool = False
) -> Bool[Array, "n ..."]:
    """True within `reach_s` of any True, along the first axis."""
    reach = round(reach_s * rate_hz)
    n = len(mask)
    if reach < 1 or not mask.any():
        return np.array(mask)
    if periodic:
        periodic_index = np.arange(-reach, n + reach) % n
        return dilate_mask(mask[periodic_index], rate_hz, reach_s)[reach : reach + n]
    counts = np.zeros((n + 2 * reach + 1, *mask.shape[1:]), np.int32)
    counts[reach + 1 : reach + 1 + n] = np.cumsum(mask, axis=0, dtype=np.int32)
    counts[reach + 1 + n :] = counts[reach + n]
    return (counts[2 * reach + 1 :] - counts[:n]) > 0


def _forward_backward(sections: Array, state: Array, rows: Array) -> Array:
    state = state[:, None, :]
    out, _ = filter_sections(sections, rows, state * rows[None, :, :1])
    out, _ = filter_sections(sections, out[:, ::-1], state * out[None, :, -1:])
    return out[:, ::-1]
