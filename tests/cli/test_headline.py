"""One headline figure: terminal, JSON, grades, report, model file and `check` agree."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.cli import main
from taufit.recording import write_recording


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

    figure = data["unexplained"]
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
    # A clean log is called good, and the stated floor is below the error.
    assert word in ("excellent", "good")
    assert data["headroom"] is None or data["headroom"] >= 1.0
    assert all(g["floor"] is None or g["floor"] <= g["nrmse"] for g in data["grades"])
