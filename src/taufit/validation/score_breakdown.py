"""A score told apart: inside the 95 % interval or not, joints that move and joints that stand.

A joint that stands while others move is held by stiction: its torque is anything up to Coulomb
friction either way, which no model predicts and no error should be called for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level, predict_interval
from taufit.model.score import Score
from taufit.signals.samples import Samples

# Samples that a share is counted over, at most.
_MAX_SAMPLES = 600
# Fewer samples than this make no figure.
_MIN_SAMPLES = 10
# A joint that stands in more of the motion than this is worth a line.
_MIN_STANDING_FRACTION = 0.02


def score_breakdown(model: FittedModel, samples: Samples, score: Score) -> Score:
    """The score with its share inside the interval, and standing joints scored apart.

    Args:
        model: Fitted.
        samples: What was scored, conditioned like its training data.
        score: Over the samples in motion.
    """
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
    """What standing joints add to the error, one line each; none where joints hardly stand."""
    if score.standing_share is None or score.standing_rmse is None:
        return []
    level: Array = coulomb_level(model)
    return [
        f"joint {j + 1} stands {100 * score.standing_share[j]:.0f} % of the motion: error there "
        f"{score.standing_rmse[j]:.3g} N m; stiction may hold up to {level[j]:.3g} N m either way"
        for j in np.flatnonzero(score.standing_share > _MIN_STANDING_FRACTION)
    ]
