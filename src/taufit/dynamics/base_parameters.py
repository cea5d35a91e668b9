"""What motion can tell apart: the base parameters of an arm or of a whole torque model.

Torque is W theta, but the columns of W depend on each other. With kept columns i and mapping B,

    W theta = W[:, i] (B theta)        for every theta,

so B theta are all that any motion can show. The rank is read from the gap in the singular values of
W at random states, over all columns together: rotor inertias of the first joints hide among the
links' columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import TaufitError
from taufit.core.parameters import LINK_PARAMETERS, parse_name
from taufit.dynamics.batch import regressor
from taufit.robot import Robot

RULES = ("qr", "leftmost")
# Within one link: first what turns, then first moments, then mass. Masses then fold into
# inertias as in the textbooks, with lengths and their products as factors.
_WITHIN_LINK = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "hx", "hy", "hz", "m")


@runtime_checkable
class RegressorModel(Protocol):
    """What base parameters are asked of: a torque model."""

    @property
    def robot(self) -> Robot: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def channels(self) -> tuple[str, ...]: ...

    @property
    def regressor(self) -> Callable[..., Float[Array, "n j p"]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """Which parameters are kept, and how the others fold into them.

    Attributes:
        parameter_names: Of all p parameters.
        columns: i, the kept columns, b of them.
        mapping: B with W theta = W[:, i] (B theta); B[:, i] is the identity.
        identifiable: Parameters that motion shows one by one.
        in_combination: Parameters that it shows only together with others.
        no_effect: Parameters no torque depends on.
        singular_values: Of the column-scaled W, largest first; the gap behind the rank.
    """

    parameter_names: tuple[str, ...]
    columns: Int[Array, " b"]
    mapping: Float[Array, "b p"]
    identifiable: Int[Array, " i"]
    in_combination: Int[Array, " c"]
    no_effect: Int[Array, " z"]
    singular_values: Float[Array, " s"] = field(default_factory=lambda: np.empty(0))

    @property
    def rank(self) -> int:
        """How many base parameters there are."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Each base parameter is called by the parameter that is kept for it."""
        return tuple(self.parameter_names[i] for i in self.columns)

    @property
    def gap(self) -> float:
        """Smallest singular value that counts over the largest that does not."""
        if self.rank == 0:
            return 1.0
        remaining = self.singular_values[self.rank :]
        floor = float(remaining[0]) if len(remaining) else 0.0
        return float(self.singular_values[self.rank - 1]) / max(floor, 1e-300)

    def base_values(self, parameters: Float[Array, "*batch p"]) -> Float[Array, "*batch b"]:
        """The base parameters B theta of full parameters theta."""
        return np.asarray(np.asarray(parameters, float) @ self.mapping.T)

    def reduce(self, matrix: Float[Array, "*rows p"]) -> Float[Array, "*rows b"]:
        """The kept columns of a regressor."""
        return np.asarray(matrix)[..., self.columns]


def base_parameters(
    model: RegressorModel | Robot,
    *,
    rule: str = "leftmost",
    order: Sequence[int] | Sequence[str] | None = None,
    dropped: Sequence[str] = (),
    seed: int = 0,
) -> BaseParameters:
    """The base parameters of an arm (its links only) or of a torque model (every column).

    Found at random states, loads, temperatures and paths. With the default rule and order a base
    parameter is named after the first parameter of its combination, from base to tip: a fit, a
    model file and `taufit inspect` all call it the same.

    Args:
        model: A robot, or a torque model with its friction, rotor inertias and offsets.
        rule: "leftmost" goes through the columns in `order` and keeps each that those before it
            cannot express; "qr" keeps the columns that condition best.
        order: For "leftmost", names or indices of all columns; None goes link by link from base
            to tip, inertias before moments before mass, which gives readable expressions.
        dropped: Names of parameters held at zero, which show nothing.
        seed: Of the random states.
    """
    if isinstance(model, Robot):
        names = model.parameter_names
        robot = model
    else:
        names, robot = model.names, model.robot
    return base_from_regressor(
        sampled_regressor(model, dropped=dropped, seed=seed),
        names=names,
        rule=rule,
        order=readable_order(names, robot.joints) if order is None else order,
        # At these states every real effect is of the order of one; a tilt of 1e-7 rad is not.
        min_relative_norm=3e-6,
    )


