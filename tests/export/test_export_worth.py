"""`taufit export` says what the written form is worth: on training, and on every --holdout."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from taufit.cli import main
from taufit.export import EXPORTS
from taufit.export.c.instruction_count import count_instructions
from taufit.export.export_accuracy import ExportAccuracy
from taufit.model import read_model
from taufit.model.score import Score


def ended(*words):
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return stop.value.code or 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model of a simulated arm, and two recordings it has not seen."""
    folder = tmp_path_factory.mktemp("worth")
    for name, seed in (("run", 1), ("other", 2), ("third", 3)):
        assert ended("simulate", "ur3", "--seed", seed, "-o", folder / f"{name}.parquet") == 0
    assert ended("fit", "ur3", folder / "run.parquet", "-o", folder / "model.json") == 0
    return folder


# Forms with the terms of a simulator, and forms that hold the whole model.
REFITTED, COMPLETE = ("urdf", "mjcf", "sdf"), ("c", "fmu", "json", "ros2")


@pytest.mark.parametrize("form", EXPORTS)
def test_json_holds_the_form_beside_the_model_on_every_file(fitted, form, tmp_path, capsys):
    unseen = [fitted / "other.parquet", fitted / "third.parquet"]
    words = ["export", fitted / "model.json", "--format", form, "--json"]
    for path in unseen:
        words += ["--holdout", path]
    capsys.readouterr()
    assert ended(*words, "-o", tmp_path / f"arm{EXPORTS[form].ending}") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["format"] == form and [one["file"] for one in said["holdout"]] == [
        path.name for path in unseen
    ]
    assert bool(said["dropped"]) or not said["refitted"]
    for one in filter(None, (said["training"], *said["holdout"])):
        assert len(one["nrmse"]) == len(one["model_nrmse"]) == 6
        assert 0.0 < one["model_mean_nrmse"] < 0.5
        if form in REFITTED or form == "casadi":
            assert one["mean_nrmse"] > one["model_mean_nrmse"]
        else:
            # Everything is held: differences of velocity in the place of accelerations.
            assert one["mean_nrmse"] == pytest.approx(one["model_mean_nrmse"], rel=0.05)
    if form in (*REFITTED, *COMPLETE, "casadi"):
        # What planning gets is not the model of the training: its score is taken on recordings.
        assert (said["training"] is None) == (form == "casadi")
        assert said["refitted"] == (form in REFITTED) == bool(said["dropped"])


def test_the_page_of_words_says_the_same(fitted, tmp_path, capsys):
    words = ["export", fitted / "model.json", "--holdout", fitted / "other.parquet"]
    capsys.readouterr()
    assert ended(*words, "-o", tmp_path / "arm.urdf") == 0
    text = capsys.readouterr().out
    assert "Torque left unexplained on training data:" in text
    assert "Torque left unexplained on other.parquet:" in text
    assert "were refitted" in text and "N m rms on joint" in text


def test_a_recording_that_is_not_there_is_refused_and_nothing_is_written(fitted, tmp_path, capsys):
    words = ["export", fitted / "model.json", "--holdout", fitted / "nobody.parquet"]
    assert ended(*words, "-o", tmp_path / "arm.urdf") == 3
    assert not list(tmp_path.iterdir())


def test_no_figure_is_printed_where_no_torque_varied(fitted, tmp_path, capsys):
    text = json.loads((fitted / "model.json").read_text())
    del text["score"]["nrmse"]
    (tmp_path / "model.json").write_text(json.dumps(text))
    capsys.readouterr()
    assert ended("export", tmp_path / "model.json", "-o", tmp_path / "arm.json") == 0
    out = capsys.readouterr().out
    assert "not known" in out and "nan" not in out


def test_joints_whose_torque_is_noise_count_in_neither_mean():
    nrmse, zeros = np.array([0.1, 0.9]), np.zeros(2)
    noisy = Score("run", 100, 1.0, 10.0, nrmse, nrmse, zeros, zeros, zeros, 0.0,
                  noise_share=np.array([0.05, 0.8]))  # fmt: skip
    accuracy = ExportAccuracy(np.array([0.2, 0.9]), noisy)
    assert (accuracy.mean_nrmse, accuracy.model_mean_nrmse) == (0.2, 0.1)


def test_instructions_of_one_call_are_counted_on_request(fitted, tmp_path, capsys):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing")
    words = ["export", fitted / "model.json", "-o", tmp_path / "arm.c", "--count-instructions"]
    assert ended(*words) == 0
    assert "Instructions of one feed_forward call: " in capsys.readouterr().out
    assert ended("export", fitted / "model.json", "-o", tmp_path / "a.urdf", *words[-1:]) == 2
    (step,) = count_instructions(read_model(fitted / "model.json"), 12, functions=("step",))
    # Six joints: thousands of floating-point operations, and the same ones at every state.
    assert len(step.counts) == 12 and 3_000 < step.median < 40_000
    assert step.worst < 1.2 * step.median
