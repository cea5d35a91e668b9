"""Base parameters as a person would write them: in lengths and standard parameters.

The entries of the mapping B are rational in the arm's lengths, with a degree that units fix: an
inertia takes up a mass with a length squared, a first moment with a length. So B is computed at
many geometries, and each entry is sought as a polynomial over a product of lengths,

    B_kc(l) = sum_m c_m monomial_m(l) / denominator(l),

then confirmed at geometries the search has not seen. What is not found stays a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import parse_name
from taufit.dynamics.base_parameters import (
    BaseParameters,
    RegressorModel,
    random_states,
    term_inputs,
)
from taufit.dynamics.batch import regressor
from taufit.robot import Robot

# Relative error an expression may have at geometries it was not fitted to.
_CONFIRMED = 1e-9
# Geometries with all lengths changed, enough for every product of two of the most lengths that
# one factor may depend on.
_MOST_LENGTHS = 7
_RANDOM = 36


@dataclass(frozen=True, slots=True)
class Factor:
    """What multiplies a parameter: a sum of monomials of lengths over one monomial.

    Attributes:
        terms: (number, lengths multiplied), e.g. (2.0, ("d4",)) for 2 d4; an empty product is 1.
        over: Lengths multiplied in the denominator.
    """

    terms: tuple[tuple[float, tuple[str, ...]], ...]
    over: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.over and all(not product for _, product in self.terms)

    @property
    def is_negative(self) -> bool:
        return bool(self.terms) and all(number < 0.0 for number, _ in self.terms)

    def negated(self) -> Factor:
        return Factor(tuple((-number, product) for number, product in self.terms), self.over)

    def value(self, lengths: Mapping[str, float]) -> float:
        """The factor for given lengths [m]."""
        top = sum(
            number * float(np.prod([lengths[name] for name in product]))
            for number, product in self.terms
        )
        return top / float(np.prod([lengths[name] for name in self.over]))

    @property
    def text(self) -> str:
        """e.g. "2 d4", "(a3^2 + d4^2)", "1/a2"."""
        parts = []
        for number, product in self.terms:
            size = abs(number)
            written = _product(product)
            plain = f"{size:.10g}" if not written or size != 1.0 else ""
            parts.append((number < 0.0, " ".join(filter(None, (plain, written)))))
        out = ("-" if parts[0][0] else "") + parts[0][1]
        for negative, part in parts[1:]:
            out += (" - " if negative else " + ") + part
        if self.over:
            top = f"({out})" if len(parts) > 1 or " " in out else out
            bottom = _product(self.over)
            return f"{top}/({bottom})" if " " in bottom else f"{top}/{bottom}"
        return f"({out})" if len(parts) > 1 else out


@dataclass(frozen=True, slots=True)
class Expression:
    """One base parameter as a sum of factors times standard parameters.

    Attributes:
        name: Of the parameter kept for it.
        factors: (parameter, factor), the kept one first with factor 1.
    """

    name: str
    factors: tuple[tuple[str, Factor], ...]

    def coefficients(self, lengths: Mapping[str, float]) -> dict[str, float]:
        """Number in front of every parameter, for given lengths [m]."""
        return {name: factor.value(lengths) for name, factor in self.factors}

    @property
    def text(self) -> str:
        """e.g. "link_2.hx + a3 (link_3.m + link_4.m)"."""
        groups: dict[str, tuple[Factor, list[str]]] = {}
        for name, factor in self.factors:
            groups.setdefault(factor.text, (factor, []))[1].append(name)
        out = ""
        for factor, names in groups.values():
            size = (factor.negated() if factor.is_negative else factor).text
            sign = " - " if factor.is_negative else " + "
            if size == "1":
                part = sign.join(names)
            else:
                part = f"{size} ({' + '.join(names)})" if len(names) > 1 else f"{size} {names[0]}"
            out = f"{out}{sign}{part}" if out else part
        return out


def base_expressions(
    model: RegressorModel | Robot, base: BaseParameters, *, seed: int = 1
) -> tuple[Expression, ...]:
    """Every base parameter in lengths and standard parameters.

    The expressions evaluate to `base.mapping` at the robot's own lengths; those found in lengths
    do so at any others, as long as the arm keeps its structure.
    """
    finder = _Finder.sample(model, base, seed)
    combined = {int(i): k for k, i in enumerate(finder.columns)} if finder else {}
    degrees = _degrees(model, base.parameter_names)
    out = []
    for k, column in enumerate(base.columns):
        name = base.parameter_names[column]
        factors = [(name, Factor(((1.0, ()),)))]
        for c, other in enumerate(base.parameter_names):
            if c == column:
                continue
            value = float(base.mapping[k, c])
            factor = None
            if finder and int(column) in combined and c in combined:
                degree = (
                    degrees[column] - degrees[c] if column in degrees and c in degrees else None
                )
                factor = finder.factor(int(column), c, degree)
            if factor is None:
                factor = Factor(((_neat(value), ()),))
            if factor.terms and any(number != 0.0 for number, _ in factor.terms):
                factors.append((other, factor))
        out.append(Expression(name, tuple(factors)))
    return tuple(out)


def _degrees(model: RegressorModel | Robot, names: Sequence[str]) -> dict[int, int]:
    """Power of a length in each parameter's unit, next to a mass."""
    robot = model if isinstance(model, Robot) else model.robot
    out = {}
    for i, name in enumerate(names):
        kind, joint, what = parse_name(name)
        if kind == "link":
            out[i] = 0 if what == "m" else 1 if what.startswith("h") else 2
        elif what == "rotor":
            out[i] = 0 if robot.links[joint].is_prismatic else 2
    return out


