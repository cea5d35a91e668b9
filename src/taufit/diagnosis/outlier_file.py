"""Outlier file: one of several recordings with another joint zero or another load.

Links fitted to such a file alone explain it: they rotate with the joint, or contain the load. Links
fitted to the other files do not, unless the zero is corrected or the load added to the last link;
both are tested.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.diagnosis.correction import Cause, DiagnosisRows, zero_offset
from taufit.diagnosis.hypothesis_test import HypothesisTest, residual
from taufit.diagnosis.nominal_torque import sign_evidence
from taufit.diagnosis.normal_equations import NormalSolution
from taufit.dynamics import regressor
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples

_MIN_FILES = 3
# Required rows per file, rows per file otherwise taken, and largest total number of rows.
_ROWS_PER_FILE, _TARGET_ROWS_PER_FILE, _MAX_ROWS = 80, 200, 6000
# A file is tested if, in one joint, nrmse by the other files' fit exceeds this value and this
# multiple of the nrmse of its own fit.
_MIN_NRMSE, _MIN_NRMSE_RATIO = 0.1, 1.8
# Largest remaining fraction of the difference (squared) for a cause; a joint is named only if no
# other joint's zero comes within this factor, or this fraction of the difference.
_MAX_REMAINING, _UNIQUE_RATIO, _UNIQUE_FRACTION = 0.3, 1.5, 0.1
# Smallest load as a fraction of the robot's mass; relative singular value below which directions
# are not fitted.
_MIN_LOAD_FRACTION, _RCOND = 0.01, 1e-3
# Step of the offsets tested [rad], and parameters of the search around the best.
_ANGLE_STEP = np.radians(15.0)
_GOLDEN_RATIO, _HALVINGS = 0.618, 10


def find_outlier_file(evidence: HypothesisTest) -> tuple[Cause, Samples] | None:
    """Cause that one file differs from the others, and the samples of those; None if none does.

    Args:
        evidence: Hypothesis test of all files; rebuilt with more rows if there are few per file.
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


def find_reversed_file(evidence: HypothesisTest) -> Cause | None:
    """Cause that the torque of one of several files has the other sign; None if none does.

    A file is reversed if every joint that decides is, while another file has no reversed joint.
    """
    samples = evidence.samples
    names = np.array(samples.names)[samples.run[evidence.indices]]
    signs = {name: sign_evidence(evidence, names == name) for name in dict.fromkeys(samples.names)}
    reversed_names = [name for name in signs if signs[name].is_reversed_throughout]
    if not reversed_names or not any(np.any(one.decided > 0) for one in signs.values()):
        return None
    name = reversed_names[0]
    message = (
        f"{name}: its torque has the other sign than that of the other recordings and of the "
        f"nominal robot. Fit it with a column map of its own (`sign: -1` at the torque), or leave "
        "it out"
    )
    # A remedy for one file would spoil the others.
    return Cause(Finding("torque_sign", "error", message, file=name))


@dataclass(frozen=True, slots=True, eq=False)
class _FileFit:
    """Rows of a file with the fits to the other files and to it alone."""

    name: str
    rows: DiagnosisRows
    other_fit: NormalSolution
    own_fit: NormalSolution
    torque_std: Float[Array, " j"]

    def nrmse_squared(
        self, rows: DiagnosisRows, fit: NormalSolution | None = None
    ) -> Float[Array, " j"]:
        """Mean squared residual of rows over the variance of the torque."""
        count = np.maximum(rows.keep.sum(axis=0), 1)
        residuals = residual(rows, self.other_fit if fit is None else fit)
        out: Array = np.sum(residuals**2, axis=0) / count / self.torque_std**2
        return out

    @property
    def own_nrmse_squared(self) -> Float[Array, " j"]:
        """Squared nrmse of the file under its own fit."""
        return self.nrmse_squared(self.rows, self.own_fit)

    @property
    def excess(self) -> float:
        """Excess of the squared nrmse by the other files' fit."""
        return float(np.sum(self.nrmse_squared(self.rows) - self.own_nrmse_squared))


def _zero_offset_cause(part: _FileFit) -> Cause | None:
    """Cause if the zero offset of one joint explains the file."""
    rows, excess, own_sum = part.rows, part.excess, float(part.own_nrmse_squared.sum())
    offsets = sorted(
        (*_best_offset(part, j), j) for j in np.flatnonzero(~rows.robot.is_prismatic).tolist()
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
    # A remedy for one file would spoil the others.
    return Cause(
        Finding("zero_offset", "error", message, joint=joint + 1, file=part.name), correction
    )


def _best_offset(part: _FileFit, joint: int) -> tuple[float, float]:
    """Smallest residual over position offsets of a joint, and that offset [rad]."""
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
    """Cause if a different load of the last link explains the file."""
    rows = part.rows
    layout = rows.robot.layout
    if layout.tip is None:
        return None
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
