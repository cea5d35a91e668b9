"""One headline figure: terminal, JSON, grades, report, model file and `check` agree."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.cli import main
from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording, write_recording


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code or 0, capsys.readouterr().out


def percent(text: str) -> str:
    found = re.search(r"([\d.]+) % of the torque is\s+left\s+unexplained", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize(("arm", "seed"), [("ur3e", 3), ("kr5", 4)])
def test_every_output_has_the_same_figure(arm, seed, tmp_path, capsys):
    _, runs = clean_runs(arm, seed, 2)
    for name, recording in zip(("run", "other"), runs, strict=True):
        write_recording(recording, tmp_path / f"{name}.parquet")
    model, page = tmp_path / "model.json", tmp_path / "page.html"
    fit = ["fit", arm, tmp_path / "run.parquet", "--holdout", tmp_path / "other.parquet",
           "--friction", "linear", "-o", model]  # fmt: skip
    code, terminal = run(capsys, *fit, "--report", page)
    assert code == 0
    code, out = run(capsys, *fit, "--json")
    data = json.loads(out)
    code, checked = run(capsys, "check", model, tmp_path / "other.parquet")
    assert code == 0
    code, out = run(capsys, "check", model, tmp_path / "other.parquet", "--json")
    check = json.loads(out)
    assert (
        run(capsys, "report", model, tmp_path / "other.parquet", "-o", tmp_path / "r.html")[0] == 0
    )
    code, out = run(capsys, "export", model, "-o", tmp_path / "model.urdf", "--json",
                    "--holdout", tmp_path / "other.parquet")  # fmt: skip
    assert code == 0
    export = json.loads(out)["holdout"][0]

    figure = data["unexplained"]
    assert export["model_mean_nrmse"] == pytest.approx(figure, rel=1e-9)
    assert figure == pytest.approx(np.mean([g["nrmse"] for g in data["grades"]]))
    assert figure == data["mean_holdout_nrmse"] == data["holdout"][0]["mean_nrmse"]
    record = taufit.read_model(model).training.accuracy
    assert record is not None and record.unexplained == figure and record.on_holdout
    assert check["unexplained"] == check["mean_nrmse"] == pytest.approx(figure, rel=1e-9)
    printed = {percent(terminal), percent(checked), percent(page.read_text()),
               percent((tmp_path / "r.html").read_text())}  # fmt: skip
    assert printed == {f"{100 * figure:.1f}"}
    word = data["accuracy"]
    assert word == data["grade"] == record.word == check["accuracy"]
    assert terminal.startswith(f"PASS ({word})") and checked.startswith(f"PASS ({word})")
    assert f"PASS ({word})" in page.read_text()
    # A clean recording is called good, and the stated floor is below the error.
    assert word in ("excellent", "good")
    assert data["headroom"] is None or data["headroom"] >= 1.0
    assert all(g["floor"] is None or g["floor"] <= g["nrmse"] for g in data["grades"])


TWO_JOINTS = """
name: two_joints
convention: standard
angles: degrees
joints:
  - {name: a, a: 0.4, theta: 0, alpha: 90, mass: 6, com: [-0.2, 0, 0], inertia: [0.02, 0.1, 0.1]}
  - {name: b, a: 0.3, theta: 0, alpha: 0, mass: 3, com: [-0.1, 0, 0], inertia: [0.01, 0.05, 0.05]}
"""


def two_joint_recording(robot, seed: int) -> Recording:
    """Ten seconds of two joints with friction and slow noise, from little to most of the torque."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 10.0, 0.01)
    waves = [np.sin(np.outer(time, rng.uniform(1.0, 5.0, 3)) + rng.uniform(0, 6, 3)) for _ in "ab"]
    position = np.column_stack([wave.mean(axis=1) for wave in waves])
    velocity = np.gradient(position, time, axis=0)
    torque = inverse_dynamics(robot, position, velocity, np.gradient(velocity, time, axis=0))
    slow = np.sin(np.outer(time, rng.uniform(2.0, 9.0, 2)) + rng.uniform(0, 6, 2))
    noise = rng.uniform(0.1, 1.1) ** 4 * torque.std(axis=0) * slow
    noise += 0.02 * torque.std(axis=0) * rng.normal(size=torque.shape)
    return Recording(time, position, torque + 0.5 * np.tanh(velocity / 0.05) + noise, velocity)


def test_twenty_fits_have_one_figure_each(tmp_path, capsys):
    (tmp_path / "arm.yaml").write_text(TWO_JOINTS)
    robot = taufit.read_robot(tmp_path / "arm.yaml")
    run_file, other, model, page = (
        tmp_path / name for name in ("run.parquet", "other.parquet", "model.json", "page.html")
    )
    figures = []
    for seed in range(20):
        write_recording(two_joint_recording(robot, seed), run_file)
        write_recording(two_joint_recording(robot, 100 + seed), other)
        _, out = run(
            capsys, "fit", tmp_path / "arm.yaml", run_file, "--holdout", other, "--friction",
            "linear", "--ignore-contradictions", "-o", model, "--report", page, "--json",
        )  # fmt: skip
        data = json.loads(out)
        _, checked = run(capsys, "check", model, other)
        record = taufit.read_model(model).training.accuracy
        figure = data["unexplained"]
        assert figure == data["mean_holdout_nrmse"] == record.unexplained
        joints = [g for g in data["grades"] if g["grade"] != "not measured"]
        assert figure == pytest.approx(np.mean([g["nrmse"] for g in joints]))
        assert percent(page.read_text()) == percent(checked) == f"{100 * figure:.1f}"
        assert f"({data['accuracy']})" in page.read_text() and f"({data['accuracy']})" in checked
        assert all(g["floor"] is None or g["floor"] <= g["nrmse"] for g in joints)
        figures.append(figure)
    # From excellent to poor, and never the same.
    assert min(figures) < 0.05 and max(figures) > 0.35 and len(set(figures)) == 20
