"""What identification was good for: the manufacturer's values against the fitted ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.signals.samples import Samples
from taufit.validation.score import Score, score


@dataclass(frozen=True, slots=True, eq=False)
class NominalComparison:
    """The nominal robot, without friction and offsets, on the same samples.

    Attributes:
        nominal: Its score.
        fitted: The fitted model's score.
        with_friction: Of the nominal links with the fitted rotors, friction and offsets.
    """

    nominal: Score
    fitted: Score
    with_friction: Score

    @property
    def reduction(self) -> float:
        """Share of e_N that identification took away: 1 - e_N fitted / e_N nominal."""
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
    """Compare a fitted model with the robot description it started from; None if that says nothing.

    Args:
        model: The fitted model.
        nominal: The robot as its maker describes it.
        samples: Where to compare them.
        predicted: The fitted model's torque, where that is at hand.
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
