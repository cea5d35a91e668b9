"""Fits to magnitudes against the least error any unbiased fit to magnitudes can have.

Errors are in units of the Cramer-Rao bound of their own recording, so that all recordings count
alike. "Against its bound" divides the ratio of the maximum-likelihood fit to the least-squares fit
with signs (same noise, nothing else in either) by the ratio of the two bounds: what both have in
common, the luck of the noise, cancels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.unknown_signs import errors_of, least_errors, paired_ratio
from benchmarks.sign_instances import Instance, instance
from taufit.core.arrays import Array, Float
from taufit.estimators import ConsistentSdp
from taufit.signs.quadratic_form import joint_rows
from taufit.signs.unknown_signs import find_signs, fit_unsigned

NOISES = (0.05, 0.1, 0.2, 0.3)
# Seeds nothing else uses.
FIRST, SEEDS = 5000, 300


def least_squares(case: Instance) -> Float[Array, " p"]:
    """Weighted least squares had the signs been recorded, at the true noise levels."""
    s = case.samples
    weight = np.broadcast_to(1.0 / case.noise, case.torque.shape)
    rows = joint_rows(case.model.regressor(s.position, s.velocity, s.acceleration), weight)
    normal = rows.gram(weight)
    values = np.zeros(len(case.model.names))
    values[rows.parameters] = np.linalg.solve(normal, rows.project(case.measured * weight**2))
    return values


def paired_errors(
    noise: float, friction: bool, seeds: range
) -> tuple[Float[Array, "s 3 2"], Float[Array, "s 2 2"]]:
    """Errors of the likelihood fit, of the least-squares fit with signs and of the consistent fit,
    and the least mean squares without and with signs."""
    found, least = [], []
    for seed in seeds:
        case = instance(seed, noise=noise, friction=friction)
        likely = find_signs(case.model, case.samples).values
        consistent = fit_unsigned(case.model, case.samples, estimator=ConsistentSdp()).values
        found.append([errors_of(case, x) for x in (likely, least_squares(case), consistent)])
        least.append(least_errors(case))
    return np.array(found), np.array(least)


def rows() -> Iterator[Row]:
    for friction in (False, True):
        for noise in NOISES:
            found, least = paired_errors(noise, friction, range(FIRST, FIRST + SEEDS))
            unit = np.sqrt(least[:, 1])
            bound = np.sqrt(np.mean(least[:, 0] / least[:, 1], 0))
            ratio, interval = paired_ratio(found[:, 0] / unit, found[:, 1] / unit)
            own = np.sqrt(least[:, 0])
            plain = np.sqrt(np.mean((found / own[:, None]) ** 2, 0))
            label = f"{100 * noise:.0f} % noise, {'friction' if friction else 'no friction'}"
            for k, what in enumerate(("coefficients", "torque")):
                yield Row(
                    f"{what} against its bound, {label}",
                    float(ratio[k] / bound[k]),
                    "x",
                    "<= 1.03",
                    f"{SEEDS} paired seeds, 90 % interval {interval[0, k] / bound[k]:.3f}-"
                    f"{interval[1, k] / bound[k]:.3f}; bound {bound[k]:.3f} x that with signs; "
                    f"error in units of the bound {plain[0, k]:.3f}, physically consistent fit "
                    f"{plain[2, k]:.3f}",
                )
