"""`taufit.identify` takes names, files and frames, and gives what the command gives."""

from __future__ import annotations

import json

import numpy as np
import pandas
import polars
import pytest

import taufit
from taufit.cli.app import main
from taufit.core.errors import RecordingError, TaufitError
from taufit.fitting import automatic_model
from taufit.model.information_share import measured_speed_range
from taufit.report import fit_page
from taufit.sim import random_fourier
from taufit.workflow.training_data import condition_for_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of a simulated arm."""
    folder = tmp_path_factory.mktemp("runs")
    robot = taufit.read_robot("ur3e")
    for name, seed in (("run", 0), ("other", 1)):
        run = taufit.Twin.typical(robot).run(random_fourier(robot, seed=seed), seed=seed)
        taufit.write_recording(run.recording, folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def done(folder):
    return taufit.identify("ur3e", folder / "run.parquet", holdout=folder / "other.parquet")


def command(capsys, *words: object) -> dict:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert stop.value.code in (0, None)
    return json.loads(capsys.readouterr().out)


def test_the_call_gives_the_numbers_of_the_command(folder, done, capsys):
    files = (folder / "run.parquet", "--holdout", folder / "other.parquet")
    told = command(capsys, "fit", "ur3e", *files, "-o", folder / "model.json", "--json")
    assert told["mean_holdout_nrmse"] == done.mean_holdout_nrmse
    assert told["nrmse"] == done.training_score.nrmse.tolist()
    model = taufit.read_model(folder / "model.json")
    assert model.names == done.model.names
    np.testing.assert_array_equal(model.values, done.model.values)


def test_a_share_is_kept_out_as_the_command_does(folder, capsys):
    file = folder / "run.parquet"
    told = command(
        capsys, "fit", "ur3e", file, "--holdout", "30%", "-o", folder / "part.json", "--json"
    )
    done = taufit.identify("ur3e", file, holdout="30%")
    assert [one["mean_nrmse"] for one in told["holdout"]] == [
        s.mean_nrmse for s in done.holdout_scores
    ]


def test_a_share_kept_out_is_predicted_with_friction_as_the_motion_before_left_it(folder):
    whole = taufit.read_recording(folder / "run.parquet")
    done = taufit.identify("ur3e", whole, holdout="30%")
    samples = done.holdout_samples[0]
    counted = samples.time[samples.in_motion]
    border = 0.7 * (whole.time[-1] - whole.time[0])
    assert counted[0] >= border > done.samples.time[-1]
    # Nothing is lost to the low-pass where the part that counts begins.
    assert counted[0] - border < 2.0 / samples.rate_hz
    np.testing.assert_allclose(
        taufit.predicted_torque(done.model, samples)[samples.in_motion],
        taufit.predicted_torque(done.model, condition_for_model(done.model, [whole]))[
            samples.in_motion
        ],
        # Samples side by side in one register are grouped otherwise: rounding.
        atol=1e-12,
    )


def test_recordings_in_memory_are_as_good_as_files(folder, done):
    train, test = (taufit.read_recording(folder / f"{n}.parquet") for n in ("run", "other"))
    again = taufit.identify(taufit.read_robot("ur3e"), train, holdout=test)
    np.testing.assert_array_equal(again.model.values, done.model.values)
    assert again.mean_holdout_nrmse == done.mean_holdout_nrmse


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames_read_as_the_file_they_came_from(folder, library):
    frame = library.read_parquet(folder / "run.parquet")
    file, read = taufit.read_recording(folder / "run.parquet"), taufit.read_recording(frame)
    np.testing.assert_array_equal(read.position, file.position)
    np.testing.assert_array_equal(read.signal, file.signal)
    assert read.gain.tolist() == file.gain.tolist()


@pytest.mark.parametrize("library", [pandas, polars])
def test_a_map_names_the_columns_of_a_frame(library):
    t = np.arange(0.0, 2.0, 0.01)
    frame = library.DataFrame({"ms": 1e3 * t, "a1": np.rad2deg(np.sin(t)), "amp": np.cos(t)})
    columns = {
        "time": {"columns": "ms", "unit": "ms"},
        "position": {"columns": "a1", "unit": "deg"},
        "current": "amp",
    }
    read = taufit.read_recording(frame, column_map={"columns": columns, "gains": [11.0]})
    np.testing.assert_allclose(read.position[:, 0], np.sin(t), atol=1e-12)
    assert read.signal_unit == "A" and read.gain.tolist() == [11.0]


def test_a_frame_fits(folder, done):
    frames = [polars.read_parquet(folder / f"{name}.parquet") for name in ("run", "other")]
    again = taufit.identify("ur3e", frames[0], holdout=frames[1])
    assert again.mean_holdout_nrmse == pytest.approx(done.mean_holdout_nrmse, rel=1e-6)


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        (pandas.DataFrame({"name": ["a", "b"]}), "no rows of numbers"),
        (pandas.DataFrame({"t": []}), "no rows of numbers"),
        (pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}), "map"),
    ],
)
def test_frames_that_are_no_recording_are_refused_in_words(frame, word):
    with pytest.raises(RecordingError, match=word):
        taufit.read_recording(frame)


@pytest.mark.parametrize("wrong", [3.5, None, [object()]])
def test_what_is_no_recording_is_named(wrong):
    with pytest.raises(RecordingError, match=r"float|NoneType|object"):
        taufit.identify("ur3e", wrong)


@pytest.mark.parametrize("share", ["0%", "100%", "-3%", "x%"])
def test_a_share_that_is_none_is_refused(folder, share):
    with pytest.raises(RecordingError, match="share"):
        taufit.identify("ur3e", folder / "run.parquet", holdout=share)


def test_friction_models_go_by_their_names():
    robot = taufit.read_robot("ur3e")
    assert isinstance(automatic_model(robot, friction="stribeck").friction, taufit.Stribeck)
    assert automatic_model(robot, friction="none").friction is None
    with pytest.raises(TaufitError, match="there is no friction model 'stribek'"):
        automatic_model(robot, friction="stribek")


def test_the_fit_says_what_came_from_the_data_and_where_friction_is_a_guess(folder, done, capsys):
    words = (folder / "run.parquet", "--holdout", folder / "other.parquet")
    told = command(capsys, "fit", "ur3e", *words, "-o", folder / "again.json", "--json")
    shares, model = done.model.training.from_data, taufit.read_model(folder / "again.json")

    assert list(told["from_data"]["links"].values()) == np.round(shares.links, 3).tolist()
    assert told["from_data"]["friction"][0].keys() == set(done.model.layout.drive_names)
    np.testing.assert_array_equal(model.training.from_data.terms, shares.terms)
    assert told["friction_seen_to"] == done.model.training.ranges.velocity.largest.tolist()
    known = measured_speed_range(model)
    slow = [j for j in range(6) if known.measured[j] < 0.95 * known.rated[j]]
    assert list(known.extrapolated_joints) == slow and ("is a guess" in known.describe) == bool(
        slow
    )
    page = fit_page(done)
    assert "What came from the data" in page and known.describe in page
