"""From coefficients of a motion to the information it brings, with exact derivatives.

coefficients -> q, v, a on a grid -> weighted base regressor W -> M = W'W/N -> criterion

and back through the adjoint of the regressor: one value and gradient costs a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.dynamics import Engine
from taufit.model.torque_model import TorqueModel

# Inside the search a sign of velocity turns over within this speed, so that it has a slope.
SMOOTH_WIDTH = 0.05
_STEP = 1e-6


def smoothed(model: TorqueModel, width: float = SMOOTH_WIDTH) -> TorqueModel:
    """The model with its friction's sign softened, where it has a width to soften."""
    friction: Any = model.friction
    own = getattr(friction, "width", None)
    if own is not None and own < width:
        return replace(model, friction=replace(friction, width=width))
    inner = getattr(friction, "model", None)
    if inner is not None and getattr(inner, "width", width) < width:
        return replace(model, friction=replace(friction, model=replace(inner, width=width)))
    return model


class InformationOf:
    """M = W'W/N of a motion on a grid, and the way back from dM to q, v, a.

    Args:
        model: Whose parameters are wanted.
        columns: Base columns among the model's.
        weights: One per joint, 1/noise.
    """

    def __init__(
        self, model: TorqueModel, columns: Int[Array, " b"], weights: Float[Array, " j"]
    ) -> None:
        self.model = model
        self.engine = Engine(model.robot)
        links = model.layout.links.stop
        self.of_links = np.flatnonzero(columns < links)
        self.of_joints = np.flatnonzero(columns >= links)
        self.link_columns = columns[self.of_links]
        self.joint_columns = columns[self.of_joints] - links
        self.size = len(columns)
        self.weights = weights
        self.coupled = not np.array_equal(model.robot.drives.coupling, np.eye(model.robot.joints))

    def rows(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], a: Float[Array, "n j"]
    ) -> Float[Array, "n j b"]:
        """The weighted base regressor."""
        model = self.model
        out = np.empty((*q.shape, self.size))
        links = self.engine.regressor(q, v, a)
        out[:, :, self.of_links] = links[:, :, self.link_columns]
        if len(self.joint_columns):
            load = links @ model.robot.parameters if self._loaded else None
            rest = self._joint(v, a, load)
            out[:, :, self.of_joints] = rest[:, :, self.joint_columns]
        return out * self.weights[:, None]

    @property
    def _loaded(self) -> bool:
        return self.model.friction is not None and self.model.friction.uses_load

    def matrix(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], a: Float[Array, "n j"]
    ) -> tuple[Float[Array, "b b"], Float[Array, "n j b"]]:
        """M and the rows it was made of."""
        rows = self.rows(q, v, a)
        flat = rows.reshape(-1, self.size)
        return flat.T @ flat / len(q), rows

    def pull(
        self,
        states: Sequence[Float[Array, "n j"]],
        rows: Float[Array, "n j b"],
        slope: Float[Array, "b b"],
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Gradients with respect to q, v, a of a function of M whose derivative is `slope`."""
        q, v, a = states
        n, joints = q.shape
        flat = rows.reshape(-1, self.size)
        wanted = (flat @ (slope + slope.T) / n).reshape(rows.shape) * self.weights[:, None]
        into_links = np.zeros((n, joints, self.model.layout.links.stop))
        into_links[:, :, self.link_columns] = wanted[:, :, self.of_links]
        extra_v, extra_a = np.zeros_like(q), np.zeros_like(q)
        if len(self.joint_columns):
            model = self.model
            into_joints = np.zeros((n, joints, model.layout.size - model.layout.rest.start))
            into_joints[:, :, self.joint_columns] = wanted[:, :, self.of_joints]
            load = None
            if self._loaded:
                load = self.engine.regressor(q, v, a) @ model.robot.parameters
            extra_v = self._slope(into_joints, lambda d: self._joint(v + d, a, load), joints)
            if model.rotor_inertia:
                extra_a = self._slope(into_joints, lambda d: self._joint(v, a + d, load), joints)
            if load is not None:
                by_load = self._slope(into_joints, lambda d: self._joint(v, a, load + d), joints)
                into_links += by_load[:, :, None] * model.robot.parameters
        by_q, by_v, by_a = self.engine.regressor_adjoint(q, v, a, into_links)
        return by_q, by_v + extra_v, by_a + extra_a

    def _joint(
        self,
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        load: Float[Array, "n j"] | None,
    ) -> Float[Array, "n j m"]:
        return self.model.joint_columns(v, a, load=load, temperature=np.full_like(v, 25.0))

    def _slope(
        self, wanted: Float[Array, "n j m"], columns: Callable[[Any], Array], joints: int
    ) -> Float[Array, "n j"]:
        """sum of wanted * d columns, by central differences of each joint's scalar functions.

        Without coupled motors a joint's columns depend on that joint alone, so all joints move at
        once; else one after the other.
        """
        if not self.coupled:
            change = (columns(_STEP) - columns(-_STEP)) / (2 * _STEP)
            return np.sum(wanted * change, axis=2)
        out = np.empty(wanted.shape[:2])
        for i in range(joints):
            step = np.zeros(joints)
            step[i] = _STEP
            change = (columns(step) - columns(-step)) / (2 * _STEP)
            out[:, i] = np.sum(wanted * change, axis=(1, 2))
        return out
