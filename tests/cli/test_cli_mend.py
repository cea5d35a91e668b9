"""`taufit fit --write-map`: the advice of a refusal, followed, leads to a model."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.first_try import Outcome, command, fit, outcome, simulated
from benchmarks.layouts import LAYOUTS, sines
from benchmarks.traps import TRAPS, Trap, log_of

from taufit.model.model_file import read_model
from taufit.recording import write_recording

# One of each kind of remedy: a unit, a clock, columns, signs, an option, a part, another robot.
FOLLOWED = [
    "degrees",
    "clock 0.8 times",
    "torque of 2 and 3 swapped",
    "position and velocity sign of joint 2",
    "mounted on the ceiling",
    "encoder 3 sticks half way",
    "torque 100 ms late",
    "wrong arm: smaller",
]


@pytest.fixture(scope="module")
def clean():
    return log_of(simulated("ur5e", 31), "ur5e")


@pytest.fixture(scope="module")
def floor(clean):
    found = outcome(Trap("clean", lambda log: None), clean)
    assert found.code == 0 and found.remedy is None
    return found.nrmse


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_advice_of_a_refusal_leads_to_a_model_as_good_as_the_clean_one(name, clean, floor):
    trap = next(one for one in TRAPS if one.name == name)
    found: Outcome = outcome(trap, clean)
    assert found.named and found.remedy is not None, found.text
    assert found.code == (0 if "late" in name else 3)
    assert found.again == 0 and found.steps == 1, found.again_text
    assert found.again_nrmse < 1.5 * floor


def test_a_file_of_our_own_gets_a_map_that_reads_it_rightly(tmp_path):
    recording = simulated("ur5e", 32)
    signal = recording.signal.copy()
    signal[:, 1] *= -1.0
    write_recording(replace(recording, signal=signal), tmp_path / "run.parquet")
    path = str(tmp_path / "run.parquet")
    code, page, words = fit("ur5e", [path], tmp_path, "mended.yaml")
    assert code == 3 and "--map" in words and page["remedy"]["map_file"]
    code, page, words = fit("ur5e", [path, "--map", page["remedy"]["map_file"]], tmp_path, "x")
    assert code == 0, words


def test_a_forced_model_of_another_arm_says_so_when_it_weighs(tmp_path):
    recording = simulated("ur5e", 33)
    meta = {key: value for key, value in recording.meta.items() if key != "robot"}
    write_recording(replace(recording, meta=meta), tmp_path / "run.parquet")
    path, model = str(tmp_path / "run.parquet"), str(tmp_path / "model.json")
    code, page, words = command("fit", "ur10e", path, "-o", model, "--json")
    assert code == 3 and "another arm: ur5" in words
    assert page["remedy"]["robot"] in ("ur5e", "ur5")
    code, page, _ = command("fit", "ur10e", path, "-o", model, "--ignore-contradictions", "--json")
    assert code == 0 and page["verdict"] == "FAIL" and page["grade"] == "poor"
    assert "another arm" in read_model(model).training.contradictions[0]
    code, page, _ = command("payload", model, path, "--json")
    assert any("by force although" in text for text in page["warnings"])


@pytest.mark.parametrize("layout", ["decimal_commas", "headerless_interleaved", "parquet_lists"])
def test_a_draft_fits_as_it_is(layout, tmp_path):
    path = LAYOUTS[layout](tmp_path, sines(4, 12.0))
    drafted = str(tmp_path / "map.yaml")
    code, page, words = command(
        "convert", str(path), "--draft", drafted, "--robot", "ur5e", "--json"
    )
    assert code == 0, words
    how = [] if page["draft"] is None else ["--map", drafted]
    code, page, words = command(
        "fit", "ur5e", str(path), *how, "-o", str(tmp_path / "m.json"), "--json"
    )
    assert code == 0 and np.isfinite(page["mean_nrmse"]), words
    assert json.dumps(page["findings"]).count('"error"') == 0
