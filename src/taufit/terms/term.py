"""The contract of a term: torque of one joint, linear in its parameters once its shapes are known.

    tau = columns(inputs, shape) @ coefficients                                 (one joint)

It says in `needs` which inputs it reads, and in `kind` what the torque does with energy. A term
with memory is a recursion over samples,

    columns, state = advance(state, inputs, shape),         state = start(shape) at first,

and may be cut anywhere: a tile's border or a stream's chunk changes nothing.

Shapes (exponents, Stribeck velocities) are positive numbers found by variable projection. Columns
are analytic in the shape, so derivatives with respect to it come exactly from a complex step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.input import MOTION, TermInput

if TYPE_CHECKING:
    from typing import Self

    from taufit.robot import Robot


class Kind(StrEnum):
    """Energy behaviour of a term.

    Inertial torque follows acceleration. Conservative torque follows position alone and does no
    work over a closed path. Dissipative torque takes energy at steady speed. Constant torque is the
    same everywhere.
    """

    INERTIAL = "inertial"
    CONSERVATIVE = "conservative"
    DISSIPATIVE = "dissipative"
    CONSTANT = "constant"


INERTIAL, CONSERVATIVE, DISSIPATIVE, CONSTANT = Kind


class Group(StrEnum):
    """Role of a parameter, for priors and for whoever reads one part of friction.

    Parameters of a group have one prior scale per joint: `LEVEL` and `BREAKAWAY` are torques at low
    speed, `DRAG` grows with speed, `LOAD` with the torque the gear carries, `MEMORY` builds up
    along the path, `WAVE` comes back with the angle, `SLOPE` multiplies a temperature.
    """

    NONE = ""
    LEVEL = "level"
    BREAKAWAY = "breakaway"
    DRAG = "drag"
    LOAD = "load"
    MEMORY = "memory"
    WAVE = "wave"
    SLOPE = "slope"


LEVEL, BREAKAWAY, DRAG = Group.LEVEL, Group.BREAKAWAY, Group.DRAG
LOAD, MEMORY, WAVE, SLOPE = Group.LOAD, Group.MEMORY, Group.WAVE, Group.SLOPE


@dataclass(frozen=True, slots=True)
class Parameter:
    """One linear coefficient of a term.

    Attributes:
        name: e.g. "coulomb"; theta has joint_3.coulomb.
        nonnegative: Whether physics wants it >= 0.
        unit: In SI, for reports.
        group: Its role.
        optional: Name of the set of parameters that data may drop together; "" for one that stays.
        power: Of speed, for a drag that is a power of it; else 0.
        modifies: The parameter that it changes (with temperature or load); it goes first.
    """

    name: str
    nonnegative: bool = False
    unit: str = "N m"
    group: Group = Group.NONE
    optional: str = ""
    power: int = 0
    modifies: str = ""


@dataclass(frozen=True, slots=True)
class ShapeParameter:
    """One nonlinear, positive parameter of a joint's term.

    Attributes:
        name: e.g. "alpha".
        start: Grid of starting values for the outer search.
        lower: Smallest value that makes sense.
        upper: Largest value that makes sense.
        unit: In SI, for reports.
    """

    name: str
    start: tuple[float, ...]
    lower: float
    upper: float
    unit: str = ""


# What a term remembers between two calls of `advance`: its own business, None without memory.
State = Any
VELOCITY = frozenset({"velocity"})
# Of a joint where nothing else is known [degC].
ROOM_TEMPERATURE = 25.0


class Term:
    """Torque of one joint; every joint has its own coefficients, shape and state.

    A term without memory has only `kind`, `parameters` and `at` to write. One with memory writes
    `memory`, `start`, `scan` and `steady` instead of `at`.
    """

    __slots__ = ()

    kind: ClassVar[Kind]
    # Terms of one block stand side by side in theta, joint by joint.
    block: ClassVar[str] = "drive"
    # Where it acts: at the motors, so through C' where these are coupled, or at the joints.
    at_motor: ClassVar[bool] = True
    # Whether columns are linear in the filtered motion and so need no low-pass of their own. All
    # others are made from unfiltered velocity and low-passed afterwards, as the torque was.
    filtered: ClassVar[bool] = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The linear coefficients, in column order."""
        raise NotImplementedError

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of each parameter."""
        return (self.kind,) * len(self.parameters)

    @property
    def at_motors(self) -> tuple[bool, ...]:
        """Of each parameter: whether its torque acts at the motor."""
        return (self.at_motor,) * len(self.parameters)

    @property
    def filtered_columns(self) -> tuple[int, ...]:
        """Columns that need no low-pass of their own."""
        return tuple(range(len(self.parameters))) if self.filtered else ()

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        """The nonlinear parameters; empty for a linear term."""
        return ()

    @property
    def needs(self) -> frozenset[str]:
        """The parts of `TermInput` it reads: motion, load, travel, or a recorded channel."""
        return VELOCITY

    @property
    def memory(self) -> tuple[float, ...]:
        """Displacements over which its memory fades, shortest first; empty without memory."""
        return ()

    @property
    def orders(self) -> tuple[float, ...]:
        """Waves per radian whose sine and cosine its columns are, in pairs; empty for no waves."""
        return ()

    @property
    def by_load(self) -> tuple[int, ...] | None:
        """Columns that are |load| times what they are at a load of one; no other depends on it.

        None where that is not so: then all are made anew for every load.
        """
        return None if "load" in self.needs else ()

    def typical_value(self, channel: str) -> float | None:
        """Value of a channel at which coefficients are as they stand; None where there is none.

        Taken where a torque is wanted and nothing was recorded.
        """
        return ROOM_TEMPERATURE if channel == "temperature" else None

    def at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Columns that depend on the inputs of the moment alone."""
        raise NotImplementedError

    def scan(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """`advance`, for inputs that know who reads them."""
        return self.at(inputs, shape), state

    def start(self, shape: Float[Array, " s"]) -> State:
        """The state before the first sample."""
        return None

    def advance(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """Torque per unit of each parameter at the next n samples, and the state after them.

        Args:
            state: From `start` or the call before.
            inputs: Of the joint.
            shape: One per entry of `shapes`; may be complex for derivatives.
        """
        return self.scan(state, inputs.for_reader(self), shape)

    def columns(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Columns of a whole run: `advance` from `start`."""
        return self.advance(self.start(shape), inputs, shape)[0]

    def steady(self) -> Term:
        """The same parameters and shapes without memory: the torque at constant speed."""
        return self

    def of_joint(self, joint: int) -> Term:
        """The same for one joint, where joints differ in more than coefficients and shape."""
        return self

    def absent(self, joint: int) -> tuple[str, ...]:
        """Names of parameters that a joint does not have: held at zero."""
        return ()

    def nominal(self, robot: Robot) -> Float[Array, "j k"]:
        """Coefficients that the description of the arm suggests: centre of a fit's prior."""
        return np.zeros((robot.joints, len(self.parameters)))

    def of_robot(self, robot: Robot) -> Term:
        """The same on another description of the arm, where settings of the term come from it."""
        return self

    def only(self, *kinds: Kind) -> Term:
        """The same parameters, with zero columns for all that is not of these kinds."""
        return self if self.kind in kinds else ZeroTerm(self)


@dataclass(frozen=True, slots=True)
class ZeroTerm(Term):
    """A term's parameters with columns of zero.

    Attributes:
        term: The term that is left out.
    """

    term: Term

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return self.term.kind

    @property
    def at_motor(self) -> bool:  # type: ignore[override]
        return self.term.at_motor

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.term.parameters

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        return self.term.shapes

    def at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        if not self.parameters:
            return np.empty((len(inputs), 0))
        return np.stack([0.0 * inputs.velocity for _ in self.parameters], -1)

    def only(self, *kinds: Kind) -> Self:
        return self


def steady_friction_model(term: Term) -> Term:
    """Friction alone at constant speed, whatever else comes with it."""
    return term.steady().only(DISSIPATIVE)


def level_columns(
    term: Term, velocity: Float[Array, " n"], shape: Float[Array, " s"]
) -> Float[Array, "n k"]:
    """Columns of `level` at a speed, without load.

    Channels are at their usual values.
    """
    friction = steady_friction_model(term)
    zeros = np.zeros_like(velocity)
    inputs = TermInput(
        velocity, position=zeros, load=zeros, channels=typical_channels(term, velocity)
    )
    return friction.columns(inputs, shape)


def typical_channels(term: Term, reference: Array) -> dict[str, Array]:
    """Channels that a term reads at their usual values, as many as `reference` has entries."""
    values = {name: term.typical_value(name) for name in {"temperature", *term.needs} - {*MOTION}}
    return {
        name: np.full_like(reference, value)
        for name, value in sorted(values.items())
        if value is not None
    }


def start_shape(term: Term) -> Float[Array, " s"]:
    """A shape to begin with: the middle of each starting grid."""
    return np.array([shape.start[len(shape.start) // 2] for shape in term.shapes])


def needs(term: Term | None, part: str) -> bool:
    """Whether a term reads a part of its input; no term reads nothing."""
    return term is not None and part in term.needs


def has_memory(term: Term | None) -> bool:
    """Whether a term depends on the path that led to a sample."""
    return term is not None and bool(term.memory)
