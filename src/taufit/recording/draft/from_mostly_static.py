"""What columns are where most joints rest: for files without a header, of an arm that is known.

With j joints known, a nameless table is blocks of j neighbouring columns. Where at least one joint
moves, one block's columns are the integrals of another's; where none does, the velocity is the
block that is zero, and the position is the block whose gravity torque another block follows,

    block_k  proportional to  g(position).

What remains is torque-like; the noisiest of it is the measured one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.recording.draft.from_names import ColumnGroup
from taufit.recording.draft.from_values import TableLayout, integral_pairs

Gravity = Callable[[Float[Array, "n j"]], Float[Array, "n j"]]
Block = tuple[int, ...]

# A velocity at rest is below this in any unit [file's own].
_ZERO = 1e-3
# Angles of an arm, in radians.
_TURN = 2.05 * np.pi
# Direction cosine between gravity torque and a block that follows it.
_FOLLOWS = 0.9


def _blocks(columns: list[int], joints: int) -> list[tuple[int, ...]]:
    """Columns side by side, as many as joints; none where they cannot be cut so."""
    blocks = [tuple(columns[i : i + joints]) for i in range(0, len(columns), joints)]
    whole = all(block == tuple(range(block[0], block[0] + joints)) for block in blocks)
    return blocks if whole else []


def resting_layout(
    values: Float[Array, "n c"],
    time: Float[Array, " n"] | None,
    joints: int,
    gravity: Gravity | None,
    skip: Sequence[int] = (),
) -> TableLayout | None:
    """Blocks of position, velocity and torque-like channels, or None.

    Args:
        values: All columns, rows in order of time.
        time: [s]; without it nothing can be told.
        joints: Of the robot.
        gravity: Torque of gravity on the nominal arm for positions [rad].
        skip: Columns that are something else.
    """
    sound = np.isfinite(values).all(axis=1)
    values = values[sound]
    blocks = _blocks([c for c in range(values.shape[1]) if c not in skip], joints)
    if time is None or len(values) < 50 or len(blocks) < 3:
        return None
    pair = _moving_pair(values, time[sound], blocks) or _still_pair(values, blocks, gravity)
    if pair is None:
        return None
    position, velocity, reason = pair
    rest = [block for block in blocks if block not in (position, velocity)]
    rest.sort(key=lambda block: -_noise(values[:, block]))
    groups = [ColumnGroup("position", position), ColumnGroup("velocity", velocity)]
    groups += [ColumnGroup("torque", block, commanded=rank > 0) for rank, block in enumerate(rest)]
    reasons = [reason]
    if len(rest) > 1:
        reasons.append(
            f"columns {rest[0][0] + 1} to {rest[0][-1] + 1} are the noisiest of the others: "
            "measured"
        )
    return TableLayout(tuple(groups), None, tuple(reasons))


def _moving_pair(
    values: Float[Array, "n c"], clock: Float[Array, " n"], blocks: list[Block]
) -> tuple[Block, Block, str] | None:
    free = [c for block in blocks for c in block if np.ptp(values[:, c]) > 0]
    _, matches = integral_pairs(values, clock, free)
    best, most = None, 0
    for position in blocks:
        for velocity in blocks:
            if position == velocity:
                continue
            hits = sum(pair in matches for pair in zip(position, velocity, strict=True))
            if hits > most:
                best, most = (position, velocity), hits
    if best is None:
        return None
    reason = (
        f"{most} of {len(best[0])} columns from {best[0][0] + 1} on are the integral of those from "
        f"{best[1][0] + 1} on, the others rest: position and velocity"
    )
    return best[0], best[1], reason


def _still_pair(
    values: Float[Array, "n c"], blocks: list[Block], gravity: Gravity | None
) -> tuple[Block, Block, str] | None:
    if gravity is None:
        return None
    level = {block: np.median(values[:, block], axis=0) for block in blocks}
    still = [block for block in blocks if np.abs(level[block]).max() < _ZERO]
    if len(still) != 1:
        return None
    best, most = None, _FOLLOWS
    for block in blocks:
        if block in still or np.abs(level[block]).max() > _TURN:
            continue
        expected = gravity(level[block][None])[0]
        others = [level[other] for other in blocks if other not in (block, *still)]
        likeness = max((_cosine(expected, other) for other in others), default=0.0)
        if likeness > most:
            best, most = block, likeness
    if best is None:
        return None
    reason = (
        f"nothing moves: columns {still[0][0] + 1} to {still[0][-1] + 1} are zero, the velocity; "
        f"gravity at the angles {best[0] + 1} to {best[-1] + 1} explains another block"
    )
    return best, still[0], reason


def _cosine(a: Float[Array, " j"], b: Float[Array, " j"]) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 0.0 if size == 0.0 else float(a @ b) / size


def _noise(block: Float[Array, "n j"]) -> float:
    """Noise relative to the channel's own size, median over the columns."""
    size = np.sqrt(np.mean(block**2, axis=0))
    rough = np.median(np.abs(np.diff(block, n=2, axis=0)), axis=0)
    fine = size > 0
    return float(np.median(rough[fine] / size[fine])) if fine.any() else 0.0
