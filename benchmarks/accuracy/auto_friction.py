"""Automatic friction beside `--friction linear` on shared recordings, by cross-validation.

The first and the last 30 % of every recording are left out in turn.

python -m benchmarks auto_friction
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.no_false_alarm import shared
from benchmarks.clean_runs import SHARED
from taufit.recording import Recording
from taufit.robot import Robot

_LEFT_OUT, _GAP_S = 0.3, 0.5
_LEAST_S = 15.0


def folds(recording: Recording) -> Iterator[tuple[Recording, Recording]]:
    """What is fitted and what is left out."""
    from taufit.recording import crop

    total = float(recording.time[-1] - recording.time[0])
    end = (1.0 - _LEFT_OUT) * total
    yield crop(recording, None, end - _GAP_S), crop(recording, end, None)
    start = _LEFT_OUT * total
    yield crop(recording, start + _GAP_S, None), crop(recording, None, start)


def left_out(robot: Robot, recordings: Sequence[Recording], friction: str) -> float:
    """Mean nrmse on what was left out."""
    from taufit.workflow import identify

    out = []
    for pairs in zip(*(folds(one) for one in recordings), strict=True):
        rest, kept = [a for a, _ in pairs], [b for _, b in pairs]
        done = identify(
            robot, rest, holdout={"left out": kept}, friction=friction, ignore_contradictions=True
        )
        out.append(done.mean_holdout_nrmse)
    return float(np.mean(out))


def cases() -> Iterator[tuple[str, float, float]]:
    """Every recording that is long enough, with both errors."""
    for name, robot, recordings in shared():
        long = all(one.time[-1] - one.time[0] > _LEAST_S for one in recordings)
        if name in ("joint by joint", "unloaded") or "joint_" in name or not long:
            continue
        yield name, *(left_out(robot, recordings, friction) for friction in ("auto", "linear"))


def rows() -> Iterator[Row]:
    """The worst recording, and all together."""
    if not SHARED.exists():
        return
    found = list(cases())
    ratios = np.array([auto / linear for _, auto, linear in found])
    worst = found[int(np.argmax(ratios))][0]
    yield Row("automatic over linear friction, all", float(np.exp(np.mean(np.log(ratios)))), "x",
              "< 1", f"{len(found)} recordings")  # fmt: skip
    yield Row("automatic over linear friction, worst", float(ratios.max()), "x", "<= 1.0", worst)


if __name__ == "__main__":
    for case, auto, linear in cases():
        print(f"{case:<40} {auto:.4f} {linear:.4f} {auto / linear:.3f}", flush=True)
