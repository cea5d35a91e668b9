"""Sum of terms with the interface of one term."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.input import TermInput
from taufit.terms.term import Kind, Parameter, ShapeParameter, State, Term

if TYPE_CHECKING:
    from taufit.robot import Robot


@dataclass(frozen=True, slots=True)
class TermSum(Term):
    """Sum of terms: columns = (columns of the first term | of the second | ...).

    Attributes:
        terms: Terms in the order of their parameters; at most one has memory.
    """

    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        names = [parameter.name for parameter in self.parameters]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise ValueError(f"two terms have a parameter {duplicates[0]!r}: leave one of them out")
        if sum(bool(term.memory) for term in self.terms) > 1:
            raise ValueError("two terms remember their path: a model has one such term at most")

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        raise TypeError("a sum has terms of several kinds: ask `kinds`")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for term in self.terms for parameter in term.parameters)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for term in self.terms for kind in term.kinds)

    @property
    def filtered_columns(self) -> tuple[int, ...]:
        out: list[int] = []
        first = 0
        for term in self.terms:
            out += [first + k for k in term.filtered_columns]
            first += len(term.parameters)
        return tuple(out)

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        return tuple(shape for term in self.terms for shape in term.shapes)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset[str]().union(*(term.needs for term in self.terms))

    @property
    def memory(self) -> tuple[float, ...]:
        return next((term.memory for term in self.terms if term.memory), ())

    @property
    def by_load(self) -> tuple[int, ...] | None:
        out: list[int] = []
        first = 0
        for term in self.terms:
            proportional = term.by_load
            if proportional is None:
                return None
            out += [first + k for k in proportional]
            first += len(term.parameters)
        return tuple(out)

    def typical_value(self, channel: str) -> float | None:
        readers = [term for term in self.terms if channel in term.needs]
        values = [term.typical_value(channel) for term in readers or self.terms[:1]]
        return next((value for value in values if value is not None), None)

    def _with_shape(self, shape: Float[Array, " s"]) -> Iterator[tuple[Term, Float[Array, " s"]]]:
        first = 0
        for term in self.terms:
            last = first + len(term.shapes)
            yield term, shape[first:last]
            first = last

    def start(self, shape: Float[Array, " s"]) -> State:
        # A term without memory has no entry in a traced program: () instead of None.
        return tuple(
            term.start(part) if term.memory else () for term, part in self._with_shape(shape)
        )

    def scan(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        columns, after = [], []
        for (term, part), before in zip(self._with_shape(shape), state, strict=True):
            values, last = term.advance(before if term.memory else None, inputs, part)
            columns.append(values)
            after.append(last if term.memory else ())
        return np.concatenate(columns, -1), tuple(after)

    def steady_state(self) -> TermSum:
        return TermSum(tuple(term.steady_state() for term in self.terms))

    def unbounded(self) -> TermSum:
        return TermSum(tuple(term.unbounded() for term in self.terms))

    def of_joint(self, joint: int) -> TermSum:
        return TermSum(tuple(term.of_joint(joint) for term in self.terms))

    def absent(self, joint: int) -> tuple[str, ...]:
        return tuple(name for term in self.terms for name in term.absent(joint))

    def nominal(self, robot: Robot) -> Float[Array, "j k"]:
        return np.concatenate([term.nominal(robot) for term in self.terms], axis=1)

    def only(self, *kinds: Kind) -> TermSum:
        return TermSum(tuple(term.only(*kinds) for term in self.terms))


def sum_of(*terms: Term | None) -> Term:
    """Sum of terms: a single term itself, `NoFriction` for none."""
    from taufit.terms.friction.no_friction import NoFriction

    all_terms: list[Term] = []
    for term in terms:
        all_terms += term.terms if isinstance(term, TermSum) else [] if term is None else [term]
    nonempty = [term for term in all_terms if term.parameters] or all_terms[:1] or [NoFriction()]
    return nonempty[0] if len(nonempty) == 1 else TermSum(tuple(nonempty))


def terms_in(term: Term) -> tuple[Term, ...]:
    """Terms of a sum; any other term as a tuple of one."""
    return term.terms if isinstance(term, TermSum) else (term,)
