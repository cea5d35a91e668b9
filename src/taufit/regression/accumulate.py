"""Information matrix of a torque model over any number of samples, tile by tile in constant memory.

Joint i moves links i and later only, so all other columns of its rows are zero: each joint has a
small triangular factor R of its nonzero columns, and the factors are merged at the end. Whitening
between joints keeps that shape, since any square root of the weight has an upper triangular form:

    |U e|^2 = |W e|^2    where    U'U = W'W

Long arms, and fits of many samples, add up W'W of each joint instead, in a half to a third of the
time of QR, where all rows so far determine its columns as well as any motion could; other rows go
to R.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.dynamics import engine
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information, triangularise
from taufit.signals.samples import Samples
from taufit.terms import TermInput, has_memory

if TYPE_CHECKING:
    from taufit.regression.gram_matrices import GramMatrices

# Samples per tile: one joint's columns of a six-axis arm then stay in a core's cache.
TILE = 2048
# Tiles that enter normal equations together or not at all: more of them determine more columns.
_TILES_AT_ONCE = 8
# Largest condition number for normal equations, which square it: above, half the digits are lost.
FAST_CONDITION = 1e5
# Robots of which a joint has so many columns, more than those of seven joints have, use normal
# equations unasked, and fits where they are asked to, with more digits to spare: on fourteen arms
# they move no base parameter by more than 1e-9 of its standard deviation.
_LONG_ARM, _SAFE_CONDITION = 72, 1e4


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Motion, torque and weights of some samples.

    Sample t enters the sum of squares as |whitening_t (weights_t * (y_t - W_t theta))|^2.

    Attributes:
        position, velocity, acceleration: Joint motion [rad or m and derivatives].
        torque: Joint torque [N m]; ignored where the weight is zero.
        weights: Factor per row; zero excludes the row. None for ones.
        whitening: Matrix between joints, constant or one per sample. None for the identity.
        friction: Drive columns of the model, already filtered like the torque. Evaluated at
            `velocity` by default.
        load, temperature: Gear torque and joint temperature for terms that depend on them, where
            `friction` is None.
    """

    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    weights: Float[Array, "n j"] | None = None
    whitening: Float[Array, "j j"] | Float[Array, "n j j"] | None = None
    friction: Float[Array, "n j k"] | None = None
    load: Float[Array, "n j"] | None = None
    temperature: Float[Array, "n j"] | None = None

    @classmethod
    def from_samples(
        cls,
        samples: Samples,
        *,
        friction: Float[Array, "n j k"] | None = None,
        weights: Float[Array, "n j"] | None = None,
        whitening: Float[Array, "j j"] | Float[Array, "n j j"] | None = None,
    ) -> Batch:
        """Build a batch from conditioned samples; rows with keep = False get weight zero."""
        factor = samples.keep.astype(float)
        return cls(
            samples.position,
            samples.velocity,
            samples.acceleration,
            samples.torque,
            factor if weights is None else factor * weights,
            whitening,
            friction,
            temperature=samples.temperature,
        )

    def __len__(self) -> int:
        return len(self.position)


def accumulate(
    model: TorqueModel,
    batches: Batch | Iterable[Batch],
    *,
    columns: Int[Array, " b"] | Sequence[int] | None = None,
    fast: bool = False,
    tile: int = TILE,
) -> Information:
    """Information of all rows about the model's parameters.

    Equal to `Information.from_rows` on the stacked, weighted rows, without stacking them. Memory
    does not grow with the number of samples beyond the batch at hand.

    Args:
        model: Torque model that defines the columns.
        batches: One batch, or an iterable of them.
        columns: Parameters to include, as positions in `model.names` (base parameters); all by
            default. The others count as zero.
        fast: Use normal equations for joints whose scaled columns have a condition of at most 1e5,
            and QR for the rest; by default for long arms and a condition of at most 1e4.
        tile: Number of samples processed at a time.
    """
    keeper = _TileAccumulator(model, columns, tile, fast=fast)
    for batch in [batches] if isinstance(batches, Batch) else batches:
        keeper.add(batch)
    return _merge(keeper.by_joint())


