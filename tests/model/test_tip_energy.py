"""Energies at the tip: Pinocchio's, derivatives against differences, the command."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.tip_energy import difference, held, known_model

import taufit
from taufit.cli.app import main
from taufit.dynamics.base_parameters import base_parameters
from taufit.excitation import write_motion
from taufit.model.tip_energy import mass_matrix_with_rotors, tip_energy
from taufit.model.training_record import BaseRecord
from taufit.sim import Twin, random_fourier


@pytest.mark.parametrize(("name", "seed"), [("ur5e", 1), ("kr5", 2), ("panda", 3)])
def test_energies_are_those_of_pinocchio(name, seed):
    pytest.importorskip("pinocchio")
    assert difference(name, seed, 10) < 1e-9


def with_covariance(model, covariance):
    base = base_parameters(model.structure)
    names = tuple(model.names[k] for k in base.columns)
    record = BaseRecord(names, names, base.mapping @ model.values, covariance)
    return base, model.with_training(replace(model.training, base=record))


def test_deviations_follow_from_the_covariance():
    """Along one direction of the base parameters a difference tells the derivative."""
    model = known_model(taufit.read_robot("ur5e"), 5)
    rng = np.random.default_rng(6)
    q, v = rng.uniform(-2.0, 2.0, (2, 12, 6))
    size = len(base_parameters(model.structure).columns)
    direction = 1e-3 * rng.normal(size=size)
    base, own = with_covariance(model, np.outer(direction, direction))
    moved = np.array(model.values)
    moved[base.columns] += 1e-3 * direction
    other = tip_energy(model.with_values(moved), q, v)
    here = tip_energy(own, q, v)
    for name in ("kinetic", "effective_mass", "effective"):
        change = np.abs(getattr(other, name) - getattr(here, name)) / 1e-3
        np.testing.assert_allclose(change, getattr(here, f"{name}_std"), rtol=2e-3, atol=1e-9)


def test_a_tip_that_stands_has_no_effective_energy():
    model = known_model(taufit.read_robot("kr5"), 0)
    energy = tip_energy(model, np.zeros((2, 6)), np.zeros((2, 6)))
    assert np.all(energy.kinetic == 0.0)
    assert np.all(energy.effective == 0.0)
    assert np.all(np.isnan(energy.effective_mass))
    assert np.all(energy.kinetic_std == 0.0)


def test_rotors_of_coupled_motors_reach_the_joints():
    robot = taufit.read_robot("kr5")
    coupling = np.eye(6)
    coupling[5, 4] = 0.5
    coupled = replace(robot, drives=replace(robot.drives, coupling=coupling))
    plain, both = known_model(robot, 1), known_model(coupled, 1)
    q = np.zeros((1, 6))
    rotors = np.diag(plain.values[plain.layout.block_slice("rotor")])
    links = mass_matrix_with_rotors(plain, q)[0] - rotors
    np.testing.assert_allclose(
        mass_matrix_with_rotors(both, q)[0], links + coupling.T @ rotors @ coupling
    )


def test_intervals_hold_as_often_as_they_say():
    shares = np.array([held(seed) for seed in range(1000, 1012)])
    assert np.all(shares.mean(0) > 0.85)


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["energy", *map(str, arguments)])
    return stop.value.code or 0


def test_the_command_reads_recordings_and_planned_motions(tmp_path, capsys):
    robot = taufit.read_robot("ur3e")
    motion = random_fourier(robot, seed=1)
    recording = Twin(robot).run(motion, seed=1).recording
    model = taufit.identify(robot, [recording]).model
    taufit.write_model(model, tmp_path / "model.json")
    taufit.write_recording(recording, tmp_path / "run.parquet")
    write_motion(motion, tmp_path / "motion.json")
    pages = []
    for name in ("run.parquet", "motion.json"):
        out = tmp_path / "energies.csv"
        assert run(tmp_path / "model.json", tmp_path / name, "-o", out, "--json") == 0
        pages.append(json.loads(capsys.readouterr().out))
        rows = list(csv.DictReader(out.read_text().splitlines()))
        assert len(rows) == pages[-1]["states"]
        peak = max(float(row["effective"]) for row in rows)
        assert peak == pytest.approx(pages[-1]["effective_energy"]["value"], rel=1e-6)
    for key in ("kinetic_energy", "effective_energy"):
        first, second = (page[key] for page in pages)
        assert first["low"] <= first["value"] <= first["high"]
        assert first["value"] == pytest.approx(second["value"], rel=0.05)
    assert run(tmp_path / "model.json", tmp_path / "run.parquet") == 0
    assert "effective energy" in capsys.readouterr().out
    other = random_fourier(taufit.read_robot("panda"), seed=1)
    write_motion(other, tmp_path / "other.json")
    assert run(tmp_path / "model.json", tmp_path / "other.json") == 3
    assert "7 joints" in capsys.readouterr().err
