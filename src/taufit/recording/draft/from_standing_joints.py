"""Column layout of files without header in which most joints stand still.

With j joints known, a table without names is blocks of j neighbouring columns. If a joint moves,
the
columns of one block are the integrals of another's; if none moves, the velocity is the block that
is
zero, and the position is the block whose gravity torque is proportional to another block,

    block_k  proportional to  g(position).

Remaining blocks are torque-like; the noisiest one is the measured torque.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.recording.draft.from_names import ColumnGroup
from taufit.recording.draft.from_values import TableLayout, integral_pairs

Gravity = Callable[[Float[Array, "n j"]], Float[Array, "n j"]]
Block = tuple[int, ...]

# Velocity at standstill is below this, in any unit.
_MAX_STANDSTILL_VELOCITY = 1e-3
# Largest joint angle [rad].
_MAX_ANGLE = 2.05 * np.pi
# Largest standard deviation of the velocity of a joint at rest, relative to a moving one's.
_MAX_REST_VELOCITY = 0.02
# Minimum direction cosine between gravity torque and a torque block.
_MIN_COSINE = 0.9


def _blocks(columns: list[int], joints: int) -> list[tuple[int, ...]]:
    """Contiguous blocks of as many columns as joints; empty if the columns cannot be split so."""
    blocks = [tuple(columns[i : i + joints]) for i in range(0, len(columns), joints)]
    is_contiguous = all(block == tuple(range(block[0], block[0] + joints)) for block in blocks)
    return blocks if is_contiguous else []


def static_layout(
    values: Float[Array, "n c"],
    time: Float[Array, " n"] | None,
    joints: int,
    gravity: Gravity | None,
    skip: Sequence[int] = (),
) -> TableLayout | None:
    """Blocks of position, velocity and torque-like channels; None if not recognised.

    Args:
        values: All columns, rows in time order.
        time: Time stamps [s]; required.
        joints: Number of joints of the robot.
        gravity: Gravity torque of the nominal robot for positions [rad].
        skip: Columns to ignore.
    """
    is_finite = np.isfinite(values).all(axis=1)
    values = values[is_finite]
    blocks = _blocks([c for c in range(values.shape[1]) if c not in skip], joints)
    if time is None or len(values) < 50 or len(blocks) < 3:
        return None
    pair = _pair_by_motion(values, time[is_finite], blocks) or _pair_by_gravity(
        values, blocks, gravity
    )
    if pair is None:
        return None
    position, velocity, reason = pair
    torques = [block for block in blocks if block not in (position, velocity)]
    torques.sort(key=lambda block: -_relative_noise(values[:, block]))
    groups = [ColumnGroup("position", position), ColumnGroup("velocity", velocity)]
    groups += [
        ColumnGroup("torque", block, commanded=rank > 0) for rank, block in enumerate(torques)
    ]
    reasons = [reason]
    if len(torques) > 1:
        reasons.append(
            f"columns {torques[0][0] + 1} to {torques[0][-1] + 1} are the noisiest of the others: "
            "measured"
        )
    return TableLayout(tuple(groups), None, tuple(reasons))


def standing_layout(
    values: Float[Array, "n c"],
    time: Float[Array, " n"] | None,
    layout: TableLayout | None,
    skip: Sequence[int] = (),
) -> TableLayout | None:
    """Layout with the standing joints of a robot that is not known, or the given one.

    A velocity d columns after its position means blocks of d columns, if all columns are such
    blocks and every joint of the larger block that was not recognised stands still.

    Args:
        values: All columns, rows in time order.
        time: Time stamps [s], or None.
        layout: Layout by the joints that move; None if not recognised.
        skip: Columns to ignore.
    """
    columns = [c for c in range(values.shape[1]) if c not in skip]
    if time is None or not _blocks(columns, 1):
        return layout
    varying = [c for c in columns if np.ptp(values[:, c]) > 0]
    _, matches = integral_pairs(values, time, varying)
    count = _velocity_count(layout)
    for joints in sorted({k - i for i, k in matches if k - i > count}):
        if len(columns) % joints == 0:
            wider = static_layout(values, time, joints, None, skip)
            if wider is not None and _others_stand(values, wider, matches):
                return wider
    return layout


def _velocity_count(layout: TableLayout | None) -> int:
    """Number of joints with a velocity; without velocity the number of joints is a guess."""
    groups = () if layout is None else layout.groups
    return next((len(group.columns) for group in groups if group.quantity == "velocity"), 0)


def _others_stand(
    values: Float[Array, "n c"], layout: TableLayout, matches: set[tuple[int, int]]
) -> bool:
    """Whether every joint of a layout either moves as its velocity says or stands still."""
    position, velocity = (layout.groups[k].columns for k in (0, 1))
    deviation = np.std(values[:, list(velocity)], axis=0)
    is_match = [pair in matches for pair in zip(position, velocity, strict=True)]
    moving = np.median(deviation[is_match])
    return bool(np.all(deviation[np.logical_not(is_match)] < _MAX_REST_VELOCITY * moving))


def _pair_by_motion(
    values: Float[Array, "n c"], time: Float[Array, " n"], blocks: list[Block]
) -> tuple[Block, Block, str] | None:
    varying = [c for block in blocks for c in block if np.ptp(values[:, c]) > 0]
    _, matches = integral_pairs(values, time, varying)
    best, best_hits = None, 0
    for position in blocks:
        for velocity in blocks:
            if position == velocity:
                continue
            hits = sum(pair in matches for pair in zip(position, velocity, strict=True))
            if hits > best_hits:
                best, best_hits = (position, velocity), hits
    if best is None:
        return None
    reason = (
        f"{best_hits} of {len(best[0])} columns from {best[0][0] + 1} on are the integral of those "
        "from "
        f"{best[1][0] + 1} on, the others rest: position and velocity"
    )
    return best[0], best[1], reason


def _pair_by_gravity(
    values: Float[Array, "n c"], blocks: list[Block], gravity: Gravity | None
) -> tuple[Block, Block, str] | None:
    if gravity is None:
        return None
    level = {block: np.median(values[:, block], axis=0) for block in blocks}
    static_blocks = [
        block for block in blocks if np.abs(level[block]).max() < _MAX_STANDSTILL_VELOCITY
    ]
    if len(static_blocks) != 1:
        return None
    best, best_cosine = None, _MIN_COSINE
    for block in blocks:
        if block in static_blocks or np.abs(level[block]).max() > _MAX_ANGLE:
            continue
        expected = gravity(level[block][None])[0]
        torque_levels = [
            level[torque_level]
            for torque_level in blocks
            if torque_level not in (block, *static_blocks)
        ]
        cosine = max(
            (_cosine(expected, torque_level) for torque_level in torque_levels), default=0.0
        )
        if cosine > best_cosine:
            best, best_cosine = block, cosine
    if best is None:
        return None
    reason = (
        f"nothing moves: columns {static_blocks[0][0] + 1} to {static_blocks[0][-1] + 1} are zero, "
        "the velocity; "
        f"gravity at the angles {best[0] + 1} to {best[-1] + 1} explains another block"
    )
    return best, static_blocks[0], reason


def _cosine(a: Float[Array, " j"], b: Float[Array, " j"]) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 0.0 if size == 0.0 else float(a @ b) / size


def _relative_noise(block: Float[Array, "n j"]) -> float:
    """Noise relative to the RMS, median over the columns."""
    rms = np.sqrt(np.mean(block**2, axis=0))
    roughness = np.median(np.abs(np.diff(block, n=2, axis=0)), axis=0)
    is_nonzero = rms > 0
    return float(np.median(roughness[is_nonzero] / rms[is_nonzero])) if is_nonzero.any() else 0.0
