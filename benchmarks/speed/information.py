"""Information of a million samples: CPU time, and memory that does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from unittest import mock

import numpy as np

from benchmarks import Row
from benchmarks.speed.regressor import best

SCRIPT = """
import json, resource, sys, time
import numpy as np
from taufit.regression import Batch, accumulate as accumulate
from taufit.dynamics import base_parameters
from taufit.robot import read_robot
from taufit.model.torque_model import TorqueModel

name, samples, fast = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "fast"
model = TorqueModel(read_robot(name))
columns = base_parameters(model).columns
rng = np.random.default_rng(0)
part = 20_000
states = rng.normal(size=(4, part, model.robot.joints))
start = time.process_time()
found = accumulate(
    model, (Batch(*states) for _ in range(samples // part)), columns=columns, fast=fast
)
cpu = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu": cpu, "peak": peak, "p": len(columns), "count": found.count}))
"""


def measured(name: str, samples: int, how: str = "qr") -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name, str(samples), how],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def rows() -> Iterator[Row]:
    for name, target in (("ur10", "<= 3"), ("panda", "")):
        large = measured(name, 1_000_000)
        assert large["count"] == 1_000_000 * (6 if name == "ur10" else 7)
        what = f"{name}: 1e6 samples, p = {large['p']:.0f}"
        yield Row(f"{what}, QR", large["cpu"], "CPU s", target, "regressor, friction, QR")
        quick = measured(name, 1_000_000, "fast")
        yield Row(f"{what}, guarded normal equations", quick["cpu"], "CPU s", target, "fast=True")
        small = measured(name, 100_000)
        yield Row(
            f"{name}: peak memory at 1e6 against 1e5 samples",
            large["peak"] / small["peak"],
            "x",
            "<= 1.05",
            f"{large['peak'] / 1024:.0f} and {small['peak'] / 1024:.0f} MB, the whole process",
        )
    yield from long_arms()
    yield from agreement()


def long_arms() -> Iterator[Row]:
    """Arms with many joints against QR of the same columns in the same run, taken in turn."""
    from tests.dynamics.random_arms import random_arm

    from taufit.dynamics import base_parameters
    from taufit.model.torque_model import TorqueModel
    from taufit.regression import Batch, accumulate as accumulate

    settings = import_module("taufit.regression.accumulate")

    def by_qr(*arguments, **options) -> None:
        with mock.patch.object(settings, "_LONG_ARM", np.inf):
            accumulate(*arguments, **options)

    n = 20_000
    for joints in (14, 20):
        model = TorqueModel(random_arm(joints, joints))
        columns = base_parameters(model).columns
        batch = Batch(*np.random.default_rng(0).normal(size=(4, n, joints)))
        normal, qr = best(
            partial(accumulate, model, batch, columns=columns),
            partial(by_qr, model, batch, columns=columns),
            rounds=4,
            clock=time.thread_time,
        )
        note = (
            f"{1e6 * normal / n:.1f} against {1e6 * qr / n:.1f} us per sample, p = {len(columns)}"
        )
        yield Row(f"{joints} joints: information against QR", normal / qr, "x", "<= 0.6", note)


def agreement() -> Iterator[Row]:
    """Against least squares on the stacked matrix, well and badly conditioned."""
    from taufit.dynamics import base_parameters
    from taufit.model.torque_model import TorqueModel
    from taufit.regression import Batch, accumulate as accumulate
    from taufit.robot import read_robot

    model = TorqueModel(read_robot("ur10"))
    columns = base_parameters(model).columns
    rng = np.random.default_rng(1)
    n = 5000
    q, v, a = rng.normal(size=(3, n, 6))
    for label, scale, target in (("lively", 1.0, "<= 1e-10"), ("feeble", 1e-5, "<= 1e-6")):
        motion = scale * q, scale * v, scale * a
        stacked = model.regressor(*motion)[..., columns].reshape(6 * n, -1)
        size = np.linalg.norm(stacked, axis=0)
        truth = rng.normal(size=len(columns)) / size
        torque = (stacked @ truth).reshape(n, 6)
        condition = np.linalg.cond(stacked / size)
        for how in (False, True):
            found = accumulate(model, Batch(*motion, torque), columns=columns, fast=how)
            theta = np.linalg.solve(found.factor / size, found.target)
            error = float(np.abs(theta - truth * size).max() / np.abs(truth * size).max())
            yield Row(
                f"ur10: error of the parameters, {label} motion, {'fast' if how else 'QR'}",
                error,
                "",
                target,
                f"scaled columns, condition {condition:.1e}",
            )
