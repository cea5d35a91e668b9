"""Position-dependent torque as waves: ripple of drives, and conservative terms of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.sim import sensor_model
from taufit.sim.effects import DriveFriction, Effects
from taufit.terms import CONSERVATIVE, Term, TermInput, terms_in

# Points per turn of the Fourier series of a torque.
WAVES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Waves sum_w amplitude_w sin(cycles_w q + phase_w) of every drive.

    Attributes:
        cycles: Cycles per radian.
        amplitude: Amplitude [N m].
        phase: Phase [rad].
        heating: Number of leading waves that dissipate energy; those of the model are conservative.
    """

    cycles: Float[Array, " w"]
    amplitude: Float[Array, "j w"]
    phase: Float[Array, "j w"]
    heating: int

    @classmethod
    def of(cls, effects: Effects, scale: Float[Array, " j"]) -> Waves:
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
        phase = sensor_model.stream(arm, "ripple").uniform(0, 2 * np.pi, shape)
        if friction is None:
            return cls(cycles, amplitude, phase, len(cycles))
        own, held = ripple_parts(friction, joints), held_parts(friction, joints)
        return cls(
            np.concatenate([cycles, own[0], held[0]]),
            np.ascontiguousarray(np.hstack([amplitude, own[1], held[1]])),
            np.ascontiguousarray(np.hstack([phase, own[2], held[2]])),
            len(cycles),
        )


def held_torque(
    friction: DriveFriction | None, coupling: Float[Array, "j j"], position: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """Torque of conservative terms except ripple: tau = C' tau_m, at motor positions C q [N m]."""
    if friction is None:
        return np.zeros(position.shape)
    drives = position @ coupling.T
    torque = [_held(friction, j, drives[:, j]) for j in range(position.shape[1])]
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


def _held(friction: DriveFriction, joint: int, angle: Float[Array, " n"]) -> Float[Array, " n"]:
    out = np.zeros_like(angle)
    for term, values in _terms(friction):
        if not term.orders:
            inputs = TermInput(np.zeros_like(angle), angle)
            out += term.of_joint(joint).columns(inputs, np.empty(0)) @ values[joint]
    return out


def ripple_parts(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of the ripple terms of the model:

    A sin(o q) + B cos(o q) = hypot(A, B) sin(o q + atan2(B, A)).
    """
    waves = [(term.orders, values) for term, values in _terms(friction) if term.orders]
    orders = np.array([order for own, _ in waves for order in own], float)
    values = np.hstack([np.zeros((joints, 0)), *(values for _, values in waves)])
    sine, cosine = values[:, 0::2], values[:, 1::2]
    return orders, np.hypot(sine, cosine), np.arctan2(cosine, sine)


def held_parts(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of other conservative torque, a Fourier series of the angle.

    The torque is periodic and analytic, so its series is short.

    Raises:
        TaufitError: Torque that is not periodic in the angle, as of a spring.
    """
    angle = 2.0 * np.pi * np.arange(WAVES) / WAVES
    torque = np.array([_held(friction, j, angle) for j in range(joints)])
    if not np.any(torque):
        return np.zeros(0), np.zeros((joints, 0)), np.zeros((joints, 0))
    again = np.array([_held(friction, j, angle - 2.0 * np.pi) for j in range(joints)])
    if np.abs(again - torque).max() > 1e-9 * np.abs(torque).max():
        names = ", ".join(
            one.name for term, _ in _terms(friction) if not term.orders for one in term.parameters
        )
        raise TaufitError(
            f"the simulated arm holds torque over position as waves only: {names} does not come "
            "back with every turn. Simulate the model without that term."
        )
    series = 2.0 * np.fft.rfft(torque)[:, : WAVES // 2] / WAVES
    series[:, 0] *= 0.5
    size = np.abs(series)
    kept = np.flatnonzero((size > 1e-9 * size.max(axis=1, keepdims=True, initial=0.0)).any(axis=0))
    # c = r e^(i p) stands for r cos(o q + p) = r sin(o q + p + pi/2).
    return kept.astype(float), size[:, kept], np.angle(series[:, kept]) + 0.5 * np.pi
