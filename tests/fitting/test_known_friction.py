"""A fit that starts from a friction test keeps what the test knows and its motion does not show."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from taufit.calibration.friction_identification import identify_friction
from taufit.cli.app import main
from taufit.excitation import plan
from taufit.fitting.friction_prior import FrictionPrior
from taufit.model.model_file import read_model, write_model
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, write_recording
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.terms.friction import Linear, Stribeck

# viscous, Coulomb, static of every joint.
TERMS = np.array([[4.0, 3.0, 5.0]] * 3 + [[1.0, 0.8, 1.4]] * 3)
SHAPE = np.array([0.02, 0.05])


def _truth(robot):
    structure = TorqueModel(robot, Stribeck(degree=1), rotor_inertia=False)
    structure = replace(structure, shape=np.tile(SHAPE, (robot.joints, 1)))
    theta = structure.nominal
    theta[structure.layout.drive] = TERMS.ravel()
    return structure.with_values(theta)


def _played(truth, motion, rate_hz, seed):
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, motion.duration, 1.0 / rate_hz)
    q, v, a = motion.at(time)
    torque = truth.torque(q, v, a)
    noise = 0.02 * torque.std(0)
    return time, q, v, a, torque + noise * rng.normal(size=torque.shape)


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    robot = read_robot("ur5")
    truth = _truth(robot)
    speeds = np.array([0.005, 0.015, 0.03, 0.06, 0.15, 0.5, 1.2])
    motion = plan("friction-test", robot, speeds=speeds).motion
    _, q, v, a, torque = _played(truth, motion, 50.0, 1)
    samples = Samples.from_arrays(q, v, a, torque, rate_hz=50.0)
    found = identify_friction(robot, [samples], friction="stribeck")
    folder = tmp_path_factory.mktemp("friction")
    write_model(found.model, folder / "friction.json")
    # A quick motion: hardly a sample below the Stribeck speeds.
    from taufit.sim import random_fourier

    time, q, v, _, torque = _played(truth, random_fourier(robot, seed=3, periods=2.0), 100.0, 2)
    recording = Recording(
        time=time,
        position=q,
        velocity=v,
        signal=torque,
        signal_unit="N m",
        torque_source="joint_torque_sensor",
    )
    write_recording(recording, folder / "run.parquet")
    return robot, found, folder


def _fitted(folder, capsys, *words):
    output = folder / "model.json"
    with pytest.raises(SystemExit) as ended:
        main(["fit", "ur5", str(folder / "run.parquet"), *words, "-o", str(output), "--json"])
    return ended.value.code, capsys.readouterr(), output


def test_what_the_test_knows_and_the_motion_does_not_show_is_kept(tested, capsys):
    _, found, folder = tested
    code, printed, output = _fitted(folder, capsys, "--friction", str(folder / "friction.json"))
    assert code == 0, printed.err
    data = json.loads(printed.out)
    assert data["friction"]["name"] == "stribeck"
    model = read_model(output)
    np.testing.assert_allclose(model.joint_shape, found.model.joint_shape)
    slow = np.full((1, 6), 0.01)
    still = np.zeros((1, 6))
    friction = [
        m.torque(still, slow, still) - m.torque(still, -slow, still)
        for m in (model, _truth(read_robot("ur5")))
    ]
    # A tenth is what friction is allowed to differ by from day to day.
    np.testing.assert_allclose(friction[0], friction[1], rtol=0.08)
    source = json.loads(output.read_text())
    assert "friction.json" in json.dumps(source)


def test_terms_the_test_dropped_stay_out(tested, capsys):
    _, found, folder = tested
    known = FrictionPrior.from_model(found.model)
    assert known.dropped
    _, _, output = _fitted(folder, capsys, "--friction", str(folder / "friction.json"))
    model = read_model(output)
    for name in known.dropped:
        assert model.values[model.names.index(name)] == 0.0


def test_untested_joints_are_left_to_the_data(tested):
    robot, found, _ = tested
    tested_only = replace(found.model.training, std=np.array(found.model.training.std))
    std = tested_only.std
    std[found.model.layout.drive_of(2)] = np.inf
    known = FrictionPrior.from_model(found.model.with_training(tested_only))
    assert not any(name.startswith("joint_3") for name in known.names)
    which, _, precision = known.parameter_prior(TorqueModel(robot, Stribeck()))
    assert np.all(precision[which] > 0.0)


def test_a_model_without_friction_or_of_another_arm_is_refused(tested, tmp_path, capsys):
    robot, _, folder = tested
    bare = TorqueModel(robot, None, rotor_inertia=False)
    write_model(bare.with_values(bare.nominal), tmp_path / "bare.json")
    code, printed, _ = _fitted(folder, capsys, "--friction", str(tmp_path / "bare.json"))
    assert code == 3 and "no friction" in printed.err
    panda = TorqueModel(read_robot("panda"), Linear(), rotor_inertia=False)
    std = np.ones(len(panda.names))
    other = panda.with_values(panda.nominal)
    write_model(other.with_training(replace(other.training, std=std)), tmp_path / "other.json")
    code, printed, _ = _fitted(folder, capsys, "--friction", str(tmp_path / "other.json"))
    assert code == 3 and "7 joints" in printed.err


def test_a_name_that_is_no_model_is_wrong_usage(tested, capsys):
    _, _, folder = tested
    code, printed, _ = _fitted(folder, capsys, "--friction", "sandpaper")
    assert code == 2 and "--friction" in printed.err
