"""Presets run, and are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import yaml

from taufit.core.errors import TaufitError
from taufit.dynamics import regressor
from taufit.estimators import Ols
from taufit.fitting import fit_samples as fit_samples
from taufit.model.torque_model import TorqueModel
from taufit.recording import read_recording
from taufit.robot import pseudo_inertia, read_robot
from taufit.signals import condition
from taufit.sim import presets, random_fourier, read_preset
from taufit.sim.preset import preset_from_text
from taufit.sim.replay import motion_of_recording
from taufit.terms import TermInput
from taufit.terms.friction import Polynomial

MAP = Path(__file__).resolve().parents[2] / "examples" / "columns" / "ur10e_csv.yaml"


@pytest.mark.parametrize("name", presets())
def test_preset_is_a_possible_arm_that_follows_its_motion(name):
    preset = read_preset(name)
    robot = preset.twin.robot
    assert np.linalg.eigvalsh(pseudo_inertia(robot.parameters.reshape(-1, 10))).min() > -1e-9
    motion = preset.motion(seed=1)
    run = preset.twin.run(replace(motion, periods=0.4), seed=1)
    assert max(run.truth["tracking_error_rms"]) < 2e-3
    assert run.truth["preset"] == name and preset.about
    json.dumps(run.truth, allow_nan=False)


def test_presets_are_told_when_a_name_is_wrong():
    with pytest.raises(TaufitError, match="ur10-paper"):
        read_preset("ur10-papre")


def _table(reference_dir, name):
    return json.loads((reference_dir / f"{name}.json").read_text())


def test_ur10_paper_plays_the_papers_motion_and_payload(reference_dir):
    table = _table(reference_dir, "ur10_online_payload")
    preset = read_preset("ur10-paper")
    motion = preset.motion()
    assert (motion.period, motion.harmonics, preset.twin.rate_hz) == (10.0, 5, 125.0)
    np.testing.assert_array_equal(motion.sine, table["trajectory"]["a"])
    np.testing.assert_array_equal(motion.cosine, table["trajectory"]["b"])
    mass, x, y, z = preset.payload.parameters[:4]
    # The file keeps six digits.
    np.testing.assert_allclose(
        [mass, x / mass, y / mass, z / mass], table["payload"]["truth"][:4], rtol=1e-5
    )


def test_ur10_paper_has_the_torque_of_table_6(reference_dir):
    table = _table(reference_dir, "ur10_online_payload")
    preset = read_preset("ur10-paper")
    robot = preset.twin.robot
    q, v, a = preset.motion().at(np.linspace(0, 10, 301))
    full = regressor(robot, q, v, a)
    full = np.concatenate([full, np.einsum("nj,jk->njk", a, np.eye(6))], -1)
    names = [
        f"{entry}{i}"
        for i in range(1, 7)
        for entry in ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    ] + [f"Ia{i}" for i in range(1, 7)]
    rows = [row for row in table["base_parameters"]["rows"] if row["index"] <= 40]
    mapping = np.zeros((40, 66))
    for k, row in enumerate(rows):
        for name, value in row["coefficients"].items():
            mapping[k, names.index(name)] = value
    truth = np.concatenate([robot.parameters, robot.rotor_inertias])
    printed = np.array([row["value"] for row in rows])
    difference = full @ np.linalg.pinv(mapping) @ (mapping @ truth - printed)
    rms = np.sqrt((difference**2).mean(0))
    # No possible robot has Table VI's torques; this one comes this close.
    assert np.all(rms < 0.8), rms


def test_ur10_paper_leaves_the_residual_of_table_2(reference_dir):
    table = _table(reference_dir, "ur10_online_payload")
    preset = read_preset("ur10-paper")
    robot, friction = preset.twin.robot, preset.twin.effects.friction
    motion = preset.motion(periods=4)
    recording = preset.twin.run(motion, seed=5, rest=(0.0, 0.0)).recording
    q, v, a = motion.at(recording.time - 0.012)
    own = np.zeros((len(q), 6, 24))
    for i in range(6):
        own[:, i, 3 * i : 3 * i + 2] = friction.model.columns(TermInput(v[:, i]), friction.shape[i])
        own[:, i, 3 * i + 2] = 1.0
        own[:, i, 18 + i] = a[:, i]
    columns = np.concatenate([regressor(robot, q, v, a), own], -1)
    rmse = np.array(table["torque_rmse_Nm"]["values"])
    weighted = (columns / rmse[:, None]).reshape(-1, 84)
    torque = ((recording.signal * recording.gain) / rmse).ravel()
    fitted = np.linalg.lstsq(weighted, torque, rcond=1e-8)[0]
    left = np.sqrt((((torque - weighted @ fitted).reshape(-1, 6) * rmse) ** 2).mean(0))
    np.testing.assert_allclose(left, rmse, rtol=0.1)


@pytest.mark.parametrize("name", ["ur3", "ur5"])
def test_warm_up_changes_friction_as_table_4_says(name, reference_dir):
    table = _table(reference_dir, "ur3_ur5_temperature_mounting")["temperature"]
    preset = read_preset(f"{name}-warmup")
    thermal = preset.twin.effects.thermal
    # Half an hour in 30 s: the thermal clock runs 60 times faster.
    faster = replace(preset.twin.effects, thermal=replace(thermal, speed_up=60.0))
    ends = [
        replace(preset.twin, effects=faster).run(preset.motion(seed), rest=(0.0, 0.0)).trace
        for seed in range(4)
    ]
    warm = np.mean([trace.temperature[-1] for trace in ends], 0)
    np.testing.assert_allclose(ends[0].temperature[0], table["UR5_cold_degC"], atol=1.0)
    np.testing.assert_allclose(warm, table["UR5_warm_degC"], atol=3.0)
    cold_friction = preset.twin.effects.friction.coefficients[:, 1]
    at_printed = np.array(table["UR5_warm_degC"]) - thermal.initial
    change = 100.0 * thermal.viscous_slope * at_printed / cold_friction
    np.testing.assert_allclose(change, table["table4_change_Fv_percent"][name.upper()], atol=0.1)


def test_kr5_unsigned_is_the_papers_experiment():
    preset = read_preset("kr5-unsigned")
    run = preset.twin.run(preset.motion(seed=2), seed=2)
    recording = run.recording
    assert len(recording) == 667 and not recording.signed.any() and recording.signal.min() >= 0.0
    noise = np.abs(np.abs(run.trace.motor_torque) - recording.signal)
    rms = np.sqrt((run.trace.motor_torque**2).mean(0))
    np.testing.assert_allclose(np.sqrt((noise**2).mean(0)) / rms, 0.05, atol=0.01)
    np.testing.assert_array_equal(recording.acceleration, run.trace.acceleration)
    np.testing.assert_allclose(recording.position, recording.commanded_position, atol=1e-6)


def test_franka_shows_link_side_torque():
    preset = read_preset("franka")
    motion = replace(preset.motion(), periods=0.2)
    recording = preset.twin.run(motion).recording
    assert recording.torque_source == "joint_torque_sensor" and recording.temperature is not None
    assert np.all(np.diff(recording.time) >= 0.0) and np.ptp(np.diff(recording.time)) > 1e-4


def test_franka_leaves_the_residual_of_table_5(reference_dir):
    table = _table(reference_dir, "franka_lie_friction_excitation")["table5_identification"]
    preset = read_preset("franka")
    samples = condition(preset.twin.run(preset.motion(1), seed=1).recording, cutoff_hz=10.0)
    model = TorqueModel(preset.twin.robot, Polynomial(), rotor_inertia=False)
    left = fit_samples(model, samples, Ols(), require_excitation=False).torque_rms
    np.testing.assert_allclose(left, table["rms_Nm"]["eq16"], rtol=0.25)


def test_ur10e_real_leaves_the_noise_of_the_real_arm(data_dir):
    # A run the preset was not matched to; the fits are compared by benchmarks/accuracy.
    file = data_dir / "ur10e" / "identification_data" / "ur-20_01_31-unload.csv.gz"
    real = read_recording(file, column_map=MAP)
    preset = read_preset("ur10e-real")
    made = preset.twin.run(motion_of_recording(real), seed=1, rest=(0.0, 0.0)).recording
    steps = [np.diff(recording.time) for recording in (real, made)]
    assert abs(steps[0].mean() / steps[1].mean() - 1.0) < 0.02
    gain = preset.twin.robot.drives.gain
    left = []
    for recording in (real, made):
        raw, smooth = (condition(recording, cutoff_hz=f, gains=gain) for f in (None, 10.0))
        rows = smooth.keep.all(1)[: len(raw)]
        left.append((raw.torque - smooth.torque)[rows].std(0))
    factor = np.exp(np.abs(np.log(left[0] / left[1])))
    assert np.all(factor < 1.5), factor


@pytest.mark.parametrize("name", ["ur3", "panda", "kr5", "iiwa7"])
def test_random_motion_stays_within_limits_and_rests_at_its_ends(name):
    robot = read_robot(name)
    for seed in range(5):
        motion = random_fourier(robot, seed=seed, harmonics=4)
        q, v, a = motion.at(np.linspace(0, motion.duration, 2000))
        assert np.all(q <= robot.limits.upper) and np.all(q >= robot.limits.lower)
        assert np.all(np.abs(v) <= robot.limits.velocity)
        assert np.all(np.abs(a) <= np.minimum(robot.limits.acceleration, 6.0) * 1.001)
        assert np.abs(v[[0, -1]]).max() < 1e-9 and np.abs(a[[0, -1]]).max() < 1e-9
        np.testing.assert_allclose(q[0], motion.offset, atol=1e-12)


def test_replay_plays_a_recording_again():
    preset = read_preset("ur10-paper")
    recording = preset.twin.run(preset.motion(), seed=1).recording
    again = motion_of_recording(recording)
    t = np.linspace(1.0, 9.0, 200)
    np.testing.assert_allclose(again.at(t)[0], preset.motion().at(t - 0.5)[0], atol=1e-4)
    measured = motion_of_recording(replace(recording, commanded_position=None))
    np.testing.assert_allclose(measured.at(t)[0], preset.motion().at(t - 0.5 - 0.012)[0], atol=3e-3)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"colour": "red"}, "'colour'"),
        ({"rotor": [0.1, 0.2]}, "rotor"),
        ({"rotor": [0.1, 0.2, 0.3, "x", 0.5, 0.6]}, "rotor[3]"),
        ({"rate_hz": -5}, "rate_hz"),
        ({"rate_hz": None}, "rate_hz"),
        ({"about": 7}, "about"),
        ({"controller": {"delay": "soon"}}, "controller.delay"),
        ({"controller": {"force": 1.0}}, "'force'"),
        ({"effects": {"friction": {"presliding": "x"}}}, "presliding"),
        ({"payload": [1.0]}, "payload"),
        ({"motion": {"kind": "random", "speed": "fast"}}, "motion.speed"),
        ({"motion": {"kind": "random", "seed": 4}}, "'seed'"),
        ({"motion": {"kind": "fourier"}}, "motion"),
        ({"robot": "no_such_arm"}, "no_such_arm"),
    ],
)
def test_a_preset_says_what_is_wrong_with_it(change, place):
    folder = resources.files("taufit.sim") / "presets"
    data = yaml.safe_load((folder / "ur5-warmup.yaml").read_text("utf-8"))
    text = yaml.safe_dump({**data, **change})
    with pytest.raises(TaufitError) as error:
        preset_from_text(text, "mine")
    assert place in str(error.value)
