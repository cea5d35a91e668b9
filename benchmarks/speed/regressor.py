"""The batch regressor against a Pinocchio loop in Python, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from benchmarks import Row
from benchmarks.pinocchio_arm import arrays_of, pinocchio_model
from taufit.dynamics import RegressorEngine, regressor
from taufit.robot import read_robot


def best(*work: Callable[[], object], rounds: int, clock: Callable[[], float]) -> list[float]:
    """Least time of each, taken in turn so that a busy machine slows them alike.

    Each is repeated for a twentieth of a second: clocks of processor time may tick coarsely.
    """
    times = [np.inf] * len(work)
    for _ in range(rounds):
        for i, each in enumerate(work):
            start, spent, count = clock(), 0.0, 0
            while spent < 0.05:
                each()
                count += 1
                spent = clock() - start
            times[i] = min(times[i], spent / count)
    return times


def rows() -> Iterator[Row]:
    if find_spec("pinocchio") is None:
        yield Row("skipped: Pinocchio is not installed", 0.0, note="extra: pinocchio")
        return
    for name in ("ur10", "panda"):
        yield from _arm(name)


def _arm(name: str) -> Iterator[Row]:
    import pinocchio as pin

    cpu, wall = time.process_time, time.perf_counter
    robot = read_robot(name)
    model = pinocchio_model(arrays_of(robot))
    data = model.createData()
    j = robot.joints
    rng = np.random.default_rng(0)
    n = 100_000
    q = rng.uniform(-np.pi, np.pi, (n, j))
    v, a = rng.normal(size=(2, n, j))

    def loop(count: int, out: np.ndarray | None = None) -> np.ndarray | None:
        for k in range(count):
            y = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
            if out is not None:
                out[k] = y
        return out

    few = 256
    check = regressor(robot, q[:few], v[:few], a[:few])
    theta = robot.parameters
    expected = np.stack([pin.rnea(model, data, q[k], v[k], a[k]) for k in range(few)])
    agreement = float(np.abs(check @ theta - expected).max() / np.abs(expected).max())
    yield Row(f"{name}: torque differs from Pinocchio's", agreement, "", "<= 1e-9", "relative")

    prepared = RegressorEngine(robot)
    buffer = np.empty((few, j, 10 * j))

    def batches() -> None:
        for _ in range(20):
            prepared.regressor(q[:few], v[:few], a[:few], out=buffer)

    ours, theirs = best(batches, lambda: loop(20 * few), rounds=9, clock=cpu)
    unit = 1e6 / (20 * few)
    note = f"{ours * unit:.3f} against {theirs * unit:.2f} us per sample, N = {few}"
    engine = prepared.kernel.instructions if prepared.compiled else "NumPy"
    yield Row(f"{name}: in cache, {engine}", theirs / ours, "x", ">= 12", note)

    for instructions in ("plain", "avx2", "avx512") if prepared.compiled else ():
        try:
            prepared.kernel.use(instructions)
        except ValueError:  # not on this processor
            continue
        (each,) = best(batches, rounds=9, clock=cpu)
        yield Row(f"{name}: in cache, {instructions}, per sample", each * unit, "us")

    ours, theirs = best(
        lambda: regressor(robot, q, v, a),
        lambda: loop(n, np.empty((n, j, 10 * j))),
        rounds=5,
        clock=cpu,
    )
    note = f"{ours / n * 1e6:.3f} against {theirs / n * 1e6:.2f} us, both fill fresh memory"
    yield Row(f"{name}: N = 1e5, dense, one thread", theirs / ours, "x", ">= 5", note)

    again = np.empty((n, j, 10 * j))
    again.fill(0.0)
    (ours,) = best(lambda: regressor(robot, q, v, a, out=again), rounds=5, clock=cpu)
    note = f"{ours / n * 1e6:.3f} us per sample with out="
    yield Row(f"{name}: N = 1e5, dense, memory used again", theirs / ours, "x", "", note)

    one, two = best(
        lambda: regressor(robot, q, v, a, threads=1, out=again),
        lambda: regressor(robot, q, v, a, threads=2, out=again),
        rounds=40,
        clock=wall,
    )
    note = f"wall time, {one / n * 1e6:.3f} and {two / n * 1e6:.3f} us per sample"
    yield Row(f"{name}: N = 1e5, two threads against one", one / two, "x", "> 1", note)

    one, two = best(
        lambda: regressor(robot, q, v, a, threads=1),
        lambda: regressor(robot, q, v, a, threads=2),
        rounds=7,
        clock=time.thread_time,
    )
    note = "CPU time of the calling thread; wall time needs two idle cores to show it"
    yield Row(f"{name}: share left to one of two threads", two / one, "x", "<= 0.6", note)

    gradient = rng.normal(size=(few, j, 10 * j))
    states = q[:few].copy(), v[:few].copy(), a[:few].copy()
    clear = RegressorEngine(robot, compiled=False)
    single = [x[0].copy() for x in states]
    out = np.empty((j, 10 * j))
    adjoint, torque, once, numpy = best(
        lambda: [prepared.regressor_adjoint(*states, gradient) for _ in range(10)],
        lambda: [prepared.inverse_dynamics(*states) for _ in range(10)],
        lambda: [prepared.regressor_once(*single, out) for _ in range(1000)],
        lambda: clear.regressor(*states),
        rounds=7,
        clock=cpu,
    )
    unit = 1e6 / (10 * few)
    yield Row(f"{name}: adjoint", adjoint * unit, "us", "", f"per sample, N = {few}")
    yield Row(f"{name}: inverse dynamics", torque * unit, "us", "", f"per sample, N = {few}")
    yield Row(f"{name}: one sample, one call", once * 1e3, "us", "< 5", "prepared Engine")
    yield Row(f"{name}: NumPy recursion", numpy / few * 1e6, "us", "", "without the kernel")
