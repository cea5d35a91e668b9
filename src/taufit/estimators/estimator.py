"""Interface of estimators: parameters from information, for any number of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics.base_parameters import BaseParameters, base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True, eq=False)
class EstimationProblem:
    """Context of an estimation besides the data.

    Attributes:
        model: Torque model: names, nominal values, sign constraints.
        base: Base parameters of the model.
        folds: Function that returns the information of folds, weighted like all data, for
            cross-validation; None without folds.
        least_noise: Lower limit of the noise of a weighted row.
    """

    model: TorqueModel
    base: BaseParameters
    folds: Callable[[], tuple[Information, ...]] | None = None
    least_noise: float = 0.0

    @classmethod
    def from_model(cls, model: TorqueModel) -> EstimationProblem:
        return cls(model, base_parameters(model))


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorSolution:
    """Result of an estimator.

    Attributes:
        values: Standard parameters, in the order of the model's names.
        warnings: Messages for the user.
        settings: Settings derived from the data, e.g. the prior weight.
    """

    values: Float[Array, " p"]
    warnings: tuple[str, ...] = ()
    settings: dict[str, float] = field(default_factory=dict)


@runtime_checkable
class Estimator(Protocol):
    """Frozen settings that turn information into parameters."""

    @property
    def weighting(self) -> str:
        """Weighting of the rows: a name in `WEIGHTINGS`."""
        ...

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        """Parameters from (weighted) information."""
        ...


def column_scale(information: Information, problem: EstimationProblem) -> Float[Array, " p"]:
    """Typical size of each parameter: the value that would explain all of the measured torque.

    |z| over the column norms of R, or over a thousandth of the largest norm of its kind where a
    column is nearly zero. Kinds are mass, first moments and inertias; each joint term is separate.
    """
    norms = np.linalg.norm(information.factor, axis=0)
    kinds = np.array([_kind(name) for name in information.names])
    signal = np.linalg.norm(information.target) or 1.0
    scale = np.ones(len(norms))
    largest_norm = norms.max() if norms.max() > 0 else 1.0
    for kind in np.unique(kinds):
        members = kinds == kind
        kind_norm = norms[members].max()
        floor = 1e-3 * kind_norm if kind_norm > 0 else largest_norm
        scale[members] = signal / np.maximum(norms[members], floor)
    return scale


def _kind(name: str) -> str:
    entry = name.rsplit(".", 1)[-1]
    return {"m": "m", "h": "h", "I": "I"}.get(entry[0], entry) if name.startswith("link") else entry


def noise_level(information: Information, problem: EstimationProblem) -> float:
    """Standard deviation of a row, from the smallest residual of any parameters."""
    degrees_of_freedom = max(information.count - len(problem.base.columns), 1)
    residual_std = np.sqrt(information.minimum_cost(problem.base.columns) / degrees_of_freedom)
    # For noise-free data, a millionth of the signal.
    signal = np.sqrt(np.sum(information.target**2) / max(information.count, 1))
    return float(max(residual_std, problem.least_noise, 1e-6 * signal, np.finfo(float).tiny))
