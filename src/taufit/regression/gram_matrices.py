"""Normal equations W'W of each joint, summed by the kernel, where they lose no digits that matter.

They square the condition of W. Tiles of samples enter them if all rows so far have the rank that
the columns have with any motion, and a condition that leaves enough digits; else they need QR.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.lapack import dpstrf, factor_with_pivots
from taufit.model.torque_model import TorqueModel
from taufit.regression.accumulate import Batch, ColumnOffsets
from taufit.regression.information import triangularise

# Length of what other columns leave of a column of length one that depends on them: in W, in W'W.
_DEPENDENT, _DEPENDENT_SQUARED = 1e-9, 1e-13
_MOST_CALLS = 2  # by QR before normal equations are tried again


class GramMatrices:
    """Sums W'W of the joints of a memory layout, torque included as the last column.

    Attributes:
        grams: W'W of each joint that has some, its upper triangle.
    """

    def __init__(self, offsets: ColumnOffsets, model: TorqueModel) -> None:
        self.grams: dict[int, Array] = {}
        self._offsets = offsets
        self._ranks = _column_ranks(model, tuple(offsets.selected.tolist()))
        self._numbering = _number_columns(offsets)
        # Calls to go before normal equations are tried again, and how many the next time.
        self._pause, self._next_pause = 0, 1

    def add(self, tiles: Sequence[Batch], largest_condition: float) -> list[int]:
        """Add some tiles; return the joints that need QR for them.

        The sum of all rows decides: slow motion is no loss once there was fast motion.
        """
        offsets = self._offsets
        if self._pause:
            self._pause -= 1
            return list(range(len(offsets.stacks)))
        _, term_rows, widths = self._numbering
        sums = np.zeros(int((widths**2).sum()))
        for tile in tiles:
            terms = np.empty((len(term_rows), len(tile)))
            rows = iter(terms)
            offsets.write_terms(
                tile, [[next(rows) for _ in range(len(t) + 1)] for t in offsets.term_columns]
            )
            motion = (tile.position, tile.velocity, tile.acceleration)
            offsets.engine.add_grams(*motion, tile.weights, terms, self._numbering, sums)
        qr_joints, start = [], 0
        for i, (stack, width) in enumerate(zip(offsets.stacks, widths.tolist(), strict=True)):
            c = len(stack)
            gram = sums[start : start + width**2].reshape(width, width)[:c, :c]
            start += width**2
            factor = stack[:, :c].T
            total = gram + self.grams[i] if i in self.grams else gram
            total = total + factor.T @ factor if factor.any() else total
            if _rows_of_gram(total, largest_condition, self._ranks[i]) is None:
                qr_joints.append(i)
            else:
                self.grams[i] = total
                stack[:, :c] = 0.0
        if 2 * len(qr_joints) > len(offsets.stacks):
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, _MOST_CALLS)
        return qr_joints

    def move_to_factors(self) -> None:
        """Move all rows to the triangular factors of the layout."""
        for joint, gram in self.grams.items():
            stack, rows = self._offsets.stacks[joint], _rows_of_gram(gram)
            assert rows is not None
            stacked = np.concatenate([stack[:, : len(stack)], rows.T], axis=1)
            triangularise(stacked)
            stack[:, : len(stack)] = stacked[:, : len(stack)]
        self.grams.clear()


def _number_columns(
    offsets: ColumnOffsets,
) -> tuple[Int[Array, "j p"], Int[Array, " e"], Int[Array, " j"]]:
    """Numbers of link columns and of term columns, and widths, as `add_grams` takes them."""
    widths = np.array([-(-len(stack) // 4) * 4 for stack in offsets.stacks])
    first = np.cumsum(widths) - widths
    link_rows = np.full_like(offsets.link_offsets, -1)
    term_rows: list[int] = []
    offset = 0
    for i, stack in enumerate(offsets.stacks):
        has_link = offsets.link_offsets[i] >= 0
        rows = (offsets.link_offsets[i, has_link] - offset) // stack.shape[1]
        link_rows[i, has_link] = first[i] + rows
        term_rows += [first[i] + row for row, _ in offsets.term_columns[i]]
        term_rows.append(first[i] + len(stack) - 1)
        offset += stack.size
    return link_rows, np.array(term_rows), widths


@lru_cache(maxsize=8)
def _column_ranks(model: TorqueModel, selected: tuple[int, ...]) -> list[int]:
    """Rank of each joint's columns, torque included, with any motion."""
    joints, n = model.robot.joints, 2 * (len(selected) + 1)
    offsets = ColumnOffsets(model, np.array(selected, int), n, False)
    rng = np.random.default_rng(0)
    friction = rng.normal(size=(n, joints, len(model.layout.drive_entries)))
    q, v, a, torque = rng.normal(size=(4, n, joints))
    offsets.fill(Batch(q, v, a, torque, friction=friction))
    ranks = []
    for stack in offsets.stacks:
        columns = stack[:, len(stack) :]
        columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300)
        pivots = np.abs(np.diag(factor_with_pivots(columns.T)[0]))
        ranks.append(int(np.count_nonzero(pivots > _DEPENDENT)))
    return ranks


def _rows_of_gram(
    gram: Float[Array, "c c"], largest_condition: float = np.inf, rank_of_columns: int | None = None
) -> Array | None:
    """Rows R with R'R = W'W; None if digits are lost.

    Args:
        gram: W'W, its upper triangle.
        largest_condition: Of the independent columns, scaled.
        rank_of_columns: Rank of W with any motion: a lower one may be a weak motion's.
    """
    size = np.sqrt(np.diag(gram))
    if not np.all(np.isfinite(size)):
        return None
    size[size == 0.0] = 1.0
    factor, order, rank, _ = dpstrf(gram / np.outer(size, size), tol=_DEPENDENT_SQUARED)
    if rank_of_columns not in (None, rank):
        return None
    if rank and not factor[rank - 1, rank - 1] * largest_condition >= 1.0:
        return None
    rows = np.zeros((rank, len(gram)))
    rows[:, order - 1] = np.triu(factor)[:rank]
    return np.asarray(rows * size)
