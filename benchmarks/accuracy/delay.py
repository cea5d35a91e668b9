"""Delay of torque behind motion: `--delay-s auto` on delayed recordings, and the fit after it.

Pre-sliding widths and the low-pass of the estimate were chosen on simulated UR3e, UR5, UR10, KR 5,
Panda and iiwa 14 (seeds 1 to 4) and two runs of the UR10e (ur-20_01_31-unload,
ur-20_02_05-20sec_8harm); the simulated runs here have other seeds, and the real ones are all whose
file is whole.

python -m benchmarks accuracy.delay
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.clean_runs import SHARED
from taufit.recording import Recording
from taufit.robot import Robot

RUNS = SHARED / "ur10e" / "identification_data"
DELAYS_S = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08)
ARMS = ("ur3", "ur5e", "ur10e", "panda", "kr5", "iiwa14", "iiwa7", "fr3")
# Runs that are fitted too; one file is corrupt at its source, one has no target currents.
FITTED = ("ur-20_02_05-20sec_12harm", "ur-20_02_06-20sec_5harm", "ur-20_02_10-20sec_7harm")
_NOT_WHOLE = ("11_32_02", "11_28_22")


def delayed(recording: Recording, delay_s: float) -> Recording:
    """Recording with its torque later by a delay."""
    time = recording.time
    signal = [np.interp(time - delay_s, time, column) for column in recording.signal.T]
    return replace(recording, signal=np.column_stack(signal))


def simulated_run(arm: str, seed: int) -> tuple[Robot, Recording]:
    """A simulated robot with friction and noise typical of its size, and a run of it."""
    from taufit.robot import read_robot
    from taufit.sim import Twin, random_fourier

    robot = read_robot(arm)
    return robot, Twin.typical(robot).run(random_fourier(robot, seed=seed), seed=seed).recording


def rows() -> Iterator[Row]:
    """Largest error of the delay, and hold-out error against a fit with the true delay."""
    from taufit.diagnosis.torque_delay import estimate_torque_delay
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.signals import condition
    from taufit.workflow import identify

    def largest_error(robot: Robot, recording: Recording) -> float:
        return max(
            abs(estimate_torque_delay(robot, condition(delayed(recording, d))).seconds - d)
            for d in DELAYS_S
        )

    errors = {arm: largest_error(*simulated_run(arm, seed=7)) for arm in ARMS}
    worst = max(errors, key=lambda arm: errors[arm])
    yield Row("delay of 8 simulated arms, largest error", 1e3 * errors[worst], "ms", "<= 5", worst)
    if not RUNS.exists():
        return
    robot, ratios, real = read_robot("ur10e"), [], {}
    for path in sorted(RUNS.glob("*.csv.gz")):
        if any(word in path.name for word in _NOT_WHOLE):
            continue
        recording = read_recording(path, column_map="ur10e_csv")
        name = path.name.removesuffix(".csv.gz")
        real[name] = largest_error(robot, recording)
        if name not in FITTED:
            continue
        late = delayed(recording, 0.04)
        true = identify(robot, [late], holdout="30%", delay_s=0.04).mean_holdout_nrmse
        corrected = identify(robot, [late], holdout="30%", delay_s="auto").mean_holdout_nrmse
        assert true is not None and corrected is not None
        ratios.append(corrected / true)
    worst = max(real, key=lambda name: real[name])
    yield Row(f"delay of {len(real)} real UR10e runs, largest error", 1e3 * real[worst], "ms",
              "<= 5", worst)  # fmt: skip
    yield Row("hold-out error with 40 ms and auto, over the true delay", max(ratios), "",
              "<= 1.03")  # fmt: skip
