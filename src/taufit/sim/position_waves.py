"""Position-dependent torque as waves: ripple of drives, and conservative terms of the model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.sim import sensor_model
from taufit.sim.effects import DriveFriction, Effects
from taufit.terms import CONSERVATIVE, Term, TermInput, terms_in

# Points per turn of the Fourier series of a torque.
SERIES_POINTS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class PositionWaves:
    """Waves sum_w amplitude_w sin(cycles_w q + phase_w) of every drive.

    Attributes:
        cycles: Cycles per radian.
        amplitude: Amplitude [N m].
        phase: Phase [rad].
        low, high: Range at whose edges the position of a wave is held.
        heating: Number of leading waves that dissipate energy; those of the model are conservative.
    """

    cycles: Float[Array, " w"]
    amplitude: Float[Array, "j w"]
    phase: Float[Array, "j w"]
    heating: int
    low: Float[Array, "j w"]
    high: Float[Array, "j w"]

    @classmethod
    def of(cls, effects: Effects, scale: Float[Array, " j"]) -> PositionWaves:
        """Ripple effect, ripple terms of the model, its other conservative terms.

        Args:
            effects: Effects of the simulated robot.
            scale: Friction of this run relative to the coefficients, per joint.
        """
        ripple, friction, joints = effects.ripple, effects.friction, len(scale)
        cycles = np.array(() if ripple is None else ripple.cycles, float)
        shape = (joints, len(cycles))
        amplitude = np.zeros(shape)
        if ripple is not None:
            amplitude = np.broadcast_to(np.asarray(ripple.amplitude, float), shape).copy()
        arm = 1 if ripple is None else int(ripple.arm)
        phase = sensor_model.random_stream(arm, "ripple").uniform(0, 2 * np.pi, shape)
        unlimited = np.full(shape, np.inf)
        if friction is None:
            return cls(cycles, amplitude, phase, len(cycles), -unlimited, unlimited)
        model_ripple, compensators = (
            ripple_waves(friction, joints),
            compensator_waves(friction, joints),
        )
        low, high = ripple_ranges(friction, joints)
        after = np.full(compensators[1].shape, np.inf)
        return cls(
            np.concatenate([cycles, model_ripple[0], compensators[0]]),
            np.ascontiguousarray(np.hstack([amplitude, model_ripple[1], compensators[1]])),
            np.ascontiguousarray(np.hstack([phase, model_ripple[2], compensators[2]])),
            len(cycles),
            np.ascontiguousarray(np.hstack([-unlimited, low, -after])),
            np.ascontiguousarray(np.hstack([unlimited, high, after])),
        )


def compensator_torque(
    friction: DriveFriction | None, coupling: Float[Array, "j j"], position: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """Torque of conservative terms except ripple: tau = C' tau_m, at motor positions C q [N m]."""
    if friction is None:
        return np.zeros(position.shape)
    drives = position @ coupling.T
    torque = [_conservative_torque(friction, j, drives[:, j]) for j in range(position.shape[1])]
    return np.stack(torque, 1) @ coupling


def _terms(friction: DriveFriction) -> Iterator[tuple[Term, Float[Array, "j k"]]]:
    """Conservative terms with their coefficients."""
    values = np.asarray(friction.coefficients, float)
    first = 0
    for term in terms_in(friction.model):
        last = first + len(term.parameters)
        if term.kind == CONSERVATIVE:
            yield term, values[:, first:last]
        first = last


def _conservative_torque(
    friction: DriveFriction, joint: int, angle: Float[Array, " n"]
) -> Float[Array, " n"]:
    torque = np.zeros_like(angle)
    for term, values in _terms(friction):
        if not term.orders:
            inputs = TermInput(np.zeros_like(angle), angle)
            torque += term.of_joint(joint).columns(inputs, np.empty(0)) @ values[joint]
    return torque


def ripple_waves(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of the ripple terms of the model:

    A sin(o q) + B cos(o q) = hypot(A, B) sin(o q + atan2(B, A)).
    """
    waves = [(term.orders, values) for term, values in _terms(friction) if term.orders]
    orders = np.array([order for term_orders, _ in waves for order in term_orders], float)
    values = np.hstack([np.zeros((joints, 0)), *(values for _, values in waves)])
    sine, cosine = values[:, 0::2], values[:, 1::2]
    return orders, np.hypot(sine, cosine), np.arctan2(cosine, sine)


def ripple_ranges(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, "j w"], Float[Array, "j w"]]:
    """Ranges outside which the ripple terms of the model hold the position."""
    low, high = [np.zeros((joints, 0))], [np.zeros((joints, 0))]
    for term, _ in _terms(friction):
        if term.orders:
            motors = [term.of_joint(j) for j in range(joints)]
            for out, name, free in ((low, "lower", -np.inf), (high, "upper", np.inf)):
                ends = [(getattr(motor, name, ()) or (free,))[0] for motor in motors]
                out.append(np.tile(np.array(ends)[:, None], len(term.orders)))
    return np.hstack(low), np.hstack(high)


def compensator_waves(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of other conservative torque, a Fourier series of the angle.

    The torque is periodic and analytic, so its series is short.

    Raises:
        TaufitError: Torque that is not periodic in the angle, as of a spring.
    """
    angle = 2.0 * np.pi * np.arange(SERIES_POINTS) / SERIES_POINTS
    torque = np.array([_conservative_torque(friction, j, angle) for j in range(joints)])
    if not np.any(torque):
        return np.zeros(0), np.zeros((joints, 0)), np.zeros((joints, 0))
    previous_turn = np.array(
        [_conservative_torque(friction, j, angle - 2.0 * np.pi) for j in range(joints)]
    )
    if np.abs(previous_turn - torque).max() > 1e-9 * np.abs(torque).max():
        names = ", ".join(
            parameter.name
            for term, _ in _terms(friction)
            if not term.orders
            for parameter in term.parameters
        )
        raise TaufitError(
            f"the simulated arm holds torque over position as waves only: {names} does not come "
            "back with every turn. Simulate the model without that term."
        )
    series = 2.0 * np.fft.rfft(torque)[:, : SERIES_POINTS // 2] / SERIES_POINTS
    series[:, 0] *= 0.5
    size = np.abs(series)
    orders = np.flatnonzero(
        (size > 1e-9 * size.max(axis=1, keepdims=True, initial=0.0)).any(axis=0)
    )
    # c = r e^(i p) stands for r cos(o q + p) = r sin(o q + p + pi/2).
    return orders.astype(float), size[:, orders], np.angle(series[:, orders]) + 0.5 * np.pi
