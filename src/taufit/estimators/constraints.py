"""Physical and user constraints on parameters, as linear conditions.

Every link's pseudo-inertia P(theta) >= margin 1, further 4 x 4 matrices >= 0 (centres of mass in
an ellipsoid), and rows G theta >= h (rotor inertia, friction, mass and centre-of-mass boxes, upper
limits of friction and offsets).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.core.parameters import PER_LINK, link_name
from taufit.model.torque_model import TorqueModel
from taufit.robot.inertia import from_pseudo_inertia, pseudo_inertia
from taufit.terms import CONSTANT, DISSIPATIVE, LEVEL, MEMORY, ParameterLayout, level_columns

# Fractions of the rated speed at which friction must be dissipative: nonlinear viscous friction
# decreases last at the end, the Stribeck dip is near standstill.
_SPEED_FRACTIONS = np.array([0.02, 0.1, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
# Relative tolerance of passivity, the accuracy of solvers.
_PASSIVITY_TOLERANCE = 1e-6

# P is linear in the ten parameters: P = sum_k theta_k UNIT[k].
UNIT = pseudo_inertia(np.eye(10))


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Constraints G theta >= h, and for every block k: sum_i theta_i maps[k, i] >= floors[k] as
    matrices.

    Attributes:
        matrix, bound: G and h.
        maps: One 4 x 4 matrix per block and link parameter.
        links: Link of each block.
        floors: Smallest matrix of each block.
        labels: Description of each row of G, for messages.
    """

    matrix: Float[Array, "g p"]
    bound: Float[Array, " g"]
    maps: Float[Array, "c 10 4 4"]
    links: tuple[int, ...]
    floors: Float[Array, "c 4 4"]
    labels: tuple[str, ...]
    layout: ParameterLayout

    def blocks(self, theta: Float[Array, " p"]) -> Float[Array, "c 4 4"]:
        """Matrices that must be positive semidefinite."""
        link_values = np.stack([theta[self.layout.link(k)] for k in self.links])
        return np.asarray(np.einsum("ci,cimn->cmn", link_values, self.maps) - self.floors)


def make_constraints(  # noqa: PLR0913 - one parameter per kind of bound
    model: TorqueModel,
    *,
    margin: float = 0.0,
    mass: Mapping[str, tuple[float, float]] | None = None,
    centre: Mapping[str, tuple[tuple[float, float], ...]] | None = None,
    ellipsoid: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] | None = None,
    total_mass: tuple[float, float] | None = None,
    speeds: Sequence[float] = (),
    rising: bool = False,
    drive_torque: Sequence[float] = (),
) -> Constraints:
    """Constraints of physical consistency and the user's bounds.

    Physical consistency: every link has a consistent pseudo-inertia, rotor inertia and dissipative
    friction terms are not negative, and friction is dissipative.

    Args:
        model: Torque model.
        margin: Smallest eigenvalue of every link's pseudo-inertia.
        mass: Smallest and largest mass per link name (or "link_3") [kg].
        centre: Box for the centre of mass in the link frame, ((xlo, xhi), (ylo, yhi), (zlo, zhi)).
        ellipsoid: (centre, half axes) of an ellipsoid that holds the centre of mass [m].
        total_mass: Smallest and largest mass of all links together [kg].
        speeds: Speed up to which friction must be dissipative, one per joint [rad/s]; rated speeds
            by default.
        rising: Whether friction must not decrease with speed up to there.
        drive_torque: Largest torque of friction and offset, one per joint [N m]: see
            `drive_torque_rows`; no limit by default.
    """
    layout, bodies = model.layout, model.robot.bodies
    rows = _LinearInequalities(len(model.names))
    for i in np.flatnonzero(model.nonnegative):
        rows.add({int(i): 1.0}, 0.0, f"{model.names[i]} >= 0")
    for entries, label in passivity_rows(model, speeds, rising=rising):
        rows.add(entries, 0.0, label)
    for joint_rows, largest, label in drive_torque_rows(model, drive_torque):
        rows.add(joint_rows, -largest, label)
    for name, limits in (mass or {}).items():
        mass_index = layout.link(_link_index(model, name)).start
        rows.between({mass_index: 1.0}, limits, f"mass of {name}")
    for name, box in (centre or {}).items():
        mass_index = layout.link(_link_index(model, name)).start
        for axis, limits in enumerate(box):
            label = f"centre of mass of {name} along {'xyz'[axis]}"
            rows.between({mass_index + 1 + axis: 1.0}, limits, label, per_mass=mass_index)
    if total_mass is not None:
        masses = {layout.link(k).start: 1.0 for k in range(bodies)}
        rows.between(masses, total_mass, "total mass")

    maps = [UNIT] * bodies
    links = list(range(bodies))
    floors = [margin * np.eye(4)] * bodies
    for name, (middle, axes) in (ellipsoid or {}).items():
        links.append(_link_index(model, name))
        maps.append(_ellipsoid_block(name, middle, axes))
        floors.append(np.zeros((4, 4)))
    return Constraints(
        np.array(rows.rows).reshape(-1, rows.size),
        np.array(rows.bounds, float),
        np.array(maps),
        tuple(links),
        np.array(floors),
        tuple(rows.labels),
        layout,
    )


