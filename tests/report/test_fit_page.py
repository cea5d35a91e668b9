"""The page of a fit says what `fit` says."""

from __future__ import annotations

import pytest
from benchmarks.clean_runs import clean_run

from taufit.report import fit_page, model_page
from taufit.report.model_view import ReportRun
from taufit.workflow import identify


@pytest.fixture(scope="module")
def done():
    robot, recording = clean_run("horizontal", 1)
    return identify(robot, [recording], holdout="30%", friction="linear")


def test_the_page_of_a_fit_has_its_grade_and_the_reasons(done):
    text = fit_page(done)
    assert f"PASS ({done.grades.overall})" in text
    assert all(reason[1:] in text for reason in done.grades.reasons)
    assert "0.25" not in text.split("</section>")[0]


def test_the_page_of_a_model_on_a_recording_is_graded_alike(done):
    (score,), (samples,) = done.holdout_scores, done.holdout_samples
    text = model_page(done.model, [ReportRun("kept out", samples, score)])
    assert f"PASS ({done.grades.overall})" in text


def test_a_model_without_recordings_has_no_grade(done):
    assert "Not tested here" in model_page(done.model, [])
