"""`taufit friction`: from planned strokes to a model file, in words and as JSON."""

from __future__ import annotations

import pytest
from tests.output_json import parse_output

from taufit.cli import main
from taufit.model import read_model


def run(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    printed = capsys.readouterr()
    return stop.value.code or 0, printed.out, printed.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Strokes of two joints, planned and played by the twin."""
    out = tmp_path_factory.mktemp("friction")
    for words in (
        ["design", "ur3", "--kind", "friction-test", "--joint", "2", "--joint", "6",
         "--speeds", "4,10,25,50,80", "-o", str(out / "test.json")],
        ["simulate", "ur3", str(out / "test.json"), "--seed", "3", "-o", str(out / "run.parquet")],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert not stop.value.code
    return out


def test_curves_are_told_joint_by_joint_and_written(folder, capsys):
    model, page = folder / "friction.json", folder / "friction.html"
    code, out, err = run(
        capsys, "friction", "ur3", folder / "run.parquet", "--joint", 2, "--joint", 6,
        "-o", model, "--report", page,
    )  # fmt: skip
    assert code == 0, err
    assert "joint 2:" in out and "joint 6:" in out and "joint 1:" not in out
    assert "5 speeds up to 1.4 rad/s" in out and "N m" in out
    assert f"--friction {model}" in " ".join(out.split())
    assert read_model(model).robot.name == "ur3" and page.stat().st_size > 10_000
    code, out, err = run(
        capsys, "friction", "ur3", folder / "run.parquet", "--joint", 2, "-o", model, "--json"
    )
    assert code == 0, err
    (joint,) = parse_output("friction", out)["joints"]
    assert joint["joint"] == 2 and len(joint["tested_speeds"]) == 5


def test_joints_the_arm_has_not_are_wrong_usage(folder, capsys):
    code, _, err = run(
        capsys, "friction", "ur3", folder / "run.parquet", "--joint", 7, "-o", folder / "x.json"
    )
    assert code == 2 and "joints 1 to 6, not 7" in " ".join(err.split())


def test_joints_that_were_not_moved_are_refused_by_name(folder, capsys):
    code, _, err = run(
        capsys, "friction", "ur3", folder / "run.parquet", "--joint", 1, "-o", folder / "x.json"
    )
    assert code == 1 and "joint 1" in err
