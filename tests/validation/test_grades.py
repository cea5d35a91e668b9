"""One figure decides the word; a floor no model can raise stands beside it and decides nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.model.score import Score
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples
from taufit.validation.grades import NOT_MEASURED, RecordingEvidence, grade, unmeasured_findings
from taufit.validation.noise_floor import noise_findings, noise_share, repeat_share

UNKNOWN = np.full(3, np.nan)


def score(*nrmse: float, **further) -> Score:
    e = np.array(nrmse)
    return Score("run", 1000, 10.0, 10.0, 10.0 * e, e, np.ones(3), 0 * e, e, 0.1, **further)


def judge(
    *scores: Score,
    floor=UNKNOWN,
    gravity=(0.0, 0.0, 0.0),
    rated=(np.inf, np.inf, np.inf),
    **further,
):
    facts = RecordingEvidence(np.array(floor), np.array(gravity), np.array(rated))
    return grade(scores, [facts] * len(scores), on_holdout=True, **further)


@pytest.mark.parametrize(
    ("nrmse", "word"),
    [(0.0499, "excellent"), (0.0501, "good"), (0.1499, "good"), (0.1501, "usable"),
     (0.3499, "usable"), (0.3501, "poor")],
)  # fmt: skip
def test_the_word_follows_from_the_figure_whatever_the_floor(nrmse, word):
    for floor in (UNKNOWN, np.full(3, 0.01), np.full(3, 0.3), np.full(3, 9.0)):
        graded = judge(score(nrmse, nrmse, nrmse), floor=floor)
        assert graded.overall == word
        assert graded.unexplained == pytest.approx(nrmse)
        assert graded.headroom is None or graded.headroom >= 1.0


def test_a_limit_that_is_exceeded_is_printed_with_digits_that_show_it():
    (reason,) = judge(score(0.35004, 0.35004, 0.35004)).reasons
    assert reason.startswith("35.004 % (limit 35 %)")


def test_noise_of_a_joint_does_not_count_against_its_limit():
    share = np.array([0.0, 0.29, 0.0])
    noisy = score(0.02, 0.55, 0.02, noise_share=share)
    assert judge(noisy, gravity=(0.0, 0.4, 0.0)).overall == "usable"
    wrong = score(0.02, 0.7, 0.02, noise_share=share)
    assert judge(wrong, gravity=(0.0, 0.4, 0.0)).overall == "poor"
    quiet = score(0.02, 0.55, 0.02, noise_share=0.1 * share)
    assert judge(quiet, gravity=(0.0, 0.4, 0.0)).overall == "poor"


def test_a_joint_that_carries_gravity_and_any_joint_have_limits_of_their_own():
    one = score(0.02, 0.52, 0.02)
    assert judge(one).overall == "usable"
    failed = judge(one, gravity=(0.0, 0.4, 0.0))
    assert failed.overall == "poor" and "joint 2, which carries gravity," in failed.reasons[0]
    assert judge(score(0.02, 0.91, 0.02)).overall == "poor"
    mostly_standing = replace(
        score(0.02, 0.91, 0.02),
        moving_nrmse=np.array([0.02, 0.2, 0.02]),
        standing_share=np.array([0.0, 0.7, 0.0]),
    )
    assert judge(mostly_standing).overall == "usable"


def test_one_bad_recording_of_several_fails_and_is_named():
    good, bad = score(0.02, 0.02, 0.02), replace(score(0.4, 0.4, 0.4), file="a/tuesday.csv")
    graded = judge(good, bad)
    assert graded.overall == "poor" and graded.reasons[0].startswith("tuesday.csv: 40.0 %")


def test_joints_of_noise_or_constant_torque_are_named_and_in_no_mean():
    one = score(0.1, 0.8, np.nan, noise_share=np.array([0.02, 0.7, np.nan]))
    graded = judge(one)
    assert graded.unexplained == one.mean_nrmse == pytest.approx(0.1)
    assert [g.grade for g in graded.joints] == ["good", NOT_MEASURED, NOT_MEASURED]
    assert graded.overall == "good" and "joints 2, 3 are not measured" in graded.reasons
    assert [f.joint for f in unmeasured_findings([one])] == [2, 3]
    assert {f.kind for f in unmeasured_findings([one])} == {"not_scored"}
    nothing = judge(score(np.nan, np.nan, np.nan))
    assert nothing.overall == "poor" and nothing.reasons == ("no joint has measured torque",)


def test_a_contradiction_that_was_ignored_fails():
    finding = Finding("torque_sign", "error", "torque is turned: all of it")
    graded = judge(score(0.02, 0.02, 0.02), findings=[finding])
    assert graded.overall == "poor" and graded.reasons == ("torque is turned",)


def _samples(torque, raw, *, period_s=50.0, cutoff_hz=5.0, rate_hz=200.0) -> Samples:
    n = len(torque)
    time = np.arange(n) / rate_hz
    phase = 2 * np.pi * time[:, None] / period_s * np.array([1.0, 2.0, 3.0])
    q, w = np.sin(phase), 2 * np.pi / period_s * np.array([1.0, 2.0, 3.0])
    v, a = w * np.cos(phase), -(w**2) * np.sin(phase)
    return Samples(time, q, v, a, torque, v, np.ones((n, 3), bool), np.zeros(n, int), rate_hz,
                   cutoff_hz, raw_torque=raw)  # fmt: skip


def test_only_an_excellent_model_passes_where_build_and_torque_show_missing_links():
    end = Finding("chain_end", "info", "the description ends at joint 4")
    load = Finding("missing_links", "warning", "gravity is twice the nominal one")
    for findings in ((), (end,), (load,)):
        assert judge(score(0.06, 0.06, 0.06), findings=findings).overall == "good"
    graded = judge(score(0.06, 0.06, 0.06), findings=(end, load))
    assert graded.overall == "poor" and "--tip" in graded.reasons[0]
    assert judge(score(0.04, 0.04, 0.04), findings=(end, load)).overall == "excellent"
    inside = np.array([0.9, 0.5, 0.95])
    narrow = replace(score(0.06, 0.06, 0.06), inside=inside)
    assert judge(narrow).overall == "good"
    assert judge(narrow, findings=(end,)).overall == "poor"
    assert judge(replace(narrow, inside=inside + 0.2), findings=(end,)).overall == "good"


def test_noise_is_measured_beyond_the_cutoff_and_unknown_where_it_was_filtered_before():
    from scipy.signal import butter, sosfiltfilt

    rng = np.random.default_rng(3)
    time = np.arange(10_000) / 200.0
    motion = 5.0 * np.sin(2 * np.pi * 0.3 * time[:, None] + np.arange(3))
    raw = motion + rng.normal(scale=[0.2, 1.0, 20.0], size=(10_000, 3))
    low_pass = butter(4, 5.0, fs=200.0, output="sos")
    torque = sosfiltfilt(low_pass, raw, axis=0)
    truth = np.std(torque - sosfiltfilt(low_pass, motion, axis=0), axis=0) / torque.std(axis=0)
    share = noise_share(_samples(torque, raw))
    np.testing.assert_allclose(share, truth, rtol=0.2)
    assert share[2] > 0.5 > share[1]
    assert np.all(np.isnan(noise_share(_samples(torque, torque))))


def test_noise_folded_by_a_low_rate_is_stated_and_named():
    from scipy.signal import butter, sosfiltfilt

    rng = np.random.default_rng(8)
    time = np.arange(20_000) / 100.0
    motion = 5.0 * np.sin(2 * np.pi * 0.3 * time[:, None] + np.arange(3))
    raw = motion + rng.normal(scale=[0.2, 0.5, 1.0], size=motion.shape)

    def low_passed(columns, rate_hz):
        return sosfiltfilt(butter(4, 5.0, fs=rate_hz, output="sos"), columns, axis=0)

    slow = low_passed(raw[::4], 25.0)
    folded = np.std(slow - low_passed(motion[::4], 25.0), axis=0) / slow.std(axis=0)
    samples = _samples(slow, raw[::4], rate_hz=25.0)
    share = noise_share(samples)
    np.testing.assert_allclose(share, folded, rtol=0.2)
    (sentence,) = noise_findings(samples, share)
    assert "25 samples per second" in sentence
    assert "record at 100 Hz" in sentence
    full = _samples(low_passed(raw, 100.0), raw, rate_hz=100.0)
    assert noise_findings(full, noise_share(full)) == ()
    assert noise_findings(samples, 0.1 * share / share.max()) != ()
    assert noise_findings(samples, 0.005 * share / share.max()) == ()


def test_repeats_show_what_no_model_explains_and_exciting_motion_has_none():
    rng = np.random.default_rng(5)
    n = 8_000
    time = np.arange(n) / 200.0
    shape = np.sin(2 * np.pi * time[:, None] / 4.0 * np.array([1.0, 2.0, 3.0]))
    # Disturbance that is slow, thus behind every low-pass, and differs from period to period.
    slow = np.repeat(rng.normal(scale=0.3, size=(n // 400, 3)), 400, axis=0)
    torque = 5.0 * shape + slow
    share = repeat_share(_samples(torque, torque, period_s=4.0))
    np.testing.assert_allclose(share, 0.3 / torque.std(axis=0), rtol=0.35)
    # Motion that never returns to a state has no repeats.
    q, v, a = rng.normal(size=(3, n, 3))
    exciting = replace(_samples(torque, torque), position=q, velocity=v, acceleration=a)
    assert np.all(np.isnan(repeat_share(exciting)))


def test_repeats_do_not_state_more_than_the_noise_of_the_recording():
    from scipy.signal import butter, sosfiltfilt

    rng = np.random.default_rng(21)
    time = np.arange(1_600) / 100.0
    shape = 5.0 * np.sin(2 * np.pi * time[:, None] / 8.0 * np.array([1.0, 2.0, 3.0]))
    low_pass = butter(4, 5.0, fs=100.0, output="sos")
    ratios = []
    for _ in range(15):
        noise = sosfiltfilt(low_pass, rng.normal(size=shape.shape), axis=0)
        torque = shape + noise
        share = repeat_share(_samples(torque, torque, rate_hz=100.0, period_s=8.0))
        ratios.append(share * torque.std(axis=0) / noise.std(axis=0))
    # Without the bound a third is above the noise.
    assert np.mean(np.array(ratios) > 1.0) <= 0.1
    assert np.nanmedian(ratios) > 0.6


def test_a_joint_that_the_holdout_hardly_loads_is_judged_by_its_training_torque():
    """Error 6 N m of a torque that varies by 10 here and by 40 in training; and the reverse."""
    quiet = score(0.1, 0.6, 0.1)
    trained = replace(score(0.1, 0.1, 0.1), rmse=np.array([1.0, 4.0, 1.0]))
    gravity = (0.0, 0.9, 0.0)
    assert judge(quiet, gravity=gravity).overall == "poor"
    assert judge(quiet, gravity=gravity, training=trained).overall == "usable"
    assert judge(quiet, gravity=gravity, training=score(0.1, 0.1, 0.1)).overall == "poor"
    # A training that varies less gives no relief, nor one whose torque is not known.
    narrow = replace(trained, rmse=np.array([1.0, 0.2, 1.0]))
    assert judge(quiet, gravity=gravity, training=narrow).overall == "poor"
    unknown = replace(trained, nrmse=np.array([0.1, np.nan, 0.1]))
    assert judge(quiet, gravity=gravity, training=unknown).overall == "poor"


def test_an_error_below_the_accuracy_of_a_drive_is_not_poor():
    """Error 6 N m, of a joint rated for 2100 N m, 1900 N m, or one whose rating is unknown."""
    gravity = (0.0, 0.9, 0.0)
    wrong = score(0.1, 0.6, 0.1)
    large, small = (100.0, 2100.0, 100.0), (100.0, 1900.0, 100.0)
    assert judge(wrong, gravity=gravity, rated=large).overall == "usable"
    assert judge(wrong, gravity=gravity, rated=small).overall == "poor"
    # Torque of unknown gains is in another unit than the rating.
    gains = Finding("gains_unknown", "warning", "the gains are unknown")
    assert judge(wrong, gravity=gravity, rated=large, findings=[gains]).overall == "poor"
    # The mean has no such exception.
    assert judge(score(0.6, 0.6, 0.6), rated=3 * (1e6,)).overall == "poor"
