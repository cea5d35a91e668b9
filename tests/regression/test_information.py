"""Information is the whole of a least-squares problem, adds up, and is accumulated tile by tile."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.dynamics.random_arms import random_arm

from taufit.core.errors import RecordingError
from taufit.dynamics import base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.regression.accumulate import (
    FAST_CONDITION,
    Batch,
    _TileAccumulator,
    accumulate,
    accumulate_by_joint,
)
from taufit.regression.information import Information
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.terms import TermInput
from taufit.terms.friction import FRICTION_MODELS, Linear, Polynomial

LAW = settings(deadline=None, derandomize=True, database=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def same(found: Information, expected: Information, relative: float = 1e-10) -> None:
    """Equal as quadratic functions of the parameters: R'R, R'z and the constant."""
    assert found.names == expected.names
    assert found.count == expected.count
    assert not np.any(np.tril(found.factor, -1))
    for each in (found, expected):
        assert np.all(np.isfinite(each.factor))
    gram = expected.factor.T @ expected.factor
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    np.testing.assert_allclose(
        (found.factor / size).T @ (found.factor / size),
        gram / np.outer(size, size),
        rtol=0,
        atol=relative,
    )
    total = expected.target @ expected.target + expected.residual
    assert found.cost(np.zeros(len(size))) == pytest.approx(total, rel=relative)
    np.testing.assert_allclose(
        (found.factor / size).T @ found.target,
        (expected.factor / size).T @ expected.target,
        rtol=0,
        atol=relative * np.sqrt(total),
    )
    # Where columns depend on each other, part of the residual stands in z beside an empty row of R.
    if len(size) == 0 or np.linalg.cond(expected.factor / size) < 1e6:
        assert found.residual == pytest.approx(expected.residual, rel=1e-8, abs=relative * total)


@LAW
@given(seed=SEEDS, p=st.integers(1, 12), r=st.integers(0, 60), rank=st.integers(1, 12))
def test_cost_is_the_sum_of_squares(seed, p, r, rank):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(r, min(rank, p))) @ rng.normal(size=(min(rank, p), p))
    values, theta = rng.normal(size=r), rng.normal(size=p)
    information = Information.from_rows(tuple(map(str, range(p))), rows, values)
    expected = np.sum((values - rows @ theta) ** 2)
    assert information.cost(theta) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert information.count == r
    assert not np.any(np.tril(information.factor, -1))


@LAW
@given(seed=SEEDS, p=st.integers(1, 9), cut=st.integers(0, 40))
def test_information_adds_up(seed, p, cut):
    rng = np.random.default_rng(seed)
    names = tuple(map(str, range(p)))
    rows, values = rng.normal(size=(40, p)), rng.normal(size=40)
    whole = Information.from_rows(names, rows, values)
    parts = [
        Information.from_rows(names, rows[:cut], values[:cut]),
        Information.from_rows(names, rows[cut:], values[cut:]),
    ]
    same(parts[0] + parts[1], whole)
    same(parts[1] + parts[0], whole)
    same(whole + Information.empty(names), whole)
    same(parts[0].with_rows(rows[cut:], values[cut:]), whole)


def test_many_rows_are_folded_in_intervals():
    rng = np.random.default_rng(0)
    rows, values = rng.normal(size=(9000, 5)), rng.normal(size=9000)
    names = tuple("abcde")
    same(
        Information.from_rows(names, rows, values),
        Information.from_rows(names, np.linalg.qr(rows, mode="r"), np.linalg.qr(rows)[0].T @ values)
        + Information(
            names,
            np.zeros((5, 5)),
            np.zeros(5),
            float(values @ values - np.sum((np.linalg.qr(rows)[0].T @ values) ** 2)),
            8995,
        ),
    )


def test_only_the_same_parameters_add_up():
    with pytest.raises(ValueError, match="same parameters"):
        Information.empty(("a",)) + Information.empty(("b",))


def test_a_triangle_keeps_what_normal_equations_lose():
    """With columns 1e-9 apart R'R is singular in doubles; R is not."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=200)
    rows = np.stack([column, column + 1e-9 * rng.normal(size=200)], 1)
    theta = np.array([3.0, -2.0])
    information = Information.from_rows(("a", "b"), rows, rows @ theta)
    found = np.linalg.solve(information.factor, information.target)
    np.testing.assert_allclose(found, theta, rtol=1e-5)


