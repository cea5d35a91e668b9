"""What makes real recordings hard, one frozen dataclass each, all off by default.

Numbers per joint may be given as one number for all joints. Everything is SI and refers to the
joint side of the gear.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.terms import Term, friction_model

PerJoint = float | Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class DriveFriction:
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

    model: Term = field(default_factory=lambda: friction_model("linear"))
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
class PositionRipple:
    """Torque that comes and goes with the joint's position: gear teeth, wave generator, cogging.

    sum_k amplitude_k sin(cycles_k q + phase_k). Phases belong to the arm, not to the run: whatever
    the seed, an arm's ripple stays where it is.

    Attributes:
        amplitude: [N m], one row per joint and one column per wave, or one number for all.
        cycles: Waves per turn of the joint.
        arm: Number of the arm, from which its phases are drawn.
    """

    amplitude: float | Float[Array, "j w"] = 0.2
    cycles: tuple[float, ...] = (2.0, 4.0)
    arm: float = 1.0


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
class SamplingErrors:
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

    def at_rate(self, rate_hz: float) -> SamplingErrors:
        """The same irregularity with this many rows per second on average."""
        if not self.intervals:
            return self
        seconds, shares = np.array(self.intervals, float).T
        seconds = seconds / (rate_hz * float(np.average(seconds, weights=shares)))
        return replace(self, intervals=tuple(zip(seconds.tolist(), shares.tolist(), strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class HandPush:
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

    friction: DriveFriction | None = None
    thermal: Thermal | None = None
    ripple: PositionRipple | None = None
    elasticity: Elasticity | None = None
    saturation: float | None = None
    sensing: Sensing | None = None
    encoder: Encoder | None = None
    timing: SamplingErrors | None = None
    pushes: tuple[HandPush, ...] = ()

    def without(self, *names: str) -> Effects:
        """The same effects with some switched off."""
        off: dict[str, Any] = {name: () if name == "pushes" else None for name in names}
        return replace(self, **off)


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
