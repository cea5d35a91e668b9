"""Friction prior of a fit: coefficients of a friction test with their uncertainty.

    theta_i ~ N(tested_i, s_i^2),      s_i^2 = deviation_i^2 + (0.1 tested_i)^2

The factor 0.1 is the day-to-day variation of friction. Shapes and dropped terms are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.terms import DISSIPATIVE

DAY_TO_DAY_STD = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class FrictionPrior:
    """Prior of friction parameters.

    Attributes:
        names: Names of the tested friction parameters.
        values: Prior means.
        std: Prior standard deviations; 0 for dropped terms.
    """

    names: tuple[str, ...]
    values: Float[Array, " k"]
    std: Float[Array, " k"]

    @classmethod
    def from_model(cls, tested: FittedModel) -> FrictionPrior:
        """Prior from a model with known friction, e.g. written by `taufit friction`."""
        if not tested.layout.of_kind(DISSIPATIVE).any():
            raise TaufitError("that model has no friction. Give one written by `taufit friction`.")
        indices = np.flatnonzero(tested.layout.of_kind(DISSIPATIVE))
        names, values = (
            tuple(np.array(tested.names)[indices]),
            np.asarray(tested.values[indices], float),
        )
        std = np.full(len(values), np.inf)
        if tested.training.std is not None:
            std = np.asarray(tested.training.std[indices], float)
        finite = np.isfinite(std)
        if not np.any(finite):
            raise TaufitError(
                "that model does not say how well its friction is known. Give one written by "
                "`taufit friction` or `taufit fit`."
            )
        source = tested.training.provenance
        dropped = set() if source is None else set(source.settings.dropped)
        is_dropped = np.array([name in dropped for name in names])
        prior_std = np.where(is_dropped, 0.0, np.hypot(std, DAY_TO_DAY_STD * values))
        # A term of value zero gets the day-to-day variation as its standard deviation.
        prior_std[finite & ~is_dropped & (prior_std == 0.0)] = DAY_TO_DAY_STD
        return cls(
            tuple(name for name, k in zip(names, finite, strict=True) if k),
            values[finite],
            prior_std[finite],
        )

    @property
    def dropped(self) -> tuple[str, ...]:
        """Terms fixed at zero."""
        return tuple(n for n, s in zip(self.names, self.std, strict=True) if s == 0.0)

    def parameter_prior(
        self, model: TorqueModel
    ) -> tuple[Bool[Array, " p"], Float[Array, " p"], Float[Array, " p"]]:
        """Mask of a model's parameters with a prior, prior means and precisions (1/variance)."""
        index = {name: i for i, name in enumerate(model.names)}
        has_prior = np.zeros(len(index), bool)
        values, precision = np.zeros(len(index)), np.zeros(len(index))
        for name, value, std in zip(self.names, self.values, self.std, strict=True):
            if name in index and std > 0.0:
                has_prior[index[name]] = True
                values[index[name]], precision[index[name]] = value, 1.0 / std**2
        return has_prior, values, precision


def with_friction_of_test(model: TorqueModel, tested: FittedModel) -> TorqueModel:
    """Model structure with the tested friction model and shapes; further terms are kept."""
    if tested.robot.joints != model.robot.joints:
        raise TaufitError(
            f"the friction test is of an arm with {tested.robot.joints} joints, this one has "
            f"{model.robot.joints}."
        )
    parameter_names = {parameter.name for parameter in model.term_sum.parameters}
    further = [
        t
        for t in tested.terms
        if not parameter_names & {parameter.name for parameter in t.parameters}
    ]
    return replace(
        model, friction=tested.friction_model, terms=(*further, *model.terms), shape=tested.shape
    )


def friction_mismatch_warnings(
    prior: FrictionPrior, names: tuple[str, ...], values: Float[Array, " p"]
) -> list[str]:
    """Warnings where fitted friction is far from the friction test."""
    fitted = dict(zip(names, values, strict=True))
    mismatches = [
        f"{name} {fitted[name]:.3g} instead of {value:.3g}"
        for name, value, std in zip(prior.names, prior.values, prior.std, strict=True)
        if name in fitted and std > 0.0 and abs(fitted[name] - value) > 3.0 * std
    ]
    if not mismatches:
        return []
    return [
        f"friction differs from the friction test: {', '.join(mismatches[:6])}"
        f"{' and more' if len(mismatches) > 6 else ''}. Were both recorded on the same arm, at "
        "about the same temperature?"
    ]
