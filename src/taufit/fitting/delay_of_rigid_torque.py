"""Delay of torque by the equations of motion with free links, as the automatic fit weighs them.

    y = W theta - d dy/dt + sum_j b_j df_j/dt + e,     f_j: friction of joint j, y fitted torque

d is one Gauss-Newton step of the maximum a posteriori of theta. b_j, a delay of the friction of one
joint alone, is free: after reversals friction builds up late, which is no delay of the torque.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.fitting.data_sufficiency import DataAmount
from taufit.fitting.fit import automatic_model, parameters_without_data
from taufit.fitting.gravity_tilt import products_beside, schur_complement, thin_rows
from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.fitting.unidirectional_joints import confounded_terms
from taufit.regression.rows import SampleRows
from taufit.robot import Robot
from taufit.signals.differentiation import central_difference
from taufit.signals.resampling import interpolate
from taufit.signals.sample_source import as_source
from taufit.signals.samples import Samples

# Factor on the standard deviation of the delay with free links, by the side on which torque is
# measured. At the motor the ratio of both estimates' rms errors over their deviations: 2.4 on first
# parts of simulated runs (8 arms, seeds 21 to 23), 3.8 on those of UR10e runs. Sensors behind the
# gears see little friction: no factor on simulated Panda, FR3 and iiwa; a Panda's run: 0 +- .6 ms,
# by nominal masses 4 ms, which would cost 11 % of its hold-out error.
_ERROR_FACTOR = {"motor": 4.0, "link": 1.0}


def with_free_links(robot: Robot, samples: Samples, delay_s: float, precision: float) -> float:
    """Mean of a delay by nominal masses and the one with free links, each by its precision [s].

    Args:
        robot: Robot with nominal masses.
        samples: Samples conditioned without delay.
        delay_s: Delay by nominal masses [s].
        precision: 1 / variance of it [1/s^2].
    """
    rest_s, std_s = delay_of_rigid_torque(robot, _advance_torque(samples, delay_s))
    return delay_s + rest_s / (1.0 + precision * (_ERROR_FACTOR[robot.drives.side] * std_s) ** 2)


def delay_of_rigid_torque(robot: Robot, samples: Samples) -> tuple[float, float]:
    """Delay of torque behind motion, and its standard deviation without errors of the model [s].

    Args:
        robot: Robot with nominal masses.
        samples: Samples whose delay is a few milliseconds.
    """
    model, source = automatic_model(robot), as_source(samples)
    noise = DataAmount.from_samples(model, source).minimum_noise(source)
    joints = confounded_terms(model, samples).joints
    dropped = parameters_without_data(model, source)
    search = maximise_evidence(model, source, dropped, noise, None, joints)
    rows = search.regression.excerpt
    assert isinstance(rows, SampleRows)
    part = thin_rows(rows, 0, len(rows))
    rigid, both = rows.rigid_torque(search.theta), rows.predict(search.theta)
    own = _slope(samples, both - rigid)[part, :, None] * np.eye(samples.joints)
    slopes = np.concatenate([-_slope(samples, both)[part, :, None], own], axis=-1)
    products = schur_complement(search, products_beside(search, slopes, part))
    square, right = products[:-1, :-1], products[:-1, -1]
    # A joint without friction leaves its column empty.
    covariance = np.linalg.pinv(square, rcond=1e-9, hermitian=True)
    return float(covariance[0] @ right), float(np.sqrt(covariance[0, 0]))


def _slope(samples: Samples, columns: Float[Array, "n j"]) -> Float[Array, "n j"]:
    """Time derivative, run by run."""
    out = np.empty_like(columns)
    for run in samples.run_slices():
        out[run] = central_difference(columns[run], samples.rate_hz, samples.cutoff_hz)
    return out


def _advance_torque(samples: Samples, delay_s: float) -> Samples:
    """Samples with torque taken `delay_s` seconds later than the motion."""
    torque, keep = np.empty_like(samples.torque), samples.keep.copy()
    for run in samples.run_slices():
        time = np.arange(run.stop - run.start) / samples.rate_hz
        torque[run] = interpolate(time, samples.torque[run], time + delay_s)
        keep[run] &= ((time + delay_s >= 0.0) & (time + delay_s <= time[-1]))[:, None]
    return replace(samples, torque=torque, keep=keep)
