"""A simulated robot under torque control: better models track better, wrong ones worse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.output_json import parse_output

import taufit
from taufit.cli import main
from taufit.core.errors import TaufitError
from taufit.model import write_model
from taufit.sim import random_fourier
from taufit.sim.closed_loop import CONTROLLERS, LevelTracker, feed_forward, run_closed_loop
from taufit.terms import DISSIPATIVE


@pytest.fixture(scope="module")
def arm():
    twin = taufit.Twin.typical(taufit.read_robot("ur3e"))
    run = twin.run(random_fourier(twin.robot, seed=1, periods=2.0), seed=1)
    return twin, taufit.identify(twin.robot, [run.recording]).model


@pytest.fixture(scope="module")
def motion(arm):
    return random_fourier(arm[0].robot, seed=8, periods=0.6)


def rms(arm, motion, controller, model=None, **settings):
    run = run_closed_loop(arm[0], motion, controller, model or arm[1], seed=2, **settings)
    return float(np.mean(run.rms(0.5))), run


def test_each_part_of_the_model_lowers_the_error(arm, motion):
    errors = [rms(arm, motion, name)[0] for name in ("pd", "rigid", "coulomb-viscous", "taufit")]
    assert errors[0] > 1.2 * errors[1] > 5.0 * errors[2] > 5.0 * errors[3]


def test_a_wrong_model_is_seen_in_the_loop(arm, motion):
    right = rms(arm, motion, "taufit")[0]
    model = arm[1]
    turned = model.with_values(
        np.where(model.layout.of_kind(DISSIPATIVE), -model.values, model.values)
    )
    assert rms(arm, motion, "taufit", turned)[0] > 10.0 * right


def test_tracking_makes_up_for_friction_of_another_day(arm, motion):
    model = arm[1]
    kind = model.layout.of_kind(DISSIPATIVE)
    stale = model.with_values(np.where(kind, 1.25 * model.values, model.values))
    untracked, _ = rms(arm, motion, "taufit", stale)
    tracked, run = rms(arm, motion, "taufit-tracked", stale)
    assert tracked < 0.6 * untracked
    np.testing.assert_allclose(run.level, 0.8, atol=0.06)


def test_the_tracker_is_least_squares_of_what_it_has_seen():
    rng = np.random.default_rng(0)
    tracker = LevelTracker(2, 0.002)
    for _ in range(4000):
        friction = rng.normal(size=2)
        tracker.update(np.ones(2), friction, np.array([0.7, 1.3]) * friction)
    np.testing.assert_allclose(tracker.level, [0.7, 1.3], atol=0.01)
    tracker.update(np.zeros(2), np.ones(2), 100.0 * np.ones(2))
    np.testing.assert_allclose(tracker.level, [0.7, 1.3], atol=0.01)


def test_unknown_controllers_are_refused(arm, motion):
    q = np.zeros((2, 6))
    with pytest.raises(TaufitError, match="coulomb-viscous"):
        feed_forward("pid", arm[1], q, q, q, 0.002)


def test_the_command_compares_controllers(arm, tmp_path, capsys):
    write_model(arm[1], tmp_path / "model.json")
    words = ["simulate", "ur3e", "--controller", "pd", "--controller", "taufit"]
    words += ["--feed-forward", str(tmp_path / "model.json"), "--seed", "3", "--json"]
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert not stop.value.code
    rows = parse_output("simulate", capsys.readouterr().out)["controllers"]
    assert [row["controller"] for row in rows] == ["pd", "taufit"]
    assert np.mean(rows[1]["tracking_rms"]) < 0.1 * np.mean(rows[0]["tracking_rms"])
    assert set(CONTROLLERS) >= {row["controller"] for row in rows}
