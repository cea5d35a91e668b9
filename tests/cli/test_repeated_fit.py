"""A model file holds what is needed to repeat its fit; a test on the training data is none."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import taufit
from taufit.cli import main
from taufit.core.errors import RecordingError


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return stop.value.code or 0, shown.out, shown.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("again")
    for seed, name in enumerate(("run", "other")):
        with pytest.raises(SystemExit):
            main(["simulate", "ur3", "--seed", str(seed), "-o", str(folder / f"{name}.parquet")])
    return folder


def test_a_fit_with_a_share_and_a_time_interval_is_repeated_from_its_model(
    folder, capsys, tmp_path
):
    model, again = tmp_path / "model.json", tmp_path / "again.json"
    fit = ["fit", "ur3", folder / "run.parquet", "--holdout", "30%", "--from", "1", "--friction",
           "linear", "--estimator", "wls", "--cutoff-hz", "8"]  # fmt: skip
    assert run(capsys, *fit, "-o", model)[0] == 0
    sources = taufit.read_model(model).training.provenance.sources
    assert sources["holdout_share"] == 0.3
    assert sources["arguments"] == [str(word) for word in fit[1:]]
    assert run(capsys, "fit", "--again", model, "-o", again)[0] == 0
    first, second = taufit.read_model(model), taufit.read_model(again)
    assert second.values.tolist() == first.values.tolist()
    assert second.training.accuracy == first.training.accuracy
    # An option that follows replaces the recorded one.
    assert run(capsys, "fit", "--again", model, "--cutoff-hz", "5", "-o", again)[0] == 0
    assert taufit.read_model(again).training.conditioning.cutoff_hz == 5.0


def test_a_fit_is_not_repeated_on_other_data_or_without_a_record(folder, capsys, tmp_path):
    shutil.copy(folder / "run.parquet", tmp_path / "run.parquet")
    model = tmp_path / "model.json"
    fit = ["fit", "ur3", tmp_path / "run.parquet", "--friction", "linear", "--estimator", "wls"]
    assert run(capsys, *fit, "-o", model)[0] == 0
    shutil.copy(folder / "other.parquet", tmp_path / "run.parquet")
    code, _, text = run(capsys, "fit", "--again", model, "-o", tmp_path / "again.json")
    assert code == 3 and "recordings of its fit" in text and not (tmp_path / "again.json").exists()
    done = taufit.identify("ur3", folder / "run.parquet", friction="linear", holdout="30%")
    assert done.model.training.provenance.sources["holdout_share"] == 0.3
    taufit.write_model(done.model, model)
    code, _, text = run(capsys, "fit", "--again", model)
    assert code == 3 and "does not record the arguments" in text


def test_a_holdout_that_the_fit_has_seen_is_refused(folder, capsys, tmp_path):
    copy = tmp_path / "copy.parquet"
    shutil.copy(folder / "run.parquet", copy)
    fit = ["fit", "ur3", folder / "run.parquet", "--holdout", copy, "--friction", "linear",
           "--estimator", "wls", "-o", tmp_path / "model.json"]  # fmt: skip
    code, _, text = run(capsys, *fit)
    assert code == 3 and "copy.parquet has the contents of" in text
    assert not (tmp_path / "model.json").exists()
    assert run(capsys, *fit, "--allow-repeats")[0] == 0
    with pytest.raises(RecordingError, match="has the contents of"):
        taufit.identify("ur3", folder / "run.parquet", holdout=copy, friction="linear")


def test_a_refused_fit_that_is_forced_fails_with_table_and_report(folder, capsys, tmp_path):
    """Shuffled torque: no robot explains it, so the input is refused."""
    recording = taufit.read_recording(folder / "run.parquet")
    order = np.random.default_rng(1).permutation(len(recording))
    shuffled, page = tmp_path / "shuffled.parquet", tmp_path / "page.html"
    taufit.write_recording(replace(recording, signal=recording.signal[order]), shuffled)
    fit = ["fit", "ur3", shuffled, "--friction", "linear", "--estimator", "wls", "--holdout", "30%",
           "-o", tmp_path / "model.json", "--report", page]  # fmt: skip
    assert run(capsys, *fit)[0] == 3 and not page.exists()
    _, out, _ = run(capsys, *fit, "--ignore-contradictions")
    assert out.startswith("FAIL (poor)") and "nrmse per joint" in out
    assert "FAIL (poor)" in page.read_text()
