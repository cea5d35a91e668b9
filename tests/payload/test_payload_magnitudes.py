"""Payloads of an arm whose torques have no signs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import taufit
from taufit.cli.app import main
from taufit.core.errors import RecordingError
from taufit.payload import identify_payload
from taufit.payload.unsigned_torque import recover_payload_signs, widen_intervals
from taufit.signs.samples import without_signs
from taufit.sim import CarriedPayload, read_preset
from taufit.workflow import identify

MASS, CENTRE = 2.5, np.array([0.01, -0.02, 0.07])


@pytest.fixture(scope="module")
def twin():
    """The KR5 of the preset, its torque recorded with signs."""
    arm = read_preset("kr5-unsigned").twin
    sensing = replace(arm.effects.sensing, absolute=False)
    return replace(arm, effects=replace(arm.effects, sensing=sensing))


@pytest.fixture(scope="module")
def empty_model(twin):
    motion = read_preset("kr5-unsigned").motion(3, None)
    run = without_signs(twin.run(motion, seed=3).recording)
    return identify(taufit.read_robot("kr5"), [run]).model


@pytest.fixture(scope="module")
def loaded(twin):
    motion = read_preset("kr5-unsigned").motion(4, None)
    return twin.run(motion, seed=4, payload=(CarriedPayload.lump(MASS, CENTRE),)).recording


def test_magnitudes_weigh_as_well_as_signed_torque(empty_model, loaded):
    found = identify_payload(empty_model, without_signs(loaded))
    known = identify_payload(empty_model, loaded)
    assert abs(found.estimate.mass / MASS - 1.0) < 0.02
    assert found.estimate.mass_interval[0] < MASS < found.estimate.mass_interval[1]
    assert abs(found.estimate.mass - known.estimate.mass) < 0.01 * MASS
    assert np.all(np.abs(found.estimate.centre - CENTRE) < 0.01)
    assert found.estimate.ready
    assert found.details["torque_signs"]["clear"]
    assert any("signs were not recorded" in text for text in found.warnings)


def test_signs_are_those_that_were_recorded(empty_model, loaded):
    found = recover_payload_signs(empty_model, without_signs(loaded))
    clear = np.abs(loaded.signal) > 0.2 * np.abs(loaded.signal).max(0)
    assert np.all(found.recording.signal[clear] * loaded.signal[clear] > 0.0)
    np.testing.assert_allclose(found.recording.signal[clear], loaded.signal[clear], rtol=1e-3)
    assert found.recording.signed.all()
    assert 0.02 < found.open_share < 0.3
    assert 1.0 <= found.widening < 1.1


def test_joints_that_carry_their_sign_keep_it(empty_model, loaded):
    signed = np.array([True, False, True, True, False, True])
    part = replace(
        loaded, signal=np.where(signed, loaded.signal, np.abs(loaded.signal)), signed=signed
    )
    found = recover_payload_signs(empty_model, part)
    np.testing.assert_array_equal(found.recording.signal[:, signed], loaded.signal[:, signed])
    assert abs(identify_payload(empty_model, part).estimate.mass / MASS - 1.0) < 0.02


def test_wider_intervals_keep_their_middle(empty_model, loaded):
    estimate = identify_payload(empty_model, loaded).estimate
    wide = widen_intervals(estimate, 2.0)
    assert wide.mass == estimate.mass
    assert wide.mass_std == 2.0 * estimate.mass_std
    low, high = estimate.mass_interval
    assert np.allclose(np.diff(wide.mass_interval), 2.0 * (high - low))
    np.testing.assert_allclose(
        wide.centre_interval[1] - wide.centre, 2.0 * (estimate.centre_interval[1] - wide.centre)
    )


def test_coupled_motors_without_signs_are_refused(empty_model, loaded):
    coupling = np.eye(6)
    coupling[5, 4] = 1.0
    with pytest.raises(RecordingError, match="coupled motors without a sign"):
        identify_payload(empty_model, without_signs(replace(loaded, coupling=coupling)))


def test_a_template_needs_signs(empty_model, loaded):
    hidden = without_signs(loaded)
    with pytest.raises(RecordingError, match="need signed torques"):
        identify_payload(empty_model, loaded, template=hidden)


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["payload", *map(str, arguments)])
    return stop.value.code or 0


def test_the_command_weighs_a_file_without_signs(tmp_path, empty_model, loaded, capsys):
    model = tmp_path / "model.json"
    taufit.write_model(empty_model, model)
    taufit.write_recording(without_signs(loaded), tmp_path / "hidden.parquet")
    taufit.write_recording(loaded, tmp_path / "signed.parquet")
    masses = []
    for name, more in (("hidden", ()), ("signed", ("--torque-signs", "unknown"))):
        assert run(model, tmp_path / f"{name}.parquet", "--json", *more) == 0
        page = json.loads(capsys.readouterr().out)
        assert page["torque_signs"]["clear"] is True
        masses.append(page["mass"]["value"])
    assert masses[0] == pytest.approx(masses[1])
    assert masses[0] == pytest.approx(MASS, rel=0.02)
    assert run(model, tmp_path / "hidden.parquet", "--torque-signs", "perhaps") == 2
