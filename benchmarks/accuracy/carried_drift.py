"""Friction tracked from run to run: UR10e runs in order of date, after a model of one early run.

Every later run is predicted by the model as it stands, with friction tracked from the start of
each run, and with the state carried from the run before. What is used at a sample was learnt from
samples before it. The scatter between runs is the typical one of the prediction interval.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ur10e_runs
from benchmarks.accuracy.real_robots import DATA
from taufit.health.tracker import FrictionDrift, interval_coverage, score_tracking, track
from taufit.model.predict import predicted_torque
from taufit.robot import read_robot
from taufit.workflow import identify
from taufit.workflow.training_data import condition_for_model

TRAINING = {
    "ur-19_12_23_free": 0.037,
    "ur-20_02_05-20sec_8harm": 0.035,
    "ur-20_02_10-30sec_12harm": 0.033,
}


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    robot, runs = read_robot(DATA / "ur10e" / "ur10e.urdf"), ur10e_runs()
    for first, target in TRAINING.items():
        model = identify(robot, [runs[first]], cutoff_hz=5.0).model
        errors: list[tuple[float, float, float]] = []
        coverage: list[float] = []
        drift: FrictionDrift | None = None
        for name in [name for name in runs if name > first]:
            samples = condition_for_model(model, [runs[name]], cutoff_hz=5.0, name=name)
            predicted = predicted_torque(model, samples)
            alone = track(model, samples, predicted=predicted)
            carried = track(model, samples, predicted=predicted, drift=drift)
            drift = carried.drift
            moving = samples.in_motion
            residual = (samples.torque - predicted)[moving]
            plain = np.sqrt(np.mean(residual**2, 0)) / samples.torque[moving].std(axis=0)
            errors.append(
                (
                    float(plain.mean()),
                    score_tracking(samples, predicted, alone).mean_nrmse,
                    score_tracking(samples, predicted, carried).mean_nrmse,
                )
            )
            coverage.append(float(interval_coverage(model, samples, carried).mean()))
        untracked, within, mean = np.mean(errors, axis=0)
        note = (
            f"{len(errors)} later runs; untracked {untracked:.4f}, within each run {within:.4f}; "
            f"{100 * min(coverage):.1f} to {100 * max(coverage):.1f} % in the interval"
        )
        yield Row(f"trained on {first}, tracked, nrmse", mean, "", f"<= {target}", note)
        label = f"trained on {first}, tracked, coverage"
        yield Row(label, 100.0 * float(np.mean(coverage)), "%", "<= 98", note)
        yield Row(f"{label} of the worst run", 100.0 * min(coverage), "%", ">= 93", note)
