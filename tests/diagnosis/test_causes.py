"""Mistakes are named by the change that puts them right, and that change does put them right."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.traps import TRAPS, Log, log_of, recordings_of

from taufit.core.errors import RecordingError
from taufit.diagnosis import (
    Cause,
    ContradictionError,
    apply_declared_torque_kind,
    recording_causes,
    sample_causes,
)
from taufit.dynamics import inverse_dynamics
from taufit.recording import Finding, Recording
from taufit.recording.crop import crop
from taufit.recording.map.edited_map import apply_edits
from taufit.recording.map.remedy import MapEdit, Remedy, combine_remedies
from taufit.recording.read import with_torque_kind
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.signs.unknown_signs import without_signs

RATE = 100.0


@pytest.fixture(scope="module")
def run():
    """A UR5e with friction and noise that follows sums of sines between two rests."""
    robot = read_robot("ur5e")
    rng = np.random.default_rng(11)
    time = np.arange(0.0, 22.0, 1.0 / RATE)
    inside = np.clip((time - 1.0) / 20.0, 0.0, 1.0)
    shape = 10 * inside**3 - 15 * inside**4 + 6 * inside**5
    tau_ = 20.0 * shape
    w = 2 * np.pi * np.array([0.12, 0.21, 0.33, 0.47])
    a = rng.uniform(0.1, 0.45, (4, 6))
    phase = rng.uniform(0, 6.28, (4, 6))
    q = sum(a[k] * np.sin(w[k] * tau_[:, None] + phase[k]) for k in range(4))
    q = q + np.array([0, -1.2, 1.0, -0.5, 1.2, 0])
    v = np.gradient(q, time, axis=0)
    acc = np.gradient(v, time, axis=0)
    torque = inverse_dynamics(robot, q, v, acc) + 4.0 * np.tanh(v / 0.01) + 2.0 * v + 0.2
    torque += rng.normal(0.0, 0.2, torque.shape)
    return Recording(
        time=time, position=q, velocity=v, signal=torque, gain=np.ones(6),
        signed=np.ones(6, bool), meta={"file": "run.csv"},
    )  # fmt: skip


def causes(robot, recordings, delay_s: float = 0.0) -> list[Cause]:
    first = recording_causes(robot, recordings)
    if any(cause.finding.severity == "error" for cause in first):
        return first
    samples = condition(recordings, delay_s=delay_s)
    return [*first, *sample_causes(robot, recordings, samples, first)]


def test_nothing_is_found_in_a_clean_recording(run):
    assert causes(read_robot("ur5e"), [run]) == []


NAMED = [
    "degrees",
    "velocity in deg/s",
    "velocity in rpm",
    "velocity sign of all joints",
    "velocity of the motor",
    "clock 2 times",
    "torque sign of joint 1",
    "torque sign of joint 2",
    "torque sign of all joints",
    "torque of 2 and 3 swapped",
    "joints 1 and 3 swapped (alphabet)",
    "zero of joint 2 off by 90 deg",
    "torque clipped at 60 %",
    "encoder 3 sticks half way",
    "log twice, time goes on",
    "torque of joint 3 zero",
    "gravity subtracted",
    "mounted on a wall",
    "torque 100 ms late",
    "magnitudes only",
    "torque in mN m",
    "velocity 1.6 times too large",
    "wrong arm: larger",
]


# What only a new recording or the user's knowledge mends.
IN_WORDS = ("torque clipped at 60 %", "torque of joint 3 zero")


@pytest.mark.parametrize("name", NAMED)
def test_a_mistake_is_named_and_its_remedy_leaves_nothing(run, name):
    trap = next(one for one in TRAPS if one.name == name)
    log = log_of(run, "ur5e")
    trap.spoil(log)
    robot = read_robot(log.robot, mounting=log.mounting)
    recordings = recordings_of(log)
    found = causes(robot, recordings)
    assert {cause.finding.kind for cause in found} & trap.kinds, [str(c.finding) for c in found]
    remedy = combine_remedies(cause.finding.remedy for cause in found)
    assert (remedy is None) == (name in IN_WORDS)
    if remedy is None:
        return
    again, recordings, delay = followed(log, remedy)
    recordings, _ = apply_declared_torque_kind(again, recordings)
    left = causes(again, recordings, delay)
    # Magnitudes stay magnitudes: that their signs are not checked is said, not mended.
    said = ("info",) if name != "magnitudes only" else ("info", "warning")
    assert not [str(c.finding) for c in left if c.finding.severity not in said]


def followed(log: Log, remedy: Remedy):
    """The robot, the recordings and the delay of torque as a remedy says."""
    options = dict(zip(remedy.options[::2], remedy.options[1::2], strict=True))
    robot = read_robot(remedy.robot or log.robot, mounting=options.pop("--mounting", log.mounting))
    start, end = options.pop("--from", None), options.pop("--to", None)
    effort, delay = options.pop("--torque-kind", None), float(options.pop("--delay-s", 0.0))
    unsigned = options.pop("--torque-signs", None) == "unknown"
    assert not options
    out = []
    for recording in recordings_of(log, remedy.edits):
        recording = with_torque_kind(recording, effort)
        if start is not None or end is not None:
            recording = crop(recording, start and float(start), end and float(end))
        out.append(without_signs(recording) if unsigned else recording)
    return robot, out, delay


def test_every_part_of_a_remedy_reaches_the_column_map():
    page = {
        "columns": {
            "time": "t",
            "position": {"columns": "q{joint}", "offset": [0.1, 0.2]},
            "velocity": {"columns": ["a", "b"]},
            "current": {"columns": "7-8", "sign": [1, -1]},
        },
        "gains": [2.0, 3.0],
    }
    edits = [
        MapEdit("signal", "sign", (-1.0, 1.0)),
        MapEdit("position", "sign", (1.0, -1.0)),
        MapEdit("position", "offset", (0.0, 1.0)),
        MapEdit("every", "order", (2.0, 1.0)),
        MapEdit("velocity", "drop"),
        MapEdit("time", "scale", 0.5),
        MapEdit("time", "unit", "ms"),
        MapEdit("", "gravity_removed", True),
        MapEdit("temperature", "unit", "K"),
    ]
    assert apply_edits(page, edits) == {
        "columns": {
            "time": {"columns": "t", "scale": 0.5, "unit": "ms"},
            "position": {"columns": ["q2", "q1"], "sign": [-1, 1], "offset": [0.8, 0.1]},
            "current": {"columns": [8, 7], "sign": [-1, -1]},
        },
        "gains": [2.0, 3.0],
        "gravity_removed": True,
    }
    with pytest.raises(RecordingError, match="by quantity"):
        apply_edits({"columns": [{"column": 1, "quantity": "time"}]}, edits)


def test_a_finding_keeps_its_remedy_as_plain_data():
    remedy = Remedy(("--to", "3"), "ur5e", (MapEdit("signal", "sign", (1.0, -1.0)),))
    finding = Finding("torque_sign", "error", "other sign", remedy=remedy)
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    both = combine_remedies([remedy, None, Remedy(("--to", "2", "--from", "1"))])
    assert both is not None and both.options == ("--to", "2", "--from", "1")


def test_a_refusal_survives_another_process(run):
    error = ContradictionError([Cause(Finding("unit", "error", "it is in degrees"))])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.findings == error.findings


def test_effort_nobody_declared_is_refused_with_the_option_to_type(run):
    raw = replace(run, signal_unit="", gain=None)
    with pytest.raises(RecordingError, match=r"--torque-kind torque \(N m\).*likely torque"):
        apply_declared_torque_kind(read_robot("ur5e"), [raw])


def test_currents_without_gains_take_the_nominal_robots_scale(run):
    gain = np.array([12.0, 12.0, 9.0, 10.0, 10.0, 10.0])
    current = replace(
        run, signal=run.signal / gain, signal_unit="A", gain=None, meta={"gains": "unknown"}
    )
    (filled,), found = apply_declared_torque_kind(read_robot("ur5e"), [current])
    np.testing.assert_allclose(filled.gain[1:3], gain[1:3], rtol=0.1)
    assert found[0].kind == "gains_unknown" and "taufit gains" in found[0].message
