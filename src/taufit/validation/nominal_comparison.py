"""Comparison of the fitted model with the nominal robot (manufacturer values)."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.signals.samples import Samples
from taufit.validation.score import Score, score


@dataclass(frozen=True, slots=True, eq=False)
class NominalComparison:
    """Scores of the nominal robot, without friction and offsets, and of the fitted model.

    Attributes:
        nominal: Score of the nominal robot.
        fitted: Score of the fitted model.
        with_friction: Score of the nominal links with fitted rotors, friction and offsets.
    """

    nominal: Score
    fitted: Score
    with_friction: Score

    @property
    def reduction(self) -> float:
        """Reduction of e_N by identification: 1 - e_N fitted / e_N nominal."""
        return 1.0 - self.fitted.e_n / self.nominal.e_n

    @property
    def rmse_ratio(self) -> Float[Array, " j"]:
        """Fitted over nominal RMSE, per joint."""
        return self.fitted.rmse / np.maximum(self.nominal.rmse, np.finfo(float).tiny)


def compare_with_nominal(
    model: FittedModel,
    nominal: Robot,
    samples: Samples,
    *,
    predicted: Float[Array, "n j"] | None = None,
) -> NominalComparison | None:
    """Compare a fitted model with the nominal robot; None if that has no inertial parameters.

    Args:
        model: The fitted model.
        nominal: Robot with manufacturer values.
        samples: Samples to compare on.
        predicted: Torque predicted by the fitted model, if already computed.
    """
    if not np.any(nominal.parameters):
        return None
    nominal_model = TorqueModel(nominal, None, rotor_inertia=True, offset=False).with_values(
        np.concatenate([nominal.parameters, nominal.rotor_inertias])
    )
    combined_values = model.values.copy()
    combined_values[model.layout.links] = nominal.parameters
    combined = model.with_robot(nominal).with_values(combined_values)
    if predicted is None:
        predicted = predicted_torque(model, samples)
    rows = samples.in_motion
    return NominalComparison(
        score(nominal_model, samples, rows=rows),
        score(model, samples, predicted=predicted, rows=rows),
        score(combined, samples, rows=rows),
    )