def accumulate_by_joint(
    model: TorqueModel,
    batches: Batch | Iterable[Batch],
    *,
    columns: Int[Array, " b"] | None = None,
    tile: int = TILE,
    normal_equations: bool = False,
) -> tuple[Information, ...]:
    """Information of each joint's rows; whitened rows count for the first joint they mix.

    Their sum is `accumulate`.

    Args:
        model, batches, columns, tile: As for `accumulate`.
        normal_equations: Use them also for short arms, for a condition of at most 1e4.
    """
    keeper = _TileAccumulator(model, columns, tile, normal_equations=normal_equations)
    for batch in [batches] if isinstance(batches, Batch) else batches:
        keeper.add(batch)
    return keeper.by_joint()


def columns_by_joint(
    model: TorqueModel, batch: Batch, columns: Int[Array, " b"]
) -> list[tuple[Int[Array, " c"], Float[Array, "c n"]]]:
    """Weighted nonzero columns of each joint, with their indices.

    Entry i is (which, values): values[k] is column columns[which[k]] of joint i's rows.
    """
    _require_shapes(model, batch)
    layout = ColumnOffsets(model, np.asarray(columns, int), len(batch), batch.whitening is not None)
    layout.fill(_slice_batch(model, batch, 0, len(batch)))
    return [
        (columns_of_joint, stack[:-1, len(stack) :])
        for columns_of_joint, stack in zip(layout.columns, layout.stacks, strict=True)
    ]


def _merge(parts: tuple[Information, ...]) -> Information:
    rows = np.concatenate([part.factor for part in parts])
    values = np.concatenate([part.target for part in parts])
    nonzero = np.any(rows, axis=1) | (values != 0.0)
    merged = Information.from_rows(parts[0].names, rows[nonzero], values[nonzero])
    return Information(
        merged.names,
        merged.factor,
        merged.target,
        merged.residual + sum(part.residual for part in parts),
        sum(part.count for part in parts),
    )


class _TileAccumulator:
    """Triangular factors of a model, joint by joint."""

    def __init__(
        self,
        model: TorqueModel,
        columns: Int[Array, " b"] | Sequence[int] | None,
        tile: int,
        *,
        fast: bool = False,
        normal_equations: bool = False,
    ) -> None:
        self.model, self.tile, self.fast = model, tile, fast
        self.normal_equations = fast or normal_equations
        names = model.names
        self.selected = np.arange(len(names)) if columns is None else np.asarray(columns, int)
        if len(np.unique(self.selected)) != len(self.selected):
            raise ValueError("a column was asked for twice")
        self.names = tuple(names[c] for c in self.selected)
        self.factors: dict[bool, ColumnOffsets] = {}

    def add(self, batch: Batch) -> None:
        """Add a batch to the factors."""
        _require_shapes(self.model, batch)
        whitened = batch.whitening is not None
        if whitened not in self.factors:
            self.factors[whitened] = ColumnOffsets(self.model, self.selected, self.tile, whitened)
        layout = self.factors[whitened]
        is_asked = self.normal_equations or layout.is_long
        with_grams = is_asked and layout.engine.compiled and not whitened
        step = _TILES_AT_ONCE * self.tile if with_grams else self.tile
        for start in range(0, len(batch), step):
            tiles = [
                _slice_batch(self.model, batch, first, first + self.tile)
                for first in range(start, min(start + step, len(batch)), self.tile)
            ]
            joints = self._add_grams(layout, tiles) if with_grams else range(len(layout.stacks))
            for tile in tiles if joints else ():
                layout.fill(tile)
                for i in joints:
                    triangularise(layout.stacks[i])
        layout.counts += _counts(batch)
        if not all(np.all(np.isfinite(stack[:, : len(stack)])) for stack in layout.stacks):
            raise _not_finite_error(batch)

    def _add_grams(self, layout: ColumnOffsets, tiles: Sequence[Batch]) -> Sequence[int]:
        """Add tiles to the normal equations; returns the joints that need QR for them."""
        if layout.gram_matrices is None:
            from taufit.regression.gram_matrices import GramMatrices

            layout.gram_matrices = GramMatrices(layout, self.model)
        return layout.gram_matrices.add(tiles, FAST_CONDITION if self.fast else _SAFE_CONDITION)

    def by_joint(self) -> tuple[Information, ...]:
        p = len(self.names)
        out = [Information.empty(self.names) for _ in range(self.model.robot.joints)]
        for layout in self.factors.values():
            if layout.gram_matrices is not None:
                layout.gram_matrices.move_to_factors()
                # They refer to each other: without this they are freed by the garbage collector.
                layout.gram_matrices = None
            for i, (stack, columns_of_joint) in enumerate(
                zip(layout.stacks, layout.columns, strict=True)
            ):
                c = len(columns_of_joint)
                factor, target = np.zeros((p, p)), np.zeros(p)
                # Rows keep their place by leading column, so the factor stays upper triangular.
                factor[np.ix_(columns_of_joint, columns_of_joint)], target[columns_of_joint] = (
                    stack[:c, :c].T,
                    stack[c, :c],
                )
                part = Information(
                    self.names, factor, target, float(stack[c, c] ** 2), int(layout.counts[i])
                )
                out[i] = part if out[i].count == 0 else out[i] + part
        return tuple(out)


