"""Physically consistent least squares: convex, so the best possible arm is found for certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taufit.core.errors import InfeasibleError
from taufit.estimators.cone_least_squares import consistent_least_squares, noise_level
from taufit.estimators.constraints import make_constraints, project_to_feasible
from taufit.estimators.entropic import entropic_least_squares, select_prior_weight
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class ConsistentSdp:
    """min |y - W theta|^2 subject to physics.

    Every link's pseudo-inertia is positive definite, rotor inertias and dissipative friction terms
    are not negative, and the user's bounds hold. Combinations no motion shows are set as near to
    the nominal robot as physics allows; with a prior, poorly excited ones are pulled there too.

    Attributes:
        weighting: Of the rows, see `WEIGHTINGS`.
        prior_weight: 0 for none. A positive number w adds w sum_k D(P_k, P0_k), the log-det
            divergence from the nominal links, in units of one squared noise level.
            "cross_validated" chooses w by predicting runs left out; several numbers are one per
            link.
        precision: One per parameter: 1 / variance, in the same unit; none by default.
        expected: What that variance is about, one per parameter; zero by default.
        speeds: Up to which each joint's friction must take energy, never give it [rad/s]; by
            default the robot's rated speeds.
        rising: Whether friction must not fall with speed up to there, either.
        least_noise: Below which no joint's noise is taken to be [N m]; none by default.
        margin: Smallest eigenvalue of every pseudo-inertia [kg and kg m^2].
        mass, centre, ellipsoid, total_mass: Bounds, as `constraints_of` takes them.
        ridge: Weight of the nominal robot in directions no motion shows, relative to the noise.
    """

    weighting: str = "joint"
    prior_weight: float | str | tuple[float, ...] = 0.0
    precision: tuple[float, ...] = ()
    expected: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()
    rising: bool = False
    least_noise: tuple[float, ...] = ()
    margin: float = 1e-6
    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    centre: Mapping[str, Any] = field(default_factory=dict)
    ellipsoid: Mapping[str, Any] = field(default_factory=dict)
    total_mass: tuple[float, float] | None = None
    ridge: float = 1e-4

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        model = problem.model
        limits = make_constraints(
            model,
            margin=self.margin,
            mass=self.mass,
            centre=self.centre,
            ellipsoid=self.ellipsoid,
            total_mass=self.total_mass,
            speeds=self.speeds,
            rising=self.rising,
        )
        warnings: list[str] = []
        settings: dict[str, float] = {}
        weight = self.prior_weight
        if isinstance(weight, str):
            if weight != "cross_validated":
                raise InfeasibleError(
                    f"prior weight {weight!r} is not known: give a number or 'cross_validated'."
                )
            weight = select_prior_weight(problem, limits, self.margin)
        weights = np.asarray(weight, float)
        if np.any(weights < 0) or not np.all(np.isfinite(weights)):
            raise InfeasibleError(f"a prior weight must be 0 or more, found {weight}.")
        settings["prior_weight"] = float(weights.mean())
        if np.all(weights > 0):
            precision = np.asarray(self.precision, float) if self.precision else None
            prior_mean = np.asarray(self.expected, float) if self.expected else None
            theta, messages = entropic_least_squares(
                information, problem, limits, weights, precision=precision, expected=prior_mean
            )
        else:
            with_prior = self._with_precision(information, problem)
            theta, messages = consistent_least_squares(with_prior, problem, limits, self.ridge)
        warnings.extend(messages)
        return EstimatorSolution(
            project_to_feasible(model, theta, margin=self.margin), tuple(warnings), settings
        )

    def _with_precision(self, information: Information, problem: EstimationProblem) -> Information:
        """The same with the terms' prior as rows; what the data leave unexplained stays theirs."""
        if not self.precision:
            return information
        noise = noise_level(information, problem)
        rows = np.diag(noise * np.sqrt(np.asarray(self.precision, float)))
        rows = rows[np.any(rows, axis=1)]
        expected = np.asarray(self.expected or np.zeros(len(self.precision)), float)
        extended = information.with_rows(rows, rows @ expected)
        return Information(
            extended.names,
            extended.factor,
            extended.target,
            information.residual,
            information.count,
        )
