"""Information of a motion from its coefficients, with exact derivatives.

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

# Width over which the sign of velocity is smoothed in the search, so that it has a slope [rad/s].
SMOOTH_WIDTH = 0.05
_STEP = 1e-6


def with_smoothed_friction(model: TorqueModel, width: float = SMOOTH_WIDTH) -> TorqueModel:
    """Model with smoothed friction sign, if its friction has a width parameter."""
    friction: Any = model.friction
    friction_width = getattr(friction, "width", None)
    if friction_width is not None and friction_width < width:
        return replace(model, friction=replace(friction, width=width))
    inner = getattr(friction, "model", None)
    if inner is not None and getattr(inner, "width", width) < width:
        return replace(model, friction=replace(friction, model=replace(inner, width=width)))
    return model


class MotionInformation:
    """Information matrix M = W'W/N of a motion on a grid, and its derivative by q, v, a.

    Args:
        model: Model to be identified.
        columns: Base columns of the model.
        weights: 1/noise, one per joint.
    """

    def __init__(
        self, model: TorqueModel, columns: Int[Array, " b"], weights: Float[Array, " j"]
    ) -> None:
        # Motions are planned on a coarse grid: friction is the steady-state curve.
        self.model = model = model.steady_state()
        self.model_columns = model.columns
        self.engine = RegressorEngine(model.robot)
        links = model.layout.links.stop
        self.link_positions = np.flatnonzero(columns < links)
        self.joint_positions = np.flatnonzero(columns >= links)
        self.link_columns = columns[self.link_positions]
        self.joint_columns = columns[self.joint_positions] - links
        self.size = len(columns)
        self.weights = weights
        joints = model.robot.joints
        self.is_coupled = not np.array_equal(model.robot.drives.coupling, np.eye(joints))
        # Without coupled motors each joint has columns of its own: (joint, term) of each.
        owner, term = _owners(model)
        self.column_joint, self.column_term = owner[self.joint_columns], term[self.joint_columns]
        self.has_equal_weights = bool(np.all(weights == 1.0))

    def rows(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], a: Float[Array, "n j"]
    ) -> Float[Array, "n j b"]:
        """Weighted base regressor."""
        model = self.model
        rows = np.zeros((*q.shape, self.size))
        links = self.engine.regressor(q, v, a)
        rows[:, :, self.link_positions] = links[:, :, self.link_columns]
        if len(self.joint_columns):
            load = links @ model.robot.parameters if self._needs_load else None
            if self.is_coupled:
                rows[:, :, self.joint_positions] = self._motor_columns(q, v, a, load)[
                    :, :, self.joint_columns
                ]
            else:
                joint_columns = self._joint_columns(q, v, a, load)
                rows[:, self.column_joint, self.joint_positions] = joint_columns[
                    :, self.column_joint, self.column_term
                ]
        return rows if self.has_equal_weights else rows * self.weights[:, None]

    @property
    def _needs_load(self) -> bool:
        return needs(self.model.term_sum, "load")

    def matrix(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], a: Float[Array, "n j"]
    ) -> tuple[Float[Array, "b b"], Float[Array, "n j b"]]:
        """M and its regressor rows."""
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
        row_gradient = (flat @ ((slope + slope.T) / n)).reshape(rows.shape)
        if not self.has_equal_weights:
            row_gradient = row_gradient * self.weights[:, None]
        link_gradient = np.zeros((n, joints, self.model.layout.links.stop))
        link_gradient[:, :, self.link_columns] = row_gradient[:, :, self.link_positions]
        extra_q, extra_v, extra_a = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
        if len(self.joint_columns):
            model = self.model
            load = None
            if self._needs_load:
                load = self.engine.regressor(q, v, a) @ model.robot.parameters
            if self.is_coupled:
                column_gradient = np.zeros(
                    (n, joints, model.layout.size - model.layout.after_links.start)
                )
                column_gradient[:, :, self.joint_columns] = row_gradient[:, :, self.joint_positions]
                columns = self._motor_columns
            else:
                column_gradient = np.zeros((n, joints, self.column_term.max() + 1))
                column_gradient[:, self.column_joint, self.column_term] = row_gradient[
                    :, self.column_joint, self.joint_positions
                ]
                columns = self._joint_columns
            extra_v = self._difference_quotient(
                column_gradient, lambda d: columns(q, v + d, a, load), joints
            )
            if model.has("rotor"):
                extra_a = self._difference_quotient(
                    column_gradient, lambda d: columns(q, v, a + d, load), joints
                )
            if needs(model.term_sum, "position"):
                extra_q = self._difference_quotient(
                    column_gradient, lambda d: columns(q + d, v, a, load), joints
                )
            if load is not None:
                by_load = self._difference_quotient(
                    column_gradient, lambda d: columns(q, v, a, load + d), joints
                )
                link_gradient += by_load[:, :, None] * model.robot.parameters
        by_q, by_v, by_a = self.engine.regressor_adjoint(q, v, a, link_gradient)
        return by_q + extra_q, by_v + extra_v, by_a + extra_a

    def _joint_columns(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        load: Float[Array, "n j"] | None,
    ) -> Float[Array, "n j t"]:
        """Columns of each joint: rotor inertia, friction terms, offset."""
        return self.model_columns.motor_columns(a, self._friction(q, v, load))

    def _motor_columns(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        load: Float[Array, "n j"] | None,
    ) -> Float[Array, "n j m"]:
        """Columns of rotor inertia, friction and offset, mapped to the joints by the coupling."""
        return self.model_columns.term_columns(a, self._friction(q, v, load))

    def _friction(
        self, q: Float[Array, "n j"], v: Float[Array, "n j"], load: Float[Array, "n j"] | None
    ) -> Float[Array, "n j k"]:
        inputs = TermInput(v, q, load, np.full_like(v, 25.0))
        return self.model_columns.drive_columns(inputs)

    def _difference_quotient(
        self, column_gradient: Float[Array, "n j m"], columns: Callable[[Any], Array], joints: int
    ) -> Float[Array, "n j"]:
        """sum of wanted * d columns, by central differences of each joint's scalar functions.

        Without coupled motors a joint's columns depend on that joint alone, so all joints move at
        once; else one after the other.
        """
        if not self.is_coupled:
            change = (columns(_STEP) - columns(-_STEP)) / (2 * _STEP)
            return np.einsum(
                "njt,njt->nj", column_gradient, change[:, :, : column_gradient.shape[2]]
            )
        gradient = np.empty(column_gradient.shape[:2])
        for i in range(joints):
            step = np.zeros(joints)
            step[i] = _STEP
            change = (columns(step) - columns(-step)) / (2 * _STEP)
            gradient[:, i] = np.sum(column_gradient * change, axis=(1, 2))
        return gradient


def _owners(model: TorqueModel) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
    """Joint of every column after the link columns, and its index among the joint's columns."""
    joints = model.robot.joints
    terms = len(model.term_sum.parameters)
    joint_numbers = np.arange(joints)
    owner, term, offset = [], [], 0
    if model.has("rotor"):
        owner.append(joint_numbers)
        term.append(np.zeros(joints, int))
        offset = 1
    owner.append(np.repeat(joint_numbers, terms))
    term.append(np.tile(offset + np.arange(terms), joints))
    if model.has("offset"):
        owner.append(joint_numbers)
        term.append(np.full(joints, offset + terms))
    return np.concatenate(owner), np.concatenate(term)
