"""Symbolic expressions of base parameters in lengths and standard parameters.

The entries of the mapping B are rational in the robot's lengths, with a degree given by units: a
mass contributes to an inertia with a length squared, to a first moment with a length. B is computed
at many geometries, and each entry is fitted as a polynomial over a product of lengths,

    B_kc(l) = sum_m c_m monomial_m(l) / denominator(l),

then validated at further geometries. Entries without such an expression stay numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import parse_name
from taufit.dynamics.base_parameters import (
    BaseParameters,
    RegressorModel,
    random_states,
    term_inputs,
)
from taufit.dynamics.batch import regressor
from taufit.robot import Robot

# Largest relative error of an expression at validation geometries.
_TOLERANCE = 1e-9
# Geometries with all lengths changed, enough for every product of two of the most lengths that
# one factor may depend on.
_MAX_LENGTHS = 7
_RANDOM_GEOMETRIES = 36


@dataclass(frozen=True, slots=True)
class LengthFactor:
    """Factor of a parameter: a sum of monomials of lengths over one monomial.

    Attributes:
        terms: (number, lengths multiplied), e.g. (2.0, ("d4",)) for 2 d4; an empty product is 1.
        denominator: Lengths multiplied in the denominator.
    """

    terms: tuple[tuple[float, tuple[str, ...]], ...]
    denominator: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.denominator and all(not product for _, product in self.terms)

    @property
    def is_negative(self) -> bool:
        return bool(self.terms) and all(number < 0.0 for number, _ in self.terms)

    def negate(self) -> LengthFactor:
        return LengthFactor(
            tuple((-number, product) for number, product in self.terms), self.denominator
        )

    def value(self, lengths: Mapping[str, float]) -> float:
        """Value for given lengths [m]."""
        numerator = sum(
            number * float(np.prod([lengths[name] for name in product]))
            for number, product in self.terms
        )
        return numerator / float(np.prod([lengths[name] for name in self.denominator]))

    @property
    def text(self) -> str:
        """Text, e.g. "2 d4", "(a3^2 + d4^2)", "1/a2"."""
        parts = []
        for number, product in self.terms:
            size = abs(number)
            product_text = _product_text(product)
            number_text = f"{size:.10g}" if not product_text or size != 1.0 else ""
            parts.append((number < 0.0, " ".join(filter(None, (number_text, product_text)))))
        out = ("-" if parts[0][0] else "") + parts[0][1]
        for negative, part in parts[1:]:
            out += (" - " if negative else " + ") + part
        if self.denominator:
            numerator = f"({out})" if len(parts) > 1 or " " in out else out
            bottom = _product_text(self.denominator)
            return f"{numerator}/({bottom})" if " " in bottom else f"{numerator}/{bottom}"
        return f"({out})" if len(parts) > 1 else out


@dataclass(frozen=True, slots=True)
class BaseExpression:
    """Base parameter as a sum of factors times standard parameters.

    Attributes:
        name: Name of the parameter that represents it.
        factors: (parameter, factor), the representing one first with factor 1.
    """

    name: str
    factors: tuple[tuple[str, LengthFactor], ...]

    def coefficients(self, lengths: Mapping[str, float]) -> dict[str, float]:
        """Coefficient of every parameter, for given lengths [m]."""
        return {name: factor.value(lengths) for name, factor in self.factors}

    @property
    def text(self) -> str:
        """Text, e.g. "link_2.hx + a3 (link_3.m + link_4.m)"."""
        groups: dict[str, tuple[LengthFactor, list[str]]] = {}
        for name, factor in self.factors:
            groups.setdefault(factor.text, (factor, []))[1].append(name)
        out = ""
        for factor, names in groups.values():
            size = (factor.negate() if factor.is_negative else factor).text
            sign = " - " if factor.is_negative else " + "
            if size == "1":
                part = sign.join(names)
            else:
                part = f"{size} ({' + '.join(names)})" if len(names) > 1 else f"{size} {names[0]}"
            out = f"{out}{sign}{part}" if out else part
        return out


def base_expressions(
    model: RegressorModel | Robot, base: BaseParameters, *, seed: int = 1
) -> tuple[BaseExpression, ...]:
    """Expressions of every base parameter in lengths and standard parameters.

    The expressions evaluate to `base.mapping` at the robot's lengths; symbolic ones are valid at
    any lengths, as long as the robot keeps its structure.
    """
    finder = _ExpressionFinder.sample(model, base, seed)
    combined = {int(i): k for k, i in enumerate(finder.columns)} if finder else {}
    degrees = _degrees(model, base.parameter_names)
    out = []
    for k, column in enumerate(base.columns):
        name = base.parameter_names[column]
        factors = [(name, LengthFactor(((1.0, ()),)))]
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
                factor = LengthFactor(((_round_to_quarter(value), ()),))
            if factor.terms and any(number != 0.0 for number, _ in factor.terms):
                factors.append((other, factor))
        out.append(BaseExpression(name, tuple(factors)))
    return tuple(out)


def _degrees(model: RegressorModel | Robot, names: Sequence[str]) -> dict[int, int]:
    """Power of length in each parameter's unit, besides mass."""
    robot = model if isinstance(model, Robot) else model.robot
    out = {}
    for i, name in enumerate(names):
        kind, joint, quantity = parse_name(name)
        if kind == "link":
            out[i] = 0 if quantity == "m" else 1 if quantity.startswith("h") else 2
        elif quantity == "rotor":
            out[i] = 0 if robot.is_prismatic[joint] else 2
    return out