class ColumnOffsets:
    """Memory layout of the columns of each joint.

    `stacks[i]` holds joint i's columns and, last, its torque, each contiguous: first the triangular
    factor, then a tile of samples. `columns[i]` are their indices among the selected columns,
    ascending.
    `gram_matrices` have the rows that the factors leave out.
    """

    def __init__(
        self, model: TorqueModel, selected: Int[Array, " b"], tile: int, whitened: bool
    ) -> None:
        self.tile, self.selected = tile, selected
        self.engine, self.model_columns = engine(model.robot), model.columns
        joints, links = model.robot.joints, model.layout.links.stop
        coupling = model.robot.drives.coupling
        live = np.stack([model.layout.active(i, coupling) for i in range(joints)])
        if whitened:  # row i then mixes joints i and later
            live = np.logical_or.accumulate(live[::-1])[::-1]
        self.columns = [np.flatnonzero(live[i, selected]) for i in range(joints)]
        self.counts = np.zeros(joints, np.int64)
        self.gram_matrices: GramMatrices | None = None

        widths = [len(columns_of_joint) + 1 for columns_of_joint in self.columns]
        self.flat = np.zeros(sum(w * (w + tile) for w in widths))
        self.stacks: list[Float[Array, "c m"]] = []
        self.link_offsets = np.full((joints, links), -1, np.int64)
        self.term_columns: list[list[tuple[int, int]]] = []  # (row of the stack, model column)
        self.row_subset: dict[tuple[int, int], Int[Array, " c"]] = {}
        offset = 0
        for i, (columns_of_joint, width) in enumerate(zip(self.columns, widths, strict=True)):
            self.stacks.append(
                self.flat[offset : offset + width * (width + tile)].reshape(width, -1)
            )
            joint_model_columns = selected[columns_of_joint]
            rows = np.arange(len(columns_of_joint))
            link = joint_model_columns < links
            self.link_offsets[i, joint_model_columns[link]] = (
                offset + rows[link] * (width + tile) + width
            )
            self.term_columns.append(
                list(zip(rows[~link].tolist(), joint_model_columns[~link].tolist(), strict=True))
            )
            offset += width * (width + tile)
        self.is_long = max(widths) >= _LONG_ARM
        if whitened:
            p = len(selected)
            for i in range(joints):
                for k in range(i + 1, joints):
                    self.row_subset[i, k] = np.searchsorted(
                        np.append(self.columns[i], p), np.append(self.columns[k], p)
                    )

    def fill(self, part: Batch) -> None:
        """Write one tile below the factors; entries without data are zero."""
        n, weights = len(part), part.weights
        self.engine.write_columns(
            part.position,
            part.velocity,
            part.acceleration,
            0,
            n,
            self.link_offsets,
            self.flat,
            weights,
        )
        rows = []
        for stack, terms in zip(self.stacks, self.term_columns, strict=True):
            stack[:, len(stack) + n :] = 0.0
            data = stack[:, len(stack) : len(stack) + n]
            rows.append([*(data[row] for row, _ in terms), data[-1]])
        self.write_terms(part, rows)
        if part.whitening is not None:
            self._whiten(part.whitening, n)

    def write_terms(self, part: Batch, rows: Sequence[Sequence[Array]]) -> None:
        """Write the term columns and the torque of each joint into rows."""
        friction, weights = part.friction, part.weights
        assert friction is not None  # `_slice_batch` makes it
        motor = self.model_columns.at_motors(part.acceleration)
        for i, (*columns, torque) in enumerate(rows):
            factor = 1.0 if weights is None else weights[:, i]
            for row, (_, column) in zip(columns, self.term_columns[i], strict=True):
                self.model_columns.write_term_column(row, column, i, factor, motor, friction)
            if weights is None:
                torque[:] = part.torque[:, i]
            else:
                # Torque of excluded rows may be NaN.
                np.multiply(part.torque[:, i], factor, out=torque, where=factor != 0.0)
                torque[factor == 0.0] = 0.0

    def _whiten(self, whitening: Float[Array, "... j j"], n: int) -> None:
        lower = np.any(np.tril(whitening, -1))
        upper = np.asarray(np.linalg.qr(whitening, mode="r")) if lower else whitening
        tiles = [stack[:, len(stack) : len(stack) + n] for stack in self.stacks]
        for i, data in enumerate(tiles):
            # Rows of later joints are not yet whitened here.
            data *= upper[..., i, i]
            for k in range(i + 1, len(tiles)):
                data[self.row_subset[i, k]] += upper[..., i, k] * tiles[k]


