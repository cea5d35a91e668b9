"""Several recordings in one fit, one of them bad: the fit goes on without it and says so."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.cli import main
from taufit.core.errors import RecordingError
from taufit.recording import Recording


def with_stuck_joint(recording: Recording) -> Recording:
    position = recording.position.copy()
    position[len(position) // 3 :, 1] = position[len(position) // 3, 1]
    return replace(recording, position=position)


def with_reversed_torque(recording: Recording) -> Recording:
    return replace(recording, signal=-recording.signal)


FAULTS = {"stuck": with_stuck_joint, "reversed": with_reversed_torque, "text": None}


@pytest.fixture(scope="module")
def runs():
    return clean_runs("ur3e", 3, 5)[1]


def write_runs(folder, runs, bad, fault):
    paths = [folder / f"run_{k}.parquet" for k in range(len(runs))]
    for k, (path, run) in enumerate(zip(paths, runs, strict=True)):
        if k in bad and FAULTS[fault] is None:
            path.write_bytes(b"not a recording")
        else:
            taufit.write_recording(FAULTS[fault](run) if k in bad else run, path)
    return paths


@pytest.mark.parametrize(("fault", "bad"), [("reversed", 4), ("text", 0)])
def test_one_bad_file_of_five_is_left_out_and_named(tmp_path, runs, fault, bad):
    paths = write_runs(tmp_path, runs, [bad], fault)
    good = [path for k, path in enumerate(paths) if k != bad]
    result = taufit.identify("ur3e", paths, friction="linear", holdout="30%")
    expected = taufit.identify("ur3e", good, friction="linear", holdout="30%")
    np.testing.assert_array_equal(result.model.values, expected.model.values)
    assert [s.file for s in result.holdout_scores] == [p.name for p in good]
    (finding,) = (f for f in result.findings if f.kind == "file_left_out")
    assert finding.file == f"run_{bad}.parquet"
    assert any("was left out of the fit" in text for text in result.warnings)
    assert result.model.training.provenance.sources["left_out"] == [f"run_{bad}.parquet"]


def test_two_bad_files_of_five_and_missing_files_are_errors(tmp_path, runs):
    paths = write_runs(tmp_path, runs, [1, 3], "stuck")
    with pytest.raises(RecordingError, match="stuck"):
        taufit.identify("ur3e", paths, friction="linear")
    paths[1].unlink()
    with pytest.raises(RecordingError, match=r"run_1\.parquet"):
        taufit.identify("ur3e", paths, friction="linear")


def test_the_command_names_the_file(tmp_path, runs, capsys):
    paths = write_runs(tmp_path, runs, [0], "text")
    with pytest.raises(SystemExit) as stop:
        main(["fit", "ur3e", *map(str, paths), "--friction", "linear", "--json",
              "-o", str(tmp_path / "model.json")])  # fmt: skip
    data = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert [f["file"] for f in data["findings"] if f["kind"] == "file_left_out"] == [paths[0].name]
