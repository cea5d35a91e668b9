"""Every fault a line may have: a file and a stream handle it alike, or refuse it alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.live import Monitor
from taufit.model import FittedModel
from taufit.payload import identify_payload
from taufit.recording import Recording

SECONDS = 9.0


def rows(recording: Recording, order) -> Recording:
    """The recording with its rows in another order, or some of them."""
    return recording.map(lambda values: np.asarray(values)[order], time=recording.time[order])


def changed(recording: Recording, **channels) -> Recording:
    """The recording with some values replaced: channel = (rows, joints, value)."""
    out = {}
    for name, (where, joints, value) in channels.items():
        values = np.array(getattr(recording, name), float)
        values[where, joints] = value
        out[name] = values
    return replace(recording, **out)


def single_spikes(one: Recording) -> Recording:
    for k, row in enumerate((300, 500, 700)):
        one = changed(one, signal=(row, k, 2000.0))
    return one


def small_spikes(one: Recording) -> Recording:
    signal = np.array(one.signal)
    signal[250:900:130, 1] += 90.0
    return replace(one, signal=signal)


def spikes_of_position(one: Recording) -> Recording:
    position = np.array(one.position)
    position[400, 2] += 0.5
    position[600, 1] -= 3.0
    return replace(one, position=position)


def double_spike(one: Recording) -> Recording:
    return changed(one, signal=(slice(500, 502), 1, 5000.0))


def short_gap(one: Recording) -> Recording:
    return rows(one, np.r_[0:400, 475 : len(one.time)])


def lost_samples(one: Recording) -> Recording:
    kept = np.random.default_rng(4).random(len(one.time)) > 0.03
    return rows(one, np.flatnonzero(kept))


def repeated_rows(one: Recording) -> Recording:
    return rows(one, np.sort(np.r_[0 : len(one.time), 200:900:40]))


def repeated_stamps(one: Recording) -> Recording:
    time = np.array(one.time)
    time[300:900:50] = time[299:899:50]
    return replace(one, time=time)


def late_rows(one: Recording) -> Recording:
    order = np.arange(len(one.time))
    for k in range(200, 900, 60):
        order[k], order[k + 1] = order[k + 1], order[k]
    return rows(one, order)


def missing_torque(one: Recording) -> Recording:
    return changed(one, signal=(slice(300, 900, 37), 2, np.nan))


def missing_position(one: Recording) -> Recording:
    return changed(one, position=(slice(301, 900, 41), 0, np.nan))


def infinite_velocity(one: Recording) -> Recording:
    return changed(one, velocity=(slice(310, 900, 43), 4, np.inf))


def held_torque(one: Recording) -> Recording:
    signal = np.array(one.signal)
    for k in range(200, 900, 25):
        signal[k] = signal[k - 1]
    return replace(one, signal=signal)


def time_of_the_day(one: Recording) -> Recording:
    return replace(one, time=one.time + 1_763_290_000.0)


def clock_that_starts_anew(one: Recording) -> Recording:
    time = np.array(one.time)
    time[600:] -= time[600]
    return replace(one, time=time)


def no_velocity(one: Recording) -> Recording:
    return replace(one, velocity=None)


def velocity_of_some_joints(one: Recording) -> Recording:
    return changed(one, velocity=(slice(None), 3, np.nan))


def noisy_velocity(one: Recording) -> Recording:
    noise = np.random.default_rng(5).normal(scale=0.05, size=one.velocity.shape)
    return replace(one, velocity=one.velocity + noise)


HANDLED = [
    *(single_spikes, small_spikes, spikes_of_position, double_spike, short_gap, lost_samples),
    *(repeated_rows, repeated_stamps, late_rows, missing_torque, missing_position),
    *(infinite_velocity, held_torque, time_of_the_day, clock_that_starts_anew, no_velocity),
    *(velocity_of_some_joints, noisy_velocity),
]


@pytest.fixture(scope="module")
def run(loaded):
    return rows(loaded, np.flatnonzero(loaded.time <= loaded.time[0] + SECONDS))


@pytest.fixture(scope="module")
def clean(model, run):
    return identify_payload(model, run)


def live(model: FittedModel, one: Recording) -> Monitor:
    """The rows of a recording one by one, as a robot would send them."""
    monitor = Monitor(model, unit=one.signal_unit)
    for i, time in enumerate(one.time):
        velocity = None if one.velocity is None else one.velocity[i]
        monitor.update(time, one.position[i], velocity, one.signal[i])
    monitor.finish()
    return monitor


def assert_every_sample_is_somewhere(monitor: Monitor, one: Recording) -> None:
    """At the end nothing waits: a sample has a reading, came before the first, or is left out."""
    account = monitor.sample_counts
    assert account.samples == len(one.time) and account.waiting == 0
    left = sum(account.dropped.values())
    assert account.readings + account.settling + left == account.samples
    # Two steps of the grid at the start and after each gap.
    assert account.settling <= 3 * (
        1 + monitor.conditioner.counts.gap + monitor.conditioner.counts.clock
    )


def read(monitor: Monitor):
    """The payload as a monitor knows it at the end."""
    assert monitor.payload is not None and monitor.payload.newest is not None
    return monitor.payload.newest


@pytest.mark.parametrize("fault", HANDLED, ids=lambda f: f.__name__)
def test_a_fault_is_handled_alike_in_a_file_and_in_a_stream(model, run, clean, fault):
    hurt = fault(run)
    whole = identify_payload(model, hurt)
    monitor = live(model, hurt)
    found, truth = read(monitor), clean.estimate
    assert found.ready == whole.estimate.ready
    assert abs(found.mass - whole.estimate.mass) < 0.1 * whole.estimate.mass_std
    apart = np.abs(found.centre - whole.estimate.centre)
    assert np.all(apart < 0.1 * whole.estimate.centre_std)
    # Nothing of it is taken for a pick, a drop or a contact, and the payload is what it is.
    kinds = {event.kind for event in monitor.events} | {event.kind for event in whole.events}
    assert not kinds & {"pick", "drop", "change", "contact", "pick or contact"}
    assert_every_sample_is_somewhere(monitor, hurt)
    assert abs(found.mass - truth.mass) < 1.5 * truth.mass_std


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (single_spikes, "missing"),
        (small_spikes, "spike"),
        (short_gap, "gap"),
        (late_rows, "late"),
        (held_torque, "held"),
        (clock_that_starts_anew, "clock"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_what_was_left_out_is_told(model, run, fault, kind):
    assert kind in {event.kind for event in live(model, fault(run)).events}


def in_newton_metres(model: FittedModel, one: Recording) -> tuple[FittedModel, Recording]:
    conditioning = replace(model.training.conditioning, gain=None, gain_std=None)
    fitted = model.with_training(replace(model.training, conditioning=conditioning))
    torque = one.signal * model.training.conditioning.gain
    return fitted, replace(one, signal=torque, signal_unit="N m", gain=None, gain_std=None)


def test_amperes_become_torque_by_the_models_gains(model, run):
    assert run.signal_unit == "A"
    whole, found = identify_payload(model, run).estimate, read(live(model, run))
    _, torque = in_newton_metres(model, run)
    same = read(live(model, torque))
    assert found.ready and whole.ready and same.ready
    assert abs(found.mass - whole.mass) < 0.1 * whole.mass_std
    assert abs(found.mass - same.mass) < 0.1 * whole.mass_std


def test_amperes_without_gains_are_refused_alike(model, run):
    fitted, _ = in_newton_metres(model, run)
    hurt = replace(run, gain=None, gain_std=None, target_current=None, target_torque=None)
    with pytest.raises(RecordingError, match="gain"):
        identify_payload(fitted, hurt)
    with pytest.raises(RecordingError, match="gain"):
        live(fitted, hurt)


@pytest.mark.unchecked
def test_five_joints_are_refused_alike(model, run):
    joints = slice(0, 5)
    five = run.map(lambda values: values[:, joints])
    meta = {key: value for key, value in run.meta.items() if key != "joint_names"}
    hurt = replace(five, signed=None, gain=None, gain_std=None, meta=meta)
    with pytest.raises(RecordingError, match="6 joints"):
        identify_payload(model, hurt)
    with pytest.raises(RecordingError, match="6 joints"):
        live(model, hurt)


def test_samples_too_far_apart_are_refused_alike(model, run):
    slow = replace(run, time=1e3 * run.time)
    with pytest.raises(RecordingError, match="apart"):
        identify_payload(model, slow)
    with pytest.raises(RecordingError, match="apart"):
        live(model, slow)


def test_nothing_but_impossible_torque_is_refused_alike(model, run):
    huge = replace(run, signal=1e6 * run.signal)
    for feed in (identify_payload, live):
        with pytest.raises(RecordingError, match="torque of joint"):
            feed(model, huge)
