"""Effects of real robots on recordings, one frozen dataclass each, all off by default.

Values per joint may be given as one number for all joints. All values are SI and refer to the
joint side of the gear.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.terms import Term, friction_model

PerJoint = float | Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class DriveFriction:
    """Friction of any taufit model, with pre-sliding, breakaway and scatter.

    At speed v, bristle deflection z in [-1, 1] and age b in [0, 1] the friction torque is

        z (F(|v|, load, temperature) + load_factor |load|) (1 + breakaway b)
        + sum_k slow_k (z_k - z) + offset

    where z reverses within `presliding` of travel (Dahl), z_k more slowly, within `slow_widths`,
    and b grows to 1 in `dwell` seconds of rest and decays within `distance` of travel.

    Attributes:
        model: F, any friction model.
        coefficients: Linear coefficients, one row per joint.
        shape: Shape parameters, one row per joint.
        offset: Constant torque per joint [N m].
        load_factor: Coulomb friction per unit of load torque, for models without load terms.
        presliding: Travel over which friction reverses [rad]; 0: as short as the integration
            allows.
        slow: Friction that builds up slowly after a reversal [N m], one row per joint and one
            column per width.
        slow_widths: Travel over which those parts build up [rad].
        breakaway: Relative increase of friction after a long rest (0.3 is 30 %).
        dwell: Time constant of rest for that increase [s].
        distance: Travel over which it decays [rad].
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
    """Thermal model with two heat capacities per joint, and temperature-dependent friction.

    C T' = P - G (T - H),  C_h H' = G (T - H) - G_a (H - ambient),  P = |friction v| + copper tau^2.
    T is the measured temperature and the one that friction depends on:

        F(|v|, T) = F + (coulomb_slope + viscous_slope |v|) (T - reference), never below zero.

    Attributes:
        capacity: C of motor, gear and grease [J/K].
        housing: C_h of the housing [J/K].
        conductance: G between the two [W/K].
        ambient_conductance: G_a to the air [W/K].
        copper: Heat per squared joint torque [W/(N m)^2].
        ambient: Air temperature [degC].
        initial: Start temperature of both capacities [degC]; None: ambient.
        initial_housing: Start temperature of the housing if different [degC], to continue a run.
        reference: Temperature at which the friction coefficients hold [degC].
        coulomb_slope: Change of Coulomb friction [N m/K].
        viscous_slope: Change of viscous friction [N m s/rad/K].
        speed_up: Factor on thermal time, to warm up a robot in a short run.
        resolution: Resolution of the temperature sensor [K].
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
    """Torque ripple over joint position: gear teeth, wave generator, cogging.

    sum_k amplitude_k sin(cycles_k q + phase_k). Phases belong to the robot, not to the run: they
    do not depend on the seed of the run.

    Attributes:
        amplitude: Amplitude [N m], one row per joint and one column per wave, or one number.
        cycles: Waves per turn of the joint.
        arm: Number of the robot, the seed of its phases.
    """

    amplitude: float | Float[Array, "j w"] = 0.2
    cycles: tuple[float, ...] = (2.0, 4.0)
    arm: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Elasticity:
    """Joint elasticity: a spring between motor and link.

    Attributes:
        stiffness: Stiffness [N m/rad].
        damping: Damping [N m s/rad].
        rotor: Reflected rotor inertia [kg m^2] if the robot has none; otherwise that of the robot.
        encoder: Side of the recorded and controlled position, "motor" or "link".
    """

    stiffness: PerJoint = 1.0e4
    damping: PerJoint = 1.0
    rotor: PerJoint = 0.1
    encoder: str = "motor"


@dataclass(frozen=True, slots=True, eq=False)
class Sensing:
    """Errors of the torque channel.

    Attributes:
        side: "motor" (current, motor torque) or "link" (sensor behind the gear); empty: that of
            the robot.
        friction_share: Fraction of the friction that a link-side sensor measures.
        gain_error: True gain over nominal gain, minus 1.
        gain_scatter: Standard deviation of a further gain error, drawn from the seed.
        white: Standard deviation of white noise, in joint torque [N m].
        relative: White noise as a fraction of each joint's rms torque in the run, added to `white`.
        coloured: Standard deviation of low-frequency noise (first order) [N m].
        corner_hz: Corner frequency of the coloured noise [Hz].
        quantum: Quantisation step of the channel, in its unit (A or N m); 0 for none.
        absolute: Record magnitudes only (unsigned torque).
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
    """Errors of the position and velocity channels.

    Attributes:
        noise: Standard deviation of position noise [rad].
        quantum: Quantisation step of position [rad].
        velocity_noise: Standard deviation of velocity noise [rad/s].
        velocity_quantum: Quantisation step of velocity [rad/s].
        velocity_dead: Speeds below this are recorded as exactly 0 [rad/s].
        velocity: Whether velocity is recorded.
        acceleration: Whether acceleration is recorded.
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
    """Errors of sampling and transmission of rows.

    Attributes:
        intervals: (seconds, probability) pairs from which the sampling period is drawn; empty: the
            nominal rate.
        jitter: Standard deviation of the time stamp about the true time [s].
        drop: Probability that a row is lost.
        burst: Mean number of rows lost together.
        duplicate: Probability that a row is written twice.
    """

    intervals: tuple[tuple[float, float], ...] = ()
    jitter: float = 0.0
    drop: float = 0.0
    burst: float = 1.0
    duplicate: float = 0.0

    def at_rate(self, rate_hz: float) -> SamplingErrors:
        """Copy with intervals scaled to a mean rate [Hz]."""
        if not self.intervals:
            return self
        seconds, probabilities = np.array(self.intervals, float).T
        seconds = seconds / (rate_hz * float(np.average(seconds, weights=probabilities)))
        return replace(
            self, intervals=tuple(zip(seconds.tolist(), probabilities.tolist(), strict=True))
        )


@dataclass(frozen=True, slots=True, eq=False)
class HandPush:
    """Push by hand on the flange: a half sine wave of force and moment, in base axes.

    Attributes:
        start: Start after the begin of the recording [s].
        duration: Duration [s].
        force: Peak force [N].
        moment: Peak moment [N m].
    """

    start: float
    duration: float = 0.5
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    moment: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """All effects on top of the rigid bodies; None or empty is off.

    Attributes:
        friction, thermal, ripple, elasticity: Effects of the drive.
        saturation: Torque limit of the drive as a factor of the robot's torque limits.
        sensing, encoder, timing: Errors of measurement and sampling.
        pushes: Pushes by hand.
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
        """Copy with some effects switched off."""
        disabled: dict[str, Any] = {name: () if name == "pushes" else None for name in names}
        return replace(self, **disabled)


def per_joint(value: PerJoint, joints: int, name: str) -> Float[Array, " j"]:
    """Array with one value per joint, from one number for all or one each."""
    array = np.asarray(value, float)
    if array.ndim == 0:
        array = np.full(joints, float(array))
    if array.shape != (joints,):
        raise TaufitError(f"{name} has {array.size} numbers; this arm has {joints} joints.")
    if not np.all(np.isfinite(array)):
        raise TaufitError(f"{name} has a number that is not finite.")
    return array.copy()
