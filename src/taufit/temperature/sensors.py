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
_MINIMUM_GAIN = 30.0
_MINIMUM_GAIN_FRACTION = 0.15
_MINIMUM_HEAT_FRACTION = 0.3
_ROWS_PER_RUN = 200


def swapped_sensor_findings(model: TorqueModel, samples: Samples) -> list[str]:
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
        for j, k in _find_exchanges(
            gain, lambda current, swapped: max(_MINIMUM_GAIN, _MINIMUM_GAIN_FRACTION * swapped)
        )
    ]
    if messages:
        return messages
    fraction = heat_fraction(samples, heat_power(samples, coulomb, viscous))
    return [
        f"joint {j + 1}: its heat shows in the temperature given for joint {k + 1} "
        f"({100 * fraction[j, k]:.0f} % of that course explained, "
        f"{abs(100 * fraction[j, j]):.0f} % of its own). Are the temperature sensors or columns "
        "swapped?"
        for j, k in _find_exchanges(fraction, lambda current, swapped: _MINIMUM_HEAT_FRACTION)
    ]


def _find_exchanges(
    value: Float[Array, "j j"], minimum: Callable[[float, float], float]
) -> list[tuple[int, int]]:
    """Joints and the sensors that fit them better, if all joints of a swap gain."""
    from scipy.optimize import linear_sum_assignment

    pairs = [
        (int(j), int(k))
        for j, k in zip(*linear_sum_assignment(-value), strict=True)
        if j != k and value[j, k] - value[j, j] > minimum(value[j, j], value[j, k])
    ]
    joints = {j for j, _ in pairs}
    return [(j, k) for j, k in pairs if k in joints]


def temperature_gain(
    samples: Samples, residual: Float[Array, "n j"], keep: Bool[Array, "n j"]
) -> Float[Array, "j j"]:
    """G_jk: part of joint j's residual explained by sensor k, in squared noise levels.

    The residual of a fit without temperature is explained by v (T_k - mean) and s (T_k - mean)
    beside v, s and a constant.
    """
    assert samples.temperature is not None
    correlation_length = correlation_samples(residual, keep, samples.run)
    joints = samples.joints
    gain = np.zeros((joints, joints))
    sign = np.tanh(samples.velocity / 0.02)
    for j in range(joints):
        rows = keep[:, j]
        count = int(np.count_nonzero(rows))
        if count < 50:
            continue
        e, v, s = residual[rows, j], samples.velocity[rows, j], sign[rows, j]
        residual_squares: list[float] = []
        for k in range(joints):
            deviation = samples.temperature[rows, k]
            deviation = deviation - deviation.mean()
            columns = np.stack([v, s, np.ones_like(v), v * deviation, s * deviation], -1)
            size = np.linalg.norm(columns, axis=0)
            is_nonzero = size > 1e-9 * max(float(size.max()), 1e-300)
            basis, _ = np.linalg.qr(columns[:, is_nonzero] / size[is_nonzero])
            residual_squares.append(float(e @ e - np.sum((basis.T @ e) ** 2)))
        noise = max(min(residual_squares) / count, 1e-300) * correlation_length[j]
        gain[j] = (float(e @ e) - np.array(residual_squares)) / noise
    return gain


def heat_fraction(
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
        scaled_time = np.linspace(-1.0, 1.0, n)
        slow, _ = np.linalg.qr(np.stack([scaled_time**k for k in range(3)], -1))
        stride = max(1, n // _ROWS_PER_RUN)

        def remove_slow(values: Array, slow: Array = slow, stride: int = stride) -> Array:
            return (values - slow @ (slow.T @ values))[::stride]

        for part, heat in zip(energy, power, strict=True):
            part.append(remove_slow(np.cumsum(heat[run], axis=0) / samples.rate_hz))
        course.append(remove_slow(samples.temperature[run]))
    friction, copper = (np.concatenate(part) for part in energy)
    measured = np.concatenate(course)
    fractions = np.zeros((joints, joints))
    for k in range(joints):
        y = measured[:, k]
        total = float(y @ y)
        if total <= 1e-12 * len(y):
            continue
        for j in range(joints):
            columns = np.stack([friction[:, j], copper[:, j]], -1)
            size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            fractions[j, k] = 1.0 - nnls(columns / size, y)[1] ** 2 / total
    return fractions


def fit_without_temperature(
    model: TorqueModel, samples: Samples
) -> tuple[Float[Array, "n j"], Float[Array, " j"], Float[Array, " j"], Bool[Array, "n j"]]:
    """Residual of a fit without temperature, its Coulomb and viscous friction, and used rows."""
    prior, centre, _ = gaussian_prior(model)
    source = as_source(samples)
    needs_load = needs(model.term_sum, "load")
    regression = Regression(
        source, RowBuilder(model, "measured" if needs_load else None), base_parameters(model)
    )
    theta, _ = fit_with_prior(
        regression, 0.01 * source.filter_correlation_length * prior, centre, model.nonnegative
    )
    rows = SampleRows(model, samples, load="measured" if needs_load else None)

    def coefficients(condition: Callable[[Parameter], bool]) -> Float[Array, " j"]:
        values = theta[model.layout.select(condition)]
        return values if len(values) == samples.joints else np.zeros(samples.joints)

    coulomb, viscous = (
        coefficients(lambda term: term.group == LEVEL),
        coefficients(lambda term: term.power == 1),
    )
    return rows.residuals(theta), coulomb, viscous, rows.keep


def heat_power(
    samples: Samples, coulomb: Float[Array, " j"], viscous: Float[Array, " j"]
) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
    """Friction power [W] and squared torque [(N m)^2], to which copper loss is proportional."""
    speed = np.abs(samples.velocity)
    torque = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
    return (coulomb + viscous * speed) * speed, torque**2
