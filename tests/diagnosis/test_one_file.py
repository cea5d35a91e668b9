"""A joint whose zero is off, or another load, in one of several files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.clean_runs import SHARED, clean_runs

from taufit.diagnosis import sample_causes
from taufit.recording import read_recordings
from taufit.robot import read_robot
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.training_data import training_data


@pytest.fixture(scope="module")
def runs():
    robot, recordings = clean_runs("ur5e", 300, 4)
    return robot, [
        replace(one, meta={**one.meta, "file": f"run{i}.csv"}) for i, one in enumerate(recordings)
    ]


def causes(robot, recordings):
    data = training_data(FitRequest(cutoff_hz=10.0), robot, recordings)
    return sample_causes(data.robot, data.recordings, data.source.excerpt)


def with_zero_off(recordings, which: int, joint: int, angle: float):
    position = np.array(recordings[which].position)
    position[:, joint] += angle
    moved = replace(recordings[which], position=position)
    return [*recordings[:which], moved, *recordings[which + 1 :]]


@pytest.mark.parametrize(("joint", "angle"), [(1, 0.15), (2, -0.2), (3, 0.3), (4, 0.3)])
def test_the_file_the_joint_and_the_angle_are_named(runs, joint, angle):
    robot, recordings = runs
    (cause,) = causes(robot, with_zero_off(recordings, 2, joint, angle))
    assert (cause.finding.kind, cause.finding.severity) == ("zero_offset", "error")
    assert cause.finding.joint == joint + 1
    assert cause.finding.message.startswith("run2.csv: ")
    # An offset in the map would spoil the other files.
    assert cause.finding.remedy is None
    rows = cause.correction.remedy.edits[0].value
    # Of these four angles the worst was found to 0.013 rad.
    assert rows[joint] == pytest.approx(-angle, abs=0.03)


def test_nothing_is_found_in_clean_files(runs):
    assert causes(*runs) == []


def test_a_load_in_one_file_is_named_and_nothing_else_is_blamed():
    files = sorted((SHARED / "ur10e" / "identification_data").glob("ur-20_02_1*"))
    if not files:
        pytest.skip("the shared recordings are not here")
    recordings = [one for path in files for one in read_recordings(path, column_map="ur10e_csv")]
    loads = ["oad" in one.name for one in recordings]
    assert any(loads) and not all(loads)
    (cause,) = causes(read_robot("ur10e"), recordings)
    assert (cause.finding.kind, cause.finding.severity) == ("other_load", "warning")
    assert recordings[loads.index(True)].name in cause.finding.message
    # On the scales: 2.805 kg.
    assert cause.finding.value == pytest.approx(2.805, rel=0.3)
    unloaded = [one for one, load in zip(recordings, loads, strict=True) if not load]
    assert causes(read_robot("ur10e"), unloaded) == []


def test_it_is_found_in_a_real_recording_among_others():
    files = sorted((SHARED / "ur10e" / "identification_data").glob("ur-20_02_1*harm.csv.gz"))
    if not files:
        pytest.skip("the shared recordings are not here")
    recordings = [one for path in files for one in read_recordings(path, column_map="ur10e_csv")]
    (cause,) = causes(read_robot("ur10e"), with_zero_off(recordings, 1, 3, 0.3))
    assert cause.finding.joint == 4
    assert files[1].name in cause.finding.message
