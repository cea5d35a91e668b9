"""Interface of a term: torque of one joint, linear in its coefficients for given shapes.

    tau = columns(inputs, shape) @ coefficients                                 (one joint)

`needs` lists the inputs it reads, `kind` its energy behaviour. A term with memory is a recursion
over samples,

    columns, state = advance(state, inputs, shape),         state = start(shape) at first,

and may be split anywhere without changing the result.

Shapes (exponents, Stribeck velocities) are positive numbers fitted by variable projection. Columns
are analytic in the shape, so complex steps give exact derivatives.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.input import MOTION, TermInput

if TYPE_CHECKING:
    from typing import Self

    from taufit.robot import Robot


class Kind(StrEnum):
    """Energy behaviour of a term.

    Inertial torque depends on acceleration. Conservative torque depends on position alone and does
    no work over a closed path. Dissipative torque removes energy at steady speed.
    """

    INERTIAL = "inertial"
    CONSERVATIVE = "conservative"
    DISSIPATIVE = "dissipative"
    CONSTANT = "constant"


INERTIAL, CONSERVATIVE, DISSIPATIVE, CONSTANT = Kind


class Group(StrEnum):
    """Role of a parameter, for priors and for selecting parts of friction.

    Parameters of a group have one prior scale per joint: `LEVEL` and `BREAKAWAY` are friction at
    low speed, `DRAG` is viscous friction, `LOAD` load-dependent friction, `MEMORY` pre-sliding
    friction, `WAVE` ripple, `SLOPE` a temperature coefficient.
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
    """Linear coefficient of a term.

    Attributes:
        name: Name, e.g. "coulomb"; theta has joint_3.coulomb.
        nonnegative: Whether it must be >= 0 physically.
        unit: SI unit, for reports.
        group: Role of the parameter.
        optional: Name of the set of parameters that may be dropped together; "" for a permanent
            one.
        power: Exponent of speed for viscous terms; else 0.
        modifies: Parameter that it modifies (with temperature or load); that one comes first.
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
    """Nonlinear, positive parameter of a joint's term.

    Attributes:
        name: Name, e.g. "alpha".
        start: Grid of starting values for the search.
        lower: Smallest plausible value.
        upper: Largest plausible value.
        unit: SI unit, for reports.
    """

    name: str
    start: tuple[float, ...]
    lower: float
    upper: float
    unit: str = ""


# State of a term between two calls of `advance`; None without memory.
State = Any
VELOCITY = frozenset({"velocity"})
# Joint temperature assumed if unknown [degC].
ROOM_TEMPERATURE = 25.0


class Term:
    """Torque of one joint; every joint has separate coefficients, shape and state.

    A term without memory implements `kind`, `parameters` and `columns_at`. One with memory
    implements `memory`, `start`, `scan` and `steady_state` instead of `columns_at`.
    """

    __slots__ = ()

    kind: ClassVar[Kind]
    # Block of theta in which the term's parameters are, joint by joint.
    block: ClassVar[str] = "drive"
    # Whether it acts at the motors (through C' if these are coupled) or at the joints.
    at_motor: ClassVar[bool] = True
    # Whether columns are linear in the filtered motion and need no further low-pass. All others are
    # computed from unfiltered velocity and low-passed afterwards, like the torque.
    filtered: ClassVar[bool] = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Linear coefficients, in column order."""
        raise NotImplementedError

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each parameter."""
        return (self.kind,) * len(self.parameters)

    @property
    def place_rows(self) -> tuple[tuple[float, ...], ...]:
        """Factors of the joint speeds at the place of each joint; empty at motors and joints."""
        return ()

    def reach(self, coupling: Float[Array, "j j"]) -> Float[Array, "j j"]:
        """Matrix R of the places where it acts: it reads the motion R q and its torque is R' f.

        Args:
            coupling: Motor positions from those of the joints.
        """
        if self.place_rows:
            return np.array(self.place_rows)
        return coupling if self.at_motor else np.eye(len(coupling))

    @property
    def filtered_columns(self) -> tuple[int, ...]:
        """Columns that need no further low-pass."""
        return tuple(range(len(self.parameters))) if self.filtered else ()

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        """Shape parameters; empty for a linear term."""
        return ()

    @property
    def needs(self) -> frozenset[str]:
        """Parts of `TermInput` that it reads: motion, load, travel, or a recorded channel."""
        return VELOCITY

    @property
    def memory(self) -> tuple[float, ...]:
        """Displacements over which its memory decays, shortest first; empty without memory."""
        return ()

    @property
    def orders(self) -> tuple[float, ...]:
        """Waves per radian of its sine and cosine columns, in pairs; empty without waves."""
        return ()

    @property
    def by_load(self) -> tuple[int, ...] | None:
        """Columns proportional to |load|, while no other column depends on load.

        None if load enters differently: then all columns are recomputed for every load.
        """
        return None if "load" in self.needs else ()

    def typical_value(self, channel: str) -> float | None:
        """Reference value of a channel, at which coefficients apply; None if there is none.

        Used to predict torque without a recorded channel.
        """
        return ROOM_TEMPERATURE if channel == "temperature" else None

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Columns that depend only on the current inputs."""
        raise NotImplementedError

    def scan(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """Implementation of `advance`, on inputs labelled with the reading term."""
        return self.columns_at(inputs, shape), state

    def start(self, shape: Float[Array, " s"]) -> State:
        """State before the first sample."""
        return None

    def advance(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """Torque per unit of each parameter at the next n samples, and the state after them.

        Args:
            state: State from `start` or the previous call.
            inputs: Inputs of the joint.
            shape: Shape parameters, one per entry of `shapes`; may be complex for derivatives.
        """
        return self.scan(state, inputs.for_reader(self), shape)

    def columns(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Columns of a complete run: `advance` from `start`."""
        return self.advance(self.start(shape), inputs, shape)[0]

    def steady_state(self) -> Term:
        """Term with equal parameters and shapes without memory: torque at constant speed."""
        return self

    def restrict_to_range(self, lower: tuple[float, ...], upper: tuple[float, ...]) -> Term:
        """Term for positions in a range, one per joint, if it does not extrapolate."""
        return self

    def unbounded(self) -> Term:
        """Term with equal columns within a range of its inputs, for which they are not limited."""
        return self

    def contains(self, position: Float[Array, "n j"]) -> bool:
        """Whether its range contains all these positions."""
        return True

    def of_joint(self, joint: int) -> Term:
        """Term of one joint, if joints differ in more than coefficients and shape."""
        return self

    def absent(self, joint: int) -> tuple[str, ...]:
        """Names of parameters that a joint does not have; fixed at zero."""
        return ()

    def nominal(self, robot: Robot) -> Float[Array, "j k"]:
        """Coefficients from the robot description: mean of a fit's prior."""
        return np.zeros((robot.joints, len(self.parameters)))

    def of_robot(self, robot: Robot) -> Term:
        """Term for another robot description, if its settings depend on it."""
        return self

    def only(self, *kinds: Kind) -> Term:
        """Term with equal parameters and zero columns for all other kinds."""
        return self if self.kind in kinds else ZeroTerm(self)


@dataclass(frozen=True, slots=True)
class ZeroTerm(Term):
    """Parameters of a term with zero columns.

    Attributes:
        term: Replaced term.
    """

    term: Term

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return self.term.kind

    @property
    def at_motor(self) -> bool:  # type: ignore[override]
        return self.term.at_motor

    @property
    def place_rows(self) -> tuple[tuple[float, ...], ...]:
        return self.term.place_rows

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.term.parameters

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        return self.term.shapes

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        if not self.parameters:
            return np.empty((len(inputs), 0))
        return np.stack([0.0 * inputs.velocity for _ in self.parameters], -1)

    def only(self, *kinds: Kind) -> Self:
        return self


def steady_friction_model(term: Term) -> Term:
    """Dissipative part of a term at constant speed."""
    return term.steady_state().only(DISSIPATIVE)


def level_columns(
    term: Term, velocity: Float[Array, " n"], shape: Float[Array, " s"]
) -> Float[Array, "n k"]:
    """Friction columns at constant speed, without load and with channels at typical values."""
    friction = steady_friction_model(term)
    zeros = np.zeros_like(velocity)
    inputs = TermInput(
        velocity, position=zeros, load=zeros, channels=typical_channels(term, velocity)
    )
    return friction.columns(inputs, shape)


def typical_channels(term: Term, reference: Array) -> dict[str, Array]:
    """Channels that a term reads, at typical values, in the shape of `reference`."""
    values = {name: term.typical_value(name) for name in {"temperature", *term.needs} - {*MOTION}}
    return {
        name: np.full_like(reference, value)
        for name, value in sorted(values.items())
        if value is not None
    }


def start_shape(term: Term) -> Float[Array, " s"]:
    """Initial shape: the middle of each starting grid."""
    return np.array([shape.start[len(shape.start) // 2] for shape in term.shapes])


def needs(term: Term | None, part: str) -> bool:
    """Whether a term reads a part of its input; False for None."""
    return term is not None and part in term.needs


def has_memory(term: Term | None) -> bool:
    """Whether a term depends on previous samples."""
    return term is not None and bool(term.memory)
