"""Unidirectional joints: their Coulomb friction and torque offset are confounded.

If a joint never reverses, sign(v) is constant and friction cannot be separated from offset. One of
the two is then fixed at zero, the other represents their sum, and neither is identifiable alone.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples
from taufit.terms import BREAKAWAY, CONSTANT, LEVEL, MEMORY

# Smallest fraction of travel in the other direction that separates friction from offset.
_MIN_REVERSE_FRACTION = 0.01


@dataclass(frozen=True, slots=True)
class ConfoundedTerms:
    """Terms that unidirectional motion does not separate.

    Attributes:
        joints: Unidirectional joints, counted from 0.
        dropped: Parameters fixed at zero.
        tied: Parameters known only in their sum.
    """

    joints: tuple[int, ...]
    dropped: tuple[str, ...]
    tied: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """One sentence on all unidirectional joints."""
        return [_sentence(self.joints)] if self.joints else []


def _sentence(joints: tuple[int, ...]) -> str:
    numbers = ", ".join(str(j + 1) for j in joints)
    return (
        f"joint {numbers} turns one way only: its Coulomb friction and its torque offset are "
        "one column, known only in their sum (standard deviation infinite). Add a recording "
        "in which it turns back and forth."
    )


def unidirectional_findings(samples: Samples) -> list[Finding]:
    """One finding per unidirectional joint, all with the same sentence."""
    joints = unidirectional_joints(samples)
    return [Finding("one_way_joint", "warning", _sentence(joints), joint=j + 1) for j in joints]


def unidirectional_joints(samples: Samples) -> tuple[int, ...]:
    """Joints whose travel in one direction is below 1 % of all."""
    out = []
    for j in range(samples.joints):
        rows = samples.keep[:, j] & samples.in_motion
        v = samples.velocity[rows, j]
        total = float(np.sum(np.abs(v)))
        if total > 0.0 and min(np.sum(v[v > 0]), -np.sum(v[v < 0])) < _MIN_REVERSE_FRACTION * total:
            out.append(j)
    return tuple(out)


def confounded_terms(model: TorqueModel, samples: Samples) -> ConfoundedTerms:
    """Confounded terms of unidirectional joints, and those fixed at zero."""
    layout = model.layout
    steady = layout.of_group(LEVEL, MEMORY, BREAKAWAY)
    if not steady.any():
        return ConfoundedTerms((), (), ())
    joints = unidirectional_joints(samples)
    names, owner = np.array(layout.names), np.asarray(layout.owner)
    dropped: list[str] = []
    tied: list[str] = []
    for j in joints:
        friction: list[str] = names[steady & (owner == j)].tolist()
        offset: list[str] = names[layout.of_kind(CONSTANT) & (owner == j)].tolist()
        tied += [*friction, *offset]
        if offset:
            # Friction opposes motion: a constant part that drives the joint is an offset.
            dropped += offset if _is_dissipative(model, samples, j) else friction
    return ConfoundedTerms(joints, tuple(dropped), tuple(tied))


def _is_dissipative(model: TorqueModel, samples: Samples, j: int) -> bool:
    """Whether the constant torque beside inertia and gravity opposes the motion."""
    rows = np.flatnonzero(samples.keep[:, j] & samples.in_motion)
    rows = rows[:: max(1, len(rows) // 2000)]
    v: Float[Array, " n"] = samples.velocity[rows, j]
    rigid: Array = np.zeros(len(rows))
    if np.any(model.robot.parameters):
        motion = (samples.position[rows], samples.velocity[rows], samples.acceleration[rows])
        rigid = inverse_dynamics(model.robot, *motion)[:, j]
    columns = np.column_stack([rigid, v, np.ones(len(rows))])
    size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    solution = np.linalg.lstsq(columns / size, samples.torque[rows, j], rcond=1e-8)[0] / size
    return bool(solution[2] * np.sum(v) >= 0.0)
