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

_MIN_FILES = 3
# Rows of a file that are enough, that are taken where they are not, and of all files at most.
_ROWS_PER_FILE, _TARGET_ROWS_PER_FILE, _MAX_ROWS = 80, 200, 6000
# A file is looked at where, in one joint, the others leave this share of its torque, and this many
# times what it leaves alone.
_MIN_NRMSE, _MIN_NRMSE_RATIO = 0.1, 1.8
# A cause is named when it leaves at most this share of the difference (squared); a joint when no
# other joint's zero comes within this factor of that, or this share.
_MAX_REMAINING, _UNIQUE_RATIO, _UNIQUE_FRACTION = 0.3, 1.5, 0.1
# A load is one when it weighs more than this share of the arm; directions in which the motion
# shows less than this of the clearest are not fitted.
_MIN_LOAD_FRACTION, _RCOND = 0.01, 1e-3
# Angles that are tried, and how near to the best of them the zero is searched [rad].
_ANGLE_STEP = np.radians(15.0)
_GOLDEN_RATIO, _HALVINGS = 0.618, 10


def find_outlier_file(evidence: HypothesisTest) -> tuple[Cause, Samples] | None:
    """Why one file is not like the others, and the samples of those; None where none is.

    Args:
        evidence: Of all files; more rows are taken where there are few for each.
    """
    samples = evidence.samples
    names = list(dict.fromkeys(samples.names))
    if len(names) < _MIN_FILES or not evidence.has_enough_data:
        return None
    if len(evidence.indices) < _ROWS_PER_FILE * len(names):
        max_rows = min(_TARGET_ROWS_PER_FILE * len(names), _MAX_ROWS)
        evidence = HypothesisTest(evidence.rows.robot, samples, max_rows=max_rows)
    index = np.array([names.index(name) for name in samples.names])
    file = index[samples.run[evidence.indices]]
    other_fits, own_fits = evidence.fit_without_parts(file, len(names))
    spread = np.maximum(evidence.rows.torque.std(axis=0), 1e-12)
    parts = [
        _FileFit(name, evidence.rows.select(file == k), other_fits[k], own_fits[k], spread)
        for k, name in enumerate(names)
    ]
    worst = max(parts, key=lambda part: part.excess)
    nrmse_squared, own_nrmse_squared = worst.nrmse_squared(worst.rows), worst.own_nrmse_squared
    if not np.any(
        (nrmse_squared > _MIN_NRMSE**2) & (nrmse_squared > _MIN_NRMSE_RATIO**2 * own_nrmse_squared)
    ):
        return None
    cause = _zero_offset_cause(worst) or _load_cause(worst)
    if cause is None:
        return None
    return cause, samples.rows(index[samples.run] != names.index(worst.name))


@dataclass(frozen=True, slots=True, eq=False)
class _FileFit:
    """A file's rows, links fitted to the others and to it alone, and the spread of all torque."""

    name: str
    rows: DiagnosisRows
    other_fit: NormalSolution
    own_fit: NormalSolution
    torque_std: Float[Array, " j"]

    def nrmse_squared(
        self, rows: DiagnosisRows, fit: NormalSolution | None = None
    ) -> Float[Array, " j"]:
        """Mean square of what the others leave of rows, over the spread of the torque."""
        count = np.maximum(rows.keep.sum(axis=0), 1)
        residuals = residual(rows, self.other_fit if fit is None else fit)
        out: Array = np.sum(residuals**2, axis=0) / count / self.torque_std**2
        return out

    @property
    def own_nrmse_squared(self) -> Float[Array, " j"]:
        """What the file leaves of itself."""
        return self.nrmse_squared(self.rows, self.own_fit)

    @property
    def excess(self) -> float:
        """By how much the others leave more."""
        return float(np.sum(self.nrmse_squared(self.rows) - self.own_nrmse_squared))


def _zero_offset_cause(part: _FileFit) -> Cause | None:
    """The zero that puts a file right, where one joint's does."""
    rows, excess, own_sum = part.rows, part.excess, float(part.own_nrmse_squared.sum())
    offsets = sorted(
        (*_best_offset(part, j), j) for j, link in enumerate(rows.robot.links) if not link.prismatic
    )
    if not offsets:
        return None
    cost, offset, joint = offsets[0]
    remaining = max(cost - own_sum, 0.0)
    ambiguity_limit = max(_UNIQUE_RATIO * remaining, _UNIQUE_FRACTION * excess)
    if remaining > _MAX_REMAINING * excess or any(
        other_cost - own_sum < ambiguity_limit for other_cost, *_ in offsets[1:]
    ):
        return None
    correction = zero_offset(joint, offset, rows.torque.shape[1])
    if correction.small:
        return None
    message = (
        f"{part.name}: the zero of joint {joint + 1} is {np.degrees(-offset):.0f} deg off beside "
        f"the other recordings: with `offset` {offset:.4f} rad for it at the position, in a column "
        "map for this file, they agree. Or leave the file out"
    )
    # What mends one file would spoil the others.
    return Cause(Finding("zero_offset", "error", message, joint=joint + 1), correction)


def _best_offset(part: _FileFit, joint: int) -> tuple[float, float]:
    """The least that an offset of a joint's position leaves, and the offset."""
    rows = part.rows

    def cost(offset: float) -> float:
        position = np.array(rows.position)
        position[:, joint] += offset
        return float(part.nrmse_squared(replace(rows, position=position)).sum())

    grid = np.arange(-np.pi, np.pi, _ANGLE_STEP)
    best = float(grid[int(np.argmin([cost(x) for x in grid]))])
    low, high = best - _ANGLE_STEP, best + _ANGLE_STEP
    for _ in range(_HALVINGS):
        inner = high - _GOLDEN_RATIO * (high - low), low + _GOLDEN_RATIO * (high - low)
        low, high = (low, inner[1]) if cost(inner[0]) < cost(inner[1]) else (inner[0], high)
    best = 0.5 * (low + high)
    return cost(best), best


def _load_cause(part: _FileFit) -> Cause | None:
    """What the last link carries in a file and not in the others, where that puts it right."""
    rows = part.rows
    layout = LinkLayout(rows.robot.joints)
    columns_of_links = regressor(rows.robot, rows.position, rows.velocity, rows.acceleration)
    columns = columns_of_links[:, :, layout.link(-1)]
    weight = rows.keep / part.torque_std / np.sqrt(np.maximum(rows.keep.sum(axis=0), 1))
    block = (columns * weight[:, :, None]).reshape(-1, columns.shape[-1])
    target = (residual(rows, part.other_fit) * weight).ravel()
    load = np.linalg.lstsq(block, target, rcond=_RCOND)[0]
    remaining = float(np.sum((target - block @ load) ** 2) - part.own_nrmse_squared.sum())
    mass, arm = float(load[0]), float(np.abs(rows.robot.parameters[layout.masses]).sum())
    if remaining > _MAX_REMAINING * part.excess or abs(mass) < _MIN_LOAD_FRACTION * arm:
        return None
    comparison_text = "more than" if mass > 0.0 else "less than"
    message = (
        f"{part.name}: the arm carries about {abs(mass):.2g} kg {comparison_text} in the "
        "other recordings, and a model has one load. Fit recordings with the same load "
        "together; `taufit payload` weighs the load of this one with a model of the others"
    )
    return Cause(Finding("other_load", "warning", message, value=mass))
