"""Data of a sign search: torque magnitudes, known signs and the regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.recording import require_joints
from taufit.signals import Samples
from taufit.signs.hints import SignHint, apply_hints
from taufit.signs.quadratic_form import JointRows, joint_rows
from taufit.signs.samples import joints_with_signs
from taufit.signs.segments import noise_scale
from taufit.terms import friction_model, has_memory, needs

# Samples with torque above this many standard deviations have the sign of their segment.
CLEAR_STDS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class SearchData:
    """Data of a sign search, with unfiltered torque where available.

    Attributes:
        model: Model whose friction is linear in its coefficients.
        samples: Motion.
        values: Torque magnitudes; signed torque where `has_sign`.
        has_sign: Samples whose sign was recorded or given.
        signed: Samples whose value is certainly signed. Within the noise of zero the sign of a
            segment need not be that of the noisy sample.
        borders: Further cuts, before the marked samples.
        noise: Standard deviation per joint, from the recording alone [N m].
        rows: Regressor.
        hints: Signs given by the user.
        load: Load torque of the gears, where friction depends on load or path [N m].
        functionals: Cache of the positive functionals per set of joints.
    """

    model: TorqueModel
    samples: Samples
    values: Float[Array, "n j"]
    has_sign: Bool[Array, "n j"]
    signed: Bool[Array, "n j"]
    borders: Bool[Array, "n j"]
    noise: Float[Array, " j"]
    rows: JointRows
    hints: tuple[SignHint, ...] = ()
    load: Float[Array, "n j"] | None = None
    functionals: dict[tuple[int, ...], Float[Array, "f b"]] = field(default_factory=dict)

    @property
    def magnitude(self) -> Float[Array, "n j"]:
        return np.abs(self.values)


def prepare_search(
    model: TorqueModel,
    samples: Samples,
    hints: Sequence[SignHint] = (),
    *,
    load: Float[Array, "n j"] | None = None,
) -> SearchData:
    """Prepare a sign search: magnitudes, known signs and independent regressor columns.

    Nonlinear friction is replaced by Coulomb and viscous terms, unless `load` is given: with the
    load torque of the gears, friction by load and path is linear.
    """
    joints = model.robot.joints
    require_joints(samples.joints, joints, name=samples.names[0], robot=model.robot.name)
    signed = joints_with_signs(samples)
    raw = samples.raw_torque is not None
    values = np.array(samples.raw_torque if raw else samples.torque, float)
    values[:, ~signed] = np.abs(values[:, ~signed])
    keep = np.asarray(samples.keep, bool)
    if not np.all(np.isfinite(values[keep])):
        k, i = np.argwhere(keep & ~np.isfinite(values))[0]
        raise RecordingError(
            f"torque of joint {i + 1} is not a number at sample {k + 1}. Repair or drop it."
        )
    # Samples that are not used may have any value, which must not spread through a filter.
    values[~np.isfinite(values)] = 0.0
    has_sign = np.broadcast_to(signed, values.shape).copy()
    borders = np.zeros(values.shape, bool)
    apply_hints(hints, samples, values, has_sign, borders)

    if load is None and is_nonlinear(model):
        model = replace(model, friction=friction_model("linear"), shape=None)
    noise = noise_scale(np.abs(values), samples.run, keep)
    unused_joints = np.flatnonzero(~signed & ~np.any(keep, axis=0))
    if len(unused_joints):
        raise PoorExcitationError(
            f"joint {unused_joints[0] + 1} has no sample left to fit: it does not move in this "
            "recording, "
            "or all its samples were rejected. Record a motion of every joint."
        )
    rows = joint_rows(search_regressor(model, samples, load), np.where(keep, 1.0 / noise, 0.0))
    is_certain = signed | (has_sign & (np.abs(values) > CLEAR_STDS * noise))
    return SearchData(
        model, samples, values, has_sign, is_certain, borders, noise, rows, tuple(hints), load
    )


def search_regressor(
    model: TorqueModel, samples: Samples, load: Float[Array, "n j"] | None = None
) -> Float[Array, "n j p"]:
    """Regressor of the sign search: friction columns are filtered only if the torque is."""
    columns = model.columns
    motor = columns.drive_at(samples, load=load, filtered=samples.raw_torque is None)
    return columns.dense(samples.position, samples.velocity, samples.acceleration, motor)


def is_nonlinear(model: TorqueModel) -> bool:
    """Whether friction has shape parameters, load dependence or memory."""
    term = model.term_sum
    return bool(term.shapes) or needs(term, "load") or has_memory(term)
