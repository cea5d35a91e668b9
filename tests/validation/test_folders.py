"""A folder with loops and repeats says what its distinct files say."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import simulated_arm

import taufit
from taufit.core.errors import RecordingError
from taufit.recording import write_recording
from taufit.workflow import identify


@pytest.fixture(scope="module")
def folder_of_runs(truth, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        path = folder / f"run{seed}.parquet"
        write_recording(simulated_arm.recording(truth, 12.0, seed, name=path.name), path)
    return folder


def test_intervals_are_those_of_the_distinct_files(arm, folder_of_runs, tmp_path):
    how = {"cutoff_hz": 8.0, "friction": "linear"}
    plain = identify(arm, sorted(folder_of_runs.glob("*.parquet")), **how)
    folder = tmp_path / "runs"
    shutil.copytree(folder_of_runs, folder)
    (folder / "loop").symlink_to("..")
    found = identify(arm, folder, **how)
    np.testing.assert_allclose(found.estimate.base_std, plain.estimate.base_std, rtol=1e-12)
    assert any("loop is a link" in text for text in found.warnings)

    shutil.copy(folder / "run0.parquet", folder / "run0 (1).parquet")
    with pytest.raises(RecordingError, match=r"run0.parquet is .*run0 \(1\).parquet again"):
        identify(arm, folder, **how)
    # What a repeat would do: this is what the refusal is for.
    runs = [folder / "run0.parquet", folder / "run0 (1).parquet"]
    once = identify(arm, runs[:1], estimator=taufit.Wls(), **how)
    twice = identify(arm, runs, estimator=taufit.Wls(), allow_repeats=True, **how)
    assert np.median(twice.estimate.base_std / once.estimate.base_std) < 0.95
    assert any(finding.kind == "repeated_file" for finding in twice.findings)
