"""Detection of swapped temperature sensors, by friction and by heat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.friction_terms import (
    correlation_samples,
    fit_with_prior,
    gaussian_prior,
)
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import Regression
from taufit.regression.rows import RowBuilder, SampleRows
from taufit.signals.sample_source import as_source
from taufit.signals.samples import Samples
from taufit.terms import LEVEL, Parameter, needs

# Minimum gain of a swap: by friction in squared noise levels and as a fraction; by heat as a
# fraction of the sensor's variation.
_GAIN = 30.0
_GAIN_SHARE = 0.15
_HEAT_SHARE = 0.3
_ROWS_PER_RUN = 200


def swapped_findings(model: TorqueModel, samples: Samples) -> list[str]:
    """Messages about joints whose temperature is that of another joint, by friction or by heat.

    Sensors are assigned to joints so that most is explained; a swap counts if every joint in it
    gains. Sensors with similar courses and similar heat cannot be distinguished.
    """
    residual, coulomb, viscous, keep = fit_without_temperature(model, samples)
    gain = temperature_gain(samples, residual, keep)
    messages = [
        f"joint {j + 1}: friction follows the temperature given for joint {k + 1} "
        f"({gain[j, k]:.0f} against {gain[j, j]:.0f} squared noise levels explained). Are the "
        "temperature sensors or columns swapped?"
        for j, k in _exchanged(gain, lambda own, other: max(_GAIN, _GAIN_SHARE * other))
    ]
    if messages:
        return messages
    share = heat_share(samples, heat_power(samples, coulomb, viscous))
    return [
        f"joint {j + 1}: its heat shows in the temperature given for joint {k + 1} "
        f"({100 * share[j, k]:.0f} % of that course explained, "
        f"{abs(100 * share[j, j]):.0f} % of its own). Are the temperature sensors or columns "
        "swapped?"
        for j, k in _exchanged(share, lambda own, other: _HEAT_SHARE)
    ]


def _exchanged(
    value: Float[Array, "j j"], least: Callable[[float, float], float]
) -> list[tuple[int, int]]:
    """Joints and the sensors that fit them better, if all joints of a swap gain."""
    from scipy.optimize import linear_sum_assignment

    found = [
        (int(j), int(k))
        for j, k in zip(*linear_sum_assignment(-value), strict=True)
        if j != k and value[j, k] - value[j, j] > least(value[j, j], value[j, k])
    ]
    moved = {j for j, _ in found}
    return [(j, k) for j, k in found if k in moved]


def temperature_gain(
    samples: Samples, residual: Float[Array, "n j"], keep: Bool[Array, "n j"]
) -> Float[Array, "j j"]:
    """G_jk: part of joint j's residual explained by sensor k, in squared noise levels.

    The residual of a fit without temperature is explained by v (T_k - mean) and s (T_k - mean)
    beside v, s and a constant.
    """
    assert samples.temperature is not None
    apart = correlation_samples(residual, keep, samples.run)
    joints = samples.joints
    out = np.zeros((joints, joints))
    sign = np.tanh(samples.velocity / 0.02)
    for j in range(joints):
        rows = keep[:, j]
        count = int(np.count_nonzero(rows))
        if count < 50:
            continue
        e, v, s = residual[rows, j], samples.velocity[rows, j], sign[rows, j]
        left: list[float] = []
        for k in range(joints):
            above = samples.temperature[rows, k]
            above = above - above.mean()
            columns = np.stack([v, s, np.ones_like(v), v * above, s * above], -1)
            size = np.linalg.norm(columns, axis=0)
            live = size > 1e-9 * max(float(size.max()), 1e-300)
            basis, _ = np.linalg.qr(columns[:, live] / size[live])
            left.append(float(e @ e - np.sum((basis.T @ e) ** 2)))
        noise = max(min(left) / count, 1e-300) * apart[j]
        out[j] = (float(e @ e) - np.array(left)) / noise
    return out


def heat_share(
    samples: Samples, power: tuple[Float[Array, "n j"], Float[Array, "n j"]]
) -> Float[Array, "j j"]:
    """H_jk: fraction of sensor k's variation within the runs that joint j's heat explains.

    A heat capacity integrates: within a run, besides a slow parabola, T rises with the energy from
    friction and from copper loss, neither of which can cool.
    """
    from scipy.optimize import nnls

    assert samples.temperature is not None
    joints = samples.joints
    energy: list[list[Array]] = [[], []]
    course: list[Array] = []
    for run in samples.run_slices():
        n = run.stop - run.start
        at = np.linspace(-1.0, 1.0, n)
        slow, _ = np.linalg.qr(np.stack([at**k for k in range(3)], -1))
        stride = max(1, n // _ROWS_PER_RUN)

        def quick(values: Array, slow: Array = slow, stride: int = stride) -> Array:
            return (values - slow @ (slow.T @ values))[::stride]

        for part, heat in zip(energy, power, strict=True):
            part.append(quick(np.cumsum(heat[run], axis=0) / samples.rate_hz))
        course.append(quick(samples.temperature[run]))
    friction, copper = (np.concatenate(part) for part in energy)
    measured = np.concatenate(course)
    out = np.zeros((joints, joints))
    for k in range(joints):
        y = measured[:, k]
        whole = float(y @ y)
        if whole <= 1e-12 * len(y):
            continue
        for j in range(joints):
            columns = np.stack([friction[:, j], copper[:, j]], -1)
            size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            out[j, k] = 1.0 - nnls(columns / size, y)[1] ** 2 / whole
    return out


def fit_without_temperature(
    model: TorqueModel, samples: Samples
) -> tuple[Float[Array, "n j"], Float[Array, " j"], Float[Array, " j"], Bool[Array, "n j"]]:
    """Residual of a fit without temperature, its Coulomb and viscous friction, and used rows."""
    prior, centre, _ = gaussian_prior(model)
    source = as_source(samples)
    loaded = needs(model.term_sum, "load")
    regression = Regression(
        source, RowBuilder(model, "measured" if loaded else None), base_parameters(model)
    )
    theta, _ = fit_with_prior(
        regression, 0.01 * source.correlation_guess * prior, centre, model.nonnegative
    )
    rows = SampleRows(model, samples, load="measured" if loaded else None)

    def of(wanted: Callable[[Parameter], bool]) -> Float[Array, " j"]:
        found = theta[model.layout.where(wanted)]
        return found if len(found) == samples.joints else np.zeros(samples.joints)

    level, drag = of(lambda one: one.group == LEVEL), of(lambda one: one.power == 1)
    return rows.residuals(theta), level, drag, rows.keep


def heat_power(
    samples: Samples, coulomb: Float[Array, " j"], viscous: Float[Array, " j"]
) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
    """Friction power [W] and squared torque [(N m)^2], to which copper loss is proportional."""
    speed = np.abs(samples.velocity)
    torque = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
    return (coulomb + viscous * speed) * speed, torque**2
