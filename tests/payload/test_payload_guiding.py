"""Hand guiding from a force log, with and without the payload's weight."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taufit
from taufit.cli.app import main
from taufit.core.errors import RecordingError
from taufit.dynamics import forward_kinematics
from taufit.payload.hand_guiding import force_columns, guiding_force
from taufit.payload.linear_estimate import linear_estimate

MASS = 2.0


def carried(mass, std=0.01):
    phi = np.zeros(10)
    phi[0], phi[4], phi[6], phi[9] = mass, 0.01, 0.01, 0.01
    return linear_estimate(1.0, phi, std**2 * np.eye(10), True)


@pytest.fixture(scope="module")
def tour():
    """An arm led about; the hand carries 2 kg and pushes a little."""
    robot = taufit.read_robot("ur5e")
    rng = np.random.default_rng(0)
    time = np.arange(400) / 100.0
    start = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    q = start + 0.4 * np.sin(time[:, None] * rng.uniform(0.5, 2.0, 6))
    turned = forward_kinematics(robot, q)[:, -1, :3, :3]
    push = 0.5 * rng.normal(size=(400, 3))
    lifted = -MASS * np.einsum("nij,i->nj", turned, robot.gravity)
    return robot, time, q, lifted + push, push


def test_what_is_left_is_what_the_hand_pushed(tour):
    robot, _, q, force, push = tour
    found = guiding_force(robot, q, force, carried(MASS))
    np.testing.assert_allclose(found.mean_compensated, np.abs(push).mean(0), rtol=1e-9)
    np.testing.assert_allclose(found.variance_compensated, push.var(0), rtol=1e-9)
    np.testing.assert_allclose(found.mean, np.abs(force).mean(0))
    np.testing.assert_allclose(found.variance, force.var(0))
    assert np.linalg.norm(found.mean_compensated) < 0.2 * np.linalg.norm(found.mean)
    assert found.residual == pytest.approx(0.01 * 9.81, rel=1e-3)
    assert not found.sensor_inverted


def test_a_sensor_that_counts_the_other_way_is_noticed(tour):
    robot, _, q, force, _ = tour
    usual, other = (guiding_force(robot, q, x, carried(MASS)) for x in (force, -force))
    assert other.sensor_inverted
    np.testing.assert_allclose(other.mean_compensated, usual.mean_compensated)


def test_columns_follow_rows_that_were_dropped(tmp_path, tour):
    _, time, q, force, _ = tour
    names = [
        "t",
        *(f"q{k}" for k in range(1, 7)),
        *(f"tau{k}" for k in range(1, 7)),
        "fx",
        "fy",
        "fz",
    ]
    cells = np.column_stack([time, q, np.sin(q), force]).astype(object)
    cells[7, 3] = "oops"
    path = tmp_path / "log.csv"
    path.write_text(
        "\n".join([",".join(names), *(",".join(map(str, row)) for row in cells)]) + "\n"
    )
    columns = {"time": "t", "position": "q{joint}", "torque": "tau{joint}"}
    log = taufit.read_recording(path, column_map={"columns": columns})
    assert len(log) == 399
    found = force_columns(path, log, ("fx", "fy", "fz"))
    np.testing.assert_allclose(found, np.delete(force, 7, axis=0))
    with pytest.raises(RecordingError, match="no column fq; it has t, q1"):
        force_columns(path, log, ("fx", "fy", "fq"))


def test_the_command_prints_force_with_and_without_the_payload(tmp_path, tour, capsys):
    robot, time, q, force, _ = tour
    from taufit.sim import CarriedPayload, Twin, random_fourier

    twin = Twin(robot)
    runs = [
        twin.run(random_fourier(robot, seed=k), seed=k, payload=payload).recording
        for k, payload in ((1, ()), (2, (CarriedPayload.lump(MASS, np.array([0.0, 0.0, 0.05])),)))
    ]
    taufit.write_model(taufit.identify(robot, runs[:1]).model, tmp_path / "model.json")
    taufit.write_recording(runs[1], tmp_path / "loaded.parquet")
    own = taufit.Recording(time, q, np.zeros_like(q), meta={"joint_names": list(robot.joint_names)})
    taufit.write_recording(own, tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().splitlines()
    head = next(k for k, line in enumerate(lines) if not line.startswith("#"))
    lines[head] += ",fx,fy,fz"
    for k, row in enumerate(force):
        lines[head + 1 + k] += "," + ",".join(map(repr, row.tolist()))
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    words = ["payload", tmp_path / "model.json", tmp_path / "loaded.parquet"]
    more = ["--guiding", tmp_path / "log.csv", "--force-columns", "fx,fy,fz"]

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in arguments])
        return stop.value.code or 0

    # The model knows the twin to the last digit, so what is left over is far beyond its training's.
    assert run(*words, *more, "--json") == 1
    page = json.loads(capsys.readouterr().out)["guiding"]
    assert np.linalg.norm(page["mean_compensated"]) < 0.25 * np.linalg.norm(page["mean"])
    assert run(*words, *more) == 1
    assert "force of the hand" in capsys.readouterr().out
    assert run(*words, "--force-columns", "fx,fy") == 2
    assert run(*words, "--guiding", tmp_path / "log.csv") == 2
