"""Columns of W: what each parameter adds to the torque, filtered as the torque was."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction import remembers_path
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples


def filtered_friction(
    model: TorqueModel,
    samples: Samples,
    *,
    load: Float[Array, "n j"] | None = None,
    shape: Float[Array, "j s"] | None = None,
) -> Float[Array, "n j k"]:
    """Friction columns from the unfiltered velocity, low-passed as the torque was."""
    from taufit.signals.filtering import lowpass

    velocity, temperature = samples.friction_velocity, samples.temperature
    if not remembers_path(model.friction):
        columns = model.motor_friction(velocity, load=load, temperature=temperature, shape=shape)
        return lowpass(samples, columns)
    # Memory of the path starts anew with every run.
    parts = [
        model.motor_friction(
            velocity[run],
            load=None if load is None else load[run],
            temperature=None if temperature is None else temperature[run],
            shape=shape,
            travel=velocity[run] / samples.rate_hz,
        )
        for run in samples.run_slices()
    ]
    return lowpass(samples, np.concatenate(parts))
