"""Conditioning against a motion and a torque that are known at every instant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taufit import condition
from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recording
from taufit.signals import DIFFERENTIATIONS, lowpass, tracking_delay
from taufit.signals.noise import quantisation_step
from taufit.signals.resampling import decimate, interpolate

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def _at(samples, recording):
    """The instants of the samples, in the truth's time."""
    return samples.time + recording.time[0] - 100.0


def _relative(got, true, rows):
    return float(np.max(np.sqrt(np.mean((got - true)[rows] ** 2, 0)) / np.std(true[rows], 0)))


@pytest.mark.parametrize("differentiation", DIFFERENTIATIONS)
@pytest.mark.parametrize("measured", [True, False])
def test_clean_motion_is_recovered_from_jittered_stamps(truth, differentiation, measured):
    recording = truth.recorded(jitter_s=0.002, velocity=measured)
    samples = condition(recording, differentiation=differentiation)
    q, v, a = truth.motion(_at(samples, recording))
    rows = samples.in_motion
    # Seen: 2e-8, 8e-7, 3e-5 for all three.
    assert _relative(samples.position, q, rows) < 1e-6
    assert _relative(samples.velocity, v, rows) < 1e-5
    assert _relative(samples.acceleration, a, rows) < 2e-4


def test_stamps_count_and_the_index_does_not(truth):
    """A logger that loses every tenth sample changes nothing but the count."""
    recording = truth.recorded()
    kept = np.arange(len(recording)) % 10 != 3
    fewer = Recording(
        time=recording.time[kept],
        position=recording.position[kept],
        velocity=recording.velocity[kept],
        signal=recording.signal[kept],
    )
    samples = condition(fewer)
    q, v, _ = truth.motion(samples.time)
    assert samples.rate_hz == 100.0
    assert _relative(samples.position, q, samples.in_motion) < 1e-5
    assert _relative(samples.velocity, v, samples.in_motion) < 1e-4


def test_velocity_in_coarse_steps_is_not_read_where_positions_are_better(truth):
    recording = truth.recorded(position_noise=1e-5, jitter_s=0.002)
    rounded = {step: np.round(recording.velocity / step) * step for step in (1e-4, 0.02)}
    fine, coarse = (
        condition(replace(recording, velocity=v), cutoff_hz=5.0) for v in rounded.values()
    )
    derived = condition(replace(recording, velocity=None), cutoff_hz=5.0)
    np.testing.assert_array_equal(coarse.friction_velocity, derived.friction_velocity)
    assert not np.allclose(fine.friction_velocity, derived.friction_velocity, atol=1e-6)
    # Positions with noise of 1 mrad give a worse velocity than steps of 0.02 rad/s.
    noisy = truth.recorded(position_noise=1e-3)
    noisy = replace(noisy, velocity=np.round(noisy.velocity / 0.02) * 0.02)
    steps = condition(noisy, cutoff_hz=5.0).friction_velocity / 0.02
    assert np.mean(np.abs(steps - np.round(steps)) < 1e-9) > 0.5


def test_quantisation_step_is_found_up_to_one_value_in_twenty_off_the_grid():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(2000, 3))
    columns = np.round(values / 0.05) * 0.05
    columns[rng.choice(2000, 80, replace=False), 1] += rng.uniform(0.01, 0.04, 80)
    columns[7, 1] = np.nan
    columns[:, 2] = values[:, 2]
    np.testing.assert_allclose(quantisation_step(columns), [0.05, 0.05, 0.0])


def test_torque_passes_the_same_low_pass_as_further_columns(truth):
    recording = truth.recorded()
    samples = condition(recording, cutoff_hz=5.0)
    np.testing.assert_allclose(lowpass(samples, samples.raw_torque), samples.torque, atol=1e-9)
    np.testing.assert_allclose(
        lowpass(samples, samples.friction_velocity), samples.velocity, atol=1e-9
    )
    np.testing.assert_allclose(samples.raw_torque, truth.torque(samples.time), atol=0.5)


