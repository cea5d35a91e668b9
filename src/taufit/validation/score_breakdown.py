"""Score details: coverage of the 95 % interval, moving and standing joints.

Torque of a standing joint is stiction: any value up to Coulomb friction in either direction, which
no model predicts and which does not count as an error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level, predict_interval
from taufit.model.score import Score
from taufit.signals.samples import Samples
from taufit.validation.noise_floor import white_noise_share

# Largest number of samples for the coverage.
_MAX_SAMPLES = 600
# Smallest number of samples for a figure.
_MIN_SAMPLES = 10
# Smallest fraction of standing samples that is reported.
_MIN_STANDING_FRACTION = 0.02


def score_breakdown(model: FittedModel, samples: Samples, score: Score) -> Score:
    """Score with coverage of the interval, and separate errors of standing joints.

    Args:
        model: Fitted model.
        samples: Scored samples, conditioned like the training data.
        score: Score over the samples in motion.
    """
    if score.noise_share is None:
        score = replace(score, noise_share=white_noise_share(samples))
    rows = np.flatnonzero(samples.in_motion)
    rows = rows[:: max(1, -(-len(rows) // _MAX_SAMPLES))]
    if len(rows) < _MIN_SAMPLES:
        return score
    predicted = predict_interval(model, samples, rows)
    measured, moving_rows = samples.torque[rows], samples.keep[rows]
    error = measured - predicted.torque
    joints = samples.joints
    moving: Float[Array, " j"] = np.array(score.nrmse, float)
    standing: Float[Array, " j"] = np.zeros(joints)
    for j in range(joints):
        is_moving = moving_rows[:, j]
        torque_std = (
            measured[is_moving, j].std() if np.count_nonzero(is_moving) >= _MIN_SAMPLES else 0.0
        )
        if torque_std > 0.0 and np.isfinite(moving[j]):
            moving[j] = np.sqrt(np.mean(error[is_moving, j] ** 2)) / torque_std
        if np.any(~is_moving):
            standing[j] = np.sqrt(np.mean(error[~is_moving, j] ** 2))
    return replace(
        score,
        inside=predicted.inside(measured).mean(axis=0),
        moving_nrmse=moving,
        standing_share=np.mean(~moving_rows, axis=0),
        standing_rmse=standing,
    )


def stiction_lines(model: FittedModel, score: Score) -> list[str]:
    """Lines on the error of standing joints; empty if joints hardly stand."""
    if score.standing_share is None or score.standing_rmse is None:
        return []
    level: Array = coulomb_level(model)
    return [
        f"joint {j + 1} stands {100 * score.standing_share[j]:.0f} % of the motion: error there "
        f"{score.standing_rmse[j]:.3g} N m; stiction may hold up to {level[j]:.3g} N m either way"
        for j in np.flatnonzero(score.standing_share > _MIN_STANDING_FRACTION)
    ]
