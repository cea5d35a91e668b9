"""Thermal model: joint temperature without sensor, from heat flow and the change of friction.

Motor and gear warm the housing, the housing warms the air: two heat capacities per joint, driven by

    friction power |f v|   and   copper loss, proportional to torque squared.

Two capacities in series respond to heat P with two decays, so the rise above the air is

    T = sum_m b_m (h_m * P_f) + c_m (h_m * P_c)  +  start exp(-t / tau_2),

h_m = exp(-t / tau_m) / tau_m, with b, c >= 0 for any pair of capacities. Friction shows T only up
to a factor: the decrease of viscous friction is estimated, and kelvins follow from assuming 1.5 %
per kelvin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import ThermalState
from taufit.signals.sample_source import as_source
from taufit.signals.samples import Samples
from taufit.temperature.sensors import fit_without_temperature, heat_power
from taufit.temperature.temperature_slopes import (
    MINIMUM_RANGE_K,
    TemperatureChoice,
    select_temperature_law,
)
from taufit.terms import needs

AMBIENT_DEGC = 25.0
# Typical decrease of viscous friction per kelvin in industrial robots; sets the temperature scale.
FALL_PER_KELVIN = 0.015

_BIN_S = 1.0
_TIME_CONSTANTS = 9
_MAXIMUM_ROWS = 20000
# Minimum fraction of a joint's residual that heat must explain.
_MINIMUM_GAIN = 0.002
# Standard deviation of the temperature above ambient at the start of a recording [K].
_START_STD_K = 10.0


def temperature_rise(
    state: ThermalState, samples: Samples, start: Float[Array, " j"]
) -> Float[Array, "n j"]:
    """Temperature above ambient at every sample [K]."""
    clock = session_clock(samples)
    power = heat_power(samples, state.coulomb, state.viscous)
    rise = start * np.exp(-clock[:, None] / state.slow)
    for m, constant in enumerate((state.fast, state.slow)):
        rise += state.friction_gain[:, m] * _heat_response(samples, clock, power[0], constant)
        rise += state.copper_gain[:, m] * _heat_response(samples, clock, power[1], constant)
    return rise


def with_thermal_model(model: TorqueModel, samples: Samples) -> TemperatureChoice:
    """Model whose friction follows an estimated temperature.

    Runs form one session in the given order. If time stamps continue from file to file, the pauses
    are known; if each file starts anew, there are no pauses.

    Raises:
        PoorExcitationError: No joint's friction changes as heat would make it.
    """
    if model.friction is None or needs(model.term_sum, "temperature"):
        raise TaufitError("a thermal model needs friction that can follow temperature.")
    state = fit_thermal(model, samples)
    temperature = AMBIENT_DEGC + temperature_rise(state, samples, state.start)
    heated = samples.with_channels(temperature=temperature)
    temperature_range = np.percentile(temperature, 98, axis=0) - np.percentile(
        temperature, 2, axis=0
    )
    if np.all(temperature_range < MINIMUM_RANGE_K):
        raise PoorExcitationError(
            "friction does not change as a joint that warms up would make it, so there is no "
            "temperature to estimate.\nRecord from the cold robot through half an hour of work, "
            "and give the recordings in order; or fit without temperature (--temperature none)."
        )
    choice = select_temperature_law(model, heated, "linear")
    note = (
        "temperatures are estimated from friction power and torque: their course is meaningful, "
        f"their scale assumes that viscous friction falls by {100 * FALL_PER_KELVIN:g} % per kelvin"
        f" and the air has {AMBIENT_DEGC:g} degC."
    )
    return replace(choice, thermal=state, findings=(note, *choice.findings))


def fit_thermal(model: TorqueModel, samples: Samples) -> ThermalState:
    """Fit the thermal model to the change of friction along a session.

    The residual of a fit without temperature is explained, joint by joint, by v times the responses
    of a grid of time constants, with gains such that heat never increases friction. The pair of
    time constants with the smallest cost is taken.
    """
    from scipy.optimize import lsq_linear

    residual, coulomb, viscous, keep = fit_without_temperature(model, samples)
    joints = samples.joints
    clock = session_clock(samples)
    power = heat_power(samples, coulomb, viscous)
    length = max(float(clock[-1]), 10.0 * _BIN_S)
    constants = np.geomspace(max(length / 60.0, 5.0 * _BIN_S), 3.0 * length, _TIME_CONSTANTS)
    responses = np.stack(
        [
            np.stack([_heat_response(samples, clock, p, np.full(joints, c)) for p in power])
            for c in constants
        ]
    )
    state: dict[str, Array] = {
        "fast": np.full(joints, constants[2]),
        "slow": np.full(joints, constants[-2]),
        "friction_gain": np.zeros((joints, 2)),
        "copper_gain": np.zeros((joints, 2)),
        "start": np.zeros(joints),
    }
    for j in range(joints):
        rows = np.flatnonzero(keep[:, j])
        rows = rows[:: max(1, len(rows) // _MAXIMUM_ROWS)]
        if len(rows) < 200 or viscous[j] <= 0.0:
            continue
        v, e = samples.velocity[rows, j], residual[rows, j]
        fixed = [v, np.tanh(v / 0.02), np.ones_like(v)]
        heat = [-v * responses[c, s, rows, j] for c in range(_TIME_CONSTANTS) for s in range(2)]
        cool = [-v * np.exp(-clock[rows] / c) for c in constants]
        columns = np.stack([*fixed, *heat, *cool, e], -1)
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        triangle = np.asarray(np.linalg.qr(columns / size, mode="r"))
        target, upper = triangle[:, -1] * size[-1], triangle[:, :-1]
        without_heat, *_ = np.linalg.lstsq(upper[:, :3], target, rcond=None)
        best = float(np.sum((target - upper[:, :3] @ without_heat) ** 2)) * (1.0 - _MINIMUM_GAIN)
        # If the slow decay outlasts the session, start temperature and viscous friction are
        # confounded: a prior limits the start temperature.
        noise = np.sqrt(best / len(rows) * as_source(samples).filter_correlation_length)
        start_weight = noise / (_START_STD_K * FALL_PER_KELVIN * viscous[j])
        low = np.array([-np.inf] * 3 + [0.0] * 4 + [-np.inf])
        for a in range(_TIME_CONSTANTS):
            for b in range(a + 1, _TIME_CONSTANTS):
                selected = [0, 1, 2, *(3 + 2 * c + s for c in (a, b) for s in range(2))]
                selected.append(3 + 2 * _TIME_CONSTANTS + b)
                prior_row = np.zeros((1, len(selected)))
                prior_row[0, -1] = start_weight / size[selected[-1]]
                system = np.concatenate([upper[:, selected], prior_row]), np.append(target, 0.0)
                solution = lsq_linear(*system, (low, np.inf), tol=1e-8)
                if 2.0 * solution.cost < best:
                    best = 2.0 * solution.cost
                    # Decrease of viscous friction, converted to kelvins.
                    scale = size[selected] * FALL_PER_KELVIN * viscous[j]
                    gains = solution.x / scale
                    state["fast"][j], state["slow"][j] = constants[a], constants[b]
                    state["friction_gain"][j] = gains[[3, 5]]
                    state["copper_gain"][j] = gains[[4, 6]]
                    state["start"][j] = gains[7]
    return ThermalState(coulomb=coulomb, viscous=viscous, **state)


def thermal_temperature(
    model: FittedModel,
    samples: Samples,
    state: ThermalState,
    *,
    start: Float[Array, " j"] | None = None,
) -> Float[Array, "n j"]:
    """Estimated joint temperatures of a session [degC].

    Args:
        model: Model fitted with `with_thermal_model`.
        samples: Samples of one session.
        state: Thermal state of the model.
        start: Temperature above ambient at the start [K]; default: the value that explains the
            torque best, with a prior of ambient temperature and 10 K standard deviation.
    """
    if start is not None:
        return AMBIENT_DEGC + temperature_rise(state, samples, np.asarray(start, float))
    zeros, ones = np.zeros(samples.joints), np.ones(samples.joints)
    temperature = AMBIENT_DEGC + temperature_rise(state, samples, zeros)
    raised = AMBIENT_DEGC + temperature_rise(state, samples, ones)
    predicted = predicted_torque(model, samples.with_channels(temperature=temperature))
    change = predicted_torque(model, samples.with_channels(temperature=raised)) - predicted
    residual = samples.torque - predicted
    start_rise = np.zeros(samples.joints)
    correlation_length = as_source(samples).filter_correlation_length
    for j in range(samples.joints):
        keep = samples.keep[:, j]
        d, e = change[keep, j], residual[keep, j]
        noise = max(float(e @ e) / max(int(np.count_nonzero(keep)), 1), 1e-12) * correlation_length
        start_rise[j] = float(d @ e) / (float(d @ d) + noise / _START_STD_K**2)
    return AMBIENT_DEGC + temperature_rise(state, samples, start_rise)


def session_clock(samples: Samples) -> Float[Array, " n"]:
    """Time since the first sample, over all runs [s]."""
    clock = np.empty(len(samples))
    end = None
    shift = 0.0
    for run in samples.run_slices():
        time = samples.time[run]
        if end is None:
            shift = -float(time[0])
        elif time[0] + shift < end:
            # The clock of this file starts anew: the pause is unknown and taken as zero.
            shift = end - float(time[0])
        clock[run] = time + shift
        end = float(clock[run][-1])
    return clock


def _heat_response(
    samples: Samples,
    clock: Float[Array, " n"],
    power: Float[Array, "n j"],
    constant: Float[Array, " j"],
) -> Float[Array, "n j"]:
    """First-order response to heat: x' = (P - x) / constant, from x = 0."""
    response = np.empty_like(power)
    x = np.zeros(power.shape[1])
    end = 0.0
    for run in samples.run_slices():
        time = clock[run]
        x = x * np.exp(-max(float(time[0]) - end, 0.0) / constant)
        count = max(1, round((float(time[-1]) - float(time[0])) / _BIN_S))
        edges = np.linspace(0, len(time), count + 1).astype(int)
        starts = edges[:-1]
        mean = np.add.reduceat(power[run], starts, axis=0) / np.diff(edges)[:, None]
        step = (float(time[-1]) - float(time[0])) / count
        decay = np.exp(-step / constant)
        level = np.empty((count + 1, power.shape[1]))
        level[0] = x
        for k in range(count):
            level[k + 1] = decay * level[k] + (1.0 - decay) * mean[k]
        x, end = level[-1], float(time[-1])
        edge_times = np.linspace(float(time[0]), float(time[-1]), count + 1)
        for j in range(power.shape[1]):
            response[run, j] = np.interp(time, edge_times, level[:, j])
    return response
