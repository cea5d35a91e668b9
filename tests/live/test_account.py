"""Every sample of a robot is accounted for, also where somebody ends the session on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taufit.live import Monitor
from taufit.live.hub import Hub
from taufit.live.monitor import REASONS, SampleCounts
from taufit.live.session import Session, StreamRecorder
from taufit.recording import read_recording
from taufit.signals.stream import StreamCounts
from taufit.wire.source import SampleBlock, SourceDescription


class Bursting:
    """A robot whose samples come in large blocks, as where the computer was busy."""

    def __init__(self, recording, size):
        self.recording, self.size, self.at, self.closed = recording, size, 0, False
        self.gaps, self.duplicated, self.messages = [], 0, []

    def connect(self):
        one = self.recording
        fields = ("position", "velocity", "signal")
        return SourceDescription(one.joints, fields, "current", "motor_current", 125.0)

    def read(self, seconds):
        rows = slice(self.at, self.at + self.size)
        self.at += self.size
        one = self.recording
        values = {"position": one.position[rows], "velocity": one.velocity[rows]}
        return SampleBlock(one.time[rows], {**values, "signal": one.signal[rows]})

    def close(self):
        self.closed = True


@pytest.fixture
def session(model, loaded, tmp_path):
    signal = np.array(loaded.signal)
    signal[300, 2] *= 50.0
    hurt = replace(loaded, signal=signal)
    published = []
    monitor = Monitor(model)

    def sink(reading):
        published.append(json.loads(json.dumps(reading.to_dict())))
        if len(published) == 150:
            made.stopping.set()

    made = Session(
        monitor,
        Bursting(hurt, 200),
        Hub(),
        tape=StreamRecorder(Path(tmp_path) / "run.parquet"),
        sinks=[sink],
        record_at_once=True,
    )
    made.start()
    assert made.done.wait(60)
    made.stop()
    return made, monitor, published


def test_a_session_that_is_ended_reads_what_has_come(session):
    made, monitor, published = session
    recorded = len(read_recording(made.tape.written[0]))
    account = monitor.account
    assert recorded == account.samples == 200 and account.waiting == 0
    assert len(published) == account.readings == made.samples
    assert account.samples == account.readings + account.settling + sum(account.left_out.values())
    assert [one["sample"] for one in published] == list(range(account.settling, 200))


def test_the_page_is_told_where_the_samples_went(session):
    made, monitor, _ = session
    last = made.hub._kept[-1][1].decode().split("data: ", 1)[1]
    assert json.loads(last)["account"] == monitor.account.to_dict()


def test_what_is_left_out_is_counted_by_reason(model, loaded):
    signal, time = np.array(loaded.signal), np.array(loaded.time)
    signal[300, 2] += np.ptp(signal[:, 2])
    signal[350] = signal[349]
    signal[400, 1] = np.nan
    time[450] = time[449]
    rows = [(time[i], loaded.position[i], loaded.velocity[i], signal[i]) for i in range(len(time))]
    rows[500], rows[501] = rows[501], rows[500]
    monitor = Monitor(model, unit=loaded.signal_unit)
    given = [reading.sample for reading in monitor.run(rows)]
    account = monitor.account
    assert account.readings == len(given) and account.samples == len(rows)
    assert account.left_out == dict.fromkeys(REASONS, 1)
    assert set(range(given[0], len(rows))) - set(given) == {300, 350, 400, 450, 501}
    assert "5 left out (" in str(account)


def test_an_account_names_only_what_there_is():
    counts = StreamCounts(pushed=10, taken=10)
    assert set(REASONS) <= set(StreamCounts.__slots__)
    assert str(SampleCounts.of(counts, 10, 10)) == "10 samples: 10 readings"
    assert "1 waiting" in str(SampleCounts.of(counts, 9, 9))
