"""From coefficients of a motion to the information it brings, with exact derivatives.

coefficients -> q, v, a on a grid -> weighted base regressor W -> M = W'W/N -> criterion

and back through the adjoint of the regressor: one value and gradient costs a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.dynamics import RegressorEngine
from taufit.model.torque_model import TorqueModel
from taufit.terms import TermInput, needs

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
        # A motion is planned on a coarse grid: friction is that of steady motion there.
        self.model = model = model.steady()
        self.columns_of = model.columns
        self.engine = RegressorEngine(model.robot)
        links = model.layout.links.stop
        self.of_links = np.flatnonzero(columns < links)
        self.of_joints = np.flatnonzero(columns >= links)
        self.link_columns = columns[self.of_links]
        self.joint_columns = columns[self.of_joints] - links
        self.size = len(columns)
        self.weights = weights
        joints = model.robot.joints
        self.coupled = not np.array_equal(model.robot.drives.coupling, np.eye(joints))
        # Without coupled motors each joint's columns are its own: (joint, term) of the kept ones.
        owner, term = _owners(model)
        self.joint_of, self.term_of = owner[self.joint_columns], term[self.joint_columns]
        self.even = bool(np.all(weights == 1.0))

    def rows(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], a: Float[Array, "n j"]
    ) -> Float[Array, "n j b"]:
        """The weighted base regressor."""
        model = self.model
        out = np.zeros((*q.shape, self.size))
        links = self.engine.regressor(q, v, a)
        out[:, :, self.of_links] = links[:, :, self.link_columns]
        if len(self.joint_columns):
            load = links @ model.robot.parameters if self._loaded else None
            if self.coupled:
                out[:, :, self.of_joints] = self._joint(q, v, a, load)[:, :, self.joint_columns]
            else:
                own = self._own(q, v, a, load)
                out[:, self.joint_of, self.of_joints] = own[:, self.joint_of, self.term_of]
        return out if self.even else out * self.weights[:, None]

    @property
    def _loaded(self) -> bool:
        return needs(self.model.term_sum, "load")

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
        wanted = (flat @ ((slope + slope.T) / n)).reshape(rows.shape)
        if not self.even:
            wanted = wanted * self.weights[:, None]
        into_links = np.zeros((n, joints, self.model.layout.links.stop))
        into_links[:, :, self.link_columns] = wanted[:, :, self.of_links]
        extra_q, extra_v, extra_a = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
        if len(self.joint_columns):
            model = self.model
            load = None
            if self._loaded:
                load = self.engine.regressor(q, v, a) @ model.robot.parameters
            if self.coupled:
                into = np.zeros((n, joints, model.layout.size - model.layout.after_links.start))
                into[:, :, self.joint_columns] = wanted[:, :, self.of_joints]
                columns = self._joint
            else:
                into = np.zeros((n, joints, self.term_of.max() + 1))
                into[:, self.joint_of, self.term_of] = wanted[:, self.joint_of, self.of_joints]
                columns = self._own
            extra_v = self._slope(into, lambda d: columns(q, v + d, a, load), joints)
            if model.has("rotor"):
                extra_a = self._slope(into, lambda d: columns(q, v, a + d, load), joints)
            if needs(model.term_sum, "position"):
                extra_q = self._slope(into, lambda d: columns(q + d, v, a, load), joints)
            if load is not None:
                by_load = self._slope(into, lambda d: columns(q, v, a, load + d), joints)
                into_links += by_load[:, :, None] * model.robot.parameters
        by_q, by_v, by_a = self.engine.regressor_adjoint(q, v, a, into_links)
        return by_q + extra_q, by_v + extra_v, by_a + extra_a

    def _own(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        load: Float[Array, "n j"] | None,
    ) -> Float[Array, "n j t"]:
        """Each joint's own columns: rotor inertia, friction terms, offset."""
        return self.columns_of.motor_columns(a, self._friction(q, v, load))

    def _joint(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        load: Float[Array, "n j"] | None,
    ) -> Float[Array, "n j m"]:
        """The same spread over the joints that the motors drive."""
        return self.columns_of.term_columns(a, self._friction(q, v, load))

    def _friction(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], load: Float[Array, "n j"] | None
    ) -> Float[Array, "n j k"]:
        inputs = TermInput(v, q, load, np.full_like(v, 25.0))
        return self.columns_of.drive_columns(inputs)

    def _slope(
        self, wanted: Float[Array, "n j m"], columns: Callable[[Any], Array], joints: int
    ) -> Float[Array, "n j"]:
        """sum of wanted * d columns, by central differences of each joint's scalar functions.

        Without coupled motors a joint's columns depend on that joint alone, so all joints move at
        once; else one after the other.
        """
        if not self.coupled:
            change = (columns(_STEP) - columns(-_STEP)) / (2 * _STEP)
            return np.einsum("njt,njt->nj", wanted, change[:, :, : wanted.shape[2]])
        out = np.empty(wanted.shape[:2])
        for i in range(joints):
            step = np.zeros(joints)
            step[i] = _STEP
            change = (columns(step) - columns(-step)) / (2 * _STEP)
            out[:, i] = np.sum(wanted * change, axis=(1, 2))
        return out


def _owners(model: TorqueModel) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
    """Joint of every column behind the links', and its place among that joint's own."""
    joints = model.robot.joints
    terms = len(model.term_sum.parameters)
    each = np.arange(joints)
    owner, term, ahead = [], [], 0
    if model.has("rotor"):
        owner.append(each)
        term.append(np.zeros(joints, int))
        ahead = 1
    owner.append(np.repeat(each, terms))
    term.append(np.tile(ahead + np.arange(terms), joints))
    if model.has("offset"):
        owner.append(each)
        term.append(np.full(joints, ahead + terms))
    return np.concatenate(owner), np.concatenate(term)
