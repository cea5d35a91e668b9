"""The law: friction of no fitted model gives energy, at any speed up to the rated one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))
import worn_arm

from taufit.estimators import is_consistent
from taufit.fitting import fitted_model
from taufit.fitting.fit import fit
from taufit.model.torque_model import TorqueModel
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.terms import TermInput, needs, steady_friction_model
from taufit.terms.friction import FRICTION_MODELS
from taufit.workflow import identify

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


def least_power(model) -> np.ndarray:
    """Smallest f(v) sign(v) over the friction at rated speed, per joint, without load."""
    out = []
    rated = np.asarray(model.robot.limits.velocity, float)
    for j in range(model.robot.joints):
        top = rated[j] if np.isfinite(rated[j]) and rated[j] > 0.0 else 2.0
        v = np.concatenate([np.linspace(-top, -1e-3, 300), np.linspace(1e-3, top, 300)])
        zero = np.zeros_like(v)
        warm = np.full_like(v, float(model.typical_temperature[j]))
        inputs = TermInput(v, position=zero, load=zero, temperature=warm)
        columns = steady_friction_model(model.term_sum).columns(inputs, model.joint_shape[j])
        power = (columns @ model.values[model.layout.drive_of(j)]) * np.sign(v)
        out.append(power.min() / max(np.abs(power).max(), 1e-12))
    return np.array(out)


@pytest.fixture(scope="module")
def samples():
    """Three joints, slower than rated, with drag that would be fitted as falling by noise alone."""
    runs = [worn_arm.samples(t, seed, path=seed) for seed, t in enumerate((24.0, 30.0, 36.0))]
    return Samples.concatenate(runs)


@pytest.mark.parametrize("name", [name for name in FRICTION_MODELS if name != "none"])
def test_no_friction_model_gives_energy(samples, name):
    friction = FRICTION_MODELS[name]()
    if needs(friction, "temperature"):
        friction = replace(friction, reference=30.0)
    model = TorqueModel(worn_arm.three_joints(), friction)
    estimate = fit(model, samples)
    fitted = fitted_model(model, estimate, samples)
    assert is_consistent(fitted.structure, fitted.values)
    # Friction at rated speed is the unit; solvers stop within a millionth of a bound.
    assert least_power(fitted).min() > -1e-4


@pytest.mark.parametrize(
    ("robot", "recording", "columns"),
    [
        ("kuka_lwr4/kuka_lwr4.urdf", "kuka_lwr4/lwr4_run1.csv.gz", "lwr4_csv.yaml"),
        ("ur10e/ur10e.urdf", "ur10e/identification_data/ur-20_02_06-20sec_5harm.csv.gz",
         "ur10e_csv.yaml"),
    ],
)  # fmt: skip
def test_no_real_robot_is_said_to_have_friction_that_drives_it(robot, recording, columns):
    if not DATA.is_dir():
        pytest.skip("the shared recordings are not here")
    run = read_recording(DATA / recording, column_map=ROOT / "examples" / "columns" / columns)
    done = identify(read_robot(DATA / robot), [run], cutoff_hz=5.0)
    assert done.consistent
    assert least_power(done.model).min() > -1e-4