class _LinearInequalities:
    """Linear inequalities row theta >= bound, collected one by one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[Float[Array, " p"]] = []
        self.bounds: list[float] = []
        self.labels: list[str] = []

    def add(self, entries: Mapping[int, float], bound: float, label: str) -> None:
        """Add the condition: sum of factor times parameter >= bound."""
        row = np.zeros(self.size)
        for index, factor in entries.items():
            row[index] = factor
        self.rows.append(row)
        self.bounds.append(bound)
        self.labels.append(label)

    def between(
        self,
        entries: Mapping[int, float],
        limits: tuple[float, float],
        label: str,
        *,
        per_mass: int | None = None,
    ) -> None:
        """Add low <= sum <= high; per unit of mass, low <= h/m becomes h - low m >= 0."""
        low, high = (float(x) for x in limits)
        if np.isnan(low) or np.isnan(high) or low > high:
            raise InfeasibleError(
                f"{label} is bounded from {low:g} to {high:g}: nothing lies in between. "
                "Give the smaller bound first."
            )
        negated = {i: -factor for i, factor in entries.items()}
        for side, bound, sign in ((entries, low, 1.0), (negated, high, -1.0)):
            if not np.isfinite(bound):
                continue
            relation = f"{label} {'>=' if sign > 0 else '<='} {bound:g}"
            if per_mass is None:
                self.add(side, sign * bound, relation)
            else:
                self.add({**side, per_mass: -sign * bound}, 0.0, relation)


def _ellipsoid_block(
    name: str, middle: tuple[float, ...], axes: tuple[float, ...]
) -> Float[Array, "10 4 4"]:
    """Ellipsoid condition |A^-1 (h - m c)| <= m, i.e. [[m A^2, h - m c], [., m]] >= 0."""
    half = np.asarray(axes, float)
    if half.shape != (3,) or np.any(half <= 0) or not np.all(np.isfinite(half)):
        raise InfeasibleError(f"the ellipsoid of {name} needs three positive half axes.")
    block = np.zeros((PER_LINK, 4, 4))
    block[0, :3, :3], block[0, 3, 3] = np.diag(half**2), 1.0
    block[0, :3, 3] = block[0, 3, :3] = -np.asarray(middle, float)
    for axis in range(3):
        block[1 + axis, axis, 3] = block[1 + axis, 3, axis] = 1.0
    return block


def passivity_rows(
    model: TorqueModel, speeds: Sequence[float] = (), *, rising: bool = False
) -> Iterator[tuple[dict[int, float], str]]:
    """Linear conditions of passivity: f(v) sign(v) >= 0 up to a speed.

    For steady motion without load, at a few speeds in both directions; conditions implied by the
    signs of single terms are omitted. Joints without a known speed have no condition. With
    `rising`, f must not decrease from one of the speeds to the next.
    """
    if not model.layout.of_kind(DISSIPATIVE).any():
        return
    rated = np.asarray(speeds if len(speeds) else model.robot.limits.velocity, float)
    for joint in np.flatnonzero(np.isfinite(rated) & (rated > 0.0)).tolist():
        joint_slice, term = model.layout.drive_of(joint), model.term_sum.of_joint(joint)
        is_nonnegative = model.nonnegative[joint_slice]
        unique_rows: list[Float[Array, " k"]] = []
        for direction in (1.0, -1.0):
            velocity = direction * rated[joint] * _SPEED_FRACTIONS
            rows = direction * level_columns(term, velocity, model.joint_shape[joint])
            conditions = [(v, row, "takes energy") for v, row in zip(velocity, rows, strict=True)]
            if rising:
                steps = np.diff(rows, axis=0)
                conditions += [
                    (v, row, "rises") for v, row in zip(velocity[1:], steps, strict=True)
                ]
            for v, row, condition_text in conditions:
                is_implied = np.all(row[is_nonnegative] >= 0.0) and not np.any(row[~is_nonnegative])
                if is_implied or any(
                    np.all(np.abs(row - other) <= 1e-9 * np.abs(other)) for other in unique_rows
                ):
                    continue
                unique_rows.append(row)
                entries = {joint_slice.start + k: float(x) for k, x in enumerate(row) if x != 0.0}
                yield entries, f"friction of joint {joint + 1} at {v:.3g} rad/s {condition_text}"


def drive_torque_rows(
    model: TorqueModel, largest: Sequence[float]
) -> Iterator[tuple[dict[int, float], float, str]]:
    """Upper limits of friction at low speed and of the magnitude of the offset, joint by joint.

    All levels and pre-sliding terms of a joint together, and its offset in either direction, are
    at most `largest`; infinite for no limit.
    """
    layout = model.layout
    is_level = layout.select(lambda parameter: parameter.group in (LEVEL, MEMORY))
    is_offset = layout.of_kind(CONSTANT)
    for joint, torque in enumerate(largest):
        if not np.isfinite(torque):
            continue
        is_joint = np.asarray(layout.owner) == joint
        levels = np.flatnonzero(is_joint & is_level & model.nonnegative)
        limit = f"of joint {joint + 1} <= {torque:.3g} N m"
        if len(levels):
            yield {int(i): -1.0 for i in levels}, torque, f"friction at low speed {limit}"
        for i in np.flatnonzero(is_joint & is_offset):
            for sign in (1.0, -1.0):
                yield {int(i): sign}, torque, f"magnitude of the offset {limit}"


def project_to_feasible(
    model: TorqueModel, theta: Float[Array, " p"], *, margin: float, signs: bool = True
) -> Float[Array, " p"]:
    """Nearest parameters that meet the sign and pseudo-inertia conditions exactly.

    Solvers stop within their tolerance of the boundary; eigenvalues below the margin are raised to
    it, which is not measurable.
    """
    theta = theta.copy()
    if signs:
        negative = model.nonnegative & (theta < 0.0)
        theta[negative] = 0.0
    for k in range(model.robot.bodies):
        link_slice = model.layout.link(k)
        values, vectors = np.linalg.eigh(pseudo_inertia(theta[link_slice]))
        if values[0] < margin:
            # Conversion to ten parameters rounds by a few eps of the largest eigenvalue.
            floor = margin + 4e-16 * values[-1]
            feasible = vectors * np.maximum(values, floor) @ vectors.T
            theta[link_slice] = from_pseudo_inertia(feasible)
    return theta


def smallest_eigenvalues(model: TorqueModel, theta: Float[Array, " p"]) -> Float[Array, " b"]:
    """Smallest eigenvalue of each link's pseudo-inertia; negative if not consistent."""
    links = model.layout.split(theta).links
    return np.linalg.eigvalsh(pseudo_inertia(links))[:, 0]


def is_consistent(model: TorqueModel, theta: Float[Array, " p"], tolerance: float = 1e-9) -> bool:
    """Whether every link is consistent, no dissipative term negative and friction dissipative."""
    signs = np.all(theta[model.nonnegative] >= -tolerance)
    is_passive = all(
        sum(x * theta[i] for i, x in entries.items())
        >= -_PASSIVITY_TOLERANCE * _largest(entries, theta)
        for entries, _ in passivity_rows(model)
    )
    return bool(signs and is_passive and np.all(smallest_eigenvalues(model, theta) >= -tolerance))


def _largest(entries: dict[int, float], theta: Float[Array, " p"]) -> float:
    return max((abs(x * theta[i]) for i, x in entries.items()), default=0.0)


def _link_index(model: TorqueModel, name: str) -> int:
    names = [link.name for link in model.robot.links]
    numbered = [link_name(i) for i in range(len(names))]
    for labels in (names, numbered):
        if name in labels:
            return labels.index(name)
    raise InfeasibleError(
        f"bounds are given for {name!r}, which is not a link of {model.robot.name}: "
        f"{', '.join(names)}."
    )
