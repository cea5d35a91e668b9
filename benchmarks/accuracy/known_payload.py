"""Known payload on real UR10e recordings: estimated on one run, given on another of the same part.

The model is fitted to five unloaded runs of February. Each loaded run is compared with the run
without load along the same motion (the partner); 20_01_13-load_2600 carries a part of its own, so
its first half gives the payload of its second half.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.payload_real import SHARED, read
from taufit.model import FittedModel
from taufit.model.intervals import predict_interval
from taufit.payload import identify_payload
from taufit.recording import Recording, split
from taufit.robot import read_robot
from taufit.validation import score
from taufit.workflow import condition_for_model, identify

TRAINING = (
    "20_02_10-30sec_12harm",
    "20_02_12-40sec_12harm",
    "20_02_05-20sec_12harm",
    "20_02_05-20sec_8harm",
    "20_02_10-20sec_7harm",
)
CROSSED = {
    "20_02_19_14harm50secLoad": ("20_01_31-load", "20_02_19_14harm50sec"),
    "20_01_31-load": ("20_02_19_14harm50secLoad", "20_01_31-unload"),
}
HALVES = {
    "20_02_19_14harm50secLoad": "20_02_19_14harm50sec",
    "20_01_31-load": "20_01_31-unload",
    "20_01_13-load_2600": "19_12_23_free",
}


def rows() -> Iterator[Row]:
    if not Path(SHARED).is_dir():
        return
    model = identify(read_robot(SHARED / "ur10e.urdf"), [read(name) for name in TRAINING]).model
    trials = [
        (f"{name} with the payload of {source}", read(source), read(name), read(partner))
        for name, (source, partner) in CROSSED.items()
    ]
    for name, partner in HALVES.items():
        first, second = split(read(name), 0.5)
        trials.append((f"{name}, second half by its first", first, second, read(partner)))
    for label, source, loaded, partner in trials:
        yield from _trial(model, label, source, loaded, partner)


def _trial(
    model: FittedModel, label: str, source: Recording, loaded: Recording, partner: Recording
) -> Iterator[Row]:
    estimate = identify_payload(model, source).estimate
    model_with_payload = model.with_payload(estimate.to_payload())
    ratio = _nrmse(model_with_payload, loaded) / _nrmse(model, partner)
    bare = _nrmse(model, loaded) / _nrmse(model, partner)
    inside = _inside(model_with_payload, loaded)
    yield Row(
        f"{label}: nrmse over that of the unloaded partner",
        ratio,
        "x",
        "<= 1.15",
        f"{estimate.mass:.3f} kg; without the payload {bare:.2f}",
    )
    note = "by joint " + " ".join(f"{100 * x:.0f}" for x in inside)
    yield Row(f"{label}: samples inside the 95 % band", 100 * inside.mean(), "%", ">= 92", note)
    yield Row(f"{label}: the same, worst joint", 100 * inside.min(), "%", ">= 85")


def _nrmse(model: FittedModel, recording: Recording) -> float:
    return float(score(model, condition_for_model(model, [recording])).mean_nrmse)


def _inside(model: FittedModel, recording: Recording) -> np.ndarray:
    samples = condition_for_model(model, [recording])
    inside = predict_interval(model, samples).inside(samples.torque)
    return inside[samples.in_motion].mean(axis=0)
