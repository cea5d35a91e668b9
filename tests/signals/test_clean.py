"""One cleaning, whoever asks: `condition` and the payload stream see the same values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.recording import Recording
from taufit.signals.cleaning import clean
from taufit.signals.drive_gains import Gains

RATE, JOINTS = 100.0, 2


def recording(seed: int = 1, n: int = 600) -> Recording:
    rng = np.random.default_rng(seed)
    time = np.arange(n) / RATE
    position = np.stack([np.sin(time), np.cos(0.7 * time)], axis=1)
    velocity = np.stack([np.cos(time), -0.7 * np.sin(0.7 * time)], axis=1)
    signal = 3.0 * position + rng.normal(scale=0.01, size=position.shape)
    return Recording(time, position, signal, velocity=velocity, meta={"file": "run.csv"})


def cleaned(one: Recording, **options):
    return clean(one, Gains.from_values(np.array([2.0, 3.0])), **options)


def with_spike(one: Recording) -> Recording:
    signal = one.signal.copy()
    signal[300, 1] += 50.0
    return replace(one, signal=signal)


def with_hole(one: Recording) -> Recording:
    position = one.position.copy()
    position[200:203, 0] = np.nan
    return replace(one, position=position)


def with_repeated_stamp(one: Recording) -> Recording:
    time = one.time.copy()
    time[100] = time[99]
    return replace(one, time=time)


def with_restart(one: Recording) -> Recording:
    time = one.time.copy()
    time[400:] -= 3.0
    return replace(one, time=time)


FAULTS = {
    "outlier": with_spike,
    "missing": with_hole,
    "duplicate": with_repeated_stamp,
    "time_backwards": with_restart,
}


def test_a_clean_recording_is_left_as_it_is():
    one = recording()
    found = cleaned(one)
    assert found.findings == () and len(found.sections) == 1 and found.has_velocity.all()
    (section,) = found.sections
    np.testing.assert_array_equal(section.time, one.time)
    np.testing.assert_array_equal(found.channel("position", section.columns), one.position)
    np.testing.assert_array_equal(found.channel("torque", section.columns), one.signal * [2, 3])
    assert found.channel("temperature", section.columns) is None
    assert not section.missing.any()


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_is_mended_and_named_once(kind):
    found = cleaned(FAULTS[kind](recording()))
    assert [finding.kind for finding in found.findings] == [kind]
    assert "run.csv" in found.findings[0].message
    whole = recording()
    for section in found.sections:
        assert np.all(np.diff(section.time) > 0) and np.all(np.isfinite(section.columns))
    if kind in ("outlier", "missing"):
        torque = found.channel("torque", found.sections[0].columns)
        np.testing.assert_allclose(torque, whole.signal * [2, 3], atol=0.2)
    assert found.sections[0].missing.sum() == (3 if kind == "missing" else 0)
    assert len(found.sections) == (2 if kind == "time_backwards" else 1)


@pytest.mark.parametrize("kind", FAULTS)
def test_the_stream_hears_what_the_fit_sees(kind):
    from taufit.model.torque_model import TorqueModel
    from taufit.payload.stream import stream
    from taufit.robot import from_yaml

    link = "{a: 0.5, alpha: 0, d: 0, lower: -3, upper: 3, velocity: 2, torque: 50, mass: 1}"
    robot = from_yaml(f"name: planar\nconvention: standard\njoints: [{link}, {link}]\n")
    one = replace(FAULTS[kind](recording()), gain=np.array([2.0, 3.0]))
    structure = TorqueModel(robot)
    fitted = structure.with_values(np.zeros(len(structure.names)))
    heard = stream(fitted, one)
    whole = recording()
    truth, time = whole.signal * [2.0, 3.0], heard.start + heard.time
    assert np.all(np.diff(heard.time) > 0)
    if kind == "time_backwards":
        # Five stamps in order show that the clock has started anew.
        assert len(heard) == len(whole) - 4
        np.testing.assert_array_equal(heard.torque, np.delete(truth, range(400, 404), axis=0))
        return
    # What is no measurement is left out; the fit bridges it, and so does the stream's grid.
    gone = {"outlier": [300], "missing": [200, 201, 202], "duplicate": [100]}[kind]
    np.testing.assert_array_equal(heard.torque, np.delete(truth, gone, axis=0))
    np.testing.assert_array_equal(time, np.delete(one.time, gone))


def test_velocity_is_derived_where_there_is_none():
    one = recording()
    found = cleaned(replace(one, velocity=None))
    assert not found.has_velocity.any()
    (section,) = found.sections
    # A central difference of a sine of 1 rad/s at 100 Hz: error below (2 pi f h)^2 / 6.
    np.testing.assert_allclose(found.section_velocity(section)[1:-1], one.velocity[1:-1], atol=2e-5)