def problem(name: str = "ur10", n: int = 300, seed: int = 0, **settings_) -> tuple:
    model = TorqueModel(read_robot(name), **settings_)
    rng = np.random.default_rng(seed)
    j = model.robot.joints
    return model, Batch(*(rng.normal(size=(n, j)) for _ in range(4)))


def stacked(model: TorqueModel, batch: Batch, columns=None) -> Information:
    """The same in one piece: dense rows, weights and whitening as their definition says."""
    rows = model.regressor(
        batch.position,
        batch.velocity,
        batch.acceleration,
        load=batch.load,
        temperature=batch.temperature,
    )
    torque = batch.torque
    if batch.friction is not None:
        rows[..., model.layout.drive] = model.columns.to_joints(batch.friction)
    count = torque.size
    if batch.weights is not None:
        rows = rows * batch.weights[..., None]
        torque = np.where(batch.weights == 0.0, 0.0, torque * batch.weights)
        count = np.count_nonzero(batch.weights)
    if batch.whitening is not None:
        whitening = np.broadcast_to(batch.whitening, (len(rows), *batch.whitening.shape[-2:]))
        rows = whitening @ rows
        torque = np.einsum("nik,nk->ni", whitening, torque)
    columns = np.arange(len(model.names)) if columns is None else columns
    names = tuple(model.names[c] for c in columns)
    return replace(
        Information.from_rows(
            names, rows[..., columns].reshape(torque.size, len(columns)), torque.reshape(-1)
        ),
        count=count,
    )


@pytest.mark.parametrize("name", ["ur10", "panda", "kr5"])
@pytest.mark.parametrize("fast", [False, True])
def test_accumulated_is_stacked(name, fast):
    model, batch = problem(name)
    base = base_parameters(model)
    for columns in (None, base.columns, np.sort(base.columns), np.array([], int)):
        same(
            accumulate(model, batch, columns=columns, fast=fast, tile=64),
            stacked(model, batch, columns),
        )


@pytest.mark.parametrize("fast", [False, True])
def test_weights_whitening_and_ready_made_friction_enter(fast):
    model, batch = problem("ur5e", n=250, seed=3)
    columns = base_parameters(model).columns
    rng = np.random.default_rng(4)
    weights = rng.uniform(0.5, 2.0, (250, 6)) * (rng.random((250, 6)) > 0.2)
    friction = rng.normal(size=(250, 6, 2))
    for each in (
        replace(batch, weights=weights),
        replace(batch, whitening=rng.normal(size=(6, 6))),
        replace(batch, whitening=np.triu(rng.normal(size=(6, 6)))),
        replace(batch, whitening=rng.normal(size=(250, 6, 6)), weights=weights),
        replace(batch, friction=friction),
        replace(batch, friction=friction, weights=weights, whitening=rng.normal(size=(6, 6))),
    ):
        same(
            accumulate(model, each, columns=columns, fast=fast, tile=100),
            stacked(model, each, columns),
        )


@pytest.mark.parametrize("friction", sorted(FRICTION_MODELS))
def test_every_friction_model_enters(friction):
    model, batch = problem("ur3", friction=FRICTION_MODELS[friction]())
    rng = np.random.default_rng(1)
    batch = replace(
        batch,
        load=20.0 * rng.normal(size=batch.torque.shape),
        temperature=rng.uniform(20.0, 50.0, batch.torque.shape),
    )
    if model.friction.memory:
        with pytest.raises(ValueError, match="has a memory"):
            accumulate(model, batch)
        inputs = TermInput(batch.velocity, load=batch.load, step=0.01)
        batch = replace(batch, friction=model.columns.drive_columns(inputs))
    same(accumulate(model, batch, tile=128), stacked(model, batch))


