"""Torque that repeats with position: ripple of drives, and gravity compensators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.sim import measure
from taufit.sim.effects import Effects, Friction
from taufit.terms.friction import FrictionModel
from taufit.terms.friction.compensated import balance_torque

# Points per turn of which a compensator's Fourier series is made.
WAVES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """sum_w amplitude_w sin(cycles_w q + phase_w) of every drive.

    Attributes:
        cycles: Per radian.
        amplitude: [N m].
        phase: [rad].
        heating: How many of them, the first, take energy; compensators give it back.
    """

    cycles: Float[Array, " w"]
    amplitude: Float[Array, "j w"]
    phase: Float[Array, "j w"]
    heating: int

    @classmethod
    def of(cls, effects: Effects, scale: Float[Array, " j"]) -> Waves:
        """The effect's ripple, the friction model's, its compensators'.

        Args:
            effects: Of the twin.
            scale: Of this run's friction, per joint.
        """
        ripple, friction, joints = effects.ripple, effects.friction, len(scale)
        cycles = np.array(() if ripple is None else ripple.cycles, float)
        shape = (joints, len(cycles))
        amplitude = np.zeros(shape)
        if ripple is not None:
            amplitude = np.broadcast_to(np.asarray(ripple.amplitude, float), shape).copy()
        arm = 1 if ripple is None else int(ripple.arm)
        phase = measure.stream(arm, "ripple").uniform(0, 2 * np.pi, shape)
        if friction is None:
            return cls(cycles, amplitude, phase, len(cycles))
        own, held = ripple_parts(friction, joints), balance_parts(friction, joints)
        return cls(
            np.concatenate([cycles, own[0], held[0]]),
            np.ascontiguousarray(np.hstack([amplitude, own[1] * scale[:, None], held[1]])),
            np.ascontiguousarray(np.hstack([phase, own[2], held[2]])),
            len(cycles) + len(own[0]),
        )


def compensators_torque(
    friction: Friction | None, coupling: Float[Array, "j j"], position: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """What gravity compensators ask of the joints: tau = C' tau_m, at the drives' positions C q."""
    out = np.zeros(position.shape)
    if friction is None:
        return out
    drives = position @ coupling.T
    values = np.asarray(friction.coefficients, float)
    for joint, torque in balance_torque(friction.model, values).items():
        out[:, joint] = torque(drives[:, joint])
    return out @ coupling


def ripple_parts(
    friction: Friction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of the model's own ripple:

    A sin(o q) + B cos(o q) = hypot(A, B) sin(o q + atan2(B, A)).
    """
    orders: tuple[float, ...] = ()
    model: FrictionModel | None = friction.model
    while not orders and model is not None:
        orders, model = getattr(model, "orders", ()), getattr(model, "model", None)
    names = [term.name for term in friction.model.terms]
    values = np.asarray(friction.coefficients, float)
    sine, cosine = (
        values[:, [names.index(f"ripple_{wave}_{order:g}") for order in orders]]
        for wave in ("sin", "cos")
    )
    return np.array(orders, float), np.hypot(sine, cosine), np.arctan2(cosine, sine)


def balance_parts(
    friction: Friction, joints: int
) -> tuple[Float[Array, " w"], Float[Array, "j w"], Float[Array, "j w"]]:
    """Cycles, amplitudes and phases of the compensators' torque, a Fourier series of the angle.

    It comes back with every turn and is analytic, so its series ends soon.
    """
    curves = balance_torque(friction.model, np.asarray(friction.coefficients, float))
    if not curves:
        return np.zeros(0), np.zeros((joints, 0)), np.zeros((joints, 0))
    angle = 2.0 * np.pi * np.arange(WAVES) / WAVES
    series = np.zeros((joints, WAVES // 2), complex)
    for joint, torque in curves.items():
        series[joint] = 2.0 * np.fft.rfft(torque(angle))[: WAVES // 2] / WAVES
    series[:, 0] *= 0.5
    size = np.abs(series)
    kept = np.flatnonzero((size > 1e-9 * size.max(axis=1, keepdims=True, initial=0.0)).any(axis=0))
    # c = r e^(i p) stands for r cos(o q + p) = r sin(o q + p + pi/2).
    return kept.astype(float), size[:, kept], np.angle(series[:, kept]) + 0.5 * np.pi