@dataclass(frozen=True, slots=True)
class _ExpressionFinder:
    """Mapping of the combined columns at many geometries, and search for expressions.

    The first geometry is the robot itself, the next change one length each to find the lengths an
    entry depends on, the others change all; the last five are used for validation.
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
    ) -> _ExpressionFinder | None:
        """Sample geometries; None without named lengths or if the structure depends on exact
        values.
        """
        robot = model if isinstance(model, Robot) else model.robot
        names = tuple(name for name, _ in robot.lengths)
        if not names or len(robot.length_slopes) != len(names):
            return None
        columns = tuple(int(i) for i in base.in_combination)
        base_columns = set(base.columns.tolist())
        is_base = np.isin(columns, list(base_columns))
        base_positions, other_positions = (
            np.flatnonzero(is_base).tolist(),
            np.flatnonzero(~is_base).tolist(),
        )
        if not other_positions:
            return None
        nominal = np.array([value for _, value in robot.lengths])
        random_factors = np.exp(
            np.random.default_rng(seed).uniform(-0.5, 0.5, (_RANDOM_GEOMETRIES, len(names)))
        )
        single_factors = np.ones((len(names), len(names))) + 0.37 * np.eye(len(names))
        geometries = nominal * np.vstack([np.ones(len(names)), single_factors, random_factors])
        n = max(40, -(-4 * len(columns) // robot.joints))
        states = random_states(robot, n, seed)
        values = np.empty((len(geometries), len(base_positions), len(other_positions)))
        for g, geometry in enumerate(geometries):
            changed_robot = robot.with_lengths(dict(zip(names, geometry, strict=True)))
            factors = _factors(
                _combination_columns(model, changed_robot, states, columns),
                base_positions,
                other_positions,
            )
            if factors is None:
                return None
            values[g] = factors
        mappings = {
            (columns[k], columns[c]): values[:, i, j]
            for i, k in enumerate(base_positions)
            for j, c in enumerate(other_positions)
        }
        return cls(names, geometries, columns, mappings)

    def factor(self, column: int, other: int, degree: int | None) -> LengthFactor | None:
        """Simplest factor that is valid at every geometry, or None."""
        values = self.mappings.get((column, other))
        if values is None:
            return LengthFactor(())
        size = float(np.abs(values).max())
        if size < 1e-9:
            return LengthFactor(())
        if np.ptp(values) < _TOLERANCE * max(size, 1.0):
            return LengthFactor(((_round_to_quarter(float(np.median(values))), ()),))
        if degree is None:
            return None
        changes = np.abs(values[1 : 1 + len(self.lengths)] - values[0])
        relevant = tuple(
            name for name, change in zip(self.lengths, changes, strict=True) if change > 1e-9 * size
        )
        if len(relevant) > _MAX_LENGTHS:
            return None
        for power in range(3):
            numerator_degree = degree + power
            if not 0 <= numerator_degree <= 2:
                continue
            for denominator in combinations_with_replacement(relevant, power):
                terms = self._polynomial(
                    values * self._products(denominator), relevant, numerator_degree
                )
                if terms is not None:
                    return LengthFactor(terms, denominator)
        return None

    def _products(self, product: tuple[str, ...]) -> Float[Array, " g"]:
        columns = [self.lengths.index(name) for name in product]
        return np.asarray(np.prod(self.geometries[:, columns], axis=1))

    def _polynomial(
        self, values: Float[Array, " g"], relevant: tuple[str, ...], degree: int
    ) -> tuple[tuple[float, tuple[str, ...]], ...] | None:
        """Coefficients of the monomials of one degree, if they explain all geometries."""
        monomials = tuple(combinations_with_replacement(relevant, degree))
        if monomials not in self.solvers:
            matrix = np.stack([self._products(product) for product in monomials], 1)
            scale = np.linalg.norm(matrix, axis=0)
            self.solvers[monomials] = matrix, np.linalg.pinv(matrix[:-5] / scale) / scale[:, None]
        matrix, solver = self.solvers[monomials]
        numbers = solver @ values[:-5]
        tolerance = _TOLERANCE * max(float(np.abs(values).max()), 1e-3)
        if np.abs(matrix @ numbers - values).max() > tolerance:
            return None
        numbers = np.array([_round_to_quarter(float(x)) for x in numbers])
        if np.abs(matrix @ numbers - values).max() > tolerance:
            return None
        nonzero = [
            (float(number), product)
            for number, product in zip(numbers, monomials, strict=True)
            if number != 0.0
        ]
        # Positive terms first: "(d4^2 - a3^2)" reads better than "(-a3^2 + d4^2)".
        return tuple(sorted(nonzero, key=lambda term: term[0] < 0.0))


def _factors(
    matrix: Float[Array, "r c"], independent: list[int], dependent: list[int]
) -> Float[Array, "k o"] | None:
    """Solution X of matrix[:, dependent] = matrix[:, independent] X, or None."""
    size = np.linalg.norm(matrix, axis=0)
    if np.any(size == 0.0):
        return None
    matrix = matrix / size
    solution, _, rank, _ = np.linalg.lstsq(
        matrix[:, independent], matrix[:, dependent], rcond=1e-10
    )
    residual = matrix[:, independent] @ solution - matrix[:, dependent]
    if rank < len(independent) or np.abs(residual).max() > 1e-8:
        return None
    return np.asarray(solution * size[dependent] / size[independent][:, None])


def _combination_columns(
    model: RegressorModel | Robot, robot: Robot, states: Any, columns: tuple[int, ...]
) -> Float[Array, "r c"]:
    """Columns in combinations, for another geometry: links and rotor inertias."""
    q, v, a = states
    if isinstance(model, Robot) or max(columns) < robot.layout.size:
        matrix = regressor(robot, q, v, a)
    else:
        changed_model = replace(model.unbounded(), robot=robot)  # type: ignore[type-var]
        matrix = changed_model.regressor(q, v, a, **term_inputs(changed_model, v))
    return matrix[..., list(columns)].reshape(-1, len(columns))


def _round_to_quarter(number: float) -> float:
    """Nearest multiple of a quarter if within rounding, else the number."""
    nearest = round(4.0 * number) / 4.0
    return nearest if abs(number - nearest) < 1e-8 else number


def _product_text(names: tuple[str, ...]) -> str:
    """Product of lengths as text: a a d as "a^2 d"."""
    out = []
    for name in dict.fromkeys(names):
        power = names.count(name)
        out.append(name if power == 1 else f"{name}^{power}")
    return " ".join(out)
