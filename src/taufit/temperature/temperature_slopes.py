"""Choice of the temperature law of friction, from runs at different temperatures in one fit.

One regression over all runs with the temperature of every sample replaces an identification per
temperature: temperature slopes are ordinary columns, with a standard deviation each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import ThermalState
from taufit.signals.samples import Samples
from taufit.terms import DRAG, LEVEL, Term, friction_model, needs
from taufit.terms.friction.temperature_dependent import LAWS

CHOICES = ("none", "auto", *LAWS)

# Minimum temperature range for an estimate of slopes [K].
MINIMUM_RANGE_K = 3.0
# Largest change of a joint temperature within a second [K], and valid temperatures [degC].
_MAXIMUM_JUMP_K = 5.0
_VALID_RANGE = (-30.0, 130.0)
# Time over which a spike is distinguished from a step [s].
_SPIKE_S = 2.0
# Friction varies from run to run: factor by which a slope must reduce the cost.
_SLOPE_GAIN = 1.01
# Coefficients that may follow temperature, where the friction model has them.


@dataclass(frozen=True, slots=True, eq=False)
class TemperatureChoice:
    """Torque model with temperature-dependent friction, as far as the data support it.

    Attributes:
        model: Model with `TemperatureDependent` friction, or unchanged.
        samples: Samples with temperatures free of spikes.
        law: Chosen law: "none" or one of the laws.
        dropped: Slopes fixed at zero: no temperature range, a faulty sensor, or no benefit.
        spread: Range between the 2nd and 98th percentile of each joint's temperature [K], or None.
        findings: Messages for the user, with joint names.
        thermal: Thermal state if the temperature was estimated, or None.
    """

    model: TorqueModel
    samples: Samples
    law: str = "none"
    dropped: tuple[str, ...] = ()
    spread: Float[Array, " j"] | None = None
    findings: tuple[str, ...] = ()
    thermal: ThermalState | None = None


def select_temperature_law(
    model: TorqueModel, samples: Samples, law: str = "auto"
) -> TemperatureChoice:
    """Apply a temperature law to friction, or find out whether friction follows temperature.

    Slopes of Coulomb and viscous friction are kept in a joint if they improve the prediction of
    left-out runs (or sections). "auto" is the linear law if that is so and none otherwise. For the
    exponential laws, which have one rate per joint, the linear law first selects the coefficients.

    Raises:
        RecordingError: No temperatures, or a sensor that jumps, if a law was requested.
        PoorExcitationError: All joints stayed at one temperature, if a law was requested.
    """
    unchanged = TemperatureChoice(model, samples)
    is_requested = law != "auto"
    affected = _temperature_terms(model, samples, law)
    if not affected:
        return unchanged
    assert model.friction is not None
    try:
        temperature, messages = repair_temperature(samples)
    except RecordingError as error:
        if is_requested:
            raise
        return replace(unchanged, findings=(f"{error} Temperatures are not used.",))
    samples = samples.with_channels(temperature=temperature)
    spread = temperature_spread(samples)
    stuck_joints = stuck_sensors(samples)
    messages += [
        f"joint {j + 1}: the temperature sensor stands still at {value:.4g} degC while the other "
        "joints warm: its friction is fitted without temperature. Check the sensor or its column."
        for j, value in stuck_joints.items()
    ]
    usable = (spread >= MINIMUM_RANGE_K) & ~np.isin(np.arange(samples.joints), list(stuck_joints))
    if not np.any(usable):
        spans = ", ".join(f"{x:.1f}" for x in spread)
        reason = (
            f"joint temperatures differ by {spans} K only (joints 1 to {samples.joints}); "
            f"{MINIMUM_RANGE_K:g} K are needed to tell how friction follows them"
        )
        if is_requested:
            raise PoorExcitationError(
                f"{reason}.\nRecord the same motion with the robot cold, then after a quarter and "
                "half an hour of work, and fit all recordings together."
            )
        messages.append(f"{reason}: friction is fitted as it is at that temperature.")
        return TemperatureChoice(model, samples, spread=spread, findings=tuple(messages))

    unusable = [
        joint_parameter(j, f"{t}_per_degree")
        for j in np.flatnonzero(~usable).tolist()
        for t in affected
    ]
    constant_joints = np.flatnonzero(
        ~usable & ~np.isin(np.arange(samples.joints), list(stuck_joints))
    )
    if len(constant_joints):
        messages.append(
            f"joint {_join_numbers(constant_joints)} stayed within {MINIMUM_RANGE_K:g} K: friction "
            "there is fitted without "
            "temperature. Record those joints cold and warm."
        )
    reference = float(np.round(np.mean(temperature[samples.in_motion][:, usable])))
    linear = replace(model, friction=_with_law(model.friction, "linear", reference, affected))
    slopes = tuple(f"{name}_per_degree" for name in affected)
    from taufit.fitting.selection.term_selection import select_friction_terms

    rejected = select_friction_terms(
        linear, samples, groups=slopes, dropped=tuple(unusable), tolerance=_SLOPE_GAIN
    ).dropped
    dropped = tuple(dict.fromkeys([*unusable, *rejected]))
    from taufit.temperature.sensors import swapped_sensor_findings

    messages += swapped_sensor_findings(model, samples)
    used_terms = tuple(
        name
        for name in affected
        if any(
            joint_parameter(j, f"{name}_per_degree") not in dropped
            for j in range(model.robot.joints)
        )
    )
    if not used_terms:
        messages.append(
            f"friction does not follow temperature (up to {spread.max():.0f} K of it) as far as "
            "these recordings show."
        )
        return TemperatureChoice(model, samples, spread=spread, findings=tuple(messages))
    if law in ("auto", "linear"):
        law_model = replace(
            model, friction=_with_law(model.friction, "linear", reference, used_terms)
        )
        dropped = tuple(name for name in dropped if name in law_model.names)
        return TemperatureChoice(law_model, samples, "linear", dropped, spread, tuple(messages))
    law_model = replace(model, friction=_with_law(model.friction, law, reference, used_terms))
    return TemperatureChoice(law_model, samples, law, (), spread, tuple(messages))


def _temperature_terms(model: TorqueModel, samples: Samples, law: str) -> tuple[str, ...]:
    """Friction terms that may follow temperature; raises if a requested law is impossible."""
    if law not in CHOICES:
        raise TaufitError(f"temperature law {law!r} is not known: use {', '.join(CHOICES)}.")
    if law in LAWS and model.friction is None:
        raise TaufitError("without friction there is nothing that follows temperature.")
    if law == "none" or model.friction is None or needs(model.term_sum, "temperature"):
        return ()
    if samples.temperature is None:
        if law != "auto":
            raise RecordingError(
                f"{_names(samples)}: not every recording has joint temperatures, and the "
                f"{law} law needs them. Record them with the motion, leave the law out, or use "
                "--temperature thermal-model, which estimates them."
            )
        return ()
    terms = [
        term
        for term in model.friction.parameters
        if term.group == LEVEL or (term.group == DRAG and term.power < 2)
    ]
    return tuple(term.name for term in sorted(terms, key=lambda term: term.group != LEVEL))


def temperature_spread(samples: Samples) -> Float[Array, " j"]:
    """Range between the 2nd and 98th percentile in motion, per joint [K]."""
    if samples.temperature is None or not np.any(samples.in_motion):
        return np.zeros(samples.joints)
    low, high = np.percentile(samples.temperature[samples.in_motion], [2, 98], axis=0)
    return high - low


def repair_temperature(samples: Samples) -> tuple[Float[Array, "n j"], list[str]]:
    """Temperatures without spikes, and a message for each; RecordingError for steps.

    Heat capacities are slow: a deviation above 5 K from the median over two seconds is a sensor
    fault, and a level change of that size within a second comes from another sensor.
    """
    from scipy.ndimage import median_filter

    assert samples.temperature is not None
    temperature = np.array(samples.temperature, float)
    messages: list[str] = []
    width = max(3, round(_SPIKE_S * samples.rate_hz) | 1)
    for run in samples.run_slices():
        name = samples.names[int(samples.run[run.start])]
        for j in range(samples.joints):
            raw = temperature[run, j]
            smooth = median_filter(raw, size=min(width, len(raw)), mode="nearest")
            spike = np.abs(raw - smooth) > _MAXIMUM_JUMP_K
            if np.any(spike):
                index = int(np.flatnonzero(spike)[np.argmax(np.abs(raw - smooth)[spike])])
                messages.append(
                    f"{name}: the temperature of joint {j + 1} jumps to {raw[index]:.4g} degC at "
                    f"{samples.time[run][index]:.2f} s and back; {np.count_nonzero(spike)} samples "
                    "there are taken from their neighbours."
                )
                temperature[run, j] = np.where(spike, smooth, raw)
            stride = max(1, round(samples.rate_hz))
            steps = np.abs(smooth[stride:] - smooth[:-stride])
            if len(steps) and steps.max() > _MAXIMUM_JUMP_K:
                index = int(np.argmax(steps))
                raise RecordingError(
                    f"{name}: the temperature of joint {j + 1} steps from {smooth[index]:.4g} to "
                    f"{smooth[index + stride]:.4g} degC at {samples.time[run][index + stride]:.2f} "
                    "s and "
                    "stays there; no joint warms so fast. Check the sensor or its column."
                )
            low, high = temperature[run, j].min(), temperature[run, j].max()
            if low < _VALID_RANGE[0] or high > _VALID_RANGE[1]:
                raise RecordingError(
                    f"{name}: the temperature of joint {j + 1} goes {low:.4g} .. {high:.4g} degC, "
                    "which no gear survives. Check the unit (degC or K) and the column."
                )
    return temperature, messages


def stuck_sensors(samples: Samples) -> dict[int, float]:
    """Joints whose temperature is constant while the others change, with its value.

    A sensor counts as stuck if most other joints change by the required range during its longest
    constant interval in motion.
    """
    assert samples.temperature is not None
    temperature = samples.temperature[samples.in_motion]
    stuck: dict[int, float] = {}
    n, joints = temperature.shape
    if n < 2 or joints < 2:
        return stuck
    for j in range(joints):
        edges = np.flatnonzero(np.abs(np.diff(temperature[:, j])) > 1e-9) + 1
        bounds = np.concatenate([[0], edges, [n]])
        longest = int(np.argmax(np.diff(bounds)))
        interval = slice(int(bounds[longest]), int(bounds[longest + 1]))
        others = np.delete(np.ptp(temperature[interval], axis=0), j)
        if np.median(others) >= MINIMUM_RANGE_K:
            stuck[j] = float(temperature[interval.start, j])
    return stuck


def _with_law(friction: Term, law: str, reference: float, affected: tuple[str, ...]) -> Term:
    """Friction with temperature dependence of some coefficients."""
    return friction_model("temperature_dependent", friction, law, reference, affected)


def friction_at(
    model: FittedModel, temperature: Float[Array, " j"] | float, term: str = ""
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Friction coefficient of every joint at a temperature, and its standard deviation.

    Default term: viscous friction.

    The standard deviation comes from the covariance of the base parameters; for the exponential
    laws it is that of the coefficient at the reference, scaled, with the rate taken as known.
    """
    friction: Any = model.friction_model
    assert friction is not None
    term = term or next(parameter.name for parameter in friction.parameters if parameter.power == 1)
    joints = model.robot.joints
    temperatures = np.broadcast_to(np.asarray(temperature, float), (joints,))
    names = model.names
    base = model.training.base
    base_index = {} if base is None else {name: i for i, name in enumerate(base.names)}
    covariance = None if base is None else base.covariance
    value, std = np.zeros(joints), np.full(joints, np.nan)
    for j in range(joints):
        weights: dict[str, float] = {joint_parameter(j, term): 1.0}
        if friction.law:
            deviation = temperatures[j] - friction.reference
            slope = next(
                (parameter.name for parameter in friction.parameters if parameter.modifies == term),
                "",
            )
            if friction.law == "linear":
                if slope:
                    weights[joint_parameter(j, slope)] = deviation
            elif term in friction.temperature_parameters:
                weights[joint_parameter(j, term)] = _law_factor(model, j, deviation)
        value[j] = sum(w * model.values[names.index(name)] for name, w in weights.items())
        if covariance is not None and all(name in base_index for name in weights if weights[name]):
            indices = [base_index[name] for name in weights if name in base_index]
            w = np.array([weights[name] for name in weights if name in base_index])
            std[j] = np.sqrt(max(float(w @ covariance[np.ix_(indices, indices)] @ w), 0.0))
    return value, std


def _law_factor(model: FittedModel, joint: int, deviation: float) -> float:
    friction: Any = model.friction_model
    rate = float(model.joint_shape[joint, len(friction.model.shapes)])
    if friction.law == "exponential":
        return float(np.exp(-rate * deviation))
    reference_kelvin = friction.reference + 273.15
    return float(np.exp(-rate * deviation / (reference_kelvin * (reference_kelvin + deviation))))


def _names(samples: Samples) -> str:
    return ", ".join(dict.fromkeys(samples.names))


def _join_numbers(joints: Any) -> str:
    return ", ".join(str(int(j) + 1) for j in joints)
