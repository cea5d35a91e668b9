"""Coarse recordings of the UR10e: velocity in steps, and a quarter of the samples.

Velocity rounded to steps of 0.02 rad/s is compared with the recorded one. At 25 Hz torque noise is
folded into the band: its size is the difference to the low-passed torque of all samples, which the
stated floor must predict from the thinned recording alone. Every run is thinned in four ways, since
one of them holds few independent samples of the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.interpolate import CubicSpline

from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES, nrmse, ur10e_runs
from benchmarks.accuracy.real_robots import DATA
from taufit.recording import Recording
from taufit.recording.row_checks import select_rows
from taufit.signals import condition
from taufit.validation.noise_floor import noise_share

STEP = 0.02
# Samples of which one is kept.
_EVERY = 4


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    ratios = []
    for case in ARM_CASES["UR10e"]():
        coarse = replace(
            case, training=_rounded(case.training), tests=tuple(map(_rounded, case.tests))
        )
        ratios.append(nrmse(coarse).mean() / nrmse(case).mean())
    note = f"three training runs, eight tests each; worst {max(ratios):.3f}"
    yield Row(
        "nrmse, velocity in steps of 0.02 rad/s over fine", np.mean(ratios), "", "<= 1.02", note
    )
    shares = np.array([_folded(run) for run in ur10e_runs().values()])
    stated, seen = shares.mean(axis=1).T
    ratio, single = stated / seen, shares[..., 0] / shares[..., 1]
    outside = np.count_nonzero((single < 0.8) | (single > 1.2))
    note = (
        f"nine runs, each thinned in four ways; single ones {single.min():.2f} to "
        f"{single.max():.2f}, {outside} of {single.size} outside"
    )
    yield Row("stated over folded noise, 25 Hz, least", ratio.min(), "", ">= 0.8", note)
    yield Row("stated over folded noise, 25 Hz, most", ratio.max(), "", "<= 1.2", note)


def _rounded(recording: Recording) -> Recording:
    assert recording.velocity is not None
    return replace(recording, velocity=np.round(recording.velocity / STEP) * STEP)


def _folded(recording: Recording) -> list[tuple[float, float]]:
    """Stated and seen noise over the torque, mean over the joints, by the first sample kept."""
    full = condition(recording, cutoff_hz=5.0)
    torque = CubicSpline(full.time, full.torque)
    out = []
    for first in range(_EVERY):
        rows = np.arange(first, len(recording), _EVERY)
        thinned = condition(select_rows(recording, rows), cutoff_hz=5.0)
        moving = thinned.in_motion
        time = thinned.time + recording.time[first] - recording.time[0]
        difference = (thinned.torque - torque(time))[moving]
        seen = np.sqrt(np.mean(difference**2, axis=0)) / thinned.torque[moving].std(axis=0)
        out.append((float(noise_share(thinned).mean()), float(seen.mean())))
    return out
