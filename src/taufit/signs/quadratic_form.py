"""Least-squares cost of signs as a quadratic form in the signs alone.

With weighted rows Y, weighted magnitudes t and one sign per segment (D puts a segment's sign on its
rows),

    min over theta of |Y theta - D s|^2 = s'Qs,      Q_kl = d_kl |t_k|^2 - b_k' A^-1 b_l,

where A = Y'Y and b_k = Y_k't_k are normal equations, summed by segment: one pass over the data for
any number of sign vectors.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass

# Columns whose part outside the span of the others is below 1e-5 of their length are dropped.
_PIVOT_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class JointRows:
    """Regressor rows by joint, without columns that are zero for the joint.

    Attributes:
        rows: Per joint, one row per sample.
        columns: Per joint, indices of its independent columns.
        parameters: Parameters of the model that form the independent columns.
    """

    rows: tuple[Float[Array, "n _"], ...]
    columns: tuple[Int[Array, " _"], ...]
    parameters: Int[Array, " b"]

    @property
    def width(self) -> int:
        """Number of independent columns."""
        return len(self.parameters)

    def torque(self, theta: Float[Array, " b"]) -> Float[Array, "n j"]:
        """Y theta."""
        return np.stack(
            [rows @ theta[columns] for rows, columns in zip(self.rows, self.columns, strict=True)],
            1,
        )

    def gram(self, weight: Float[Array, "n j"]) -> Float[Array, "b b"]:
        """Y' diag(weight^2) Y; rows with weight zero are skipped."""
        gram = np.zeros((self.width, self.width))
        for i, (rows, columns) in enumerate(zip(self.rows, self.columns, strict=True)):
            use = weight[:, i] > 0.0
            part = rows[use] * weight[use, i, None]
            gram[np.ix_(columns, columns)] += part.T @ part
        return gram

    def project(self, values: Float[Array, "n j"]) -> Float[Array, " b"]:
        """Y' values."""
        projection = np.zeros(self.width)
        for i, (rows, columns) in enumerate(zip(self.rows, self.columns, strict=True)):
            projection[columns] += rows.T @ values[:, i]
        return projection


def joint_rows(regressor: Float[Array, "n j p"], weight: Float[Array, "n j"]) -> JointRows:
    """Split a regressor by joints and select a largest set of independent columns.

    Args:
        regressor: Y.
        weight: Weight of each row in the test for independence; zero for unused rows.
    """
    joints, width = regressor.shape[1:]
    rows, columns = [], []
    gram = np.zeros((width, width))
    for i in range(joints):
        nonzero = np.flatnonzero(np.any(regressor[:, i] != 0.0, axis=0))
        part = np.ascontiguousarray(regressor[:, i, nonzero])
        rows.append(part)
        columns.append(nonzero)
        scaled = part * weight[:, i, None]
        gram[np.ix_(nonzero, nonzero)] += scaled.T @ scaled
    independent = independent_columns(gram)
    position = np.full(width, -1)
    position[independent] = np.arange(len(independent))
    is_independent = [position[nonzero] >= 0 for nonzero in columns]
    return JointRows(
        tuple(
            np.ascontiguousarray(part[:, use])
            for part, use in zip(rows, is_independent, strict=True)
        ),
        tuple(position[nonzero[use]] for nonzero, use in zip(columns, is_independent, strict=True)),
        independent,
    )


def independent_columns(gram: Float[Array, "p p"]) -> Int[Array, " b"]:
    """Indices of independent columns from their Gram matrix, by pivoted Cholesky."""
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    nonzero = np.flatnonzero(scale > 1e-12 * scale.max(initial=0.0))
    if len(nonzero) == 0:
        return nonzero
    scaled = gram[np.ix_(nonzero, nonzero)] / np.outer(scale[nonzero], scale[nonzero])
    _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(scaled, tol=_PIVOT_TOLERANCE)
    return np.sort(nonzero[pivots[:rank] - 1])


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticForm:
    """Quadratic form s'Qs and the parameters of any s.

    Attributes:
        quadratic: Q; the last variable is the anchor if some signs are known.
        moments: A^-1 b_k, one column per variable: theta(s) = moments @ s.
        covariance_root: L^-1 with A = L L', so that cov(theta) = L^-T L^-1.
        rows: Number of samples.
        has_anchor: Whether the last variable stands for all samples with known sign.
    """

    quadratic: Float[Array, "s s"]
    moments: Float[Array, "b s"]
    covariance_root: Float[Array, "b b"]
    rows: int
    has_anchor: bool

    @property
    def anchor(self) -> int | None:
        return len(self.quadratic) - 1 if self.has_anchor else None

    def parameters(self, signs: Int[Array, " s"]) -> Float[Array, " b"]:
        """Least-squares parameters for given signs."""
        return self.moments @ signs

    def deviation(self, functional: Float[Array, " b"]) -> float:
        """Standard deviation of functional' theta."""
        return float(np.linalg.norm(self.covariance_root @ functional))


def build_quadratic_form(
    rows: JointRows,
    values: Float[Array, "n j"],
    weight: Float[Array, "n j"],
    label: Int[Array, "n j"],
    segments: int,
) -> QuadraticForm:
    """Build Q from one pass over the data.

    Args:
        rows: Regressor.
        values: Torque: magnitudes, or signed where the sign is known [N m].
        weight: Weight of each row, 1 / standard deviation.
        label: Segment of each row; -1 leaves it out, `segments` marks a known sign.
        segments: Number of segments.
    """
    width = rows.width
    gram = np.zeros((width, width))
    moments = np.zeros((segments + 1, width))
    energy = np.zeros(segments + 1)
    count = 0
    for i, (part, columns) in enumerate(zip(rows.rows, rows.columns, strict=True)):
        use = np.flatnonzero(label[:, i] >= 0)
        if len(use) == 0:
            continue
        segment_labels = label[use, i]
        w = weight[use, i]
        scaled = part[use] * w[:, None]
        t = values[use, i] * w
        gram[np.ix_(columns, columns)] += scaled.T @ scaled
        starts = np.flatnonzero(np.diff(segment_labels, prepend=-1))
        target = segment_labels[starts]
        sums = np.add.reduceat(scaled * t[:, None], starts, axis=0)
        squares = np.add.reduceat(t * t, starts)
        # Several intervals may have the label of known signs: add, do not assign.
        np.add.at(moments, (target[:, None], columns[None, :]), sums)
        np.add.at(energy, target, squares)
        count += len(use)
    anchored = bool(np.any(label == segments))
    size = segments + anchored
    moments, energy = moments[:size], energy[:size]
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    lower = scipy.linalg.cholesky(
        gram / np.outer(scale, scale) + 1e-12 * np.eye(width), lower=True, check_finite=False
    )
    half = scipy.linalg.solve_triangular(lower, (moments / scale).T, lower=True, check_finite=False)
    quadratic = np.diag(energy) - half.T @ half
    solutions = scipy.linalg.solve_triangular(
        lower, half, lower=True, trans="T", check_finite=False
    )
    root = scipy.linalg.solve_triangular(
        lower, np.diag(1.0 / scale), lower=True, check_finite=False
    )
    return QuadraticForm(quadratic, solutions / scale[:, None], root, count, anchored)
