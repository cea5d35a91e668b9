"""The compiled kernel and the NumPy recursion are one regressor."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_arms import random_arm, random_states

from taufit.dynamics import (
    RegressorEngine,
    adjoint,
    batch,
    engine,
    inverse_dynamics,
    recursion,
    regressor,
    regressor_adjoint,
    regressor_tiles,
)
from taufit.robot import read_robot

needs_kernel = pytest.mark.skipif(
    batch._kernel is None, reason="taufit was installed without a compiler"
)
LAW = settings(deadline=None, derandomize=True, database=None, max_examples=40)


def engines(robot) -> dict[str, RegressorEngine]:
    """One per instruction set this processor runs."""
    out = {}
    for name in ("plain", "avx2", "avx512"):
        candidate = RegressorEngine(robot)
        try:
            candidate.kernel.use(name)
        except ValueError:
            continue
        out[name] = candidate
    return out


def close(found, expected, relative):
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())


@needs_kernel
@LAW
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(1, 12), n=st.integers(1, 21))
def test_kernel_is_numpy(seed, joints, n):
    robot = random_arm(seed, joints, helical=True)
    states = random_states(seed, n, joints)
    gradient = np.random.default_rng(seed).normal(size=(n, joints, 10 * joints))
    rows = recursion.regressor(robot, *states)
    torque = recursion.inverse_dynamics(robot, *states)
    slopes = np.stack(adjoint.regressor_adjoint(robot, *states, gradient))
    prepared = engines(robot)
    assert "plain" in prepared
    for each in prepared.values():
        close(each.regressor(*states), rows, 1e-12)
        close(each.inverse_dynamics(*states), torque, 1e-12)
        close(np.stack(each.regressor_adjoint(*states, gradient)), slopes, 1e-12)


@needs_kernel
def test_every_column_goes_where_it_is_placed():
    robot = random_arm(4, 5)
    n, first, last = 30, 3, 26
    states = random_states(4, n, 5)
    weights = np.random.default_rng(4).uniform(size=(n, 5))
    rows = recursion.regressor(robot, *states) * weights[..., None]
    rng = np.random.default_rng(5)
    place = np.full((5, 50), -1, np.int64)
    slots = rng.permutation(150)[:100]
    kept = rng.permutation([(i, c) for i in range(5) for c in range(10 * i, 50)])[:100]
    for slot, (i, c) in zip(slots, kept, strict=True):
        place[i, c] = 25 * slot
    for each in (*engines(robot).values(), RegressorEngine(robot, compiled=False)):
        out = np.full(150 * 25, np.nan)
        each.write_columns(*states, first, last, place, out, weights)
        out = out.reshape(150, 25)
        for slot, (i, c) in zip(slots, kept, strict=True):
            close(out[slot, : last - first], rows[first:last, i, c], 1e-12)
        assert np.isnan(out).sum() == out.size - 100 * (last - first)


@needs_kernel
@pytest.mark.parametrize("n", [1, 127, 300])
def test_sums_of_squares_are_those_of_the_columns(n):
    robot = random_arm(4, 3)
    states = random_states(4, n, 3)
    rng = np.random.default_rng(n)
    weights, extra = rng.uniform(size=(n, 3)), rng.normal(size=(2, n))
    rows = recursion.regressor(robot, *states) * weights[..., None]
    place, extra_rows = np.full((3, 30), -1, np.int64), np.array([6, 19])
    widths, expected, first = np.array([8, 0, 12]), [], 0
    for i, links in ((0, [3, 11, 12, 19, 25, 29]), (2, list(range(20, 30)))):
        place[i, links] = first + np.arange(len(links))
        columns = np.zeros((widths[i], n))
        columns[: len(links)] = rows[:, i, links].T
        for row, values in zip(extra_rows, extra, strict=True):
            if 0 <= row - first < widths[i]:
                columns[row - first] = values
        expected.append(columns @ columns.T)
        first += widths[i]
    for each in engines(robot).values():
        out = np.zeros(8**2 + 12**2)
        each.add_grams(*states, weights, extra, (place, extra_rows, widths), out)
        for found, gram in zip((out[:64], out[64:]), expected, strict=True):
            close(np.triu(found.reshape(gram.shape)), np.triu(gram), 1e-13)
        with pytest.raises(ValueError, match="multiples of four"):
            each.add_grams(*states, None, extra, (place, extra_rows, widths + 1), out)


@pytest.mark.parametrize("columns", [None, [3, 12, 17, 44, 59], [59, 0, 31]])
def test_tiles_are_the_regressor_without_its_zeros(columns):
    robot = random_arm(2, 6)
    states = random_states(2, 13, 6)
    rows = regressor(robot, *states)
    wanted = range(60) if columns is None else columns
    for i, (which, tile) in enumerate(
        regressor_tiles(robot, *states, columns=None if columns is None else np.array(columns))
    ):
        np.testing.assert_array_equal(tile.T, rows[:, i, which])
        assert not np.any(rows[:, i, sorted(set(wanted) - set(which.tolist()))])


def test_threads_share_the_work_and_change_nothing():
    robot = random_arm(8, 6)
    states = random_states(8, 3001, 6)
    gradient = np.random.default_rng(8).normal(size=(3001, 6, 60))
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(
            regressor(robot, *states, threads=threads), regressor(robot, *states)
        )
        np.testing.assert_array_equal(
            inverse_dynamics(robot, *states, threads=threads), inverse_dynamics(robot, *states)
        )
        for one, many in zip(
            regressor_adjoint(robot, *states, gradient),
            regressor_adjoint(robot, *states, gradient, threads=threads),
            strict=True,
        ):
            np.testing.assert_array_equal(one, many)


@pytest.mark.unchecked
@needs_kernel
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_memory_used_again_is_filled_whole(shift):
    # Above 16 MB the kernel writes past the caches, a line at a time wherever the array begins.
    robot = random_arm(1, 10)
    n = 2100 + shift
    states = random_states(1, n, 10)
    memory = np.full(n * 1000 + shift, np.nan)
    out = memory[shift:].reshape(n, 10, 100)
    expected = regressor(robot, *states)
    for each in engines(robot).values():
        out.fill(np.nan)
        assert each.regressor(*states, out=out) is out
        close(out, expected, 1e-12)
        assert np.all(np.isnan(memory[:shift]))
    with pytest.raises(TypeError):
        RegressorEngine(robot).regressor(*states, out=np.empty((10, n, 100)).swapaxes(0, 1))
    with pytest.raises(ValueError):
        RegressorEngine(robot).regressor(*states, out=np.empty((n - 1, 10, 100)))


@needs_kernel
@pytest.mark.parametrize("scale", [1e2, 9e4, 1e5, 1e9, 1e300])
def test_angles_of_many_turns_keep_their_sine(scale):
    # Axes along z have a pitch of exactly zero; rounding gives slanted ones 1e-17, which so many
    # turns would add up.
    robot = read_robot("panda")
    q, v, a = random_states(5, 64, 7)
    rows = recursion.regressor(robot, q * scale, v, a)
    for each in engines(robot).values():
        close(each.regressor(q * scale, v, a), rows, 1e-12)


@needs_kernel
def test_what_is_not_finite_stays_in_its_sample():
    robot = random_arm(6, 4)
    q, v, a = random_states(6, 11, 4)
    clean = regressor(robot, q, v, a)
    q[4, 1], v[7, 0], a[9, 3] = np.nan, np.inf, np.nan
    fine = [i for i in range(11) if i not in (4, 7, 9)]
    for each in engines(robot).values():
        found = each.regressor(q, v, a)
        close(found[fine], clean[fine], 1e-12)
        for sample in (4, 7, 9):
            assert not np.all(np.isfinite(found[sample]))


def test_single_samples_are_rows_of_the_batch():
    robot = random_arm(9, 7)
    q, v, a = random_states(9, 5, 7)
    rows = regressor(robot, q, v, a)
    for each in (RegressorEngine(robot), RegressorEngine(robot, compiled=False)):
        out = np.empty((7, 70))
        for k in range(5):
            assert each.regressor_once(q[k], v[k], a[k], out) is out
            close(out, rows[k], 1e-12)
            close(each.regressor_once(q[k], v[k], a[k]), rows[k], 1e-12)


def test_engine_without_kernel_gives_the_same():
    robot = random_arm(10, 6)
    states = random_states(10, 9, 6)
    gradient = np.random.default_rng(0).normal(size=(9, 6, 60))
    clear, fast = RegressorEngine(robot, compiled=False), RegressorEngine(robot)
    assert not clear.compiled
    close(clear.regressor(*states), fast.regressor(*states), 1e-12)
    out = np.empty((9, 6, 60))
    assert clear.regressor(*states, out=out) is out
    close(out, fast.regressor(*states), 1e-12)
    close(clear.inverse_dynamics(*states), fast.inverse_dynamics(*states), 1e-12)
    for x, y in zip(
        clear.regressor_adjoint(*states, gradient),
        fast.regressor_adjoint(*states, gradient),
        strict=True,
    ):
        close(x, y, 1e-12)


def test_gravity_can_be_replaced():
    robot = random_arm(11, 5)
    states = random_states(11, 4, 5)
    moon = np.array([0.3, -0.2, -1.62])
    expected = recursion.inverse_dynamics(robot, *states, gravity=moon)
    close(inverse_dynamics(robot, *states, gravity=moon), expected, 1e-12)
    for compiled in (None, False):
        each = RegressorEngine(robot, gravity=moon, compiled=compiled)
        close(each.regressor(*states) @ robot.parameters, expected, 1e-12)


def test_prepared_engine_follows_the_robot_not_its_name():
    robot = random_arm(12, 4)
    states = random_states(12, 3, 4)
    assert engine(robot) is engine(robot)
    heavier = robot.with_parameters(2.0 * robot.parameters)
    close(inverse_dynamics(heavier, *states), 2.0 * inverse_dynamics(robot, *states), 1e-12)
    turned = robot.with_mounting("ceiling")
    close(inverse_dynamics(turned, *states), recursion.inverse_dynamics(turned, *states), 1e-12)


@pytest.mark.unchecked
def test_any_memory_layout_and_type_will_do():
    robot = random_arm(13, 3)
    q, v, a = random_states(13, 8, 3)
    expected = regressor(robot, q, v, a)
    np.testing.assert_array_equal(regressor(robot, np.asfortranarray(q), v, a), expected)
    wide = np.repeat(q, 2, axis=1)
    np.testing.assert_array_equal(regressor(robot, wide[:, ::2], v, a), expected)
    np.testing.assert_array_equal(regressor(robot, q.tolist(), v, a), expected)
    whole = np.ones((2, 3), dtype=np.int32)
    close(
        regressor(robot, whole, whole, whole),
        recursion.regressor(robot, *[np.ones((2, 3))] * 3),
        1e-12,
    )
    assert regressor(robot, q[:0], v[:0], a[:0]).shape == (0, 3, 30)


@pytest.mark.unchecked
@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (3,), (1, 4, 3)])
def test_wrong_shapes_are_named(shape):
    robot = random_arm(14, 3)
    good = np.zeros((4, 3))
    with pytest.raises(ValueError, match="3 joints"):
        regressor(robot, np.zeros(shape), good, good)
    with pytest.raises(ValueError, match="3 joints"):
        inverse_dynamics(robot, good, good, np.zeros(shape))


@needs_kernel
@pytest.mark.parametrize("seed", range(5))
def test_compiled_poses_are_those_of_the_recursion(seed):
    robot = random_arm(seed, 5)
    q = random_states(seed, 7, 5)[0]
    found = RegressorEngine(robot).forward_kinematics(q)
    expected = recursion.forward_kinematics(robot, q)
    np.testing.assert_allclose(found, expected, atol=1e-13 * (1 + abs(q).max()))


@needs_kernel
def test_python_runs_while_the_kernel_does():
    robot = random_arm(15, 7)
    states = random_states(15, 40000, 7)
    out = np.empty((40000, 7, 70))
    each = RegressorEngine(robot)
    done = threading.Event()
    ticks = 0

    def work() -> None:
        for _ in range(10):
            each.regressor(*states, out=out)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
    thread.join()
    # With the lock held throughout, this thread would get a turn about once per call.
    assert ticks > 100
