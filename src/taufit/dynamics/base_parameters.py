"""Base parameters: the identifiable combinations of a robot's or torque model's parameters.

Torque is W theta, but the columns of W are linearly dependent. With selected columns i and mapping
B,

    W theta = W[:, i] (B theta)        for every theta,

so only B theta is identifiable from any motion [Gautier1991]. The rank is determined from the gap
in the singular values of W at random states, over all columns together: rotor inertias of the first
joints depend on link columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.parameters import LINK_PARAMETERS, parse_name
from taufit.dynamics.batch import regressor
from taufit.robot import Robot

RULES = ("qr", "leftmost")
# Order within one link: inertias, first moments, mass. Masses are then combined into inertias as in
# textbooks, with lengths and their products as factors.
_WITHIN_LINK = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "hx", "hy", "hz", "m")

# Results for the models asked for last, by their regressor at the random states.
_MOST_RECENT = 32
_RECENT: dict[tuple[object, ...], BaseParameters] = {}
# Regressors at the random states of the models asked for last, by the model's identity.
_RANDOM_ROWS: dict[tuple[object, ...], tuple[object, Float[Array, "r p"], bytes]] = {}


@runtime_checkable
class RegressorModel(Protocol):
    """Model with a regressor, such as a torque model."""

    @property
    def robot(self) -> Robot: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def channels(self) -> tuple[str, ...]: ...

    @property
    def regressor(self) -> Callable[..., Float[Array, "n j p"]]: ...

    def unbounded(self) -> RegressorModel: ...


@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """Selected parameters and the mapping of all parameters to them.

    Attributes:
        parameter_names: Names of all p parameters.
        columns: Selected columns i, b of them.
        mapping: B with W theta = W[:, i] (B theta); B[:, i] is the identity.
        identifiable: Parameters that are identifiable individually.
        in_combination: Parameters that are identifiable only in combination with others.
        no_effect: Parameters without effect on torque.
        singular_values: Singular values of the column-scaled W, largest first.
    """

    parameter_names: tuple[str, ...]
    columns: Int[Array, " b"]
    mapping: Float[Array, "b p"]
    identifiable: Int[Array, " i"]
    in_combination: Int[Array, " c"]
    no_effect: Int[Array, " z"]
    singular_values: Float[Array, " s"] = field(default_factory=lambda: np.empty(0))

    def __repr__(self) -> str:
        return (
            f"BaseParameters({self.rank} of {len(self.parameter_names)} parameters: "
            f"{len(self.identifiable)} identifiable alone, {len(self.in_combination)} in "
            f"combination, {len(self.no_effect)} without effect)"
        )

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters, those of the selected parameters."""
        return tuple(self.parameter_names[i] for i in self.columns)

    @property
    def gap(self) -> float:
        """Ratio of the smallest significant to the largest insignificant singular value."""
        if self.rank == 0:
            return 1.0
        remaining = self.singular_values[self.rank :]
        floor = float(remaining[0]) if len(remaining) else 0.0
        return float(self.singular_values[self.rank - 1]) / max(floor, 1e-300)

    def base_values(self, parameters: Float[Array, "*batch p"]) -> Float[Array, "*batch b"]:
        """Base parameters B theta of full parameters theta."""
        return np.asarray(np.asarray(parameters, float) @ self.mapping.T)

    def reduce(self, matrix: Float[Array, "*rows p"]) -> Float[Array, "*rows b"]:
        """Selected columns of a regressor."""
        return np.asarray(matrix)[..., self.columns]


def base_parameters(
    model: RegressorModel | Robot,
    *,
    rule: str = "leftmost",
    order: Sequence[int] | Sequence[str] | None = None,
    dropped: Sequence[str] = (),
    seed: int = 0,
) -> BaseParameters:
    """Base parameters of a robot (links only) or of a torque model (all columns).

    Determined at random states, loads, temperatures and paths. With the default rule and order a
    base parameter is named after the first parameter of its combination, from base to tip, in all
    fits, model files and `taufit inspect`.

    Args:
        model: Robot, or torque model with friction, rotor inertias and offsets.
        rule: "leftmost" selects columns in `order` that earlier ones cannot express; "qr" selects
            the best-conditioned columns.
        order: Names or indices of all columns for "leftmost"; None for link by link from base to
            tip, inertias before moments before mass, which gives readable expressions.
        dropped: Names of parameters fixed at zero.
        seed: Seed of the random states.
    """
    if isinstance(model, Robot):
        names = model.parameter_names
        robot = model
    else:
        names, robot = model.names, model.robot
    matrix, digest = _random_rows(model, dropped, seed)
    order = readable_order(names, robot.joints) if order is None else order
    # One fit asks a dozen times for few different models.
    key = digest, tuple(names), rule, tuple(order)
    if key not in _RECENT:
        # At these states real effects are of order one; a tilt of 1e-7 rad is not. Branches of a
        # tree may be of very different size (5e-7 in one of 40 random trees).
        smallest, row_groups = (2e-7, robot.joints) if robot.is_tree else (3e-6, 1)
        _RECENT[key] = base_from_regressor(
            matrix,
            names=names,
            rule=rule,
            order=order,
            min_relative_norm=smallest,
            row_groups=row_groups,
        )
        while len(_RECENT) > _MOST_RECENT:
            _RECENT.pop(next(iter(_RECENT)), None)
    return _RECENT[key]


