"""The page of a fit says what `fit` says."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.clean_runs import clean_run

from taufit.report import fit_page, model_page
from taufit.report.model_view import ReportRun
from taufit.report.sections.torque import _worst_window
from taufit.validation import AcceptanceLimits
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


def test_a_page_fails_where_fit_fails_and_names_the_limit(done):
    limit = 0.5 * done.grades.unexplained
    text = fit_page(done, limits=AcceptanceLimits(limit))
    assert f"FAIL ({done.grades.overall})" in text and "Limit missed" in text
    assert f"exceeds {limit:g}" in text
    assert "Limit missed" not in fit_page(done, limits=AcceptanceLimits(0.9))


def test_a_long_recording_opens_at_its_worst_minute():
    time = np.arange(0.0, 900.0, 0.1)
    residual = np.random.default_rng(0).normal(size=(len(time), 3))
    residual[(time >= 420.0) & (time < 480.0), 1] *= 3.0
    assert _worst_window(time, residual) == (420.0, 480.0)
    assert _worst_window(time[:2000], residual[:2000]) is None


def test_the_page_of_a_model_on_a_recording_is_graded_alike(done):
    (score,), (samples,) = done.holdout_scores, done.holdout_samples
    text = model_page(done.model, [ReportRun("kept out", samples, score)])
    assert f"PASS ({done.grades.overall})" in text


def test_a_model_without_recordings_has_no_grade(done):
    assert "Not tested here" in model_page(done.model, [])
