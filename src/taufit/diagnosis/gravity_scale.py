"""Scale of gravity in the torque relative to the nominal robot, per joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import DiagnosisRows
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.dynamics import RegressorEngine, gravity_torque

# Nrmse above which robot and rows disagree.
SUSPICIOUS_NRMSE = 0.08
# Range of gravity scales of a well described robot.
PLAUSIBLE_SCALES = (0.5, 2.0)
# Hypotheses are compared on this many rows before the best are confirmed on all.
QUICK_ROWS = 300
# Powers of ten by which units may be wrong.
_POWERS_OF_TEN = (1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3)
# Gravity of a joint is evaluated if it varies by at least these fractions of the most loaded
# joint's and of the standard deviation of its torque.
_MIN_GRAVITY_FRACTION, _MIN_TORQUE_FRACTION = 0.2, 0.5


def gravity_scale_by_joint(rows: DiagnosisRows, links: Float[Array, " p"]) -> Float[Array, " j"]:
    """Gravity scale s of g(links) = s g(nominal) + offset, per joint; nan for small gravity.

    `links` are fitted to all joints jointly with friction, rotors and offsets and the nominal
    links as a weak prior, so only gravity is compared; the scale is one where gravity is not
    identifiable.
    """
    joints = rows.torque.shape[1]
    out = np.full(joints, np.nan)
    if not np.any(rows.robot.parameters):
        return out
    nominal = gravity_torque(rows.robot, rows.position)
    zeros = np.zeros_like(rows.position)
    fitted = RegressorEngine(rows.robot, parameters=links.ravel())
    fitted_gravity = fitted.inverse_dynamics(rows.position, zeros, zeros)
    spread = nominal.std(axis=0)
    for j in range(joints):
        keep = rows.keep[:, j]
        if np.count_nonzero(keep) < 20 or spread[j] < max(
            _MIN_GRAVITY_FRACTION * spread.max(), 1e-9
        ):
            continue
        largest_std = max(nominal[keep, j].std(), fitted_gravity[keep, j].std())
        if largest_std < _MIN_TORQUE_FRACTION * rows.torque[keep, j].std():
            continue
        x = nominal[keep, j] - nominal[keep, j].mean()
        out[j] = float(x @ fitted_gravity[keep, j] / max(float(x @ x), 1e-300))
    return out


def median_gravity_scale(scales: Float[Array, " j"]) -> float:
    """Median over the joints with a finite scale; nan if there is none."""
    finite = scales[np.isfinite(scales)]
    return float(np.median(finite)) if len(finite) else float("nan")


def gravity_scales(evidence: HypothesisTest) -> Float[Array, " j"]:
    """Gravity scale of each joint: gravity in the torque relative to the nominal robot.

    The weak prior limits links to some orders of magnitude, so powers of ten are tested in turn if
    the torque is not explained as recorded.
    """
    unchanged = evidence.unchanged_fit
    scales = gravity_scale_by_joint(evidence.rows, unchanged.links)
    if unchanged.nrmse < SUSPICIOUS_NRMSE:
        return np.where(evidence.moving_joints(evidence.rows), scales, np.nan)
    thinned = evidence.thin(QUICK_ROWS)
    best_nrmse = thinned.unchanged_fit.nrmse
    for ten in _POWERS_OF_TEN:
        rows = replace(thinned.rows, torque=thinned.rows.torque / ten)
        fit = thinned.fit(rows=rows)
        if fit.nrmse < 0.7 * best_nrmse:
            best_nrmse = fit.nrmse
            scales = ten * gravity_scale_by_joint(rows, fit.links)
    return np.where(evidence.moving_joints(evidence.rows), scales, np.nan)
