"""One identification per run, and regression of friction on temperature: the usual procedure.

Baseline for comparison with a single temperature-dependent fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.estimators.estimator import Estimator
from taufit.fitting.fit import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples


@dataclass(frozen=True, slots=True, eq=False)
class RunwiseFits:
    """Fits of single runs, and regression lines of their viscous friction.

    Attributes:
        models: One per run.
        temperature: Mean temperature of each run [degC].
        viscous: Viscous friction of each run [N m s/rad].
        viscous_std: Standard deviation from each fit.
        slope: Slope of the line per joint [N m s/rad/K].
        slope_std: Standard deviation from the scatter about the line.
        reference: Mean temperature [degC].
        level: Viscous friction at the mean temperature [N m s/rad].
    """

    models: tuple[FittedModel, ...]
    temperature: Float[Array, "r j"]
    viscous: Float[Array, "r j"]
    viscous_std: Float[Array, "r j"]
    slope: Float[Array, " j"]
    slope_std: Float[Array, " j"]
    reference: Float[Array, " j"]
    level: Float[Array, " j"]

    def at(self, temperature: Float[Array, " j"]) -> Float[Array, " j"]:
        """Viscous friction on the lines."""
        return self.level + self.slope * (np.asarray(temperature) - self.reference)

    def nearest(self, temperature: Float[Array, " j"]) -> FittedModel:
        """Fit of the run nearest to these temperatures."""
        distances = np.linalg.norm(self.temperature - np.asarray(temperature), axis=1)
        return self.models[int(np.argmin(distances))]


def single_runs(samples: Samples) -> list[Samples]:
    """Split samples into single runs."""
    runs = []
    for rows in samples.run_slices():
        part = samples.rows(rows)
        name = samples.names[int(part.run[0])]
        runs.append(replace(part, run=0 * part.run, names=(name,)))
    return runs


def repeat_identification(
    model: TorqueModel,
    runs: Sequence[Samples],
    estimator: Estimator | None = None,
    *,
    dropped: tuple[str, ...] = (),
) -> RunwiseFits:
    """Fit each run separately, and a line of viscous friction over temperature.

    Args:
        model: Model without temperature; its friction has a term "viscous".
        runs: Three or more runs with temperatures, conditioned alike.
        estimator: Estimator; default: weighted least squares.
        dropped: Parameters fixed at zero.
    """
    if len(runs) < 3 or any(run.temperature is None for run in runs):
        raise RecordingError(
            "friction against temperature needs three or more recordings with temperatures."
        )
    models, temperatures, viscous, std = [], [], [], []
    viscous_indices = np.flatnonzero(model.layout.select(lambda term: term.power == 1))
    for run in runs:
        estimate = fit_samples(model, run, estimator, dropped=dropped, require_excitation=False)
        models.append(fitted_model(model, estimate, run))
        assert run.temperature is not None
        temperatures.append(run.temperature[run.in_motion].mean(axis=0))
        viscous.append(estimate.values[viscous_indices])
        std.append(estimate.std[viscous_indices])
    t, f = np.array(temperatures), np.array(viscous)
    middle = t.mean(axis=0)
    size = np.maximum(np.sum((t - middle) ** 2, axis=0), 1e-12)
    slope = np.sum((t - middle) * f, axis=0) / size
    residual = f - f.mean(axis=0) - slope * (t - middle)
    residual_std = np.sqrt(np.sum(residual**2, axis=0) / (len(runs) - 2))
    return RunwiseFits(
        tuple(models),
        t,
        f,
        np.array(std),
        slope,
        residual_std / np.sqrt(size),
        middle,
        f.mean(axis=0),
    )
