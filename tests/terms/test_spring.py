"""A spring at every joint: found beside automatic friction, by command too, and held by MJCF."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.terms.test_consumers_of_terms import motion

import taufit
from taufit.cli import main
from taufit.export import to_mjcf
from taufit.terms import Spring

STIFFNESS = np.linspace(20.0, 3.0, 6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording of an arm with springs, friction and some noise."""
    robot = taufit.read_robot("ur3e")
    structure = taufit.TorqueModel(robot, taufit.Linear(0.01), terms=(Spring(0.3),))
    values = structure.nominal
    sizes = {"rotor": 0.2, "coulomb": 3.0, "viscous": 2.0, "offset": 0.1}
    for i in range(structure.layout.links.stop, len(values)):
        j = structure.layout.owner[i]
        values[i] = sizes.get(structure.layout.quantities[i], STIFFNESS[j])
    truth = structure.with_values(values)
    folder = tmp_path_factory.mktemp("spring")
    for seed, name in enumerate(("run", "other")):
        t, q, v, a = motion(30.0, seed)
        torque = truth.torque(q, v, a)
        torque += 0.005 * torque.std(axis=0) * np.random.default_rng(seed).normal(size=q.shape)
        recording = taufit.Recording(t, q, torque, velocity=v, signal_unit="N m")
        taufit.write_recording(recording, folder / f"{name}.parquet")
    return folder


def run(arguments) -> int:
    try:
        main([str(one) for one in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_the_command_finds_it_beside_automatic_friction(folder, capsys):
    place = folder / "model.json"
    fit = ["fit", "ur3e", folder / "run.parquet", "--holdout", folder / "other.parquet", "--json"]
    code = run([*fit, "--term", "spring", "-o", place])
    told = json.loads(capsys.readouterr().out)
    assert code == 0 and told["terms"] == [{"name": "spring", "rest": 0.0}]
    assert told["friction"]["name"] == "presliding"
    model = taufit.read_model(place)
    own = [model.layout.index(f"joint_{j + 1}.stiffness") for j in range(6)]
    error, std = np.abs(model.values[own] - STIFFNESS), model.training.std[own]
    # Near the base a spring and the weight of the links look alike; the deviation says how much.
    assert np.all(error < 4.0 * std + 0.02 * STIFFNESS)
    assert np.all(error[3:] < 0.05 * STIFFNESS[3:])
    without = folder / "without.json"
    run([*fit, "--ignore-contradictions", "-o", without])
    # Else waves over the angle, or nothing, stand in for it, and do not extrapolate.
    plain = json.loads(capsys.readouterr().out)
    assert "spring" not in [term["name"] for term in plain["terms"]]
    assert plain["mean_holdout_nrmse"] > told["mean_holdout_nrmse"]


def test_a_term_that_does_not_exist_comes_with_those_that_do(folder, capsys):
    for wrong in ("sprng", "rotor"):
        arguments = [
            "fit",
            "ur3e",
            folder / "run.parquet",
            "--term",
            wrong,
            "-o",
            folder / "x.json",
        ]
        assert run(arguments) == 2
        assert re.search(r"use .*\bripple, spring", capsys.readouterr().err)


def test_mujoco_has_the_same_spring():
    mujoco = pytest.importorskip("mujoco")
    robot = taufit.read_robot("ur3e")
    structure = taufit.TorqueModel(robot, None, offset=False, terms=(Spring(0.3),))
    values = structure.nominal
    values[structure.layout.drive] = STIFFNESS
    model = structure.with_values(values)
    text, dropped = to_mjcf(model)
    assert not any("stiffness" in one for one in dropped)
    arm = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(arm)
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:], data.qvel[:], data.qacc[:] = rng.normal(size=(3, 6))
        mujoco.mj_inverse(arm, data)
        wanted = model.torque(data.qpos[None], data.qvel[None], data.qacc[None])[0]
        np.testing.assert_allclose(data.qfrc_inverse, wanted, atol=1e-6 * np.abs(wanted).max())