def test_friction_columns_filtered_alike_explain_friction(truth):
    """Consistent filtering: columns of the raw velocity, low-passed, give the filtered friction."""
    samples = condition(truth.recorded(), cutoff_hz=5.0)
    v = truth.motion(samples.time)[1]
    friction = lowpass(samples, truth.coulomb * np.tanh(samples.friction_velocity / 0.005))
    of_filtered = truth.coulomb * np.tanh(samples.velocity / 0.005)
    exact = lowpass(samples, truth.coulomb * np.tanh(v / 0.005))
    rows = samples.in_motion
    assert _relative(friction, exact, rows) < 1e-3
    assert _relative(of_filtered, exact, rows) > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_a_delay_of_12_ms_is_found_within_3_ms(make_truth, seed):
    truth = make_truth(seed=seed)
    recording = truth.recorded(delay_s=0.012, jitter_s=0.002, torque_noise=0.5, velocity_noise=2e-3)
    samples = condition(recording, delay_s="auto")
    # Worst of these seeds: 1.9 ms. Steps of friction would show it within 1 ms here, and 15 ms
    # too late on real drives, in which friction builds up over a displacement.
    assert abs(samples.delay_s - 0.012) < 3e-3
    assert "lags motion" in samples.reason


RUNS = SHARED / "ur10e" / "identification_data"


@pytest.mark.skipif(not RUNS.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.08])
@pytest.mark.parametrize("name", ["ur-20_01_31-unload", "ur-20_02_05-20sec_8harm"])
def test_a_delay_of_a_real_drive_is_found_within_5_ms(name, delay_s):
    recording = read_recording(RUNS / f"{name}.csv.gz", column_map="ur10e_csv")
    time = recording.time
    late = np.column_stack([np.interp(time - delay_s, time, x) for x in recording.signal.T])
    samples = condition(replace(recording, signal=late), cutoff_hz=10.0, delay_s="auto")
    assert abs(samples.delay_s - delay_s) < 5e-3


def test_a_compensated_delay_brings_motion_and_torque_together(truth):
    recording = truth.recorded(delay_s=0.02)
    samples = condition(recording, delay_s=0.02)
    at = samples.time - 0.02
    q = truth.motion(at)[0]
    inner = samples.in_motion
    assert _relative(samples.position, q, inner) < 1e-5
    assert _relative(samples.raw_torque, truth.torque(at), inner) < 0.02


def test_a_delay_of_each_joint_brings_motion_and_torque_together(truth):
    delays = (0.0, 0.02, 0.013, -0.01, 0.005, 0.031)
    recording = truth.recorded()
    late = [
        truth.torque(recording.time - recording.time[0] - delay)[:, j]
        for j, delay in enumerate(delays)
    ]
    samples = condition(replace(recording, signal=np.column_stack(late)), delay_s=delays)
    at = samples.time - max(delays)
    inner = samples.in_motion
    assert _relative(samples.position, truth.motion(at)[0], inner) < 1e-5
    assert _relative(samples.raw_torque, truth.torque(at), inner) < 0.02
    assert samples.delay_s == delays
    with pytest.raises(RecordingError, match="2 delays for 6 joints"):
        condition(recording, delay_s=(0.0, 0.02))


def test_friction_may_lag_joint_by_joint(truth):
    lag = np.array([0.0, 0.02, 0.013, 0.0, 0.005, 0.031])
    samples = condition(truth.recorded(), friction_delay_s=lag)
    for j in range(6):
        _, v, _ = truth.motion(samples.time - lag[j])
        np.testing.assert_allclose(samples.friction_velocity[:, j], v[:, j], atol=2e-4)


def test_tracking_delay_in_closed_form(truth):
    time = np.arange(0, 24, 0.01)
    commanded, measured = truth.motion(time)[0], truth.motion(time - 0.012)[0]
    assert abs(tracking_delay(commanded, measured + 0.3, 100.0) - 0.012) < 1e-4


