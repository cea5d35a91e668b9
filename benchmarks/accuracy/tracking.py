"""Friction followed while the arm works: UR10e runs that the model has not seen.

Every one of nine unloaded runs is predicted by a model of the other eight, once as it stands and
once with Coulomb friction, viscous friction and offset followed; what is used at a sample was
learnt from samples before it. Errors are of the second half of each run, which leaves the first
to settle. What could be gained at most is shown by constant parts fitted to that half itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE
from taufit.core.arrays import Array, Float
from taufit.health.tracker import FrictionTrack, score_tracking, track
from taufit.model import FittedModel, friction_torque
from taufit.model.predict import predicted_torque
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.workflow import identify
from taufit.workflow.training_data import condition_for_model

OLD = "ur-19_12_23_free"


def rows() -> Iterator[Row]:
    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return
    arm = read_robot(DATA / "ur10e" / "ur10e.urdf")
    runs = {
        name: read_recording(folder / f"{name}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")
        for name in NINE
    }
    before, after, best = {}, {}, {}
    for name in NINE:
        others = [runs[other] for other in NINE if other != name]
        model = identify(arm, others, cutoff_hz=5.0).model
        samples = condition_for_model(model, [runs[name]], cutoff_hz=5.0, name=name)
        predicted = predicted_torque(model, samples)
        course = track(model, samples, predicted=predicted)
        own = score_tracking(samples, predicted, course)
        before[name], after[name] = own.second_half_before, own.second_half
        best[name] = score_tracking(samples, predicted, _known_after(model, samples, predicted))
        if name == OLD:
            note = "model of eight runs, seven weeks later, 5 Hz; the whole run"
            yield Row(f"{name} followed, nrmse", own.mean_nrmse, "", "<= 0.036", note)
            note = "its second half, when friction is known"
            yield Row(f"{name} followed, second half", own.second_half, "", "<= 0.036", note)
    lower = {name: _lower(after[name], before[name]) for name in NINE}
    most = {name: _lower(best[name].second_half, before[name]) for name in NINE}
    note = "second halves of nine runs, each by a model of the other eight, 5 Hz"
    mean = _lower(sum(after.values()), sum(before.values()))
    yield Row("error lower by following friction", mean, "%", ">= 8", note)
    mean = _lower(sum(one.second_half for one in best.values()), sum(before.values()))
    yield Row("error lower by parts fitted to the second half itself", mean, "%", "", note)
    least = min(lower, key=lower.__getitem__)
    yield Row(
        "error lower by following friction, least", lower[least], "%", ">= 8", f"{note}: {least}"
    )
    for name in NINE:
        note = f"{before[name]:.4f} -> {after[name]:.4f}; at most {most[name]:.1f} %"
        yield Row(f"{name}: error lower by following friction", lower[name], "%", "", note)


def _lower(after: float, before: float) -> float:
    return 100.0 * (1.0 - after / before)


def _known_after(
    model: FittedModel, samples: Samples, predicted: Float[Array, "n j"]
) -> FrictionTrack:
    """The constant parts that leave the least of the second half's motion."""
    rows = np.flatnonzero(samples.in_motion)
    late = rows[len(rows) // 2 :]
    residual = samples.torque - predicted
    friction = friction_torque(model, samples)
    ones = np.ones_like(friction)
    columns = np.stack([friction, samples.velocity, ones], -1)
    parts = np.stack(
        [
            np.linalg.lstsq(columns[late, j], residual[late, j], rcond=None)[0]
            for j in range(samples.joints)
        ]
    )
    return FrictionTrack((columns * parts).sum(axis=-1), np.broadcast_to(parts, columns.shape))
