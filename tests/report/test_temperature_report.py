"""Maps and pages about temperature say what the model says."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm

from taufit.estimators.wls import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.health import start_history
from taufit.model import ThermalState, TorqueModel
from taufit.report.friction_map import friction_map, heat_map, steady_friction
from taufit.report.health_page import health_page
from taufit.report.temperature_page import run_by_run, temperature_page, torque_change
from taufit.signals import Samples
from taufit.temperature.runwise_fits import repeat_identification
from taufit.temperature.temperature_slopes import friction_at
from taufit.temperature.warm_up import warm_up
from taufit.terms.friction import Linear, LinearLoad
from taufit.terms.friction.temperature_dependent import TemperatureDependent


@pytest.fixture(scope="module")
def runs():
    return [worn_arm.samples(t, k, path=k) for k, t in enumerate((20.0, 27.0, 33.0, 40.0))]


@pytest.fixture(scope="module")
def model(runs):
    truth = worn_arm.truth()
    joined = Samples.concatenate(runs)
    free = TorqueModel(truth.robot, truth.friction_model)
    return fitted_model(free, fit_samples(free, joined, Wls()), joined)


def test_map_shows_the_friction_of_the_model(model):
    value = steady_friction(model, 1, np.array([1.5]), 20.0, 0.0)[0]
    # 8 + (14 + 2.5) 1.5 at 20 degC.
    assert value == pytest.approx(32.75, rel=0.02)
    text = friction_map(model)
    assert text.count("<svg") == 3 and "Joint 3" in text and "20 degC" in text


def test_map_is_empty_without_temperature(model, runs):
    plain = TorqueModel(model.robot, Linear(0.02))
    joined = Samples.concatenate(runs)
    assert friction_map(fitted_model(plain, fit_samples(plain, joined, Wls()), joined)) == ""


def test_cells_are_as_many_as_values_and_escape_names():
    text = heat_map(np.arange(1.0, 4.0), np.array([20.0, 30.0]), np.ones((2, 3)), "<a> & b")
    assert text.count("<rect") == 6 and "<a>" not in text and "&lt;a&gt; &amp; b" in text


def test_page_has_tables_and_points(model, runs):
    plain = TorqueModel(model.robot, Linear(0.02))
    text = temperature_page(model, repeat_identification(plain, runs), runs[0])
    assert "Viscous friction, cold to warm" in text and "line through the runs" in text
    assert not re.search(r"https?://", text)


def test_fit_report_compares_with_single_runs_where_it_can(model, runs):
    joined = Samples.concatenate(runs)
    text = run_by_run(model, joined)
    span = model.training.ranges.temperature
    cold, warm = (friction_at(model, getattr(span, key))[0] for key in ("low", "high"))
    told = re.search(r"viscous friction, one fit \[%\]</td>(.*?)</tr>", text).group(1)
    found = [float(x.replace("−", "-")) for x in re.findall(r">(−?[0-9.]+)</td>", told)]
    np.testing.assert_allclose(found, 100.0 * (warm / cold - 1.0), rtol=0.01)
    assert text.count("line through the runs") == 3
    assert run_by_run(model, Samples.concatenate(runs[:2])) == ""
    assert run_by_run(model, joined.with_channels(temperature=None)) == ""
    none, both = np.zeros(3), np.zeros((3, 2))
    state = ThermalState(none + 60.0, none + 600.0, both, both, none, none, none)
    assert run_by_run(model.with_training(replace(model.training, thermal=state)), joined) == ""
    plain = TorqueModel(model.robot, Linear(0.02))
    assert run_by_run(fitted_model(plain, fit_samples(plain, joined, Wls()), joined), joined) == ""


def test_joints_without_load_friction_get_one_map(model):
    loaded = TorqueModel(model.robot, TemperatureDependent(LinearLoad(0.02), reference=30.0))
    values = np.ones(len(loaded.names))
    values[loaded.names.index("joint_2.load")] = 0.0
    text = friction_map(loaded.with_values(values).with_training(model.training))
    assert text.count("N m</figcaption>") == 4
    assert "Joint 1, load" in text and "Joint 2, load" not in text


def test_torque_changes_by_slope_times_speed(model, runs):
    mean, largest = torque_change(model, runs[0], np.full(3, 20.0), np.full(3, 40.0))
    speed = np.abs(runs[0].velocity[runs[0].in_motion])
    slopes = np.array([0.09, 0.25, 0.15])
    np.testing.assert_allclose(mean, 20.0 * slopes * speed.mean(axis=0), rtol=0.1)
    np.testing.assert_allclose(largest, 20.0 * slopes * speed.max(axis=0), rtol=0.1)


def test_warm_up_says_what_the_tables_of_the_literature_do(model, runs):
    cold, warm = np.full(3, 20.0), np.full(3, 40.0)
    found = warm_up(model, runs[0], cold, warm)
    before, after = (friction_at(model, t)[0] for t in (cold, warm))
    np.testing.assert_allclose(found.viscous, 100.0 * (after / before - 1.0))
    mean, largest = torque_change(model, runs[0], cold, warm)
    np.testing.assert_array_equal(found.mean, mean)
    np.testing.assert_array_equal(found.largest, largest)
    limits = model.robot.limits
    known = np.isfinite(limits.velocity)
    np.testing.assert_allclose(
        found.at_speed_limit[known], (np.abs(after - before) * limits.velocity)[known]
    )
    plain = found.to_dict()
    assert all(len(values) == 3 for values in plain.values())
    span = model.training.ranges.temperature
    np.testing.assert_array_equal(warm_up(model, runs[0]).cold, span.low)
    flat = TorqueModel(model.robot, Linear(0.02))
    joined = Samples.concatenate(runs)
    assert warm_up(fitted_model(flat, fit_samples(flat, joined, Wls()), joined), joined) is None


def test_health_page_of_a_fresh_baseline(model):
    history = start_history(model, [(f"h{k}", worn_arm.samples(22 + k, k)) for k in range(8)])
    text = health_page(history)
    assert "Healthy: no joint" in text and "no runs since the baseline" in text
    assert not re.search(r"https?://", text)
