"""Validity checks of effect settings."""

from __future__ import annotations

import numpy as np

from taufit.core.errors import TaufitError
from taufit.sim.effects import Effects, HandPush, PositionRipple, SamplingErrors, Thermal, per_joint

# Allowed ranges: (effect, setting, minimum, whether the minimum itself is allowed).
_RANGES = (
    ("friction", "load_factor", 0.0, True),
    ("friction", "presliding", 0.0, True),
    ("friction", "breakaway", 0.0, True),
    ("friction", "dwell", 0.0, False),
    ("friction", "distance", 0.0, False),
    ("friction", "scatter", 0.0, True),
    ("thermal", "capacity", 0.0, False),
    ("thermal", "housing", 0.0, False),
    ("thermal", "conductance", 0.0, True),
    ("thermal", "ambient_conductance", 0.0, True),
    ("thermal", "copper", 0.0, True),
    ("thermal", "speed_up", 0.0, True),
    ("thermal", "resolution", 0.0, True),
    ("elasticity", "stiffness", 0.0, False),
    ("elasticity", "damping", 0.0, True),
    ("elasticity", "rotor", 0.0, False),
    ("sensing", "friction_share", 0.0, True),
    ("sensing", "gain_error", -1.0, False),
    ("sensing", "gain_scatter", 0.0, True),
    ("sensing", "white", 0.0, True),
    ("sensing", "relative", 0.0, True),
    ("sensing", "coloured", 0.0, True),
    ("sensing", "corner_hz", 0.0, False),
    ("sensing", "quantum", 0.0, True),
    ("encoder", "noise", 0.0, True),
    ("encoder", "quantum", 0.0, True),
    ("encoder", "velocity_noise", 0.0, True),
    ("encoder", "velocity_quantum", 0.0, True),
    ("encoder", "velocity_dead", 0.0, True),
    ("timing", "jitter", 0.0, True),
    ("timing", "drop", 0.0, True),
    ("timing", "burst", 1.0, True),
    ("timing", "duplicate", 0.0, True),
)


def require_valid_effects(effects: Effects, joints: int) -> None:
    """TaufitError naming the first invalid setting."""
    for effect, name, minimum, is_allowed in _RANGES:
        settings = getattr(effects, effect)
        if settings is None:
            continue
        try:
            values = per_joint(getattr(settings, name), joints, f"{effect}: {name}")
        except (TypeError, ValueError):
            raise TaufitError(
                f"{effect}: {name} needs a number, found {getattr(settings, name)!r}."
            ) from None
        if np.any(values < minimum) or (not is_allowed and np.any(values == minimum)):
            relation = "at least" if is_allowed else "above"
            raise TaufitError(
                f"{effect}: {name} must be {relation} {minimum:g}, not {values.min():g}."
            )
    if effects.timing is not None:
        _check_timing(effects.timing)
    if effects.ripple is not None:
        _check_ripple(effects.ripple, joints)
    if effects.saturation is not None and np.ndim(effects.saturation) != 0:
        raise TaufitError("saturation is one number, a share of the robot's torque limits.")
    for push in effects.pushes:
        _check_push(push)
    if effects.thermal is not None:
        _check_thermal(effects.thermal, joints)


def _check_timing(timing: SamplingErrors) -> None:
    if max(timing.drop, timing.duplicate) > 0.9:
        raise TaufitError("timing: drop and duplicate are probabilities, at most 0.9.")
    if timing.jitter > 1.0:
        raise TaufitError("timing: jitter is in seconds, at most 1.")
    rows = np.array(timing.intervals, float).reshape(-1, 2)
    if not np.all(np.isfinite(rows)) or np.any(rows[:, 1] < 0.0):
        raise TaufitError("timing: intervals are pairs of seconds and probability.")
    if np.any(rows[:, 0] < 5e-4) or np.any(rows[:, 0] > 60.0):
        raise TaufitError("timing: intervals are pairs of seconds (1 ms to 60 s) and probability.")
    if len(rows) and rows[:, 1].sum() <= 0.0:
        raise TaufitError("timing: the probabilities of the intervals are all zero.")


def _check_ripple(ripple: PositionRipple, joints: int) -> None:
    shape = np.shape(ripple.amplitude)
    if shape not in ((), (joints, len(ripple.cycles))):
        raise TaufitError(
            f"ripple: amplitude is one number, or {joints} rows of {len(ripple.cycles)} "
            f"(one per entry of cycles); found {shape}."
        )


def _check_push(push: HandPush) -> None:
    numbers = np.array([push.start, push.duration, *push.force, *push.moment], float)
    if len(numbers) != 8 or not np.all(np.isfinite(numbers)) or push.duration <= 0.0:
        raise TaufitError(
            "a push has a start, a duration above 0 s, and three numbers each for force and moment."
        )


def _check_thermal(thermal: Thermal, joints: int) -> None:
    """TaufitError for heat flow faster than the simulation step."""
    housing = per_joint(thermal.housing, joints, "housing")
    capacity = np.minimum(per_joint(thermal.capacity, joints, "capacity"), housing)
    rate = per_joint(thermal.conductance, joints, "conductance") / capacity
    rate += per_joint(thermal.ambient_conductance, joints, "ambient_conductance") / housing
    if np.max(rate) * thermal.speed_up * 1e-3 > 0.5:
        raise TaufitError(
            f"thermal: heat would flow within {1e3 / np.max(rate) / thermal.speed_up:.2g} ms, "
            "too fast to follow. Lower speed_up, or use larger capacities."
        )
