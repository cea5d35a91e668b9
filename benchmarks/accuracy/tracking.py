"""Friction followed while the arm works: UR10e runs that the model has not seen.

Every one of nine unloaded runs is predicted by a model of the other eight, once as it stands and
once with Coulomb friction, viscous friction and offset followed; what is used at a sample was
learnt from samples before it. Errors are of the second half of each run, which leaves the first
to settle.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE
from taufit.health.tracker import track, tracked_score
from taufit.model.predict import predicted_torque
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.workflow import identify
from taufit.workflow.conditioned import condition_like

OLD = "ur-19_12_23_free"


def rows() -> Iterator[Row]:
    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return
    arm = read_robot(DATA / "ur10e" / "ur10e.urdf")
    runs = {
        name: read_recording(folder / f"{name}.csv.gz", map=MAPS / "ur10e_csv.yaml")
        for name in NINE
    }
    before, after = {}, {}
    for name in NINE:
        others = [runs[other] for other in NINE if other != name]
        model = identify(arm, others, cutoff_hz=5.0).model
        samples = condition_like(model, [runs[name]], cutoff_hz=5.0, name=name)
        predicted = predicted_torque(model, samples)
        course = track(model, samples, predicted=predicted)
        own = tracked_score(samples, predicted, course)
        before[name], after[name] = own.second_half_before, own.second_half
        if name == OLD:
            note = "model of eight runs, seven weeks later, 5 Hz; the whole run"
            yield Row(f"{name} followed, nrmse", own.mean_nrmse, "", "<= 0.036", note)
            note = "its second half, when friction is known"
            yield Row(f"{name} followed, second half", own.second_half, "", "<= 0.036", note)
    lower = {name: 100.0 * (1.0 - after[name] / before[name]) for name in NINE}
    note = "second halves of nine runs, each by a model of the other eight, 5 Hz"
    mean = 100.0 * (1.0 - np.mean(list(after.values())) / np.mean(list(before.values())))
    yield Row("error lower by following friction", float(mean), "%", ">= 8", note)
    least = min(lower, key=lower.__getitem__)
    yield Row(
        "error lower by following friction, least", lower[least], "%", ">= 8", f"{note}: {least}"
    )
    for name in NINE:
        note = f"{before[name]:.4f} -> {after[name]:.4f}"
        yield Row(f"{name}: error lower by following friction", lower[name], "%", "", note)
