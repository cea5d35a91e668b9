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
from taufit.temperature.temperature_slopes import SPREAD, TemperatureChoice, select_temperature_law
from taufit.terms import needs

AMBIENT = 25.0
# Typical decrease of viscous friction per kelvin in industrial robots; sets the temperature scale.
FALL_PER_KELVIN = 0.015

_BIN = 1.0
_CONSTANTS = 9
_MOST_ROWS = 20000
# Minimum fraction of a joint's residual that heat must explain.
_WORTH = 0.002
# Standard deviation of the temperature above ambient at the start of a recording [K].
_START_STD = 10.0


def temperature_rise(
    state: ThermalState, samples: Samples, start: Float[Array, " j"]
) -> Float[Array, "n j"]:
    """Temperature above ambient at every sample [K]."""
    clock = session_clock(samples)
    power = heat_power(samples, state.coulomb, state.viscous)
    out = start * np.exp(-clock[:, None] / state.slow)
    for m, constant in enumerate((state.fast, state.slow)):
        out += state.friction_gain[:, m] * _answer(samples, clock, power[0], constant)
        out += state.copper_gain[:, m] * _answer(samples, clock, power[1], constant)
    return out


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
    warm = AMBIENT + temperature_rise(state, samples, state.start)
    heated = samples.with_channels(temperature=warm)
    spread = np.percentile(warm, 98, axis=0) - np.percentile(warm, 2, axis=0)
    if np.all(spread < SPREAD):
        raise PoorExcitationError(
            "friction does not change as a joint that warms up would make it, so there is no "
            "temperature to estimate.\nRecord from the cold robot through half an hour of work, "
            "and give the recordings in order; or fit without temperature (--temperature none)."
        )
    chosen = select_temperature_law(model, heated, "linear")
    note = (
        "temperatures are estimated from friction power and torque: their course is meaningful, "
        f"their scale assumes that viscous friction falls by {100 * FALL_PER_KELVIN:g} % per kelvin"
        f" and the air has {AMBIENT:g} degC."
    )
    return replace(chosen, thermal=state, findings=(note, *chosen.findings))


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
    length = max(float(clock[-1]), 10.0 * _BIN)
    constants = np.geomspace(max(length / 60.0, 5.0 * _BIN), 3.0 * length, _CONSTANTS)
    answers = np.stack(
        [
            np.stack([_answer(samples, clock, p, np.full(joints, c)) for p in power])
            for c in constants
        ]
    )
    out: dict[str, Array] = {
        "fast": np.full(joints, constants[2]),
        "slow": np.full(joints, constants[-2]),
        "friction_gain": np.zeros((joints, 2)),
        "copper_gain": np.zeros((joints, 2)),
        "start": np.zeros(joints),
    }
    for j in range(joints):
        rows = np.flatnonzero(keep[:, j])
        rows = rows[:: max(1, len(rows) // _MOST_ROWS)]
        if len(rows) < 200 or viscous[j] <= 0.0:
            continue
        v, e = samples.velocity[rows, j], residual[rows, j]
        fixed = [v, np.tanh(v / 0.02), np.ones_like(v)]
        heat = [-v * answers[c, s, rows, j] for c in range(_CONSTANTS) for s in range(2)]
        cool = [-v * np.exp(-clock[rows] / c) for c in constants]
        columns = np.stack([*fixed, *heat, *cool, e], -1)
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        triangle = np.asarray(np.linalg.qr(columns / size, mode="r"))
        target, upper = triangle[:, -1] * size[-1], triangle[:, :-1]
        plain, *_ = np.linalg.lstsq(upper[:, :3], target, rcond=None)
        best = float(np.sum((target - upper[:, :3] @ plain) ** 2)) * (1.0 - _WORTH)
        # If the slow decay outlasts the session, start temperature and viscous friction are
        # confounded: a prior limits the start temperature.
        noise = np.sqrt(best / len(rows) * as_source(samples).correlation_guess)
        usual = noise / (_START_STD * FALL_PER_KELVIN * viscous[j])
        low = np.array([-np.inf] * 3 + [0.0] * 4 + [-np.inf])
        for a in range(_CONSTANTS):
            for b in range(a + 1, _CONSTANTS):
                at = [0, 1, 2, *(3 + 2 * c + s for c in (a, b) for s in range(2))]
                at.append(3 + 2 * _CONSTANTS + b)
                pull = np.zeros((1, len(at)))
                pull[0, -1] = usual / size[at[-1]]
                system = np.concatenate([upper[:, at], pull]), np.append(target, 0.0)
                found = lsq_linear(*system, (low, np.inf), tol=1e-8)
                if 2.0 * found.cost < best:
                    best = 2.0 * found.cost
                    # Decrease of viscous friction, converted to kelvins.
                    scale = size[at] * FALL_PER_KELVIN * viscous[j]
                    gains = found.x / scale
                    out["fast"][j], out["slow"][j] = constants[a], constants[b]
                    out["friction_gain"][j] = gains[[3, 5]]
                    out["copper_gain"][j] = gains[[4, 6]]
                    out["start"][j] = gains[7]
    return ThermalState(coulomb=coulomb, viscous=viscous, **out)


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
        return AMBIENT + temperature_rise(state, samples, np.asarray(start, float))
    none, one = np.zeros(samples.joints), np.ones(samples.joints)
    warm = AMBIENT + temperature_rise(state, samples, none)
    warmer = AMBIENT + temperature_rise(state, samples, one)
    before = predicted_torque(model, samples.with_channels(temperature=warm))
    change = predicted_torque(model, samples.with_channels(temperature=warmer)) - before
    left = samples.torque - before
    found = np.zeros(samples.joints)
    apart = as_source(samples).correlation_guess
    for j in range(samples.joints):
        keep = samples.keep[:, j]
        d, e = change[keep, j], left[keep, j]
        noise = max(float(e @ e) / max(int(np.count_nonzero(keep)), 1), 1e-12) * apart
        found[j] = float(d @ e) / (float(d @ d) + noise / _START_STD**2)
    return AMBIENT + temperature_rise(state, samples, found)


def session_clock(samples: Samples) -> Float[Array, " n"]:
    """Time since the first sample, over all runs [s]."""
    out = np.empty(len(samples))
    end = None
    shift = 0.0
    for run in samples.run_slices():
        time = samples.time[run]
        if end is None:
            shift = -float(time[0])
        elif time[0] + shift < end:
            # The clock of this file starts anew: the pause is unknown and taken as zero.
            shift = end - float(time[0])
        out[run] = time + shift
        end = float(out[run][-1])
    return out


def _answer(
    samples: Samples,
    clock: Float[Array, " n"],
    power: Float[Array, "n j"],
    constant: Float[Array, " j"],
) -> Float[Array, "n j"]:
    """First-order response to heat: x' = (P - x) / constant, from x = 0."""
    out = np.empty_like(power)
    x = np.zeros(power.shape[1])
    end = 0.0
    for run in samples.run_slices():
        time = clock[run]
        x = x * np.exp(-max(float(time[0]) - end, 0.0) / constant)
        count = max(1, round((float(time[-1]) - float(time[0])) / _BIN))
        edges = np.linspace(0, len(time), count + 1).astype(int)
        starts = edges[:-1]
        mean = np.add.reduceat(power[run], starts, axis=0) / np.diff(edges)[:, None]
        step = (float(time[-1]) - float(time[0])) / count
        keep = np.exp(-step / constant)
        level = np.empty((count + 1, power.shape[1]))
        level[0] = x
        for k in range(count):
            level[k + 1] = keep * level[k] + (1.0 - keep) * mean[k]
        x, end = level[-1], float(time[-1])
        at = np.linspace(float(time[0]), float(time[-1]), count + 1)
        for j in range(power.shape[1]):
            out[run, j] = np.interp(time, at, level[:, j])
    return out
