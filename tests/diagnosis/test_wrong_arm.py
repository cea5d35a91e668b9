"""Recordings of one arm, fitted with the description of another of its family."""

from __future__ import annotations

import pytest
from benchmarks.accuracy.wrong_arm import RUNS, described
from benchmarks.clean_runs import clean_run

from taufit.diagnosis import RefusedError, sample_causes
from taufit.recording import cut, read_recordings
from taufit.robot import read_robot
from taufit.workflow import identify
from taufit.workflow.training_data import training_data

# Slow harmonics, in which the two arms differ least.
FILE = RUNS / "identification_data" / "ur-20_02_06-20sec_5harm.csv.gz"


@pytest.fixture(scope="module")
def runs():
    if not FILE.exists():
        pytest.skip("the shared recordings are not here")
    (one,) = read_recordings(FILE, map="ur10e_csv")
    one.meta.pop("robot", None)
    return [one]


@pytest.mark.parametrize("name", ["ur5e", "ur3e", "panda6"])
def test_a_model_of_another_arm_is_refused(name, runs):
    with pytest.raises(RefusedError) as refusal:
        identify(described()[name], runs)
    kinds = {finding.kind for finding in refusal.value.findings}
    assert kinds <= {"wrong_arm", "beyond_limits"}
    if name != "panda6":
        assert refusal.value.findings[0].remedy.robot in ("ur10e", "ur10")


def test_an_arm_of_nearly_the_same_lengths_is_accepted(runs):
    done = identify(read_robot("ur10"), runs)
    assert done.grades.overall != "poor"
    assert not [f for f in done.findings if f.kind == "wrong_arm"]


@pytest.mark.parametrize("name", ["ur5", "ur3e"])
def test_the_arm_itself_is_not_taken_for_another(name):
    """Friction, tools and masses as users have them; these two came nearest to another arm."""
    robot, recording = clean_run(name, 104)
    data = training_data(robot, [recording], cutoff_hz=10.0)
    assert sample_causes(data.robot, data.recordings, data.source.excerpt) == []


def test_too_short_a_motion_says_that_nothing_was_checked():
    robot, recording = clean_run("ur5e", 101)
    done = identify(robot, [cut(recording, 2.0, 6.0)])
    assert [f.kind for f in done.findings if f.kind == "unchecked"] == ["unchecked"]
    assert done.grades.overall != "good"