def base_from_regressor(
    matrix: Float[Array, "r p"],
    *,
    names: Sequence[str] | None = None,
    rule: str = "qr",
    order: Sequence[int] | Sequence[str] | None = None,
    min_relative_norm: float = 1e-9,
) -> BaseParameters:
    """The base parameters that the rows of W show.

    For a recorded motion this is what that motion shows, which may be less than the arm has.

    Args:
        matrix: W, stacked over samples and joints.
        names: Of its columns.
        rule: As in `base_parameters`.
        order: For "leftmost"; None goes from left to right.
        min_relative_norm: Columns shorter than this fraction of the longest count as zero.
    """
    w = np.asarray(matrix, float)
    if w.ndim != 2 or w.shape[0] == 0 or w.shape[1] == 0:
        raise TaufitError("a regressor has one row per torque and one column per parameter.")
    if not np.all(np.isfinite(w)):
        raise TaufitError("the regressor has entries that are not finite.")
    count = w.shape[1]
    labels = tuple(names) if names is not None else tuple(f"p{i}" for i in range(count))
    if len(labels) != count:
        raise TaufitError(f"{len(labels)} names were given for {count} columns.")
    sequence = _indices(order, labels)
    if rule not in RULES:
        raise TaufitError(f"rule {rule!r} is not known: use {' or '.join(RULES)}.")

    norms = np.linalg.norm(w, axis=0)
    # A column that only rounding left is no column.
    present = norms > min_relative_norm * norms.max()
    scale = np.where(present, norms, 1.0)
    alive = np.flatnonzero(present)
    if len(alive) == 0:
        empty = np.empty(0, int)
        return BaseParameters(labels, empty, np.zeros((0, count)), empty, empty, np.arange(count))
    upper = np.asarray(np.linalg.qr(w[:, alive] / scale[alive], mode="r"))
    _, singular, right = np.linalg.svd(upper)
    rank = _rank(singular, len(alive))
    null = right[rank:].T
    in_combination = np.linalg.norm(null, axis=1) > 1e-6

    column_order = None
    if rule == "leftmost":
        position = {int(column): k for k, column in enumerate(alive)}
        column_order = [position[i] for i in sequence if i in position]
    selected = _select_columns(upper, rank, column_order)
    dependent = np.setdiff1d(np.arange(len(alive)), selected)
    combination = np.linalg.lstsq(upper[:, selected], upper[:, dependent], rcond=None)[0]
    combination[np.abs(combination) < 1e-10] = 0.0

    columns = alive[selected]
    mapping = np.zeros((rank, count))
    mapping[np.arange(rank), columns] = 1.0
    mapping[:, alive[dependent]] = combination * scale[alive[dependent]] / scale[columns][:, None]
    return BaseParameters(
        labels,
        columns,
        mapping,
        alive[~in_combination],
        alive[in_combination],
        np.flatnonzero(~present),
        singular,
    )


