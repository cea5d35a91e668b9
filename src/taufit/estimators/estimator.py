"""The contract every estimator keeps: parameters from information, however many the samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics.base_parameters import BaseParameters, base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True, eq=False)
class EstimationProblem:
    """What an estimator may know besides the data.

    Attributes:
        model: Whose parameters are wanted: names, nominal values, which must not be negative.
        base: Its base parameters.
        folds: Gives information on parts of the data, weighted like the whole, for choosing
            settings by cross-validation; None where there is only the whole.
        least_noise: Below which the noise of a weighted row is not taken to be.
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
    """What an estimator found.

    Attributes:
        values: Standard parameters, in the order of the model's names.
        warnings: What the user should know.
        settings: What was chosen from the data, e.g. a prior's weight.
    """

    values: Float[Array, " p"]
    warnings: tuple[str, ...] = ()
    settings: dict[str, float] = field(default_factory=dict)


@runtime_checkable
class Estimator(Protocol):
    """Frozen settings that turn information into parameters."""

    @property
    def weighting(self) -> str:
        """How rows are weighted before they become information: a name in `WEIGHTINGS`."""
        ...

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        """Parameters from (weighted) information."""
        ...


def column_scale(information: Information, problem: EstimationProblem) -> Float[Array, " p"]:
    """A typical size of each parameter: what would explain as much torque as was measured.

    |z| over the column norms of R, or over a thousandth of the largest norm of its kind where a
    column is nearly empty. Kinds are mass, first moments and inertias; each joint term is its own.
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
