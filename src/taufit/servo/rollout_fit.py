"""Second stage: Gauss-Newton on roll-outs, from the linear fit.

The cost is a Huber loss of replayed minus measured positions plus a Gaussian prior with pooled
gains of equal servos.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.replay_rows import ReplayRows
from taufit.servo.unknowns import ServoPrior, pack, unpack

_LAST_STEP = 0.1  # largest change of an unknown by the last Newton step
_MIN_IMPROVEMENT = 0.002  # smallest decrease of the cost that is followed, in log likelihood


@dataclass(frozen=True, slots=True, eq=False)
class RolloutFit:
    """Result of the second stage.

    Attributes:
        x: Unknowns at the optimum.
        precision: Hessian of the cost, prior included.
        prior_precision: Share of the prior in `precision`.
        slope: Gradient of the cost, prior included.
        normal: J'WJ of every motion.
        gradient: J'Wr of every motion.
        simulated_gradient: `gradient` of simulated recordings of the fitted arm; zero without them.
        run: Number of the run of every motion.
    """

    x: Float[Array, " p"]
    precision: Float[Array, "p p"]
    prior_precision: Float[Array, "p p"]
    slope: Float[Array, " p"]
    normal: Float[Array, "u p p"]
    gradient: Float[Array, "u p"]
    simulated_gradient: Float[Array, "u p"]
    run: Int[Array, " u"]

    @property
    def servo(self) -> ServoParameters:
        """Parameters at the optimum."""
        return unpack(self.x)

    def without(self, run: int) -> ServoParameters:
        """Parameters without a run, by one Newton step from the optimum."""
        units = self.run == run
        precision = self.precision - self.normal[units].sum(axis=0)
        step = np.linalg.solve(precision, self.gradient[units].sum(axis=0))
        return unpack(self.x + np.clip(step, -1.0, 1.0))

    def data_covariance(self) -> Float[Array, "p p"]:
        """Covariance of x by the data (sandwich), with motions as units.

        Units are the steps of the motions less those of simulated recordings of the fitted arm,
        which have the same bias; their mean is the pull of the prior. Errors of motions of one run
        are alike: the covariance is scaled by the median ratio, over the unknowns, of the variance
        with whole runs as units to that with motions.
        """
        steps = np.linalg.solve(self.precision, (self.gradient - self.simulated_gradient).T).T
        run_steps = np.array([steps[self.run == k].sum(axis=0) for k in np.unique(self.run)])
        covariance, run_covariance = (
            np.cov(u.T, bias=True) * len(u) ** 2 / max(len(u) - 1, 1) for u in (steps, run_steps)
        )
        variance = np.diag(covariance)
        seen = variance > 0.0  # a joint that never moves has no data
        ratio = np.median(np.diag(run_covariance)[seen] / variance[seen])
        return np.asarray(max(float(ratio), 1.0) * covariance)

    def prior_covariance(self) -> Float[Array, "p p"]:
        """Covariance of x that the prior leaves, as if the data had no noise."""
        inverse = np.linalg.inv(self.precision)
        return np.asarray(inverse @ self.prior_precision @ inverse)

    def without_bias(
        self, bias: Float[Array, " p"], simulated_gradient: Float[Array, "u p"]
    ) -> RolloutFit:
        """Fit corrected by the bias that simulated runs show, after a last Newton step."""
        step = np.linalg.solve(self.precision, self.slope)
        x = self.x - bias - np.clip(step, -_LAST_STEP, _LAST_STEP)
        return replace(self, x=x, simulated_gradient=simulated_gradient)


def fit_rollouts(
    rows: ReplayRows,
    start: ServoParameters,
    prior: ServoPrior,
    floor: Floor | None = None,
    *,
    iterations: int = 12,
) -> RolloutFit:
    """Fit servo parameters to motions by Gauss-Newton with Levenberg-Marquardt damping.

    Args:
        rows: Motions, and the rows of them that count.
        start: First parameters; a positive acceleration limit is fitted, zero is kept.
        prior: Prior of the unknowns.
        floor: Floor in the roll-outs, or None.
        iterations: Largest number of steps.
    """

    def equations(x: Float[Array, " p"]) -> tuple[Array, Array, Array, Array]:
        normal, gradient = rows.normal_equations(x, floor)
        hessian = normal.sum(axis=0) + prior.precision
        slope = gradient.sum(axis=0) + prior.precision @ (x - prior.mean)
        return hessian, slope, normal, gradient

    def cost_of(x: Float[Array, " p"]) -> float:
        change = x - prior.mean
        return rows.cost(x, floor) + float(0.5 * change @ prior.precision @ change)

    x, _ = descend(pack(start), lambda x: equations(x)[:2], cost_of, 1.0, iterations)
    hessian, slope, normal, gradient = equations(x)
    return RolloutFit(
        *(x, hessian, prior.precision, slope, normal, gradient, np.zeros_like(gradient), rows.run)
    )


def descend(
    x: Float[Array, " p"],
    equations: Callable[[Float[Array, " p"]], tuple[Array, Array]],
    cost_of: Callable[[Float[Array, " p"]], float],
    largest_step: float,
    iterations: int,
) -> tuple[Float[Array, " p"], float]:
    """Minimise a cost by Gauss-Newton with Levenberg-Marquardt damping.

    Args:
        x: Start.
        equations: Hessian and gradient of the cost.
        cost_of: Cost.
        largest_step: Largest change of an unknown by one step.
        iterations: Largest number of steps.

    Returns:
        The minimum and its cost.
    """
    damping, cost = 1e-3, cost_of(x)
    for _ in range(iterations):
        hessian, slope = equations(x)
        while damping < 1e6:
            scaled = hessian + damping * np.diag(np.diag(hessian))
            trial = x - np.clip(np.linalg.solve(scaled, slope), -largest_step, largest_step)
            trial_cost = cost_of(trial)
            if trial_cost < cost:
                break
            damping *= 10.0
        else:
            break
        improvement, x, cost = cost - trial_cost, trial, trial_cost
        damping = max(damping * 0.1, 1e-7)
        if improvement < max(1e-4 * cost, _MIN_IMPROVEMENT):
            break
    return x, cost
