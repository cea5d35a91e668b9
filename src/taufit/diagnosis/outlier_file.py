"""One of several files in which a joint's zero is elsewhere, or another load is carried.

Links fitted to such a file alone explain it: they turn with the joint, or contain the load. Links
fitted to the other files do not, and do when the zero is put right or the last link is given what
it carries, so that is what is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import LinkLayout
from taufit.diagnosis.correction import Cause, DiagnosisRows, zero_offset
from taufit.diagnosis.hypothesis_test import HypothesisTest, residual
from taufit.diagnosis.normal_equations import NormalSolution
from taufit.dynamics import regressor
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples

_LEAST_FILES = 3
# Rows of a file that are enough, that are taken where they are not, and of all files at most.
_ROWS_PER_FILE, _MORE_ROWS, _MOST_ROWS = 80, 200, 6000
# A file is looked at where, in one joint, the others leave this share of its torque, and this many
# times what it leaves alone.
_SHARE, _TIMES = 0.1, 1.8
# A cause is named when it leaves at most this share of the difference (squared); a joint when no
# other joint's zero comes within this factor of that, or this share.
_LEFT, _ALONE, _CLOSE = 0.3, 1.5, 0.1
# A load is one when it weighs more than this share of the arm; directions in which the motion
# shows less than this of the clearest are not fitted.
_LEAST_LOAD, _RESOLVED = 0.01, 1e-3
# Angles that are tried, and how near to the best of them the zero is searched [rad].
_STEP = np.radians(15.0)
_NARROWER, _HALVINGS = 0.618, 10


def find_outlier_file(evidence: HypothesisTest) -> tuple[Cause, Samples] | None:
    """Why one file is not like the others, and the samples of those; None where none is.

    Args:
        evidence: Of all files; more rows are taken where there are few for each.
    """
    samples = evidence.samples
    names = list(dict.fromkeys(samples.names))
    if len(names) < _LEAST_FILES or not evidence.enough:
        return None
    if len(evidence.picked) < _ROWS_PER_FILE * len(names):
        most = min(_MORE_ROWS * len(names), _MOST_ROWS)
        evidence = HypothesisTest(evidence.rows.robot, samples, most_rows=most)
    index = np.array([names.index(name) for name in samples.names])
    file = index[samples.run[evidence.picked]]
    others, alone = evidence.without_each(file, len(names))
    spread = np.maximum(evidence.rows.torque.std(axis=0), 1e-12)
    parts = [
        _FileFit(name, evidence.rows.at(file == k), others[k], alone[k], spread)
        for k, name in enumerate(names)
    ]
    worst = max(parts, key=lambda part: part.excess)
    left, least = worst.left(worst.rows), worst.least
    if not np.any((left > _SHARE**2) & (left > _TIMES**2 * least)):
        return None
    cause = _zero(worst) or _load(worst)
    if cause is None:
        return None
    return cause, samples.rows(index[samples.run] != names.index(worst.name))


@dataclass(frozen=True, slots=True, eq=False)
class _FileFit:
    """A file's rows, links fitted to the others and to it alone, and the spread of all torque."""

    name: str
    rows: DiagnosisRows
    others: NormalSolution
    alone: NormalSolution
    spread: Float[Array, " j"]

    def left(self, rows: DiagnosisRows, fit: NormalSolution | None = None) -> Float[Array, " j"]:
        """Mean square of what the others leave of rows, over the spread of the torque."""
        count = np.maximum(rows.keep.sum(axis=0), 1)
        unexplained = residual(rows, self.others if fit is None else fit)
        out: Array = np.sum(unexplained**2, axis=0) / count / self.spread**2
        return out

    @property
    def least(self) -> Float[Array, " j"]:
        """What the file leaves of itself."""
        return self.left(self.rows, self.alone)

    @property
    def excess(self) -> float:
        """By how much the others leave more."""
        return float(np.sum(self.left(self.rows) - self.least))


def _zero(part: _FileFit) -> Cause | None:
    """The zero that puts a file right, where one joint's does."""
    rows, excess, least = part.rows, part.excess, float(part.least.sum())
    found = sorted(
        (*_best_offset(part, j), j) for j, link in enumerate(rows.robot.links) if not link.prismatic
    )
    if not found:
        return None
    cost, offset, joint = found[0]
    remaining = max(cost - least, 0.0)
    near = max(_ALONE * remaining, _CLOSE * excess)
    if remaining > _LEFT * excess or any(other - least < near for other, *_ in found[1:]):
        return None
    change = zero_offset(joint, offset, rows.torque.shape[1])
    if change.small:
        return None
    message = (
        f"{part.name}: the zero of joint {joint + 1} is {np.degrees(-offset):.0f} deg off beside "
        f"the other recordings: with `offset` {offset:.4f} rad for it at the position, in a column "
        "map for this file, they agree. Or leave the file out"
    )
    # What mends one file would spoil the others.
    return Cause(Finding("zero_offset", "error", message, joint=joint + 1), change)


def _best_offset(part: _FileFit, joint: int) -> tuple[float, float]:
    """The least that an offset of a joint's position leaves, and the offset."""
    rows = part.rows

    def cost(offset: float) -> float:
        position = np.array(rows.position)
        position[:, joint] += offset
        return float(part.left(replace(rows, position=position)).sum())

    grid = np.arange(-np.pi, np.pi, _STEP)
    at = float(grid[int(np.argmin([cost(x) for x in grid]))])
    low, high = at - _STEP, at + _STEP
    for _ in range(_HALVINGS):
        inner = high - _NARROWER * (high - low), low + _NARROWER * (high - low)
        low, high = (low, inner[1]) if cost(inner[0]) < cost(inner[1]) else (inner[0], high)
    at = 0.5 * (low + high)
    return cost(at), at


def _load(part: _FileFit) -> Cause | None:
    """What the last link carries in a file and not in the others, where that puts it right."""
    rows = part.rows
    layout = LinkLayout(rows.robot.joints)
    whole = regressor(rows.robot, rows.position, rows.velocity, rows.acceleration)
    columns = whole[:, :, layout.link(-1)]
    weight = rows.keep / part.spread / np.sqrt(np.maximum(rows.keep.sum(axis=0), 1))
    block = (columns * weight[:, :, None]).reshape(-1, columns.shape[-1])
    target = (residual(rows, part.others) * weight).ravel()
    carried = np.linalg.lstsq(block, target, rcond=_RESOLVED)[0]
    remaining = float(np.sum((target - block @ carried) ** 2) - part.least.sum())
    mass, arm = float(carried[0]), float(np.abs(rows.robot.parameters[layout.masses]).sum())
    if remaining > _LEFT * part.excess or abs(mass) < _LEAST_LOAD * arm:
        return None
    than = "more than" if mass > 0.0 else "less than"
    message = (
        f"{part.name}: the arm carries about {abs(mass):.2g} kg {than} in the "
        "other recordings, and a model has one load. Fit recordings with the same load "
        "together; `taufit payload` weighs the load of this one with a model of the others"
    )
    return Cause(Finding("other_load", "warning", message, value=mass))