def sampled_regressor(
    model: RegressorModel | Robot, *, dropped: Sequence[str] = (), seed: int = 0
) -> Float[Array, "r p"]:
    """W at random states, with at least four rows per column; zero where a parameter is dropped.

    Half the velocities are spread over magnitudes, so that friction at low speed shows.
    """
    robot = model if isinstance(model, Robot) else model.robot
    columns = robot.layout.size if isinstance(model, Robot) else len(model.names)
    n = max(40, -(-4 * columns // robot.joints))
    q, v, a = random_states(robot, n, seed)
    names: tuple[str, ...]
    if isinstance(model, Robot):
        names, rows = model.parameter_names, regressor(model, q, v, a)
    else:
        names, rows = model.names, model.regressor(q, v, a, **term_inputs(model, v, seed))
    matrix = np.asarray(rows, float).reshape(n * robot.joints, columns)
    matrix[:, np.isin(names, list(dropped))] = 0.0
    return matrix


def term_inputs(
    model: RegressorModel, velocity: Float[Array, "n j"], seed: int = 0
) -> dict[str, Any]:
    """Random loads [N m], temperatures [degC], displacements and channels for terms."""
    rng = np.random.default_rng((seed, 1))
    return {
        "load": 30.0 * rng.normal(size=velocity.shape),
        "temperature": rng.uniform(15.0, 55.0, velocity.shape),
        "travel": rng.uniform(-0.5, 0.5, velocity.shape) ** 3,
        "channels": {name: rng.uniform(15.0, 55.0, velocity.shape) for name in model.channels},
    }


def random_states(
    robot: Robot, n: int, seed: int = 0
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Positions over a full turn (a metre where joints slide), velocities and accelerations.

    Limits are not minded: what an arm can show does not depend on them.
    """
    rng = np.random.default_rng(seed)
    half_range = np.where([link.prismatic for link in robot.links], 1.0, np.pi)
    q = rng.uniform(-1.0, 1.0, (n, robot.joints)) * half_range
    v = rng.uniform(-2.5, 2.5, (n, robot.joints))
    slow = np.sign(v) * 10.0 ** rng.uniform(-2.0, 0.4, v.shape)
    v = np.where(rng.random(v.shape) < 0.5, v, slow)
    a = rng.uniform(-8.0, 8.0, (n, robot.joints))
    return q, v, a


def readable_order(names: Sequence[str], joints: int) -> list[int]:
    """Link by link from base to tip: inertias, moments, mass, then the joint's own columns."""
    within = {name: k for k, name in enumerate(_WITHIN_LINK)}

    def key(i: int) -> tuple[int, int, int]:
        owner = parse_name(names[i])
        if owner.number < 0:
            return joints, 0, i
        return owner.number, int(owner.kind != "link"), within.get(owner.quantity, len(within) + i)

    assert set(within) == set(LINK_PARAMETERS)
    return sorted(range(len(names)), key=key)


def _indices(order: Sequence[int] | Sequence[str] | None, names: tuple[str, ...]) -> list[int]:
    """Column indices in the order asked for; columns not mentioned come last."""
    if order is None:
        return list(range(len(names)))
    index_by_name = {name: i for i, name in enumerate(names)}
    out: list[int] = []
    for entry in order:
        if isinstance(entry, str):
            if entry not in index_by_name:
                raise TaufitError(f"there is no parameter {entry!r} to order by.")
            out.append(index_by_name[entry])
        else:
            if not 0 <= int(entry) < len(names):
                raise TaufitError(f"there is no column {entry} to order by.")
            out.append(int(entry))
    if len(set(out)) != len(out):
        raise TaufitError("the order names a column twice.")
    return out + [i for i in range(len(names)) if i not in set(out)]


def _rank(singular: Float[Array, " s"], columns: int) -> int:
    """Singular values before the first drop by 1000 into the small ones.

    True ones of arms stay above 1e-4; exact dependence leaves 1e-15, angles printed with seven
    digits 1e-7. Where there is no clear drop, the widest gap below 1e-4 decides.
    """
    s = np.zeros(columns)
    s[: len(singular)] = singular / singular[0]
    s = np.maximum(s, 1e-17)
    ratio = s[1:] / s[:-1]
    drops = np.flatnonzero((ratio < 1e-3) & (s[1:] < 1e-5))
    if len(drops):
        return int(drops[0]) + 1
    small = np.flatnonzero(s[1:] < 1e-7)
    if len(small):
        return int(small[np.argmin(ratio[small])]) + 1
    return columns


def _select_columns(
    upper: Float[Array, "k a"], rank: int, order: list[int] | None
) -> Int[Array, " b"]:
    """`rank` independent columns: leftmost in `order`, or those farthest from the ones kept.

    Projections are done twice, which keeps them orthogonal to rounding.
    """
    if order is None:
        return _pivoted_qr_columns(upper, rank)
    # Rounded descriptions leave components that are small but not zero: raise the bar until the
    # count agrees with the singular values.
    for tolerance in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-9, 1e-10):
        basis = np.empty((upper.shape[0], 0))
        selected = []
        for i in order:
            remainder = upper[:, i].copy()
            for _ in range(2):
                remainder -= basis @ (basis.T @ remainder)
            size = np.linalg.norm(remainder)
            if size > tolerance * np.linalg.norm(upper[:, i]):
                selected.append(i)
                basis = np.column_stack([basis, remainder / size])
                if len(selected) > rank:
                    break
        if len(selected) == rank:
            return np.array(selected)
    return np.sort(_pivoted_qr_columns(upper, rank))


def _pivoted_qr_columns(upper: Float[Array, "k a"], rank: int) -> Int[Array, " b"]:
    """Column-pivoted QR; among columns equally far the first, so that rounding does not decide."""
    remainder = upper.copy()
    selected: list[int] = []
    for _ in range(rank):
        sizes = np.linalg.norm(remainder, axis=0)
        sizes[selected] = -1.0
        pivot = int(np.flatnonzero(sizes >= (1.0 - 1e-6) * sizes.max())[0])
        direction = remainder[:, pivot] / sizes[pivot]
        for _ in range(2):
            remainder -= np.outer(direction, direction @ remainder)
        selected.append(pivot)
    return np.array(selected)