def _slice_batch(model: TorqueModel, batch: Batch, first: int, last: int) -> Batch:
    """Contiguous segment of a batch, with its friction columns."""
    part = slice(first, last)

    def cut(values: Float[Array, "n j"] | None) -> Float[Array, "m j"] | None:
        return None if values is None else np.ascontiguousarray(values[part], float)

    position = np.ascontiguousarray(batch.position[part], float)
    velocity = np.ascontiguousarray(batch.velocity[part], float)
    whitening = None if batch.whitening is None else np.asarray(batch.whitening, float)
    friction = batch.friction
    return Batch(
        position,
        velocity,
        np.ascontiguousarray(batch.acceleration[part], float),
        np.ascontiguousarray(batch.torque[part], float),
        cut(batch.weights),
        whitening if whitening is None or whitening.ndim == 2 else whitening[part],
        model.columns.drive_columns(
            TermInput(velocity, position, cut(batch.load), cut(batch.temperature))
        )
        if friction is None
        else np.asarray(friction[part], float),
    )


def _counts(batch: Batch) -> Int[Array, " j"]:
    n, joints = batch.position.shape
    if batch.weights is None:
        return np.full(joints, n, np.int64)
    return np.asarray(np.count_nonzero(batch.weights, axis=0))


def _require_shapes(model: TorqueModel, batch: Batch) -> None:
    n, joints = len(batch), model.robot.joints
    terms = len(model.term_sum.parameters)
    shapes: dict[str, list[tuple[int, ...]]] = {
        "position": [(n, joints)],
        "velocity": [(n, joints)],
        "acceleration": [(n, joints)],
        "torque": [(n, joints)],
        "weights": [(n, joints)],
        "whitening": [(joints, joints), (n, joints, joints)],
        "friction": [(n, joints, terms)],
        "load": [(n, joints)],
        "temperature": [(n, joints)],
    }
    for name, allowed in shapes.items():
        values = getattr(batch, name)
        if values is not None and np.shape(values) not in allowed:
            raise ValueError(
                f"{name} must be {' or '.join(map(str, allowed))}, found {np.shape(values)}"
            )
    if batch.friction is None and has_memory(model.term_sum):
        raise ValueError(
            f"{type(model.friction).__name__} has a memory, which tiles would cut: "
            "give its columns ready made"
        )


def _not_finite_error(batch: Batch) -> RecordingError:
    counts = np.ones(batch.position.shape, bool) if batch.weights is None else batch.weights != 0.0
    for name in ("position", "velocity", "acceleration", "weights", "torque"):
        values = getattr(batch, name)
        if values is None:
            continue
        bad = ~np.isfinite(values) & (counts if name == "torque" else True)
        if np.any(bad):
            sample, joint = np.argwhere(bad)[0]
            return RecordingError(
                f"{name} of joint {joint + 1} is not finite at sample {sample}. "
                "Repair the recording or give that row weight zero."
            )
    return RecordingError(
        "friction columns, loads, temperatures or whitening are not finite. "
        "Repair the recording or cut that segment out."
    )
