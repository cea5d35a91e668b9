"""Recordings of one arm, fitted with the description of another of its family."""

from __future__ import annotations

import pytest
from benchmarks.accuracy.wrong_arm import RUNS, described
from benchmarks.clean_runs import clean_run

from taufit.diagnosis import ContradictionError, sample_causes
from taufit.recording import crop, read_recordings
from taufit.robot import read_robot
from taufit.workflow import identify
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.training_data import training_data

# Slow harmonics, in which the two arms differ least.
FILE = RUNS / "identification_data" / "ur-20_02_06-20sec_5harm.csv.gz"
# Less than five seconds of motion.
SHORT = RUNS / "identification_data" / "ur-19_10_01-13_51_41.csv.gz"


def nameless(path):
    (one,) = read_recordings(path, column_map="ur10e_csv")
    one.meta.pop("robot", None)
    return one


@pytest.fixture(scope="module")
def runs():
    if not FILE.exists():
        pytest.skip("the shared recordings are not here")
    return [nameless(FILE)]


@pytest.mark.parametrize("name", ["ur5e", "ur3e", "panda6"])
def test_a_model_of_another_arm_is_refused(name, runs):
    with pytest.raises(ContradictionError) as refusal:
        identify(described()[name], runs)
    assert {finding.kind for finding in refusal.value.findings} == {"wrong_arm"}
    assert refusal.value.findings[0].remedy.robot in ("ur10e", "ur10")


@pytest.mark.parametrize("name", ["ur5e", "ur3e", "panda6"])
def test_a_short_motion_of_another_arm_is_refused(name, runs):
    with pytest.raises(ContradictionError) as refusal:
        identify(described()[name], [nameless(SHORT)])
    (finding,) = refusal.value.findings
    assert finding.kind == "wrong_arm"
    assert finding.remedy.robot in ("ur10e", "ur10")
    # Their lengths are the same, and so short a motion shows no more.
    assert "ur10 " in finding.message and "ur10e " in finding.message


def test_where_lengths_do_not_show_links_of_another_arm_are_a_warning(runs):
    """Six seconds of a slow motion: torque alone does not decide between the arms."""
    one = crop(nameless(FILE.with_name("ur-20_01_31-unload.csv.gz")), 10.0, 16.0)
    data = training_data(FitRequest(cutoff_hz=10.0), read_robot("ur5e"), [one])
    causes = sample_causes(data.robot, data.recordings, data.source.excerpt)
    assert [(one.finding.kind, one.finding.severity) for one in causes] == [
        ("wrong_arm", "warning")
    ]


@pytest.mark.parametrize("name", ["ur5", "ur5e", "ur3e", "iiwa7"])
def test_a_short_motion_of_the_arm_itself_is_not_taken_for_another(name):
    robot, recording = clean_run(name, 216)
    data = training_data(FitRequest(cutoff_hz=10.0), robot, [crop(recording, 2.0, 6.0)])
    causes = sample_causes(data.robot, data.recordings, data.source.excerpt)
    assert [one.finding.kind for one in causes] == ["unchecked"]


def test_an_arm_of_nearly_the_same_lengths_is_accepted(runs):
    done = identify(read_robot("ur10"), runs)
    assert done.grades.overall != "poor"
    assert not [f for f in done.findings if f.kind == "wrong_arm"]


@pytest.mark.parametrize("name", ["ur5", "ur3e"])
def test_the_arm_itself_is_not_taken_for_another(name):
    """Friction, tools and masses as users have them; these two came nearest to another arm."""
    robot, recording = clean_run(name, 104)
    data = training_data(FitRequest(cutoff_hz=10.0), robot, [recording])
    assert sample_causes(data.robot, data.recordings, data.source.excerpt) == []


def test_too_short_a_motion_says_that_nothing_was_checked():
    robot, recording = clean_run("ur5e", 101)
    done = identify(robot, [crop(recording, 2.0, 6.0)], friction="linear")
    assert [f.kind for f in done.findings if f.kind == "unchecked"] == ["unchecked"]
    assert any("too short to check" in reason for reason in done.grades.reasons)