def test_coupled_motors_reach_the_joints_they_drive():
    model, batch = problem("ur5", friction=Polynomial())
    coupling = np.eye(6)
    coupling[5, 4], coupling[3, 4] = 1.0, -0.5
    robot = replace(model.robot, drives=replace(model.robot.drives, coupling=coupling))
    model = replace(model, robot=robot)
    for each in (batch, replace(batch, whitening=np.random.default_rng(0).normal(size=(6, 6)))):
        same(accumulate(model, each, tile=77), stacked(model, each))


@pytest.mark.parametrize("rotor_inertia", [True, False])
@pytest.mark.parametrize("friction", [None, Linear()])
@pytest.mark.parametrize("offset", [True, False])
def test_every_part_of_a_model_may_be_missing(rotor_inertia, friction, offset):
    model, batch = problem("ur3e", friction=friction, rotor_inertia=rotor_inertia, offset=offset)
    same(accumulate(model, batch), stacked(model, batch))


def test_batches_and_tiles_of_any_size_give_one_result():
    model, batch = problem("ur10", n=501)
    columns = base_parameters(model).columns
    whole = stacked(model, batch, columns)
    parts = [
        Batch(
            *(
                getattr(batch, name)[cut]
                for name in ("position", "velocity", "acceleration", "torque")
            )
        )
        for cut in (slice(0, 0), slice(0, 7), slice(7, 300), slice(300, 501))
    ]
    for tile in (1, 33, 501, 4096):
        same(accumulate(model, batch, columns=columns, tile=tile), whole)
    for fast in (False, True):
        same(accumulate(model, iter(parts), columns=columns, fast=fast), whole)
    mixed = [replace(part, whitening=np.eye(6) if i % 2 else None) for i, part in enumerate(parts)]
    same(accumulate(model, mixed, columns=columns), whole)
    each = [accumulate(model, part, columns=columns) for part in parts]
    same(each[0] + each[1] + each[2] + each[3], whole)
    same(accumulate(model, [], columns=columns), Information.empty(whole.names))


def test_joints_tell_apart_and_sum_up():
    model, batch = problem("panda")
    columns = base_parameters(model).columns
    weights = np.ones(batch.torque.shape)
    for i, part in enumerate(accumulate_by_joint(model, batch, columns=columns)):
        only = np.zeros_like(weights)
        only[:, i] = 1.0
        same(part, stacked(model, replace(batch, weights=only), columns))


def joints_with_gram(model: TorqueModel, batch: Batch, columns, *, fast: bool = True) -> list[int]:
    accumulator = _TileAccumulator(model, columns, 128, fast=fast)
    accumulator.add(batch)
    equations = accumulator.factors[False].gram_matrices
    return [] if equations is None else sorted(equations.grams)


def test_memory_of_normal_equations_is_free_without_the_garbage_collector():
    model, batch = problem("ur10", n=400)
    accumulator = _TileAccumulator(model, base_parameters(model).columns, 128, fast=True)
    accumulator.add(batch)
    layout = weakref.ref(accumulator.factors[False])
    assert layout().gram_matrices is not None
    accumulator.by_joint()
    gc.disable()
    try:
        del accumulator
        assert layout() is None
    finally:
        gc.enable()


def test_normal_equations_are_used_only_where_they_hold():
    model, batch = problem("ur10", n=400)
    columns = base_parameters(model).columns
    assert joints_with_gram(model, batch, columns) == [0, 1, 2, 3, 4, 5]
    # All columns include some that depend on others, which is as good.
    assert joints_with_gram(model, batch, None) == [0, 1, 2, 3, 4, 5]
    same(accumulate(model, batch, fast=True), stacked(model, batch))
    # A motion that hardly moves leaves its columns nearly dependent.
    still = replace(batch, position=1e-7 * batch.position, velocity=1e-7 * batch.velocity)
    scaled = stacked(model, still, columns).factor
    scaled = scaled / np.linalg.norm(scaled, axis=0)
    assert np.linalg.cond(scaled) > FAST_CONDITION
    assert 0 not in joints_with_gram(model, still, columns)
    same(accumulate(model, still, columns=columns, fast=True), stacked(model, still, columns))


