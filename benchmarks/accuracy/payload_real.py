"""Payload on real UR10e recordings: models from other recordings, gains as the controller has them.

Only the masses are documented. How far the drive gains are off is not known either, and they are
most of the interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.payload import identify_payload
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.workflow import identify

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "ur10e"
COLUMNS = ROOT / "examples" / "columns" / "ur10e_csv.yaml"
LOADED = {
    "20_02_19_14harm50secLoad": 2.805,
    "20_01_31-load": 2.805,
    "20_01_13-load_2600": 2.602,
}
EMPTY = ("20_01_31-unload", "19_12_23_free", "20_02_06-20sec_5harm", "20_02_05-20sec_8harm")
TRAINING = {
    "three runs": ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_05-20sec_12harm"),
    "seven runs": (
        "20_02_10-30sec_12harm",
        "20_02_12-40sec_12harm",
        "20_02_05-20sec_12harm",
        "20_02_05-20sec_8harm",
        "20_02_06-20sec_5harm",
        "20_02_10-20sec_7harm",
        "20_02_19_14harm50sec",
    ),
    "one run of 30 s": ("20_02_10-30sec_12harm",),
    "one run of 40 s": ("20_02_12-40sec_12harm",),
    "one run of 50 s": ("20_02_19_14harm50sec",),
}


def rows() -> Iterator[Row]:
    if not SHARED.is_dir():
        return
    robot = read_robot(SHARED / "ur10e.urdf")
    changes, minutes = 0, 0.0
    for label, names in TRAINING.items():
        model = identify(robot, [read(name) for name in names]).model
        for name, mass in LOADED.items():
            done = identify_payload(model, read(name))
            changes += sum(event.kind != "gap" for event in done.events)
            minutes += done.history[-1].t / 60.0
            error = 100.0 * (done.estimate.mass / mass - 1.0)
            inside = _inside(done, mass)
            low, high = done.estimate.mass_interval
            note = (
                f"{error:+.2f} %, 95 %: {low:.3f} to {high:.3f} kg, true {mass:g}; "
                f"ready after {done.ready_at or np.nan:.1f} s"
            )
            yield Row(f"{label}: {name}, mass off by", abs(error), "%", "<= 1", note)
            yield Row(f"{label}: {name}, time the interval holds", 100 * inside, "%", ">= 95", "")
        holding, wide = 0, 0.0
        fresh = [name for name in EMPTY if name not in names]
        for name in fresh:
            done = identify_payload(model, read(name))
            changes += sum(event.kind != "gap" for event in done.events)
            minutes += done.history[-1].t / 60.0
            estimate = done.estimate
            holding += estimate.mass_interval[0] <= 0.0
            wide = max(wide, estimate.mass_interval[1])
        note = f"of {len(fresh)} other empty runs; highest bound {wide:.3f} kg"
        yield Row(f"{label}: intervals that hold 0 kg", holding, "", f">= {len(fresh)}", note)
    note = f"{minutes:.0f} minutes, nobody picked or dropped anything"
    yield Row("picks and drops told in all these runs", changes, "", "<= 0", note)


def read(name: str) -> Any:
    folder = SHARED / "identification_data"
    return read_recording(folder / f"ur-{name}.csv.gz", column_map=COLUMNS)


def _inside(done: Any, mass: float) -> float:
    """Share of read-outs after readiness whose interval holds the mass."""
    after = [m for m in done.history if m.ready]
    return float(np.mean([m.low <= mass <= m.high for m in after])) if after else 0.0