@dataclass(frozen=True, slots=True)
class _Finder:
    """The mapping of the combined columns at many geometries, and the search through it.

    The first geometry is the arm itself, the next change one length each and tell which lengths
    an entry depends on, the rest change all; the last five of them are kept for confirmation.
    """

    lengths: tuple[str, ...]
    geometries: Float[Array, "g l"]
    columns: tuple[int, ...]
    mappings: dict[tuple[int, int], Float[Array, " g"]]
    # Monomials at every geometry and the least-squares solver for their numbers, made once.
    solvers: dict[Any, tuple[Float[Array, "g m"], Float[Array, "m f"]]] = field(
        default_factory=dict
    )

    @classmethod
    def sample(
        cls, model: RegressorModel | Robot, base: BaseParameters, seed: int
    ) -> _Finder | None:
        """None when the arm names no lengths or its structure hangs on their exact values."""
        robot = model if isinstance(model, Robot) else model.robot
        names = tuple(name for name, _ in robot.lengths)
        if not names or len(robot.length_slopes) != len(names):
            return None
        columns = tuple(int(i) for i in base.in_combination)
        chosen = set(base.columns.tolist())
        inside = np.isin(columns, list(chosen))
        kept, others = np.flatnonzero(inside).tolist(), np.flatnonzero(~inside).tolist()
        if not others:
            return None
        nominal = np.array([value for _, value in robot.lengths])
        together = np.exp(np.random.default_rng(seed).uniform(-0.5, 0.5, (_RANDOM, len(names))))
        one_by_one = np.ones((len(names), len(names))) + 0.37 * np.eye(len(names))
        geometries = nominal * np.vstack([np.ones(len(names)), one_by_one, together])
        n = max(40, -(-4 * len(columns) // robot.joints))
        states = random_states(robot, n, seed)
        values = np.empty((len(geometries), len(kept), len(others)))
        for g, geometry in enumerate(geometries):
            moved = robot.with_lengths(dict(zip(names, geometry, strict=True)))
            factors = _factors(_combined(model, moved, states, columns), kept, others)
            if factors is None:
                return None
            values[g] = factors
        mappings = {
            (columns[k], columns[c]): values[:, i, j]
            for i, k in enumerate(kept)
            for j, c in enumerate(others)
        }
        return cls(names, geometries, columns, mappings)

    def factor(self, kept: int, other: int, degree: int | None) -> Factor | None:
        """The simplest factor that holds at every geometry, or None."""
        values = self.mappings.get((kept, other))
        if values is None:
            return Factor(())
        size = float(np.abs(values).max())
        if size < 1e-9:
            return Factor(())
        if np.ptp(values) < _CONFIRMED * max(size, 1.0):
            return Factor(((_neat(float(np.median(values))), ()),))
        if degree is None:
            return None
        moved = np.abs(values[1 : 1 + len(self.lengths)] - values[0])
        used = tuple(
            name for name, change in zip(self.lengths, moved, strict=True) if change > 1e-9 * size
        )
        if len(used) > _MOST_LENGTHS:
            return None
        for power in range(3):
            top = degree + power
            if not 0 <= top <= 2:
                continue
            for over in combinations_with_replacement(used, power):
                terms = self._polynomial(values * self._products(over), used, top)
                if terms is not None:
                    return Factor(terms, over)
        return None

    def _products(self, product: tuple[str, ...]) -> Float[Array, " g"]:
        columns = [self.lengths.index(name) for name in product]
        return np.asarray(np.prod(self.geometries[:, columns], axis=1))

    def _polynomial(
        self, values: Float[Array, " g"], used: tuple[str, ...], degree: int
    ) -> tuple[tuple[float, tuple[str, ...]], ...] | None:
        """Numbers before the monomials of one degree, if they explain all geometries."""
        monomials = tuple(combinations_with_replacement(used, degree))
        if monomials not in self.solvers:
            matrix = np.stack([self._products(product) for product in monomials], 1)
            scale = np.linalg.norm(matrix, axis=0)
            self.solvers[monomials] = matrix, np.linalg.pinv(matrix[:-5] / scale) / scale[:, None]
        matrix, solver = self.solvers[monomials]
        numbers = solver @ values[:-5]
        allowed = _CONFIRMED * max(float(np.abs(values).max()), 1e-3)
        if np.abs(matrix @ numbers - values).max() > allowed:
            return None
        numbers = np.array([_neat(float(x)) for x in numbers])
        if np.abs(matrix @ numbers - values).max() > allowed:
            return None
        found = [
            (float(number), product)
            for number, product in zip(numbers, monomials, strict=True)
            if number != 0.0
        ]
        # Positive terms first: "(d4^2 - a3^2)" reads better than "(-a3^2 + d4^2)".
        return tuple(sorted(found, key=lambda term: term[0] < 0.0))


def _factors(
    matrix: Float[Array, "r c"], kept: list[int], others: list[int]
) -> Float[Array, "k o"] | None:
    """X with matrix[:, others] = matrix[:, kept] X, or None where there is none."""
    size = np.linalg.norm(matrix, axis=0)
    if np.any(size == 0.0):
        return None
    matrix = matrix / size
    solution, _, rank, _ = np.linalg.lstsq(matrix[:, kept], matrix[:, others], rcond=1e-10)
    left = matrix[:, kept] @ solution - matrix[:, others]
    if rank < len(kept) or np.abs(left).max() > 1e-8:
        return None
    return np.asarray(solution * size[others] / size[kept][:, None])


def _combined(
    model: RegressorModel | Robot, robot: Robot, states: Any, columns: tuple[int, ...]
) -> Float[Array, "r c"]:
    """The columns that combine, for another geometry: links and rotor inertias are enough."""
    q, v, a = states
    if isinstance(model, Robot) or max(columns) < robot.layout.size:
        matrix = regressor(robot, q, v, a)
    else:
        moved = replace(model, robot=robot)  # type: ignore[type-var]
        matrix = moved.regressor(q, v, a, **term_inputs(moved, v))
    return matrix[..., list(columns)].reshape(-1, len(columns))


def _neat(number: float) -> float:
    """The multiple of a quarter that rounding has moved, else the number itself."""
    nearest = round(4.0 * number) / 4.0
    return nearest if abs(number - nearest) < 1e-8 else number


def _product(names: tuple[str, ...]) -> str:
    """a a d as "a^2 d"."""
    out = []
    for name in dict.fromkeys(names):
        power = names.count(name)
        out.append(name if power == 1 else f"{name}^{power}")
    return " ".join(out)