def test_long_arms_use_normal_equations_where_they_hold_and_others_do_not():
    model, batch = problem("panda", n=400)
    assert not joints_with_gram(model, batch, base_parameters(model).columns, fast=False)
    robot = random_arm(5, 14)
    model = TorqueModel(robot)
    columns = base_parameters(model).columns
    rng = np.random.default_rng(6)
    batch = Batch(*rng.normal(size=(4, 600, 14)))
    assert joints_with_gram(model, batch, columns, fast=False) == list(range(14))
    # Motion that hardly moves: alone it needs QR, not beside other motion.
    still = replace(batch, position=1e-6 * batch.position, velocity=1e-6 * batch.velocity)
    assert not set(range(7)) & set(joints_with_gram(model, still, columns, fast=False))
    for batches in ([batch], [still, batch], [batch, still, batch]):
        parts = accumulate_by_joint(model, batches, columns=columns)
        for joint, part in enumerate(parts):
            weights = np.zeros((600, 14))
            weights[:, joint] = 1.0
            expected = sum(
                (stacked(model, replace(each, weights=weights), columns) for each in batches),
                Information.empty(part.names),
            )
            same(part, expected)


def test_dropped_rows_may_hold_anything():
    model, batch = problem("ur10", n=50)
    weights = np.ones((50, 6))
    weights[7, 2] = 0.0
    torque = batch.torque.copy()
    torque[7, 2] = np.nan
    for fast in (False, True):
        found = accumulate(
            model, replace(batch, torque=torque, weights=weights), columns=[9, 66], fast=fast
        )
        same(found, stacked(model, replace(batch, weights=weights), np.array([9, 66])))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("quantity", ["position", "velocity", "acceleration", "torque"])
def test_what_is_not_finite_is_named(quantity, fast):
    model, batch = problem("ur10", n=50)
    values = getattr(batch, quantity).copy()
    values[31, 4] = np.nan
    with pytest.raises(RecordingError, match=f"{quantity} of joint 5 .* sample 31"):
        accumulate(model, replace(batch, **{quantity: values}), columns=[9, 66, 52], fast=fast)


@pytest.mark.unchecked
def test_wrong_shapes_and_columns_are_named():
    model, batch = problem("ur10", n=5)
    with pytest.raises(ValueError, match="torque must be"):
        accumulate(model, replace(batch, torque=np.zeros((4, 6))))
    with pytest.raises(ValueError, match="friction must be"):
        accumulate(model, replace(batch, friction=np.zeros((5, 6, 3))))
    with pytest.raises(ValueError, match="twice"):
        accumulate(model, batch, columns=[3, 3])


def test_samples_make_a_batch():
    model, batch = problem("ur10", n=60)
    samples = Samples.from_arrays(batch.position, batch.velocity, batch.acceleration, batch.torque)
    keep = samples.keep.copy()
    keep[::3, 1] = False
    found = accumulate(model, Batch.from_samples(replace(samples, keep=keep)))
    same(found, stacked(model, replace(batch, weights=keep.astype(float))))


@pytest.mark.unchecked
def test_memory_does_not_grow_with_the_samples():
    model, _ = problem("ur10")
    columns = base_parameters(model).columns
    rng = np.random.default_rng(0)
    states = rng.normal(size=(4, 1000, 6))

    gc.collect()
    gc.freeze()  # what other tests have left is not looked at again

    def batches(count: int):
        for _ in range(count):
            gc.collect()  # the check of annotations leaves cycles of objects behind
            yield Batch(*states)

    def peak(count: int) -> int:
        tracemalloc.start()
        accumulate(model, batches(count), columns=columns, tile=256)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(24)  # first calls fill caches
    assert peak(24) < 1.05 * peak(3)
