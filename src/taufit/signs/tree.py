"""Pruned tree search of the literature (T-PBPR): signs by distance to physical consistency.

Segments are added one by one; every partial sign vector gets its least-squares coefficients pi_hat,
and the w vectors whose coefficients are nearest to a consistent robot,

    phi1 = min over consistent p of |pi(p) - pi_hat|^2,

are expanded. In the end the model minimises phi2 = |Y pi(p) - tau|^2 over all segments. The
residual plays no part in the choice; implemented for comparison with the exact search.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.dynamics.base_parameters import base_parameters
from taufit.estimators.constraints import make_constraints
from taufit.model.torque_model import TorqueModel
from taufit.signals import Samples, zero_phase
from taufit.signs.data import search_regressor
from taufit.signs.segments import joint_rms

_UPPER = np.triu_indices(4)
_ORDER = np.lexsort((_UPPER[0], _UPPER[1]))
_ROW, _COLUMN = _UPPER[0][_ORDER], _UPPER[1][_ORDER]
_TRIANGLE_SCALE = np.where(_ROW == _COLUMN, 1.0, np.sqrt(2.0))


@dataclass(frozen=True, slots=True, eq=False)
class TreeSearch:
    """Result of the tree search.

    Attributes:
        signs: One per segment.
        joint, first, last: Joint and first and last sample of each segment.
        label: Segment of each sample; -1 outside.
        magnitude: Smoothed |torque| of the search [N m].
        solved: Number of inner problems solved.
    """

    signs: Int[Array, " s"]
    joint: Int[Array, " s"]
    first: Int[Array, " s"]
    last: Int[Array, " s"]
    label: Int[Array, "n j"]
    magnitude: Float[Array, "n j"]
    solved: int


def nominal_bounds(model: TorqueModel) -> tuple[Float[Array, " p"], Float[Array, " p"]] | None:
    """Wide bounds around the nominal links, as in the literature; None without nominal values.

    Masses within half of the nominal, first moments within 0.45 m times the mass, inertias from
    minus to twice the largest of a link.
    """
    layout, nominal = model.layout, model.nominal
    if not np.any(nominal[layout.links]):
        return None
    lower, upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
    for k in range(layout.bodies):
        link_values = nominal[layout.link(k)]
        mass, inertia = link_values[0], link_values[4:].max()
        if mass <= 0.0 or inertia <= 0.0:
            continue
        start = layout.link(k).start
        lower[start], upper[start] = 0.5 * mass, 1.5 * mass
        lower[start + 1 : start + 4], upper[start + 1 : start + 4] = -0.45 * mass, 0.45 * mass
        lower[start + 4 : start + 10], upper[start + 4 : start + 10] = -inertia, 2.0 * inertia
    return lower, upper


def search_tree(
    model: TorqueModel,
    samples: Samples,
    *,
    start: int = 5,
    width: int = 5,
    cutoff_hz: float = 4.0,
    threshold: float = 0.45,
    bounds: tuple[Float[Array, " p"], Float[Array, " p"]] | None = None,
) -> TreeSearch:
    """Grow and prune the tree of signs.

    Args:
        model: Model to be fitted.
        samples: Motion and torque magnitudes.
        start: s0, segments whose signs are all tried at the root.
        width: w, nodes expanded at every level.
        cutoff_hz: Cut-off of the low-pass of |torque| [Hz].
        threshold: Fraction of a joint's rms below which samples are left out.
        bounds: Lower and upper bounds of the standard parameters; infinite where there is none.
    """
    raw = samples.torque if samples.raw_torque is None else samples.raw_torque
    magnitude = np.concatenate(
        [
            zero_phase(np.abs(raw[rows]), samples.rate_hz, min(cutoff_hz, 0.4 * samples.rate_hz))
            for rows in samples.run_slices()
        ]
    )
    label, joint, first, last = threshold_segments(magnitude, samples, threshold)
    base = base_parameters(model, order=_parameter_order(model))
    columns = base.columns
    rows = search_regressor(model, samples)[:, :, columns]
    grams, moments, energy = [], [], []
    for k in range(len(joint)):
        is_segment = label[:, joint[k]] == k
        part, values = rows[is_segment, joint[k]], magnitude[is_segment, joint[k]]
        grams.append(part.T @ part)
        moments.append(part.T @ values)
        energy.append(float(values @ values))
    if not grams:
        empty = np.zeros(0, np.int64)
        return TreeSearch(empty, empty, empty, empty, label, magnitude, 0)

    order = _order(grams, last - first, start)
    inner = FeasibleDistance(model, base.mapping, bounds)
    nodes = np.ones((1, 0), np.int64)
    gram = np.zeros_like(grams[0])
    vectors = np.zeros((len(columns), 0))
    total = 0.0
    for level, k in enumerate(order):
        gram = gram + grams[k]
        vectors = np.column_stack([vectors, moments[k]])
        total += energy[k]
        nodes = np.vstack([np.column_stack([nodes, np.full(len(nodes), sign)]) for sign in (1, -1)])
        if level + 1 < min(start, len(order)):
            continue
        # Few segments do not determine every coefficient: minimum-norm solution.
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        right = nodes @ vectors.T
        guesses = right @ inverse
        residual = total - np.einsum("kb,kb->k", right, guesses)
        cost = np.array([inner.distance(guess) for guess in guesses])
        # phi1 of feasible nodes is zero within the solver's tolerance: residuals decide.
        rounded = np.round(np.log10(np.maximum(cost, 1e-9)), 3)
        best = np.lexsort((residual, rounded))[:width]
        nodes = nodes[best]
    signs = np.empty(len(order), np.int64)
    signs[order] = nodes[0]
    return TreeSearch(signs, joint, first, last, label, magnitude, inner.solved)


def threshold_segments(
    magnitude: Float[Array, "n j"], samples: Samples, threshold: float
) -> tuple[Int[Array, "n j"], Int[Array, " s"], Int[Array, " s"], Int[Array, " s"]]:
    """Segments of one joint above a fraction of its rms, at least three samples long."""
    keep = np.asarray(samples.keep, bool)
    use = keep & (magnitude > threshold * joint_rms(magnitude, keep))
    label = np.full(magnitude.shape, -1)
    joint: list[int] = []
    first: list[int] = []
    last: list[int] = []
    new_run = np.diff(samples.run, prepend=samples.run[0] - 1) != 0
    for i in range(magnitude.shape[1]):
        edge = use[:, i] & (new_run | ~np.concatenate([[False], use[:-1, i]]))
        number = np.cumsum(edge)
        for segment in range(1, int(number[-1]) + 1):
            rows = np.flatnonzero(use[:, i] & (number == segment))
            if len(rows) >= 3:
                label[rows, i] = len(joint)
                joint.append(i)
                first.append(rows[0])
                last.append(rows[-1])
    return label, np.array(joint, int), np.array(first, int), np.array(last, int)


def _parameter_order(model: TorqueModel) -> list[str]:
    """Parameter names: inertias, first moments, masses, then those of the joints."""

    def kind(name: str) -> int:
        entry = name.rsplit(".", 1)[-1]
        if not name.startswith("link"):
            return 3
        return {"I": 0, "h": 1}.get(entry[0], 2)

    return sorted(model.names, key=kind)


def _order(grams: list[Float[Array, "b b"]], length: Int[Array, " s"], start: int) -> list[int]:
    """Order of segments: for the root by greedy determinant, then the longest first."""
    scale = np.sqrt(np.maximum(np.diag(sum(grams)), 1e-300))
    ridge = 1e-6 * np.eye(len(scale))
    total, selected = ridge, []
    for _ in range(min(start, len(grams))):
        gains = [
            -np.inf
            if k in selected
            else np.linalg.slogdet(total + gram / np.outer(scale, scale))[1]
            for k, gram in enumerate(grams)
        ]
        k = int(np.argmax(gains))
        selected.append(k)
        total = total + grams[k] / np.outer(scale, scale)
    remaining = [k for k in np.argsort(-length, kind="stable") if k not in selected]
    return [*selected, *(int(k) for k in remaining)]


class FeasibleDistance:
    """min |C p - target|^2 over physically consistent p: one solver, many targets.

    Args:
        model: Model with consistent links and passive friction.
        matrix: C.
        bounds: Lower and upper bounds of p, infinite where there is none.
    """

    def __init__(
        self,
        model: TorqueModel,
        matrix: Float[Array, "b p"],
        bounds: tuple[Float[Array, " p"], Float[Array, " p"]] | None = None,
    ) -> None:
        import clarabel
        import scipy.sparse

        rows, width = matrix.shape
        limits = make_constraints(model)
        lower_rows = [limits.matrix]
        lower_bounds = [limits.bound]
        if bounds is not None:
            for side, values in ((1.0, bounds[0]), (-1.0, -np.asarray(bounds[1]))):
                finite = np.isfinite(values)
                lower_rows.append(side * np.eye(width)[finite])
                lower_bounds.append(np.asarray(values)[finite])
        linear, bound = np.vstack(lower_rows), np.concatenate(lower_bounds)
        cones = np.zeros((model.layout.links.stop, width))
        for link in range(model.robot.bodies):
            link_slice = model.layout.link(link)
            cones[link_slice, link_slice] = (
                limits.maps[link][:, _ROW, _COLUMN] * _TRIANGLE_SCALE
            ).T
        inequalities = np.vstack([-linear, -cones])
        a = scipy.sparse.bmat(
            [
                [scipy.sparse.csc_matrix(matrix), -scipy.sparse.identity(rows)],
                [scipy.sparse.csc_matrix(inequalities), None],
            ],
            format="csc",
        )
        self._tail = np.concatenate([-bound, np.zeros(len(cones))])
        # A small p'p determines the null space of C.
        weights = np.concatenate([np.full(width, 1e-9), np.ones(rows)])
        quadratic = scipy.sparse.diags(weights, format="csc")
        kinds: list[Any] = [clarabel.ZeroConeT(rows), clarabel.NonnegativeConeT(len(bound))]
        kinds += [clarabel.PSDTriangleConeT(4)] * model.robot.joints
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.max_threads = 1
        options.presolve_enable = False
        options.chordal_decomposition_enable = False
        right_side = np.concatenate([np.zeros(rows), self._tail])
        self._new_solver = partial(
            clarabel.DefaultSolver, quadratic, np.zeros(width + rows), a, right_side, kinds, options
        )
        self._solver = self._new_solver()
        self._width = width
        self._matrix = matrix
        self.solved = 0

    def nearest(self, target: Float[Array, " b"]) -> Float[Array, " p"]:
        """Consistent p whose C p is nearest to the target; NaN if the solver failed."""
        self._solver.update(b=np.concatenate([target, self._tail]))
        self.solved += 1
        try:
            return np.array(self._solver.solve().x[: self._width])
        except BaseException as error:
            # A panic inside the solver is not an Exception, and makes it unusable.
            if type(error).__name__ != "PanicException":
                raise
            self._solver = self._new_solver()
            return np.full(self._width, np.nan)

    def distance(self, target: Float[Array, " b"]) -> float:
        """Minimum of |C p - target|^2; infinite if the solver failed."""
        p = self.nearest(target)
        value = float(np.sum((self._matrix @ p - target) ** 2))
        return value if np.isfinite(value) else np.inf


def segment_values(
    search: TreeSearch, samples: Samples
) -> tuple[Int[Array, "n j"], Float[Array, "n j"], Bool[Array, "n j"]]:
    """Sign of every sample (that of the nearest segment), signed torque, and samples to fit."""
    n, joints = search.label.shape
    sign = np.ones((n, joints), np.int8)
    for i in range(joints):
        joint_segments = np.flatnonzero(search.joint == i)
        if len(joint_segments) == 0:
            continue
        middle = 0.5 * (search.first[joint_segments] + search.last[joint_segments])
        nearest = np.abs(np.arange(n)[:, None] - middle).argmin(1)
        sign[:, i] = search.signs[joint_segments][nearest]
        inside = search.label[:, i] >= 0
        sign[inside, i] = search.signs[search.label[inside, i]]
    return sign, sign * search.magnitude, samples.keep & (search.label >= 0)
