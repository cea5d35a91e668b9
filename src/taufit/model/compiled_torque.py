"""Torque of a fitted model, its gradient and its inverse, each in one call of the kernel.

    tau = rigid(q, v, a) + C' f(C v, C q, C^-T rigid) + C' R C a + offset

with rigid-body torque, friction and further terms f of the motors, rotor inertia R and coupling C.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import RegressorEngine
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_tape import record_friction
from taufit.terms import has_memory, needs

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None


# Central differences of doubles of order one [rad, rad/s, rad/s^2].
_DIFFERENCE = 1e-5
_NEWTON_STEPS = 200


class CompiledTorque:
    """Fitted model prepared for the kernel.

    Args:
        model: Fitted model.

    Every method returns None if the kernel cannot evaluate the model or the arrays.
    """

    def __init__(self, model: FittedModel) -> None:
        self._model = model
        self._joints = model.robot.joints
        self._needs_temperature = needs(model.term_sum, "temperature")
        self._by_memory: Any = None
        has_kernel = _kernel is not None and not model.robot.is_tree
        self._steady = self._program(model.steady_state()) if has_kernel else None
        if self._steady is None:
            return
        links = model.values[model.layout.links]
        self._engine = RegressorEngine(model.robot, parameters=links).kernel
        if not self._matches_model():
            self._steady = self._by_memory = None

    def torque(
        self, position: Any, velocity: Any, acceleration: Any, temperature: Any, step: float | None
    ) -> Float[Array, "*n j"] | None:
        """Torque of independent samples or, with `step`, of one run."""
        program = self._steady if step is None else self._run_program
        if program is None or (temperature is None and self._needs_temperature):
            return None
        try:
            out = np.empty(np.shape(position))
            program.torque(
                self._engine, position, velocity, acceleration, temperature, step or 0.0, None, out
            )
        except (TypeError, ValueError):  # no arrays of doubles, or wrong shapes
            arrays = self._arrays(position, velocity, acceleration, temperature)
            return None if arrays is None else self.torque(*arrays, step)
        return out

    def next_torque(
        self, arrays: tuple[Any, ...], step: float, state: Float[Array, " m"]
    ) -> Float[Array, " j"] | None:
        """Torque of the next sample (position, velocity, acceleration, temperature) of a run."""
        checked = self._arrays(*arrays)
        if checked is None or self._run_program is None:
            return None
        out = np.empty(self._joints)
        self._run_program.torque(self._engine, *checked, step, state, out)
        return out

    def gradient(
        self, position: Any, velocity: Any, acceleration: Any, temperature: Any
    ) -> Float[Array, "*n j k"] | None:
        """Derivatives of the torque with respect to (q, v, a), side by side."""
        if self._steady is None or (temperature is None and self._needs_temperature):
            return None
        try:
            out = np.empty((*np.shape(position), 3 * self._joints))
            self._steady.gradient(self._engine, position, velocity, acceleration, temperature, out)
        except (TypeError, ValueError):
            arrays = self._arrays(position, velocity, acceleration, temperature)
            return None if arrays is None else self.gradient(*arrays)
        return out

    def acceleration(
        self, position: Any, velocity: Any, torque: Any, temperature: Any, friction: bool
    ) -> Float[Array, "*n j"] | None:
        """Acceleration that a torque gives, at steady-state friction."""
        if temperature is None and self._needs_temperature and friction:
            return None
        if self._steady is None:
            return None
        try:
            out = np.empty(np.shape(position))
            self._steady.acceleration(
                self._engine, position, velocity, torque, temperature, friction, out
            )
        except (TypeError, ValueError):
            arrays = self._arrays(position, velocity, torque, temperature)
            return None if arrays is None else self.acceleration(*arrays, friction)
        return out

    @property
    def state_size(self) -> int | None:
        """Length of the state of a run, zeros before its first sample; None if not compiled."""
        return None if self._run_program is None else self._state_size

    @property
    def _run_program(self) -> Any:
        """Program with the memory of friction."""
        if self._by_memory is None and self._steady is not None:
            with_memory = has_memory(self._model.term_sum)
            self._by_memory = self._program(self._model) if with_memory else self._steady
            if not with_memory:
                self._state_size = 1
        return self._by_memory

    def _program(self, model: FittedModel) -> Any:
        """Kernel program of a model; None if it cannot be compiled."""
        columns, parts = model.columns, model.layout.split(np.asarray(model.values, float))
        if columns.placed_terms:
            return None
        recorded = record_friction(columns, parts.drive)
        if recorded is None:
            return None
        coupling = np.ascontiguousarray(model.robot.drives.coupling, float)
        if has_memory(model.term_sum):
            self._state_size = 1 + len(recorded.start)
        return _kernel.ModelTorque(
            recorded.operations,
            recorded.registers,
            recorded.results,
            recorded.moves,
            recorded.start,
            recorded.initial_travels,
            coupling,
            np.ascontiguousarray(np.linalg.inv(coupling).T),
            np.ascontiguousarray(coupling.T @ (parts.rotors[:, None] * coupling)),
            np.ascontiguousarray(np.broadcast_to(parts.offsets, self._joints), float),
        )

    def _arrays(self, *arrays: Any) -> tuple[Any, Any, Any, Any] | None:
        """Position, velocity, a third array and temperature as doubles; None for wrong shapes."""
        q, v, a, warm = (None if x is None else np.asarray(x, float) for x in arrays)
        shapes = {x.shape for x in (q, v, a, warm) if x is not None}
        if len(shapes) != 1 or len(shape := shapes.pop()) not in (1, 2):
            return None
        is_complete = warm is not None or not self._needs_temperature
        return (q, v, a, warm) if shape[-1] == self._joints and is_complete else None

    def _matches_model(self) -> bool:
        """Whether both programs reproduce the model on test samples."""
        rng = np.random.default_rng(0)
        q, v, a = rng.normal(size=(3, 9, self._joints))
        v[4:7] *= 1e-3
        temperature = self._model.typical_temperature + rng.normal(size=q.shape)
        for step in (None, 0.01):
            expected = self._model.torque_by_columns(q, v, a, temperature=temperature, step=step)
            computed = self.torque(q, v, a, temperature, step)
            size = max(float(np.abs(expected).max(initial=0.0)), 1e-12)
            if computed is None or not np.all(np.abs(computed - expected) < 1e-9 * size):
                return False
        return True


def difference_gradient(
    model: FittedModel,
    position: Any,
    velocity: Any,
    acceleration: Any,
    temperature: Any,
    channels: Mapping[str, Any] | None,
) -> Float[Array, "*n j k"]:
    """`CompiledTorque.gradient` by central differences, for terms that the kernel does not have.

    Below twice the difference step a speed is moved there, away from the jump of friction at zero.
    """
    motion = [np.array(x, float) for x in (position, velocity, acceleration)]
    slow = np.abs(motion[1]) < 2.0 * _DIFFERENCE
    motion[1] = np.where(slow, np.where(motion[1] < 0.0, -2.0, 2.0) * _DIFFERENCE, motion[1])
    columns = []
    for part in range(3):
        for k in range(model.robot.joints):
            sides = []
            for sign in (1.0, -1.0):
                moved = [x.copy() for x in motion]
                moved[part][..., k] += sign * _DIFFERENCE
                sides.append(
                    model.torque_by_columns(*moved, temperature=temperature, channels=channels)
                )
            columns.append((sides[0] - sides[1]) / (2.0 * _DIFFERENCE))
    return np.stack(columns, -1)


def newton_acceleration(
    model: FittedModel,
    position: Any,
    velocity: Any,
    torque: Any,
    temperature: Any,
    channels: Mapping[str, Any] | None,
    friction: bool,
) -> Float[Array, "*n j"]:
    """`CompiledTorque.acceleration` for terms that the kernel does not have, by Newton's method."""
    q, v, tau = (np.asarray(x, float) for x in (position, velocity, torque))
    a = np.zeros_like(q)
    mass = model.mass_matrix(q)
    if not friction:
        bias = model.gravity(q) + model.coriolis(q, v)
        return np.asarray(np.linalg.solve(mass, (tau - bias)[..., None])[..., 0])
    for _ in range(_NEWTON_STEPS):
        predicted = model.torque_by_columns(q, v, a, temperature=temperature, channels=channels)
        residual = tau - predicted
        if np.abs(residual).max(initial=0.0) <= 1e-12 * np.abs(tau).max(initial=1.0):
            break
        # Friction makes a load at most a fraction heavier: the mass matrix is close to the slope.
        a = a + np.linalg.solve(mass, residual[..., None])[..., 0]
    return a