def base_from_regressor(
    matrix: Float[Array, "r p"],
    *,
    names: Sequence[str] | None = None,
    rule: str = "qr",
    order: Sequence[int] | Sequence[str] | None = None,
    min_relative_norm: float = 1e-9,
    row_groups: int = 1,
) -> BaseParameters:
    """Base parameters identifiable from the rows of W.

    For a recorded motion these may be fewer than those of the robot.

    Args:
        matrix: W, stacked over samples and joints.
        names: Column names.
        rule: Selection rule as in `base_parameters`.
        order: Order of columns for "leftmost"; None for left to right.
        min_relative_norm: Columns shorter than this fraction of the longest count as zero.
        row_groups: Number of alternating rows with a longest column each, as those of joints.
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
    # Columns of rounding errors count as zero.
    lengths = np.linalg.norm(w.reshape(-1, row_groups, count), axis=0)
    present = np.any(lengths > min_relative_norm * lengths.max(axis=1, keepdims=True), axis=0)
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
    mapping.flags.writeable = columns.flags.writeable = False
    return BaseParameters(
        labels,
        columns,
        mapping,
        alive[~in_combination],
        alive[in_combination],
        np.flatnonzero(~present),
        singular,
    )


def random_regressor(
    model: RegressorModel | Robot, *, dropped: Sequence[str] = (), seed: int = 0
) -> Float[Array, "r p"]:
    """Regressor W at random states, at least four rows per column; zero for dropped parameters.

    Half of the velocities are distributed over magnitudes, to excite friction at low speed. Columns
    are those of the trained range: what holds their inputs outside does not make them identifiable.
    """
    return _random_rows(model, dropped, seed)[0].copy()


def _random_rows(
    model: RegressorModel | Robot, dropped: Sequence[str], seed: int
) -> tuple[Float[Array, "r p"], bytes]:
    """Regressor at random states, not to be changed, and its digest."""
    key = id(model), tuple(dropped), seed
    owner, rows, digest = _RANDOM_ROWS.get(key, (None, None, b""))
    if rows is None or owner is not model:
        rows = _random_regressor(model, dropped, seed)
        digest = blake2b(rows.tobytes()).digest()
        _RANDOM_ROWS[key] = model, rows, digest
        while len(_RANDOM_ROWS) > _MOST_RECENT:
            _RANDOM_ROWS.pop(next(iter(_RANDOM_ROWS)), None)
    return rows, digest


def _random_regressor(
    model: RegressorModel | Robot, dropped: Sequence[str], seed: int
) -> Float[Array, "r p"]:
    robot = model if isinstance(model, Robot) else model.robot
    columns = robot.layout.size if isinstance(model, Robot) else len(model.names)
    n = max(40, -(-4 * columns // robot.joints))
    q, v, a = random_states(robot, n, seed)
    names: tuple[str, ...]
    if isinstance(model, Robot):
        names, rows = model.parameter_names, regressor(model, q, v, a)
    else:
        inputs = term_inputs(model, v, seed)
        names, rows = model.names, model.unbounded().regressor(q, v, a, **inputs)
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
    """Random positions over a full turn (a metre for prismatic joints), velocities, accelerations.

    Joint limits are ignored, since identifiability does not depend on them.
    """
    rng = np.random.default_rng(seed)
    half_range = np.where(robot.is_prismatic, 1.0, np.pi)
    q = rng.uniform(-1.0, 1.0, (n, robot.joints)) * half_range
    v = rng.uniform(-2.5, 2.5, (n, robot.joints))
    slow = np.sign(v) * 10.0 ** rng.uniform(-2.0, 0.4, v.shape)
    v = np.where(rng.random(v.shape) < 0.5, v, slow)
    a = rng.uniform(-8.0, 8.0, (n, robot.joints))
    return q, v, a


def readable_order(names: Sequence[str], joints: int) -> list[int]:
    """Column order link by link from base to tip: inertias, moments, mass, joint terms."""
    within = {name: k for k, name in enumerate(_WITHIN_LINK)}

    def key(i: int) -> tuple[int, int, int]:
        owner = parse_name(names[i])
        if owner.number < 0:
            return joints, 0, i
        return owner.number, int(owner.kind != "link"), within.get(owner.quantity, len(within) + i)

    assert set(within) == set(LINK_PARAMETERS)
    return sorted(range(len(names)), key=key)


def _indices(order: Sequence[int] | Sequence[str] | None, names: tuple[str, ...]) -> list[int]:
    """Column indices in the given order; columns not mentioned come last."""
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
    """Number of singular values before the first drop by a factor of 1000 to small ones.

    Significant ones of robots stay above 1e-4; exact dependence gives 1e-15, angles with seven
    digits 1e-7. Without a clear drop, the widest gap below 1e-4 is used.
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
    """`rank` independent columns: leftmost in `order`, or by column-pivoted QR.

    Projections are repeated, for orthogonality up to rounding.
    """
    if order is None:
        return _qr_pivot_columns(upper, rank)
    # Rounded descriptions give small nonzero components: increase the tolerance until the number of
    # columns agrees with the singular values.
    for tolerance in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-9, 1e-10):
        directions = np.empty((rank + 1, upper.shape[0]))
        selected: list[int] = []
        for i in order:
            remainder = upper[:, i].copy()
            basis = directions[: len(selected)]
            for _ in range(2):
                remainder -= (basis @ remainder) @ basis
            size = np.linalg.norm(remainder)
            if size > tolerance * np.linalg.norm(upper[:, i]):
                directions[len(selected)] = remainder / size
                selected.append(i)
                if len(selected) > rank:
                    break
        if len(selected) == rank:
            return np.array(selected)
    return np.sort(_qr_pivot_columns(upper, rank))


def _qr_pivot_columns(upper: Float[Array, "k a"], rank: int) -> Int[Array, " b"]:
    """Columns of a column-pivoted QR; of equal pivots the first, independent of rounding."""
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
