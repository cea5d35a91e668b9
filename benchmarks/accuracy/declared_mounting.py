"""Mounting declared wrong by up to three degrees on real arms: the tilt of the base repairs it.

UR10e (one run, tested on the eight others) and Panda (first half, tested on the second). The error
of the declared mounting is in roll or pitch, of either sign. The tilt that is found less the one
found with the right mounting must be the error, within two stated standard deviations.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES, Case
from benchmarks.accuracy.real_robots import DATA
from taufit.core.arrays import Array, Float
from taufit.workflow import identify

CASES = {"UR10e": "ur10e:02_10", "Panda": "panda:50"}
ERRORS_DEG = (0.5, 1.0, 3.0)


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    for arm, name in CASES.items():
        case = next(case for case in ARM_CASES[arm]() if case.name == name)
        right, tilt, _ = _fit(case, np.zeros(2))
        for k, error_deg in enumerate(ERRORS_DEG):
            # Roll and pitch in turn, with alternating sign.
            error = np.radians(error_deg) * np.array([(1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)][k])
            value, wrong, std = _fit(case, error)
            miss = np.abs(wrong + error - tilt) / std
            note = (
                f"nrmse {value:.4f}, declared right {right:.4f}; found "
                f"{np.degrees(wrong).round(2)} of {np.degrees(tilt - error).round(2)} deg"
            )
            label = f"{arm}, mounting off by {error_deg:g} deg"
            yield Row(f"{label}, nrmse over the right one", value / right, "", "<= 1.03", note)
            yield Row(f"{label}, error over stated std", float(miss.max()), "", "<= 2", note)


def _fit(
    case: Case, error: Float[Array, " 2"]
) -> tuple[float, Float[Array, " 2"], Float[Array, " 2"]]:
    """Mean nrmse of the tests, tilt and its standard deviation [rad]."""
    roll, pitch, yaw = case.robot.mounting
    robot = case.robot.with_mounting((roll + error[0], pitch + error[1], yaw))
    done = identify(
        robot,
        [case.training],
        holdout={str(k): [test] for k, test in enumerate(case.tests)},
        cutoff_hz=case.cutoff_hz,
        ignore_contradictions=True,
    )
    tilt = done.model.training.tilt
    value = float(np.mean([score.nrmse for score in done.holdout_scores]))
    if tilt is None:
        return value, np.zeros(2), np.full(2, np.radians(1.0))
    return value, tilt.angles, tilt.std
