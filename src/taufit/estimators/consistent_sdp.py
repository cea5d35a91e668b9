"""Physically consistent least squares: convex, so the global optimum is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.estimators.constraints import make_constraints, project_to_feasible
from taufit.estimators.entropic import entropic_least_squares, select_prior_weight
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution, noise_level
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class ConsistentSdp:
    """Minimise |y - W theta|^2 subject to physical consistency.

    Every link's pseudo-inertia is positive definite, rotor inertias and dissipative friction terms
    are not negative, and the user's bounds hold. Unidentifiable combinations are set as close to
    the nominal robot as consistency allows; with a prior, also poorly excited ones.

    Attributes:
        weighting: Weighting of the rows, see `WEIGHTINGS`.
        prior_weight: Prior weight; 0 for none. A positive number w adds w sum_k D(P_k, P0_k), the
            log-det divergence from the nominal links, in units of one squared noise level.
            "cross_validated" determines w by cross-validation; several numbers are one per link.
        precision: Prior precision of each parameter, in the same unit; none by default.
        expected: Prior mean of each parameter; zero by default.
        speeds: Speed up to which friction of each joint must be dissipative [rad/s]; rated speeds
            by default.
        rising: Whether friction must not decrease with speed up to there.
        drive_torque: Upper limit of each joint's friction at low speed and offset [N m]; none by
            default.
        least_noise: Lower limit of each joint's noise [N m]; none by default.
        margin: Smallest eigenvalue of every pseudo-inertia [kg and kg m^2].
        mass, centre, ellipsoid, total_mass: Bounds as for `make_constraints`.
        ridge: Weight of the nominal robot in unidentifiable directions, relative to the noise.
    """

    weighting: str = "joint"
    prior_weight: float | str | tuple[float, ...] = 0.0
    precision: tuple[float, ...] = ()
    expected: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()
    rising: bool = False
    drive_torque: tuple[float, ...] = ()
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
            drive_torque=self.drive_torque,
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
            from taufit.estimators.cone_least_squares import consistent_least_squares

            with_prior = self._with_precision(information, problem)
            theta, messages = consistent_least_squares(with_prior, problem, limits, self.ridge)
        warnings.extend(messages)
        return EstimatorSolution(
            project_to_feasible(model, theta, margin=self.margin), tuple(warnings), settings
        )

    def _with_precision(self, information: Information, problem: EstimationProblem) -> Information:
        """Information with the prior of the terms as rows, and unchanged residual."""
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
