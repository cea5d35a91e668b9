"""Recursive filters along rows: compiled kernel, else SciPy.

Importing `scipy.signal` takes half a second, so it is avoided if the kernel is available.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None


def butterworth(order: int, cutoff_hz: float, rate_hz: float) -> Float[Array, "s 6"]:
    """Second-order sections b0 b1 b2 1 a1 a2 of an even-order low-pass, each with unit DC gain.

    Analogue poles w exp(i pi (2k + N - 1)/(2N)), w prewarped, go through the bilinear transform
    z = (2 f + s)/(2 f - s); every conjugate pair makes a section with both zeros at z = -1.
    """
    if order < 2 or order % 2:
        raise ValueError("the order is even and at least 2")
    warped = 2.0 * rate_hz * np.tan(np.pi * cutoff_hz / rate_hz)
    angles = np.pi * (2.0 * np.arange(1, order // 2 + 1) + order - 1.0) / (2.0 * order)
    poles = warped * np.exp(1j * angles)
    z = (2.0 * rate_hz + poles) / (2.0 * rate_hz - poles)
    a1, a2 = -2.0 * z.real, np.abs(z) ** 2
    gain = (1.0 + a1 + a2) / 4.0
    unit = np.ones_like(a1)
    return np.stack([gain, 2.0 * gain, gain, unit, a1, a2], -1)


def resting_state(sections: Float[Array, "s 6"]) -> Float[Array, "s 2"]:
    """Steady state of unit-gain sections for constant input 1."""
    b1, b2, a1, a2 = sections[:, 1], sections[:, 2], sections[:, 4], sections[:, 5]
    second = b2 - a2
    return np.stack([b1 - a1 + second, second], -1)


def filter_rows(
    b: Float[Array, " k"],
    a: Float[Array, " k"],
    rows: Float[Array, "c n"],
    state: Float[Array, "c o"] | None = None,
) -> tuple[Float[Array, "c n"], Float[Array, "c o"]]:
    """Filter every row with b/a; return the rows and the final state. b and a equally long, a[0] =
    1.
    """
    b, a = np.ascontiguousarray(b, float), np.ascontiguousarray(a, float)
    rows = np.ascontiguousarray(rows, float)
    order = len(b) - 1
    final_state = (
        np.zeros((len(rows), order)) if state is None else np.array(state, float, order="C")
    )
    if _kernel is not None:
        out = np.empty_like(rows)
        _kernel.recursive_filter(b, a, rows, out, final_state)
        return out, final_state
    from scipy.signal import lfilter

    if order == 0:
        return b[0] * rows, final_state
    filtered, state = lfilter(b, a, rows, axis=1, zi=final_state)
    return filtered, state


def filter_sections(
    sections: Float[Array, "s 6"], rows: Float[Array, "c n"], state: Float[Array, "s c 2"]
) -> tuple[Float[Array, "c n"], Float[Array, "s c 2"]]:
    """Filter every row with a cascade of sections; return the rows and the final state."""
    after = np.empty_like(state)
    for i, section in enumerate(sections):
        rows, after[i] = filter_rows(section[:3], section[3:], rows, state[i])
    return rows, after
