"""What makes real recordings hard, one frozen dataclass each, all off by default.

Numbers per joint may be given as one number for all joints. Everything is SI and refers to the
joint side of the gear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import TaufitError
from taufit.friction import FRICTION_MODELS, FrictionModel, Linear

PerJoint = float | Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class Friction:
    """Friction of any taufit model, with what such models leave out.

    At speed v, bristle deflection z in [-1, 1] and age b in [0, 1] the joint feels

        z (F(|v|, load, temperature) + load_factor |load|) (1 + breakaway b)
        + sum_k slow_k (z_k - z) + offset

    where z turns over within `presliding` of travel (Dahl), z_k more slowly, within `slow_widths`,
    and b grows to 1 in `dwell` seconds of rest and fades within `distance` of travel.

    Attributes:
        model: F, any friction model.
        coefficients: Of its terms, one row per joint.
        shape: Its nonlinear parameters, one row per joint.
        offset: Constant torque per joint [N m].
        load_factor: Coulomb friction per unit of load torque, for models without load terms.
        presliding: Travel over which friction turns over [rad]; 0 is as sharp as the
            integration allows.
        slow: Part of the friction that builds up slowly after a reversal [N m], one row per
            joint and one column per width.
        slow_widths: Travel over which those parts build up [rad].
        breakaway: How much higher friction is after a long rest (0.3 is 30 %).
        dwell: Rest that makes it so [s].
        distance: Travel that ends it [rad].
        scatter: Run-to-run standard deviation of the level, relative.
    """

    model: FrictionModel = field(default_factory=Linear)
    coefficients: Float[Array, "j k"] = field(default_factory=lambda: np.zeros((1, 2)))
    shape: Float[Array, "j s"] | None = None
    offset: PerJoint = 0.0
    load_factor: PerJoint = 0.0
    presliding: PerJoint = 0.0
    slow: Float[Array, "j e"] | None = None
    slow_widths: tuple[float, ...] = ()
    breakaway: PerJoint = 0.0
    dwell: float = 1.0
    distance: float = 0.02
    scatter: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Thermal:
    """Two heat stores per joint, and what temperature does to friction.

    C T' = P - G (T - H),  C_h H' = G (T - H) - G_a (H - ambient),  P = |friction v| + copper tau^2.
    T is what the temperature sensor shows and what friction feels:

        F(|v|, T) = F + (coulomb_slope + viscous_slope |v|) (T - reference), never below zero.

    Attributes:
        capacity: C of motor, gear and grease [J/K].
        housing: C_h of the housing [J/K].
        conductance: G between the two [W/K].
        ambient_conductance: G_a to the air [W/K].
        copper: Heat per squared joint torque [W/(N m)^2].
        ambient: Air [degC].
        initial: Of both stores at the start [degC]; the air's where None.
        initial_housing: Of the housing at the start where it differs, to go on from another run.
        reference: At which the friction coefficients hold [degC].
        coulomb_slope: [N m/K].
        viscous_slope: [N m s/rad/K].
        speed_up: Thermal time runs this much faster, to warm an arm up in a short run.
        resolution: Of the temperature sensor [K].
    """

    capacity: PerJoint = 400.0
    housing: PerJoint = 4000.0
    conductance: PerJoint = 1.5
    ambient_conductance: PerJoint = 1.0
    copper: PerJoint = 0.01
    ambient: float = 22.0
    initial: PerJoint | None = None
    initial_housing: PerJoint | None = None
    reference: PerJoint = 30.0
    coulomb_slope: PerJoint = 0.0
    viscous_slope: PerJoint = 0.0
    speed_up: float = 1.0
    resolution: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Ripple:
    """Torque that comes and goes with the joint's position: gear teeth, wave generator, cogging.

    sum_k amplitude_k sin(cycles_k q + phase_k); phases are drawn from the seed.

    Attributes:
        amplitude: [N m], one row per joint and one column per wave, or one number for all.
        cycles: Waves per turn of the joint.
        arm: Number of the arm: runs of one arm share their phases. 0 draws them anew from the seed
            of every run.
    """

    amplitude: float | Float[Array, "j w"] = 0.2
    cycles: tuple[float, ...] = (2.0, 4.0)
    arm: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Elasticity:
    """A spring between motor and link.

    Attributes:
        stiffness: [N m/rad].
        damping: [N m s/rad].
        rotor: Reflected rotor inertia [kg m^2] where the robot has none; the robot's own if it has.
        encoder: "motor" or "link", which side the recorded and controlled position is of.
    """

    stiffness: PerJoint = 1.0e4
    damping: PerJoint = 1.0
    rotor: PerJoint = 0.1
    encoder: str = "motor"


@dataclass(frozen=True, slots=True, eq=False)
class Sensing:
    """What the torque channel makes of the torque.

    Attributes:
        side: "motor" (current, motor torque) or "link" (sensor behind the gear); the robot's
            own where empty.
        friction_share: Share of the friction that sits behind a link-side sensor and so is seen.
        gain_error: True gain over nominal gain, minus 1.
        gain_scatter: Standard deviation of a further gain error, drawn from the seed.
        white: Standard deviation of white noise, in joint torque [N m].
        relative: White noise as a share of each joint's rms torque in the run, besides `white`.
        coloured: Standard deviation of low-frequency noise (first order) [N m].
        corner_hz: Above which the coloured noise falls.
        quantum: Smallest step of the channel, in its own unit (A or N m); 0 for none.
        absolute: Whether only the magnitude is recorded.
    """

    side: str = ""
    friction_share: float = 0.0
    gain_error: PerJoint = 0.0
    gain_scatter: float = 0.0
    white: PerJoint = 0.0
    relative: float = 0.0
    coloured: PerJoint = 0.0
    corner_hz: float = 2.0
    quantum: PerJoint = 0.0
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """What the position and velocity channels make of the motion.

    Attributes:
        noise: Of position [rad].
        quantum: Smallest step of position [rad].
        velocity_noise: Of velocity [rad/s].
        velocity_quantum: Smallest step of velocity [rad/s].
        velocity_dead: Slower than this is recorded as exactly 0 [rad/s].
        velocity: Whether velocity is recorded at all.
        acceleration: Whether acceleration is recorded too.
    """

    noise: PerJoint = 0.0
    quantum: PerJoint = 0.0
    velocity_noise: PerJoint = 0.0
    velocity_quantum: PerJoint = 0.0
    velocity_dead: float = 0.0
    velocity: bool = True
    acceleration: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """How rows reach the file.

    Attributes:
        intervals: (seconds, probability) pairs from which the spacing of rows is drawn; the
            nominal rate where empty.
        jitter: Standard deviation of the time stamp about the true instant [s].
        drop: Probability that a row is lost.
        burst: How many rows are lost together, on average.
        duplicate: Probability that a row is written twice.
    """

    intervals: tuple[tuple[float, float], ...] = ()
    jitter: float = 0.0
    drop: float = 0.0
    burst: float = 1.0
    duplicate: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """A hand that pushes the flange: a half sine wave of force and moment, in base axes.

    Attributes:
        start: When [s] after the recording starts.
        duration: How long [s].
        force: At its height [N].
        moment: At its height [N m].
    """

    start: float
    duration: float = 0.5
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    moment: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Everything on top of the rigid bodies; None or empty is off.

    Attributes:
        friction, thermal, ripple, elasticity: In the drive.
        saturation: Whether the drive's torque ends at the robot's torque limits, times this.
        sensing, encoder, timing: Between the arm and the file.
        pushes: Hands.
    """

    friction: Friction | None = None
    thermal: Thermal | None = None
    ripple: Ripple | None = None
    elasticity: Elasticity | None = None
    saturation: float | None = None
    sensing: Sensing | None = None
    encoder: Encoder | None = None
    timing: Timing | None = None
    pushes: tuple[Push, ...] = ()

    def without(self, *names: str) -> Effects:
        """The same effects with some switched off."""
        off: dict[str, Any] = {name: () if name == "pushes" else None for name in names}
        return replace(self, **off)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for YAML and JSON; `effects_from_dict` reads it."""
        out: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None or (item.name == "pushes" and not value):
                continue
            if item.name == "pushes":
                out["pushes"] = [_plain(push) for push in value]
            else:
                out[item.name] = _plain(value) if item.name in _PARTS else value
        return out


_PARTS: dict[str, Any] = {
    "friction": Friction,
    "thermal": Thermal,
    "ripple": Ripple,
    "elasticity": Elasticity,
    "sensing": Sensing,
    "encoder": Encoder,
    "timing": Timing,
}


def effects_from_dict(data: Mapping[str, Any], where: str = "the effects") -> Effects:
    """Effects from plain data, e.g. a YAML file:

    friction: {model: linear, coefficients: [[10, 15], [12, 14]], presliding: 0.001}
    sensing: {white: 0.3, gain_scatter: 0.01}
    pushes: [{start: 2.0, force: [20, 0, 0]}]
    """
    if not isinstance(data, Mapping):
        raise TaufitError(f"{where}: expected names of effects with their settings.")
    known = [item.name for item in fields(Effects)]
    made: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            raise TaufitError(f"{where}: {name!r} is not an effect; there are {', '.join(known)}.")
        if value is None:
            continue
        if name == "saturation":
            if value is False:
                continue
            made[name] = 1.0 if value is True else _setting(Effects, name, value, where)
        elif name == "pushes":
            if not isinstance(value, (list, tuple)):
                raise TaufitError(f"{where}: pushes is a list, found {value!r}.")
            made[name] = tuple(_build(Push, item, f"{where}: pushes") for item in value)
        else:
            made[name] = _build(_PARTS[name], value, f"{where}: {name}")
    return Effects(**made)


def _build(cls: Any, data: Mapping[str, Any], where: str) -> Any:
    known = [item.name for item in fields(cls)]
    if not isinstance(data, Mapping):
        raise TaufitError(f"{where}: expected settings, e.g. {{{known[0]}: ...}}.")
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            raise TaufitError(f"{where} has no setting {name!r}; it has {', '.join(known)}.")
        values[name] = _setting(cls, name, value, where)
    try:
        return cls(**values)
    except TypeError as error:
        raise TaufitError(f"{where}: {error}.") from None


_WORDS = ("side", "encoder")
_SWITCHES = ("absolute", "velocity", "acceleration")
_ROWS = {"intervals": 2, "cycles": 1, "slow_widths": 1, "force": 1, "moment": 1}


def _setting(cls: Any, name: str, value: Any, where: str) -> Any:
    """One setting as its effect wants it, or an error that names it."""
    if cls is Friction and name == "model":
        return friction_model(value, where)
    if name in _WORDS or name in _SWITCHES:
        kind = str if name in _WORDS else bool
        if not isinstance(value, kind):
            raise TaufitError(
                f"{where}: {name} is {'a word' if kind is str else 'true or false'}, not {value!r}."
            )
        return value
    if value is None and name in ("shape", "slow", "initial", "initial_housing"):
        return None
    try:
        numbers = np.array(value, float)
    except (TypeError, ValueError):
        raise TaufitError(f"{where}: {name} needs numbers, found {value!r}.") from None
    if isinstance(value, (str, bool)) or not np.all(np.isfinite(numbers)) or numbers.ndim > 2:
        raise TaufitError(f"{where}: {name} needs finite numbers, found {value!r}.")
    if name in _ROWS:
        if numbers.size and numbers.ndim != _ROWS[name]:
            raise TaufitError(f"{where}: {name} needs a list, found {value!r}.")
        if name in ("force", "moment") and numbers.shape != (3,):
            raise TaufitError(f"{where}: {name} has three numbers, found {value!r}.")
        if name == "intervals" and numbers.size and numbers.shape[1] != 2:
            raise TaufitError(f"{where}: intervals are pairs of seconds and probability.")
        return tuple(tuple(row) if isinstance(row, list) else row for row in numbers.tolist())
    return float(numbers) if numbers.ndim == 0 else numbers


def friction_model(name: Any, where: str = "friction") -> FrictionModel:
    """A friction model by its command-line name, with settings as {name: ..., setting: ...}."""
    settings: dict[str, Any] = {}
    if isinstance(name, Mapping):
        settings = dict(name)
        name = settings.pop("name", None)
    if not isinstance(name, str) or name not in FRICTION_MODELS:
        raise TaufitError(
            f"{where}: {name!r} is not a friction model; there are {', '.join(FRICTION_MODELS)}."
        )
    try:
        return FRICTION_MODELS[name](**settings)
    except (TypeError, ValueError, AttributeError) as error:
        raise TaufitError(f"{where}: {error}.") from None


def _plain(part: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if item.name == "model":
            name = next(
                (key for key, cls in FRICTION_MODELS.items() if type(value) is cls),
                type(value).__name__,
            )
            settings = {f.name: getattr(value, f.name) for f in fields(value)}
            value = {"name": name, **{k: v for k, v in settings.items() if _simple(v)}}
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, tuple):
            value = [list(x) if isinstance(x, tuple) else x for x in value]
        out[item.name] = value
    return out


def _simple(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


# What a number must be: (effect, setting, smallest, whether that is allowed itself).
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


def check_effects(effects: Effects, joints: int) -> None:
    """Refuse settings that mean nothing, with their name."""
    for part, name, smallest, allowed in _RANGES:
        owner = getattr(effects, part)
        if owner is None:
            continue
        try:
            values = per_joint(getattr(owner, name), joints, f"{part}: {name}")
        except (TypeError, ValueError):
            raise TaufitError(
                f"{part}: {name} needs a number, found {getattr(owner, name)!r}."
            ) from None
        if np.any(values < smallest) or (not allowed and np.any(values == smallest)):
            relation = "at least" if allowed else "above"
            raise TaufitError(
                f"{part}: {name} must be {relation} {smallest:g}, not {values.min():g}."
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


def _check_timing(timing: Timing) -> None:
    if max(timing.drop, timing.duplicate) > 0.9:
        raise TaufitError("timing: drop and duplicate are probabilities, at most 0.9.")
    rows = np.array(timing.intervals, float).reshape(-1, 2)
    if not np.all(np.isfinite(rows)) or np.any(rows[:, 0] < 5e-4) or np.any(rows[:, 1] < 0.0):
        raise TaufitError("timing: intervals are pairs of seconds (1 ms or more) and probability.")
    if len(rows) and rows[:, 1].sum() <= 0.0:
        raise TaufitError("timing: the probabilities of the intervals are all zero.")


def _check_ripple(ripple: Ripple, joints: int) -> None:
    shape = np.shape(ripple.amplitude)
    if shape not in ((), (joints, len(ripple.cycles))):
        raise TaufitError(
            f"ripple: amplitude is one number, or {joints} rows of {len(ripple.cycles)} "
            f"(one per entry of cycles); found {shape}."
        )


def _check_push(push: Push) -> None:
    numbers = np.array([push.start, push.duration, *push.force, *push.moment], float)
    if len(numbers) != 8 or not np.all(np.isfinite(numbers)) or push.duration <= 0.0:
        raise TaufitError(
            "a push has a start, a duration above 0 s, and three numbers each for force and moment."
        )


def _check_thermal(thermal: Thermal, joints: int) -> None:
    """Refuse heat that flows faster than the simulation steps."""
    housing = per_joint(thermal.housing, joints, "housing")
    capacity = np.minimum(per_joint(thermal.capacity, joints, "capacity"), housing)
    rate = per_joint(thermal.conductance, joints, "conductance") / capacity
    rate += per_joint(thermal.ambient_conductance, joints, "ambient_conductance") / housing
    if np.max(rate) * thermal.speed_up * 1e-3 > 0.5:
        raise TaufitError(
            f"thermal: heat would flow within {1e3 / np.max(rate) / thermal.speed_up:.2g} ms, "
            "too fast to follow. Lower speed_up, or use larger capacities."
        )


def per_joint(value: PerJoint, joints: int, what: str) -> Float[Array, " j"]:
    """One number per joint, from one for all or one each."""
    array = np.asarray(value, float)
    if array.ndim == 0:
        array = np.full(joints, float(array))
    if array.shape != (joints,):
        raise TaufitError(f"{what} has {array.size} numbers; this arm has {joints} joints.")
    if not np.all(np.isfinite(array)):
        raise TaufitError(f"{what} has a number that is not finite.")
    return array.copy()
