"""Steps of joint torque on a Panda, whose torque is measured behind the gears.

The shared log is split: a model and its noise from the first 70 %, steps put into the rest, joint
by joint, at random times of its motion. Its seconds are too few to learn the tail of false evidence
from: the threshold is that of arms in general. How noise of velocities is kept from being taken for
accelerations beyond the training's was chosen on recordings of a UR10e and while these steps were
looked at, with splits of 50 and 70 %: for that rule they are not out of sample.
TAUFIT_CONTACTS sets how many steps per joint (40).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import part
from benchmarks.contact_runs import DATA, ROOT
from taufit.contact import ContactDetector
from taufit.payload import stream
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.workflow import identify

COUNT = int(os.environ.get("TAUFIT_CONTACTS", "40"))
STEPS = (3.0, 3.0, 3.0, 3.0, 0.5, 0.5, 0.5)
SECONDS = 0.2


def rows() -> Iterator[Row]:
    path = DATA / "panda" / "panda_exciting_traj1_part1.csv.gz"
    if not path.exists():
        return
    whole = read_recording(path, column_map=ROOT / "examples" / "columns" / "panda_csv.yaml")
    model = identify(read_robot("panda"), [part(whole, 0.0, 0.7)]).model
    source = stream(model, part(whole, 0.7, 1.0))
    quiet = ContactDetector(model)
    for sample in source.samples():
        quiet.update_clean(*sample)
    seconds = float(source.time[-1] - source.time[0])
    alarms = len(quiet.contacts)
    yield Row("alarms without a step", alarms, "", "<= 0", f"{seconds:.1f} s")
    rng = np.random.default_rng(21)
    for joint, size in enumerate(STEPS):
        found, late = 0, []
        for _ in range(COUNT):
            start = float(source.time[0] + rng.uniform(1.0, seconds - 0.6))
            during = (source.time >= start) & (source.time < start + SECONDS)
            torque = source.torque.copy()
            torque[during, joint] += size * (1.0 if rng.random() < 0.5 else -1.0)
            watch = ContactDetector(model)
            for sample in replace(source, torque=torque).samples():
                watch.update_clean(*sample)
            told = [
                c.detection_time - start
                for c in watch.contacts
                if 0 <= c.detection_time - start < 0.5
            ]
            found += bool(told)
            late += told[:1]
        after = f", median after {1e3 * float(np.median(late)):.0f} ms" if late else ""
        note = f"{COUNT} steps of {1e3 * SECONDS:.0f} ms{after}"
        share = 100.0 * found / COUNT
        yield Row(f"J{joint + 1}: {size:g} N m found", share, "%", ">= 90", note)
