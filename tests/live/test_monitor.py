"""The monitor: one reading per sample, the same payload as from a file, plain JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import RecordingError, TaufitError
from taufit.live import EVENT_KINDS, Monitor
from taufit.payload import identify_payload
from taufit.payload.filter.payload_event import PayloadEvent
from taufit.payload.stream import playback


@pytest.fixture(scope="module")
def readings(model, loaded):
    monitor = Monitor(model)
    return monitor, list(monitor.run(loaded))


def test_a_file_and_a_stream_find_the_same_payload(model, loaded):
    whole = identify_payload(model, loaded).estimate
    monitor = Monitor(model, unit="A" if loaded.signal_unit == "A" else "N m")
    for row in playback(model, loaded).rows():
        monitor.update(*row)
    monitor.finish()
    live = monitor.newest.payload
    assert live.ready and whole.ready
    assert abs(live.mass - whole.mass) < 0.1 * whole.mass_std
    assert np.all(np.abs(live.centre - whole.centre) < 0.1 * whole.centre_std)


def test_every_sample_becomes_a_reading(readings, loaded):
    _, told = readings
    assert len(told) > len(loaded.time) - 10
    times = np.array([reading.time for reading in told])
    assert np.all(np.diff(times) > 0)
    assert all(event.kind in EVENT_KINDS for reading in told for event in reading.events)


def test_the_prediction_knows_what_the_arm_carries(readings):
    monitor, told = readings
    ready = [r for r in told if r.payload is not None and r.payload.ready][50:]
    inside = np.mean([np.abs(r.filtered - r.predicted) <= r.half_width for r in ready])
    assert inside > 0.9
    outside = np.mean([np.abs(r.external) <= r.external_half_width for r in ready])
    assert outside > 0.85
    assert not any("contact" in event.kind for event in monitor.events)


def test_readings_are_plain_json(readings):
    _, told = readings
    for reading in (told[0], told[-1]):
        again = json.loads(json.dumps(reading.to_dict(), allow_nan=False))
        assert again["t"] == reading.time and len(again["predicted"]) == 6
    assert again["payload"]["ready"] is True


def test_a_monitor_is_what_it_was_after_a_reset(model, loaded):
    monitor = Monitor(model, loaded)
    first = [reading.predicted for reading in monitor][:50]
    monitor.reset()
    assert monitor.newest is None and not monitor.events
    again = [reading.predicted for reading in monitor][:50]
    np.testing.assert_array_equal(first, again)


@pytest.mark.unchecked
def test_another_number_of_joints_is_refused(model):
    monitor = Monitor(model)
    with pytest.raises(RecordingError, match="6 joints"):
        monitor.update(0.0, np.zeros(5), np.zeros(5), np.zeros(5))
    with pytest.raises(TaufitError, match="parameters"):
        Monitor(model.structure)


def test_compiled_and_numpy_intervals_are_the_same(model, loaded):
    monitor = Monitor(model, loaded)
    compared = 0
    for k, _ in enumerate(monitor):
        felt = monitor.contact_detector.last_block
        if felt is None or k % 40:
            continue
        own = monitor._prediction
        if own._compiled is None:
            pytest.skip("there is no compiled kernel")
        np.testing.assert_allclose(
            own.half_width(felt, 0), own._numpy_half_width(felt, 0), rtol=1e-9
        )
        compared += 1
    assert compared > 10


def test_a_spread_evaluation_gives_the_same_numbers_two_time_bins_later(model, arm):
    preset, twin = arm
    motion = preset.motion(periods=1)
    run = replace(twin, rate_hz=500.0).run(motion, seed=2, payload=preset.payload).recording
    rows = [row for row, _ in zip(playback(model, run).rows(), range(3500), strict=False)]
    numbers = []
    for spread in (True, False):
        monitor = Monitor(model, unit=run.signal_unit)
        monitor.payload._spread = spread
        readings = [reading for row in rows if (reading := monitor.update(*row)) is not None]
        mass = [0.0 if r.payload is None else r.payload.mass for r in readings]
        numbers.append([np.array([r.half_width for r in readings]), np.array(mass)[:, None]])
    later, at_once = numbers
    changes = np.flatnonzero(np.diff(at_once[1][:, 0]) != 0.0) + 1
    settled = np.ones(len(at_once[1]), bool)
    for start in changes:
        settled[start : start + 8] = False
    assert 20 < len(changes) < 80 and settled.mean() > 0.7
    for one, other in zip(later, at_once, strict=True):
        np.testing.assert_allclose(one[settled], other[settled], rtol=1e-9)
    assert at_once[1][-1] > 0.0  # a load is known by then, and with it the half width
    assert np.any(later[0][~settled] != at_once[0][~settled])


@pytest.mark.parametrize("mass", [None, 1.0])
def test_a_pick_makes_the_load_unknown_whether_it_is_measured_at_once_or_later(model, mass):
    monitor = Monitor(model)
    live = monitor.payload.filter
    maybe, pick = (
        PayloadEvent(1.0, "pick or contact", "?"),
        PayloadEvent(1.0, "pick", "a pick", mass),
    )
    monitor._payload_reported = True
    for event in (maybe, pick):
        live.events[:] = [event]
        monitor._collect_payload(live)
    assert not monitor._payload_reported
    monitor._payload_reported = True
    live.events[:] = [PayloadEvent(1.0, "pick", "a pick of 1 kg", 1.1)]
    monitor._collect_payload(live)
    assert monitor._payload_reported