@pytest.mark.parametrize("level", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("rate_hz", [100.0, 500.0])
def test_noise_is_estimated_within_ten_per_cent(truth, level, rate_hz):
    recording = truth.recorded(rate_hz=rate_hz, torque_noise=level)
    samples = condition(recording)
    # On the grid, decimation has averaged white noise already.
    expected = level * np.sqrt(samples.rate_hz / rate_hz)
    np.testing.assert_allclose(samples.noise, expected, rtol=0.1)


@pytest.mark.parametrize(("torque_noise", "velocity_noise"), [(1.0, 4e-3), (3.0, 1e-2)])
def test_the_automatic_cut_off_is_nearly_the_best(truth, torque_noise, velocity_noise):
    recording = truth.recorded(
        torque_noise=torque_noise, velocity_noise=velocity_noise, jitter_s=0.002
    )

    def error(cutoff):
        samples = condition(recording, cutoff_hz=cutoff)
        at = _at(samples, recording)
        a, tau, rows = truth.motion(at)[2], truth.torque(at), samples.in_motion
        parts = ((samples.acceleration, a), (samples.torque, tau))
        return sum(np.mean((x - y)[rows] ** 2, 0) @ (1 / np.var(y[rows], 0)) for x, y in parts)

    best = min(error(fc) for fc in np.geomspace(1.5, 25.0, 15))
    # Seen over 8 recordings: at most 1.04 times the best error.
    assert np.sqrt(error("auto") / best) < 1.1


def test_the_automatic_cut_off_keeps_vibration_out_and_says_why(truth):
    recording = truth.recorded(torque_noise=0.1, velocity_noise=1e-4)
    time = recording.time[:, None]
    shaken = replace(
        recording,
        velocity=recording.velocity + 0.02 * np.sin(2 * np.pi * 22 * time),
        signal=recording.signal + 3.0 * np.sin(2 * np.pi * 22 * time),
    )
    samples = condition(shaken, cutoff_hz="auto")
    assert 4.0 < samples.cutoff_hz < 12.0
    assert "vibration" in samples.reason and "velocity lies below" in samples.reason


def test_fast_recordings_are_decimated_without_aliases(truth):
    recording = truth.recorded(rate_hz=1000.0)
    tone = 5.0 * np.sin(2 * np.pi * 240.0 * recording.time)[:, None]
    samples = condition(replace(recording, signal=recording.signal + tone))
    plain = condition(recording)
    assert samples.rate_hz == 250.0 and len(samples) == 6000
    # Without the filter 240 Hz would turn into 10 Hz of full size.
    assert np.abs(samples.raw_torque - plain.raw_torque)[100:-100].max() < 0.05


def test_the_grid_follows_the_logger_and_the_wish(truth):
    assert condition(truth.recorded(rate_hz=94.0, jitter_s=0.002)).rate_hz == 100.0
    assert condition(truth.recorded(rate_hz=125.0)).rate_hz == 125.0
    assert condition(truth.recorded(rate_hz=300.0)).rate_hz == 150.0
    assert condition(truth.recorded(rate_hz=500.0), rate_hz=50.0).rate_hz == 50.0
    assert condition(truth.recorded(rate_hz=500.0), cutoff_hz=40.0).rate_hz == 250.0
    assert condition(truth.recorded(rate_hz=500.0), cutoff_hz=50.0).rate_hz == 500.0


def test_rest_is_left_out_and_the_motion_kept(truth):
    samples = condition(truth.recorded())
    moving = samples.time[samples.in_motion]
    # Every joint has moved 3 mrad from where it rested; until then friction is anybody's guess.
    away = np.abs(samples.position - samples.position[0]) > 3e-3
    assert moving[0] == pytest.approx(samples.time[away.argmax(axis=0).max()], abs=0.03)
    assert 2.0 <= moving[0] < 2.75 and 21.75 < moving[-1] <= 22.0
    assert not samples.keep[~samples.in_motion].any()
    assert samples.keep[samples.in_motion].mean() > 0.97
    untrimmed = condition(truth.recorded(), trim=False)
    assert untrimmed.in_motion.all() and untrimmed.keep.all()


def test_what_friction_was_before_a_run_does_not_count(truth):
    recording = truth.recorded()
    clean = condition(recording, cutoff_hz=10.0)
    first = int(np.flatnonzero(clean.in_motion)[0])
    assert 0.0 <= clean.time[first] - truth.rest < 1.2
    # Friction left by the approach, in either direction, until the joint has moved a milliradian.
    position = recording.position
    held = np.maximum.accumulate(np.abs(position - position[0])) < 1e-3
    changed = condition(replace(recording, signal=recording.signal + 8.0 * held), cutoff_hz=10.0)
    counted = clean.in_motion
    difference = (changed.torque - clean.torque)[counted]
    assert np.abs(difference).max() < 0.02 * 8.0


def test_joints_that_start_later_are_not_waited_for(truth):
    recording = truth.recorded()
    late = recording.position.copy(), recording.velocity.copy()
    half = recording.time < 0.5 * truth.duration
    for channel in late:
        channel[half, 5] = channel[np.argmax(~half), 5] * (channel is late[0])
    changed = condition(replace(recording, position=late[0], velocity=late[1]), cutoff_hz=10.0)
    assert changed.time[np.flatnonzero(changed.in_motion)[0]] - truth.rest < 1.2


def test_a_joint_that_stands_while_others_move_is_not_fitted_there(truth):
    recording = truth.recorded()
    still = recording.velocity.copy()
    position = recording.position.copy()
    still[:, 2], position[:, 2] = 0.0, 0.7
    samples = condition(replace(recording, velocity=still, position=position))
    assert not samples.keep[:, 2].any()
    assert samples.keep[:, 0].sum() > 1000


def test_the_dead_zone_is_left_out_with_what_the_filter_smears(truth):
    samples = condition(truth.recorded(), dead_zone=0.05)
    slow = np.abs(samples.friction_velocity) < 0.05
    assert not np.any(samples.keep & slow)
    rows = np.flatnonzero(slow[:, 0] & samples.in_motion)
    assert not samples.keep[np.clip(rows + 4, 0, len(samples) - 1), 0].any()
    assert 0.5 < samples.keep.sum() / condition(truth.recorded()).keep.sum() < 1.0


def test_spikes_are_bridged_and_reversals_survive(truth):
    recording = truth.recorded(torque_noise=0.2)
    rng = np.random.default_rng(5)
    signal = recording.signal.copy()
    hits = rng.choice(len(signal), 40, replace=False)
    signal[hits, rng.integers(0, 6, 40)] += rng.choice([-300.0, 300.0], 40)
    clean, spiked = condition(recording), condition(replace(recording, signal=signal))
    worse = condition(replace(recording, signal=signal), outliers=False)
    assert np.abs(spiked.torque - clean.torque).max() < 0.6
    assert np.abs(worse.torque - clean.torque).max() > 10.0
    assert any(f.kind == "outlier" and "40 values" in f.message for f in spiked.findings)
    assert not any(f.kind == "outlier" for f in clean.findings)


def test_noise_free_simulation_has_no_outliers(truth):
    assert not any(f.kind == "outlier" for f in condition(truth.recorded()).findings)


def test_a_long_gap_cuts_the_run_and_nothing_is_filtered_across_it(truth):
    recording = truth.recorded()
    kept = (recording.time < 110.0) | (recording.time > 110.7)
    gapped = Recording(
        time=recording.time[kept],
        position=recording.position[kept],
        velocity=recording.velocity[kept],
        signal=recording.signal[kept],
        meta={"file": "gapped.csv"},
    )
    samples = condition(gapped)
    assert len(samples.run_slices()) == 2 and samples.names == ("gapped.csv", "gapped.csv")
    assert not np.any((samples.time > 10.0) & (samples.time < 10.7))
    near = (np.abs(samples.time - 10.0) < 0.09) | (np.abs(samples.time - 10.7) < 0.09)
    assert not samples.keep[near].any()
    _, v, a = truth.motion(samples.time)
    assert _relative(samples.velocity, v, samples.in_motion) < 1e-3
    assert _relative(samples.acceleration, a, samples.in_motion) < 2e-2
    assert any(f.kind == "gap" for f in samples.findings)


def test_missing_values_of_one_joint_are_left_out_of_that_joint_only(truth):
    recording = truth.recorded()
    signal = recording.signal.copy()
    signal[800:860, 4] = np.nan
    samples = condition(replace(recording, signal=signal))
    inside = (samples.time > 8.0) & (samples.time < 8.6)
    assert not samples.keep[inside, 4].any()
    assert samples.keep[inside, 3].all()
    assert np.all(np.isfinite(samples.torque))


def test_time_that_starts_again_is_another_run(truth):
    one = truth.recorded()
    two = Recording(
        time=np.concatenate([one.time, one.time]),
        position=np.concatenate([one.position, one.position]),
        velocity=np.concatenate([one.velocity, one.velocity]),
        signal=np.concatenate([one.signal, one.signal]),
    )
    samples, single = condition(two), condition(one)
    assert [s.stop - s.start for s in samples.run_slices()] == [len(single)] * 2
    np.testing.assert_allclose(samples.torque[len(single) :], single.torque, atol=1e-9)


def test_duplicated_rows_change_nothing(truth):
    recording = truth.recorded()
    rows = np.sort(np.concatenate([np.arange(len(recording)), np.arange(50, 2000, 97)]))
    doubled = Recording(
        time=recording.time[rows],
        position=recording.position[rows],
        velocity=recording.velocity[rows],
        signal=recording.signal[rows],
    )
    np.testing.assert_allclose(condition(doubled).torque, condition(recording).torque, atol=1e-9)


def test_several_recordings_stay_runs_of_their_own(make_truth):
    recordings = [make_truth(seed=k).recorded() for k in range(3)]
    together = condition(recordings)
    assert len(together.names) == 3 and together.run.max() == 2
    for recording, rows in zip(recordings, together.run_slices(), strict=True):
        alone = condition(recording)
        np.testing.assert_array_equal(together.torque[rows], alone.torque)
        np.testing.assert_array_equal(together.keep[rows], alone.keep)


def test_averaging_periods_lowers_the_noise_and_keeps_the_motion(make_truth):
    truth = make_truth(duration=49.0)
    recording = truth.recorded(torque_noise=2.0, rate_hz=100.0)
    samples = condition(recording, average_periods=True, differentiation="fourier")
    assert samples.periodic and len(samples) == round(10.0 * samples.rate_hz)
    np.testing.assert_allclose(samples.noise, 2.0 / np.sqrt(4), rtol=0.1)
    # Where in the steady part of the true motion this period starts is for the fold to choose.
    starts = np.arange(10.0, 20.0, 0.002)
    nearest = np.abs(truth.motion(starts)[0] - samples.position[0]).max(axis=1).argmin()
    q, v, a = truth.motion(starts[nearest] + samples.time)
    assert np.abs(samples.position - q).max() < 5e-3
    assert np.abs(samples.velocity - v).max() < 1e-2
    assert np.abs(samples.acceleration - a).max() < 3e-2


def test_motion_that_does_not_repeat_is_not_averaged(truth):
    with pytest.raises(RecordingError, match="does not repeat"):
        condition(truth.recorded(), average_periods=True)


def test_currents_become_joint_torques_through_gains_and_coupling(truth):
    coupling = np.eye(6)
    coupling[5, 4] = 1.0
    gain = np.array([10.0, 10.0, 9.0, 8.0, 8.0, 7.0])
    plain = truth.recorded()
    motor = np.linalg.solve(coupling.T, plain.signal.T).T / gain
    recording = replace(
        plain,
        signal=motor,
        signal_unit="A",
        gain=gain,
        gain_std=0.01 * gain,
        coupling=coupling,
    )
    samples = condition(recording)
    np.testing.assert_allclose(samples.torque, condition(plain).torque, atol=1e-9)
    np.testing.assert_allclose(samples.gain_std, 0.01 * gain)
    with pytest.raises(RecordingError, match="without a sign"):
        condition(replace(recording, signed=np.array([True] * 4 + [False] * 2)))


def test_torque_without_sign_stays_positive_and_raw(truth):
    recording = truth.recorded()
    signed = np.array([True, False, False, True, False, False])
    bare = replace(
        recording,
        signal=np.where(signed, recording.signal, np.abs(recording.signal)),
        signed=signed,
    )
    samples, plain = condition(bare), condition(recording).raw_torque
    np.testing.assert_array_equal(samples.signed, signed)
    assert np.all(samples.raw_torque[:, ~signed] >= 0)
    np.testing.assert_allclose(
        samples.raw_torque, np.where(signed, plain, np.abs(plain)), atol=1e-9
    )


def test_temperature_is_carried_along(truth):
    recording = truth.recorded()
    warm = 30.0 + 0.1 * (recording.time - 100.0)[:, None] * np.ones(6)
    samples = condition(replace(recording, temperature=warm))
    np.testing.assert_allclose(samples.temperature[:, 0], 30.0 + 0.1 * samples.time, atol=1e-6)


def test_cubic_interpolation_is_exact_for_cubics():
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.5, 1.5, 60))
    at = rng.uniform(time[0], time[-1], 200)
    coefficients = rng.normal(size=(4, 3))

    def cubic(t):
        return np.stack([t**k for k in range(4)], axis=1) @ coefficients

    scale = np.abs(cubic(time)).max()
    np.testing.assert_allclose(interpolate(time, cubic(time), at), cubic(at), atol=1e-10 * scale)


