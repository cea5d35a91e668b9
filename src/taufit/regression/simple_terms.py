"""Training information for export formats that hold less than the model: a factor per joint.

The terms of a format are fitted to these later, without the recordings; `simulator_structure`
defines their span.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.dynamics import BaseParameters
from taufit.dynamics.base_parameters import base_parameters
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import rigid_torque
from taufit.model.simulator_structure import simulator_structure
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import SimpleTerms, TermTriangle
from taufit.regression.information import Information
from taufit.regression.regression import Regression
from taufit.regression.result_reuse import reusable_model
from taufit.regression.rows import SampleRows, add_information, pad_information
from taufit.signals.sample_source import Fold, SampleSource
from taufit.signals.samples import Samples
from taufit.terms import Term

# Samples per period of the cut-off frequency that suffice for its columns.
_PER_CUTOFF = 3.0


def simple_terms(model: FittedModel, source: SampleSource) -> SimpleTerms:
    """Information of the samples about simple terms, and torque of the model's friction terms."""
    # Columns do not depend on the fitted values: those of a nearby model are reused from the cache.
    structure = simulator_structure(reusable_model(model, source).robot, model.terms)
    base = base_parameters(structure)
    total = source.total(_SimpleTermTriangles(structure, base), _add_pairs)
    included, excluded = (tuple(_to_term_triangle(part) for part in parts) for parts in total)
    roll, pitch, yaw = (float(x) for x in model.robot.mounting)
    return SimpleTerms(
        mounting=(roll, pitch, yaw),
        kept=included,
        set_aside=excluded if any(part.count for part in excluded) else (),
        effect=_effect(model, source.excerpt),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _SimpleTermTriangles:
    structure: TorqueModel
    base: BaseParameters

    def __call__(self, part: Samples) -> tuple[tuple[Information, ...], tuple[Information, ...]]:
        """Information on simple terms from thinned samples, for kept and excluded rows."""
        columns = self.base.columns
        names = tuple(self.structure.names[c] for c in columns)
        moving = np.repeat(part.in_motion[:, None], part.joints, 1)
        rows = SampleRows(self.structure, replace(part, keep=moving | np.asarray(part.keep)))
        stride = max(1, int(part.rate_hz / (_PER_CUTOFF * part.cutoff_hz)))
        thinned = slice(None, None, stride)
        keep, torque = np.asarray(part.keep)[thinned], rows.torque[thinned]
        excluded = moving[thinned] & ~keep
        out: tuple[list[Information], list[Information]] = ([], [])
        for j, (indices, values) in enumerate(rows.joint_columns(0, len(rows), stride, columns)):
            joint_names = tuple(names[k] for k in indices)
            for parts, included in zip(out, (keep[:, j], excluded[:, j]), strict=True):
                joint_information = Information.from_rows(
                    joint_names, values.T[included], torque[included, j]
                )
                parts.append(pad_information(joint_information, names, indices))
        return tuple(out[0]), tuple(out[1])


def _add_pairs(
    a: tuple[tuple[Information, ...], tuple[Information, ...]],
    b: tuple[tuple[Information, ...], tuple[Information, ...]],
) -> tuple[tuple[Information, ...], tuple[Information, ...]]:
    return add_information(a[0], b[0]), add_information(a[1], b[1])


def _to_term_triangle(information: Information) -> TermTriangle:
    """Condense information: drop columns that are zero in the joint's rows."""
    nonzero = np.flatnonzero(np.any(information.factor != 0.0, axis=0))
    names = tuple(information.names[c] for c in nonzero)
    condensed = Information.from_rows(names, information.factor[:, nonzero], information.target)
    factor = condensed.factor[np.triu_indices(len(nonzero))]
    residual = condensed.residual + information.residual
    return TermTriangle(names, factor, condensed.target, float(residual), int(information.count))


class TrainingRegression(Regression):
    """Training rows of a structure with some of the simple terms.

    With W = W_b B for all simple terms and S the positions of the structure's terms among them,

        |y - W S x|^2 = |z - R B S x|^2 + residual.
    """

    def __init__(
        self, terms: SimpleTerms, structure: TorqueModel, further: tuple[Term, ...] = ()
    ) -> None:
        mounted = replace(structure.robot, mounting=terms.mounting)
        wide = simulator_structure(mounted, further)
        self._base_of_all = base_parameters(wide)
        columns = [wide.names[c] for c in self._base_of_all.columns]
        term_names = {
            name for triangle in (*terms.kept, *terms.set_aside) for name in triangle.names
        }
        if not term_names <= set(columns) or len(terms.kept) != structure.robot.joints:
            raise TaufitError(
                "what the model file says of training does not fit its robot. Fit again."
            )
        self._columns = {name: k for k, name in enumerate(columns)}
        self._structure_columns = [wide.names.index(name) for name in structure.names]
        self._terms = terms
        self.base = base_parameters(replace(structure, robot=mounted))
        self.names = self.base.parameter_names
        self.joints = structure.robot.joints
        self._joint_information = tuple(
            self._structure_information(triangle) for triangle in terms.kept
        )

    def with_rows(
        self,
        joint: int,
        names: tuple[str, ...],
        rows: Float[Array, "m k"],
        target: Float[Array, " m"],
    ) -> None:
        """Append rows to a joint; `names` are terms that no others stand for."""
        base_names = [self.names[c] for c in self.base.columns]
        wide = np.zeros((len(rows), len(base_names)))
        wide[:, [base_names.index(name) for name in names]] = rows
        extended = self._joint_information[joint].with_rows(wide, target)
        self._joint_information = (
            *self._joint_information[:joint],
            extended,
            *self._joint_information[joint + 1 :],
        )

    def _pass(
        self, plan: list[list[Fold]]
    ) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """Single fold: only triangular factors are stored, not rows."""
        return (self._joint_information,), np.zeros(self.joints)

    def _plan(self) -> list[list[Fold]]:
        return [[]]

    def rmse(self, theta: Float[Array, " p"]) -> Float[Array, " j"]:
        """Root mean square residual per joint over all rows in motion."""
        squares, count = np.zeros(self.joints), np.zeros(self.joints)
        for triangles in (self._terms.kept, self._terms.set_aside):
            for j, triangle in enumerate(triangles):
                residual = triangle.target - self._rows(triangle) @ theta
                squares[j] += residual @ residual + triangle.residual
                count[j] += triangle.count
        return np.sqrt(squares / np.maximum(count, 1))

    def column_rms(self, name: str, joint: int) -> float:
        """Root mean square of a simple term's column in a joint's rows."""
        wide = self._base_of_all.parameter_names.index(name)
        triangle = self._terms.kept[joint]
        column = triangle.matrix @ self._base_of_all.mapping[self._column_indices(triangle), wide]
        return float(np.linalg.norm(column) / np.sqrt(max(triangle.count, 1)))

    def _column_indices(self, triangle: TermTriangle) -> list[int]:
        return [self._columns[name] for name in triangle.names]

    def _rows(self, triangle: TermTriangle) -> Float[Array, "u p"]:
        """Rows R B S of a joint."""
        return np.asarray(
            triangle.matrix
            @ self._base_of_all.mapping[self._column_indices(triangle)][:, self._structure_columns]
        )

    def _structure_information(self, triangle: TermTriangle) -> Information:
        columns = self.base.columns
        names = tuple(self.names[c] for c in columns)
        restricted = Information.from_rows(names, self._rows(triangle)[:, columns], triangle.target)
        return Information(
            names,
            restricted.factor,
            restricted.target,
            restricted.residual + triangle.residual,
            triangle.count,
        )


def _effect(model: FittedModel, samples: Samples) -> Float[Array, "j k"]:
    """Root mean square torque of each friction term at each motor, through the low-pass."""
    motor = model.columns.drive_at(samples, load=rigid_torque(model, samples))
    moving = samples.in_motion
    size = np.sqrt(np.mean(motor[moving] ** 2, axis=0)) if np.any(moving) else np.zeros(())
    return np.asarray(np.abs(model.layout.split(model.values).drive * size))
