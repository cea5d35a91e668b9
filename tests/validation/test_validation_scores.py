"""Scores, spectra, ranges and verdicts mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit import check
from taufit.core.errors import RecordingError, TaufitError
from taufit.model import predicted_torque
from taufit.signals import Samples, condition
from taufit.validation import (
    AcceptanceLimits,
    range_findings,
    residual_spectrum,
    score,
    verdict,
)


def test_score_is_rmse_over_std_in_motion(identified):
    samples, model = identified.samples, identified.model
    error = (samples.torque - predicted_torque(model, samples))[samples.in_motion]
    measured = samples.torque[samples.in_motion]

    one = score(model, samples)

    rmse = np.sqrt(np.mean(error**2, axis=0))
    np.testing.assert_allclose(one.rmse, rmse, rtol=1e-12)
    np.testing.assert_allclose(one.nrmse, rmse / measured.std(axis=0), rtol=1e-12)
    assert one.mean_nrmse == pytest.approx(np.mean(one.nrmse))
    assert one.samples == len(measured)
    for j in range(samples.joints):
        expected = np.corrcoef(measured[:, j], measured[:, j] - error[:, j])[0, 1]
        assert one.correlation[j] == pytest.approx(expected, abs=1e-12)
    # RMS over joints = e_N sqrt(N / j).
    total = np.sqrt(np.mean(error**2))
    assert one.e_n * np.sqrt(one.samples / samples.joints) == pytest.approx(total)


def test_prediction_never_looks_at_the_measured_torque(identified):
    samples, model = identified.samples, identified.model
    blind = replace(samples, torque=np.full_like(samples.torque, np.nan), raw_torque=None)

    np.testing.assert_array_equal(predicted_torque(model, blind), predicted_torque(model, samples))


def test_a_model_predicts_runs_it_has_not_seen(identified):
    # Noise is 2 % of each joint's torque before the low-pass keeps 8 of 100 Hz.
    assert identified.consistent
    for one in identified.holdout_scores:
        assert one.mean_nrmse < 0.02
    assert (
        identified.nominal_comparison is not None and identified.nominal_comparison.reduction > 0.85
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("training", "training_score"),
        ("holdout", "holdout_scores"),
        ("before", "nominal_comparison"),
    ],
)
def test_former_fields_of_a_result_are_accepted_with_a_warning(identified, old, new):
    with pytest.warns(DeprecationWarning, match=f"IdentificationResult.{old} is now {new}"):
        assert getattr(identified, old) is getattr(identified, new)


def test_check_gives_one_score_per_recording(identified):
    scores = check(identified.model, identified.holdout_samples, names=["a", "b"])

    assert [one.file for one in scores] == ["a", "b"]
    assert scores[0].mean_nrmse == pytest.approx(identified.holdout_scores[0].mean_nrmse)


def test_other_joint_counts_and_standstill_are_refused(identified, runs):
    samples = identified.samples
    fewer = Samples.from_arrays(*(samples.position[:, :5],) * 4)
    with pytest.raises(RecordingError, match=r"expected \d joints"):
        score(identified.model, fewer)
    still = replace(samples, motion=np.zeros(len(samples), bool))
    with pytest.raises(RecordingError, match="too few"):
        score(identified.model, still)
    broken = replace(samples, torque=np.full_like(samples.torque, np.nan))
    with pytest.raises(RecordingError, match="joint 1 is not finite at sample"):
        score(identified.model, broken)


def test_leaving_the_range_of_training_is_told(identified):
    model, samples = identified.model, identified.samples
    assert range_findings(model, samples) == ()

    moved = replace(samples, position=samples.position + np.array([0, 0, 3.0, 0, 0, 0]))
    faster = replace(samples, velocity=samples.velocity * np.array([1, 1, 1, 1, 1, 4.0]))

    assert "positions of joint 3" in " ".join(range_findings(model, moved))
    assert "speeds of joint 6" in " ".join(range_findings(model, faster))


def test_spectrum_holds_the_power_and_finds_a_tone(identified):
    model, samples = identified.model, identified.samples
    predicted = predicted_torque(model, samples)
    tone = 2.0 * np.sin(2 * np.pi * 3.0 * samples.time)[:, None]
    samples = replace(samples, torque=predicted + tone)

    spectrum = residual_spectrum(model, samples, predicted=predicted)

    step = spectrum.frequency[1]
    np.testing.assert_allclose(spectrum.median_frequency, 3.0, atol=2 * step)
    # Hann windows leak a little beyond the low-pass, where the spectrum ends.
    np.testing.assert_allclose(spectrum.residual.sum(axis=0) * step, 2.0, rtol=0.05)


def test_a_run_without_64_samples_in_motion_has_no_spectrum(identified):
    samples = identified.samples
    moving = np.zeros(len(samples.time), bool)
    moving[:63] = True
    assert residual_spectrum(identified.model, replace(samples, motion=moving)) is None


def test_verdicts_name_every_broken_limit(identified):
    scores = identified.holdout_scores
    good = verdict(scores)
    assert good.passed and good.label == "PASS"

    assert verdict(scores, AcceptanceLimits(mean_nrmse=0.5, rmse=(50.0,), correlation=0.5)).passed
    bad = verdict(
        scores, AcceptanceLimits(mean_nrmse=1e-6, nrmse=1e-6, rmse=(1e-6,), correlation=1.0)
    )
    assert not bad.passed
    joints = identified.model.robot.joints
    assert len(bad.reasons) == len(scores) * (1 + 3 * joints)
    with pytest.raises(TaufitError, match="2 RMSE limits were given for 6 joints"):
        verdict(scores, AcceptanceLimits(rmse=(1.0, 2.0)))
    for wrong in ({"mean_nrmse": -1.0}, {"nrmse": np.nan}, {"correlation": 2.0}):
        with pytest.raises(TaufitError):
            AcceptanceLimits(**wrong)


def test_an_equal_low_pass_on_both_sides(truth, runs):
    # The true model leaves exactly the filtered noise, whatever the cut-off.
    for cutoff in (4.0, 20.0):
        samples = condition(runs[1], cutoff_hz=cutoff)
        one = score(truth, samples)
        # White noise through the low-pass keeps about cutoff / Nyquist of its variance.
        expected = 0.02 * np.sqrt(cutoff / 100.0)
        assert np.all(one.nrmse < 1.6 * expected + 0.004)
