"""A log whose rate nobody wrote down: the wrong one is refused with the right one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from benchmarks.accuracy.first_try import command, followed

from taufit.model.model_file import read_model
from taufit.recording import read_recording

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "xmate7p"
ARM, LOG = str(DATA / "XM7p.urdf"), str(DATA / "xmate7p_traj1.csv.gz")

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the shared recordings are not here")


def fit(folder, columns, *more):
    model = str(folder / "model.json")
    return command("fit", ARM, LOG, "--map", str(columns), "-o", model, "--json", *more)


@pytest.fixture
def columns(tmp_path):
    def write(rate):
        page = yaml.safe_load((ROOT / "examples" / "columns" / "xmate7p_csv.yaml").read_text())
        page["rate_hz"] = rate
        if rate is None:
            del page["rate_hz"]
        path = tmp_path / f"map_{rate}.yaml"
        path.write_text(yaml.safe_dump(page))
        return path

    return write


@pytest.mark.parametrize("rate", [50, 100, 250])
def test_a_wrong_rate_is_refused_and_the_right_one_named(rate, columns, tmp_path):
    mended = tmp_path / "mended.yaml"
    code, page, words = fit(tmp_path, columns(rate), "--write-map", str(mended))
    assert code == 3 and f"rate_hz 1000 instead of {rate}" in words
    assert [f["kind"] for f in page["findings"]] == ["clock_scale"]
    assert yaml.safe_load(mended.read_text())["rate_hz"] == 1000.0
    _, arguments = followed(page["remedy"], ARM, [LOG, "--map", "x"])
    assert arguments[-1] == str(mended)


def test_no_rate_is_refused_with_the_command_that_finds_it(columns, tmp_path):
    code, _, words = fit(tmp_path, columns(None))
    assert code == 3 and "--draft" in words
    drafted = str(tmp_path / "drafted.yaml")
    code, page, _ = command("convert", LOG, "--draft", drafted, "--robot", ARM, "--json")
    assert code == 0 and page["map"]["rate_hz"] == 1000.0
    code, page, words = fit(tmp_path, drafted)
    assert code == 0, words


def test_the_right_rate_gives_a_model_better_than_the_nominal_robot_in_every_joint(
    columns, tmp_path
):
    code, page, _ = fit(tmp_path, columns(1000))
    assert code == 0
    assert np.all(np.array(page["rmse"]) < np.array(page["before_identification"]["rmse"]))
    named = [f["joint"] for f in page["findings"] if f["kind"] == "one_way_joint"]
    assert named == [7]
    model = read_model(str(tmp_path / "model.json"))
    friction = model.layout.split(model.values).drive
    torque = np.abs(read_recording(LOG, column_map=columns(1000)).signal).max(axis=0)
    assert np.all(np.abs(friction) < 10 * torque[:, None])
    index = model.layout.index("joint_7.coulomb")
    assert np.isinf(model.training.std[index])
