"""Any friction model beside the gravity compensators of some joints.

A compensator is no friction: it gives back all the energy it takes. But like ripple it is a torque
of one joint's angle, linear in its coefficients, and so comes the same way to everybody who needs
the torque: fit, prediction, payload, exports, twin. `level` leaves it out, for whoever asks what
friction alone takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.core.parameters import joint_parameter
from taufit.robot.compensator import Compensator
from taufit.terms.friction.input import FrictionInput
from taufit.terms.friction.model import Term, level
from taufit.terms.friction.wrapper import Wrapper

TERMS = {
    "spring": (Term("balance_rate", unit="N/m"), Term("balance_force", unit="N")),
    "gas": (Term("balance_gas", unit="N"),),
    "unknown": (Term("balance_sin"), Term("balance_cos")),
}


def balance_columns(own: Compensator, angle: Any) -> list[Any]:
    """Torque per unit of each of a compensator's terms, in the order of `TERMS`.

    spring: k (l - l0) dl/dx = k a b sin x + F dl/dx, so rate and force are two linear terms. gas:
    F0 (1 + (l - l_zero) / g)^-n dl/dx. unknown: sin q and cos q.
    """
    if own.kind == "unknown":
        return [np.sin(angle), np.cos(angle)]
    a, b = own.base_arm, own.link_arm
    x = angle + own.angle
    sine = np.sin(x)
    length = np.sqrt((a * a + b * b) - (2.0 * a * b) * np.cos(x))
    lever = (a * b) * sine / length
    if own.kind == "spring":
        return [(a * b) * sine, lever]
    volume = 1.0 + (length - own.length_at_zero) / own.gas_length
    return [np.exp(-own.exponent * np.log(volume)) * lever]


@dataclass(frozen=True, slots=True)
class Compensated(Wrapper):
    """f(v, ...) of every joint, and the compensators' torque of the joints that have one.

    Joints have different compensators, so columns are those of `of_joint(k)`. All have the same
    terms; those of a compensator that a joint does not have are zero there.

    Attributes:
        model: Friction without them.
        compensators: At most one per joint.
    """

    compensators: tuple[Compensator, ...] = ()

    def __post_init__(self) -> None:
        joints = [one.joint for one in self.compensators]
        if len(set(joints)) < len(joints):
            raise ValueError("a joint has one compensator at most")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds that occur, in a fixed order."""
        return tuple(kind for kind in TERMS if any(c.kind == kind for c in self.compensators))

    @property
    def own_terms(self) -> tuple[Term, ...]:
        return tuple(term for kind in self.kinds for term in TERMS[kind])

    @property
    def own_needs(self) -> frozenset[str]:
        return frozenset({"position"}) if self.compensators else frozenset()

    def level(self) -> Compensated:
        return _Level(level(self.model), self.compensators)

    def of_joint(self, joint: int) -> Compensated:
        return _OfJoint(self.model, self.compensators, joint)

    def changed(
        self, inner: Float[Array, "n k"], inputs: FrictionInput, own: Float[Array, " o"]
    ) -> Float[Array, "n m"]:
        if not self.compensators:
            return inner
        return np.concatenate([inner, np.stack(self._balance(inputs), -1)], -1)

    def _balance(self, inputs: FrictionInput) -> list[Any]:
        raise TaufitError("compensators differ from joint to joint: ask `of_joint` for columns.")


@dataclass(frozen=True, slots=True)
class _OfJoint(Compensated):
    """That of one joint."""

    number: int = 0

    def of_joint(self, joint: int) -> Compensated:
        return replace(self, number=joint)

    def _balance(self, inputs: FrictionInput) -> list[Any]:
        own = next((one for one in self.compensators if one.joint == self.number), None)
        out = []
        for kind in self.kinds:
            if own is not None and own.kind == kind:
                out += balance_columns(own, inputs.position)
            else:
                out += _nothing(kind, inputs.velocity)
        return out


@dataclass(frozen=True, slots=True)
class _Level(Compensated):
    """Friction alone: compensators take nothing on the whole."""

    @property
    def own_needs(self) -> frozenset[str]:
        return frozenset()

    def of_joint(self, joint: int) -> Compensated:
        return self

    def _balance(self, inputs: FrictionInput) -> list[Any]:
        return [zero for kind in self.kinds for zero in _nothing(kind, inputs.velocity)]


def _nothing(kind: str, like: Any) -> list[Any]:
    """Columns of a compensator that is not there."""
    return [0.0 * like for _ in TERMS[kind]]


def compensated(friction: Any) -> Compensated | None:
    """The `Compensated` in a friction model, whatever is around it."""
    while friction is not None and not isinstance(friction, Compensated):
        friction = getattr(friction, "model", None)
    return friction if friction is not None and friction.compensators else None


def absent_terms(friction: Any, joints: int) -> tuple[str, ...]:
    """Names of compensators' terms at joints that have no such compensator."""
    found = compensated(friction)
    if found is None:
        return ()
    kinds = {one.joint: one.kind for one in found.compensators}
    return tuple(
        joint_parameter(k, term.name)
        for k in range(joints)
        for kind in found.kinds
        if kinds.get(k) != kind
        for term in TERMS[kind]
    )


def balance_torque(
    friction: Any, coefficients: Float[Array, "j k"]
) -> dict[int, Callable[[Float[Array, " n"]], Float[Array, " n"]]]:
    """The compensators' torque over the joint's angle, by joint [N m]."""
    found = compensated(friction)
    if found is None:
        return {}
    names = [term.name for term in friction.terms]
    out = {}
    for own in found.compensators:
        values = [coefficients[own.joint, names.index(term.name)] for term in TERMS[own.kind]]
        out[own.joint] = _torque(own, np.array(values))
    return out


def _torque(
    own: Compensator, values: Float[Array, " t"]
) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
    return lambda angle: np.stack(balance_columns(own, angle), -1) @ values