def test_decimation_keeps_what_is_slow():
    time = np.arange(10_000) / 1000.0
    slow = np.stack([np.sin(2 * np.pi * 3 * time), 0.1 * time], axis=1)
    np.testing.assert_allclose(decimate(slow, 4)[50:-50], slow[::4][50:-50], atol=2e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda r: {"time": r.time[:3], "position": r.position[:3], "signal": r.signal[:3]},
            "at least 5",
        ),
        (
            lambda r: {"time": r.time[:12], "position": r.position[:12], "signal": r.signal[:12]},
            "too short",
        ),
        (lambda r: {"time": 0 * r.time}, "time stands still"),
        (
            lambda r: {"signal": np.where(np.arange(6) == 2, np.nan, r.signal)},
            "no torque for joint 3",
        ),
        (lambda r: {"position": np.full_like(r.position, np.inf)}, "no position for joint 1, 2"),
        (lambda r: {"position": 0 * r.position + 1.0}, "nothing moves"),
        (lambda r: {"signal_unit": "A"}, "drive gains cannot be read"),
    ],
)
def test_unusable_recordings_are_refused_by_name(truth, change, message):
    recording = truth.recorded(velocity=False)
    with pytest.raises(RecordingError, match=message) as caught:
        condition(replace(recording, **change(recording)))
    assert "simulated.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cutoff_hz": 60.0}, "not below half the rate of simulated.csv"),
        ({"cutoff_hz": -1.0}, "makes no sense"),
        ({"rate_hz": 0.0}, "makes no sense"),
        ({"rate_hz": 15.0}, "not below half the rate"),
        ({"differentiation": "magic"}, "there are central, savgol, fourier"),
        ({"gains": np.ones(3)}, "3 drive gains were given for 6 joints"),
    ],
)
def test_impossible_settings_are_refused(truth, settings, message):
    with pytest.raises(RecordingError, match=message):
        condition(truth.recorded(), **settings)


def test_recordings_of_different_arms_do_not_mix(truth):
    six = truth.recorded()
    five = Recording(time=six.time, position=six.position[:, :5], signal=six.signal[:, :5])
    with pytest.raises(RecordingError, match="of one robot"):
        condition([six, five])
