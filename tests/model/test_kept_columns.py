"""Friction columns kept with samples are the columns made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.signals.samples import Samples
from taufit.signals.storage.column_cache import ColumnCache, FileColumnCache
from taufit.terms import Ripple, sum_of
from taufit.terms.friction import FRICTION_MODELS, Presliding, TemperatureDependent

MODELS = [
    *(made() for made in FRICTION_MODELS.values()),
    sum_of(Presliding(), Ripple((1.0, 2.0))),
    TemperatureDependent(Presliding(), affected=("coulomb", "load")),
    sum_of(TemperatureDependent(Presliding()), Ripple()),
]


def samples(joints: int = 6, n: int = 400) -> Samples:
    rng = np.random.default_rng(3)
    q, v, a, tau = np.cumsum(rng.normal(size=(4, n, joints)), axis=1) / 30.0
    made = Samples.from_arrays(q, v, a, tau, rate_hz=100.0)
    run = np.repeat([0, 1], [150, n - 150])
    temperature = 25.0 + 10.0 * rng.uniform(size=(n, joints))
    names = ("one", "two")
    return replace(made.with_channels(temperature=temperature), cutoff_hz=8.0, run=run, names=names)


def coupled(coupling: bool):
    robot = read_robot("ur10e")
    if not coupling:
        return robot
    matrix = np.eye(6)
    matrix[5, 4] = 0.3
    return replace(robot, drives=replace(robot.drives, coupling=matrix))


@pytest.mark.parametrize("coupling", [False, True])
@pytest.mark.parametrize("friction", MODELS, ids=lambda one: type(one).__name__)
def test_kept_columns_are_those_made_anew_for_any_load(friction, coupling):
    columns = TorqueModel(coupled(coupling), friction).columns
    plain = samples()
    kept = plain.with_column_cache()
    rng = np.random.default_rng(5)

    for _ in range(3):
        load = rng.normal(size=plain.torque.shape)
        np.testing.assert_allclose(
            columns.drive_at(kept, load=load),
            columns.drive_at(plain, load=load),
            rtol=1e-12,
            atol=1e-13,
        )


def test_columns_in_files_are_those_in_memory(tmp_path: Path):
    columns = TorqueModel(read_robot("ur10e"), Presliding()).columns
    plain = samples()
    load = plain.torque
    want = columns.drive_at(plain.with_column_cache(ColumnCache()), load=load)

    for _ in range(2):  # made, then read
        stored = plain.with_column_cache(FileColumnCache(tmp_path / "part.npy"))
        np.testing.assert_array_equal(columns.drive_at(stored, load=load), want)
    assert list(tmp_path.glob("part.*.npy"))


@pytest.mark.parametrize("what", ["position", "friction_velocity", "temperature"])
def test_another_motion_or_temperature_does_not_get_kept_columns(what):
    columns = TorqueModel(
        read_robot("ur10e"), sum_of(TemperatureDependent(Presliding()), Ripple())
    ).columns
    first = samples().with_column_cache()
    load = first.torque
    columns.drive_at(first, load=load)
    changed = {what: 1.1 * getattr(first, what)}
    other = first.with_channels(**changed) if what == "temperature" else replace(first, **changed)

    want = columns.drive_at(replace(other, column_cache=None, cached_motion=()), load=load)
    np.testing.assert_allclose(columns.drive_at(other, load=load), want, rtol=1e-12, atol=1e-13)


def test_parts_of_samples_keep_nothing_of_the_whole():
    whole = samples().with_column_cache()

    assert whole.rows(slice(10, 200)).valid_column_cache is None
    assert Samples.concatenate([whole, whole]).valid_column_cache is None
