"""Channels by name: carried by every step, refused where they are not registered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taufit
from taufit.recording import Channels, Recording, reorder_joints
from taufit.recording.quantity import QUANTITIES, Quantity
from taufit.recording.row_checks import select_rows


def recording(**channels) -> Recording:
    t = np.arange(0.0, 4.0, 0.01)
    q = np.stack([np.sin(3.0 * t), np.cos(2.0 * t)], 1)
    names = {"joint_names": ["b", "a"]}
    return Recording(t, q, 5.0 * np.cos(q), signal_unit="N m", meta=names, **channels)


@pytest.fixture
def humidity(monkeypatch):
    """A sensor nobody thought of: one entry, and nothing else."""
    monkeypatch.setitem(
        QUANTITIES, "humidity", Quantity("humidity", "humidity", {"%": 1.0}, True, 1e3, slow=True)
    )
    return np.linspace(40.0, 60.0, 400)[:, None] + np.array([0.0, 1.0])


def test_a_further_channel_is_read_as_an_attribute_and_absent_ones_are_none(humidity):
    run = recording(humidity=humidity)
    assert run.humidity is humidity and run.temperature is None
    assert run.channels.unit("humidity") == "%" and list(run.channels) == ["humidity"]
    assert list(replace(run, humidity=None).channels) == []


def test_a_name_that_is_no_channel_is_refused_with_those_that_are():
    with pytest.raises(TypeError, match=r"no channel 'humidity'; there are .*temperature"):
        recording(humidity=np.zeros((400, 2)))
    with pytest.raises(AttributeError, match="humidity"):
        _ = recording().humidity


def test_rows_and_joint_order_reach_every_channel(humidity):
    run = recording(humidity=humidity, motor_position=humidity + 1.0)
    some = select_rows(run, np.arange(0, 400, 2))
    np.testing.assert_array_equal(some.humidity, humidity[::2])
    np.testing.assert_array_equal(some.motor_position, humidity[::2] + 1.0)
    np.testing.assert_array_equal(reorder_joints(run, ["a", "b"]).humidity, humidity[:, ::-1])


def test_a_further_channel_is_written_read_and_carried_to_samples(humidity, tmp_path):
    taufit.write_recording(recording(humidity=humidity), tmp_path / "run.parquet")
    back = taufit.read_recording(tmp_path / "run.parquet")
    np.testing.assert_array_equal(back.humidity, humidity)
    samples = taufit.condition(back, cutoff_hz=10.0)
    # On the recording's own grid nothing is interpolated, and slow channels are not low-passed.
    np.testing.assert_allclose(samples.channels["humidity"], humidity, atol=1e-9)
    np.testing.assert_array_equal(
        samples.rows(slice(5, 9)).channels["humidity"], samples.channels["humidity"][5:9]
    )


def test_runs_joined_keep_the_channels_that_all_of_them_have(humidity):
    both = taufit.condition(
        [recording(humidity=humidity, temperature=humidity), recording(temperature=humidity)]
    )
    assert list(both.channels) == ["temperature"]
    assert both.temperature.shape == both.position.shape


def test_channels_join_by_name():
    a = Channels.from_values(temperature=np.ones((2, 1)), target_torque=np.ones((2, 1)))
    b = Channels.from_values(temperature=np.zeros((3, 1)))
    assert list(Channels.concatenate([a, b])) == ["temperature"]
    assert Channels.concatenate([a, b])["temperature"].ravel().tolist() == [1, 1, 0, 0, 0]
