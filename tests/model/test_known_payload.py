"""A known payload in the model: torque, files, exports, intervals and commands contain it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taufit
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.dynamics import forward_kinematics
from taufit.export import to_mjcf, to_urdf
from taufit.model.intervals import predict_interval
from taufit.model.payload import Payload, parse_payload, read_payload, write_payload
from taufit.sim import CarriedPayload
from taufit.sim.random_motion import random_fourier

MASS, CENTRE = 2.5, np.array([0.02, -0.03, 0.06])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("known_payload")
    twin = taufit.Twin.typical(taufit.read_robot("ur3e"))
    part = CarriedPayload.lump(MASS, CENTRE)
    for name, seed, payload in (
        ("run", 1, ()),
        ("free", 4, ()),
        ("loaded", 2, part),
        ("again", 3, part),
    ):
        run = twin.run(random_fourier(twin.robot, seed=seed), seed=seed, payload=payload)
        taufit.write_recording(run.recording, out / f"{name}.parquet")
    done = taufit.identify(twin.robot, out / "run.parquet")
    taufit.write_model(done.model, out / "model.json")
    return out


@pytest.fixture(scope="module")
def model(folder):
    return taufit.read_model(folder / "model.json")


def _states(joints, n=40):
    return np.random.default_rng(5).uniform(-1.0, 1.0, size=(3, n, joints))


def test_a_standing_arm_carries_the_weight_by_its_height(model):
    q = _states(6)[0][:3]
    zero = np.zeros_like(q)
    extra = model.with_payload(MASS, CENTRE).torque(q, zero, zero) - model.torque(q, zero, zero)

    def height(position):
        pose = forward_kinematics(model.robot, position[None])[0, -1]
        # Along gravity, which the fit may have tilted by some tenths of a degree.
        return float(-np.array(model.robot.gravity) @ (pose @ np.append(CENTRE, 1.0))[:3] / 9.81)

    step = 1e-5
    for row, torque in zip(q, extra, strict=True):
        slope = [(height(row + e) - height(row - e)) / (2 * step) for e in step * np.eye(6)]
        np.testing.assert_allclose(torque, MASS * 9.81 * np.array(slope), rtol=2e-3, atol=2e-3)


def test_it_is_replaced_removed_and_read_back_bit_by_bit(model, tmp_path):
    loaded = model.with_payload(MASS, CENTRE)
    other = loaded.with_payload(1.0)
    np.testing.assert_array_equal(loaded.with_payload(None).values, model.values)
    np.testing.assert_array_equal(other.values, model.with_payload(1.0).values)
    taufit.write_model(loaded, tmp_path / "loaded.json")
    read = taufit.read_model(tmp_path / "loaded.json")
    np.testing.assert_array_equal(read.values, loaded.values)
    np.testing.assert_array_equal(read.with_payload(None).values, model.values)
    data = json.loads((tmp_path / "loaded.json").read_text())
    data["payload"]["parameters"][0] = -1.0
    (tmp_path / "edited.json").write_text(json.dumps(data))
    with pytest.raises(TaufitError):
        taufit.read_model(tmp_path / "edited.json")


def test_load_dependent_friction_feels_it(model):
    q, v, a = _states(6)
    loaded = model.with_payload(MASS, CENTRE)
    difference = loaded.torque(q, v, a) - model.torque(q, v, a)
    rigid = loaded.columns.links(q, v, a) @ (
        loaded.values[loaded.layout.links] - model.values[model.layout.links]
    )
    assert np.abs(difference - rigid).max() > 0.0
    np.testing.assert_allclose(difference, rigid, rtol=0.5, atol=2.0)


def test_the_urdf_less_that_of_the_bare_arm_is_the_part(model):
    pin = pytest.importorskip("pinocchio")
    loaded = model.with_payload(MASS, CENTRE)
    bare_file, loaded_file = (pin.buildModelFromXML(to_urdf(m)[0]) for m in (model, loaded))
    q, v, a = _states(6, 10)
    part = loaded.columns.links(q, v, a)[..., -10:] @ loaded.payload.parameters
    for arm in (bare_file, loaded_file):
        arm.gravity.linear = np.array(model.robot.gravity)
    for k in range(len(q)):
        torque = [pin.rnea(m, m.createData(), q[k], v[k], a[k]) for m in (loaded_file, bare_file)]
        np.testing.assert_allclose(torque[0] - torque[1], part[k], atol=1e-9)


def test_the_mjcf_less_that_of_the_bare_arm_is_the_part(model):
    import mujoco

    loaded = model.with_payload(MASS, CENTRE)
    files = [mujoco.MjModel.from_xml_string(to_mjcf(m)[0]) for m in (model, loaded)]
    data = [mujoco.MjData(file) for file in files]
    q, v, a = _states(6, 10)
    part = loaded.columns.links(q, v, a)[..., -10:] @ loaded.payload.parameters
    for k in range(len(q)):
        torque = []
        for file, state in zip(files, data, strict=True):
            state.qpos[:], state.qvel[:], state.qacc[:] = q[k], v[k], a[k]
            mujoco.mj_inverse(file, state)
            # Without the friction, a soft constraint that MuJoCo solves for.
            torque.append(state.qfrc_inverse + state.qfrc_constraint)
        np.testing.assert_allclose(torque[1] - torque[0], part[k], atol=1e-9)


def test_its_uncertainty_widens_the_interval(model, folder):
    samples = taufit.condition(taufit.read_recording(folder / "loaded.parquet"))
    exact = model.with_payload(Payload.from_mass(MASS, CENTRE))
    covariance = np.diag([0.2**2, *[0.01**2] * 3, *[1e-6] * 6])
    uncertain = model.with_payload(Payload(exact.payload.parameters, covariance))
    narrow, wide = (predict_interval(m, samples) for m in (exact, uncertain))
    assert np.all(wide.half_width >= narrow.half_width)
    assert wide.half_width[:, 1].mean() > 1.2 * narrow.half_width[:, 1].mean()


def test_check_passes_with_the_payload_that_another_run_gave(folder, monkeypatch, capsys):
    from taufit.cli import main

    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        return stop.value.code or 0, capsys.readouterr().out

    monkeypatch.chdir(folder)
    assert run("payload", "model.json", "loaded.parquet", "-o", "part.json")[0] == 0
    assert abs(read_payload("part.json").mass - MASS) < 0.1
    assert run("check", "model.json", "again.parquet")[0] != 0
    code, text = run("check", "model.json", "again.parquet", "--payload", "part.json", "--json")
    assert code == 0
    page = json.loads(text)
    code, text = run("check", "model.json", "free.parquet", "--json")
    assert page["unexplained"] < 1.5 * json.loads(text)["unexplained"]
    # A wrong mass is seen.
    assert run("check", "model.json", "again.parquet", "--payload", "9,0,0,0.06")[0] != 0
    assert run("energy", "model.json", "again.parquet", "--payload", "part.json")[0] == 0
    assert run("simulate", "ur3e", "fourier", "--payload", "part.json", "-o", "s.parquet")[0] == 0


@pytest.mark.parametrize("text", ["-1", "1,2", "heavy", "1e9", "no.json", "nan"])
def test_what_is_no_payload_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TaufitError):
        parse_payload(text)


def test_an_impossible_body_is_refused(tmp_path):
    with pytest.raises(InfeasibleError, match="pseudo-inertia"):
        Payload.from_mass(1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1]))
    write_payload(Payload.from_mass(1.0), tmp_path / "p.json")
    (tmp_path / "p.json").write_text((tmp_path / "p.json").read_text().replace("taufit-", "x-"))
    with pytest.raises(TaufitError, match="not a payload file"):
        read_payload(tmp_path / "p.json")
