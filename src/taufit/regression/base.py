"""Base parameters as estimators use them: triangle, standard ones near a guess, text."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import BaseParameters


def base_factor(base: BaseParameters, factor: Float[Array, "p p"]) -> Float[Array, "b b"]:
    """The triangle of the base parameters, from that of the standard ones."""
    return np.asarray(np.linalg.qr(factor[:, base.columns], mode="r"))


def nearest(
    base: BaseParameters,
    values: Float[Array, " b"],
    guess: Float[Array, " p"],
    scale: Float[Array, " p"],
) -> Float[Array, " p"]:
    """The parameters with these base values that are nearest to a guess, in units of scale."""
    scaled = base.mapping * scale
    step, *_ = np.linalg.lstsq(scaled, values - base.mapping @ guess, rcond=None)
    return np.asarray(guess + scale * step)


def expression(base: BaseParameters, index: int) -> str:
    """A base parameter as a sum of standard ones, e.g. "link_1.Izz + link_2.Iyy"."""
    row = base.mapping[index]
    parts = []
    for i in np.flatnonzero(np.abs(row) > 1e-9):
        size = abs(row[i])
        factor = "" if np.isclose(size, 1.0, rtol=1e-9) else f"{size:.6g} "
        parts.append(f"{'-' if row[i] < 0 else '+'} {factor}{base.parameter_names[i]}")
    return " ".join(parts).removeprefix("+ ")
