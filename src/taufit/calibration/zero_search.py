"""Joint zero search: Gauss-Newton on all parameters of a model and the zeros.

Corrections for a realistic uncertainty of the zeros:

- Torque ripple that no model has looks like a joint offset. Sines and cosines of every joint's
  position are fitted too, each with a prior amplitude relative to the residuals, so that the
  uncertainty of the zeros includes ripple.
- Zeros show in slow torque, where sensor noise has more power than its average up to the low-pass:
  rows are weighted by the residuals' spectral density below `BAND_HZ`.
- A fit removes part of the noise in that band from its residuals. The fraction is found by fitting
  white noise and corrected for; the rest is known from few degrees of freedom, which widens
  intervals by Student's t distribution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.core.gaussian import Gaussian
from taufit.core.statistics import NORMAL_95, student_t_upper_quantile
from taufit.fitting.selection.friction_terms import correlation_samples, gaussian_prior
from taufit.model.torque_model import TorqueModel
from taufit.regression.repeated_motion import BAND_HZ, power_with_repeats
from taufit.robot import Robot
from taufit.signals.estimates.periodicity import find_period
from taufit.signals.samples import Samples
from taufit.terms import CONSERVATIVE

_MAXIMUM_ROWS = 3000
_ITERATIONS = 8
# Step of the central difference, and the step below which the search has ended [rad or m].
_DIFFERENCE_STEP, _CONVERGED_STEP = 1e-4, 1e-6
# Largest zero offsets taken for a misalignment [rad], [m].
_MAXIMUM_ZERO, _MAXIMUM_PRISMATIC_ZERO = float(np.radians(15.0)), 0.1
# Cycles per turn (or per metre) of torque ripple, and its prior standard deviation in all, as a
# fraction of that of the residuals.
RIPPLE_ORDERS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
_RIPPLE_FRACTION = 0.7
# Noise draws to find the fraction of noise that a fit leaves, and the smallest such fraction.
_NOISE_DRAWS, _MINIMUM_RESIDUAL_FRACTION = 8, 0.1
# Minimum degrees of freedom of the noise estimate.
_MINIMUM_DOF = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ZeroSearchResult:
    """Result of a zero search.

    Attributes:
        zeros: Zeros of all joints; unchanged where not searched [rad or m].
        covariance: Covariance of the searched zeros.
    """

    zeros: Float[Array, " j"]
    covariance: Float[Array, "c c"]


def with_zeros(model: TorqueModel, zeros: Float[Array, " j"]) -> TorqueModel:
    """Copy of the model with other joint zeros, its compensators included."""
    robot = model.robot.with_joint_zeros(zeros)
    return replace(model, robot=robot, terms=tuple(term.of_robot(robot) for term in model.terms))


class ZeroSearch:
    """Search for joint zeros in one recording.

    Args:
        model: Robot and friction; the search starts at the zeros of the robot.
        samples: Conditioned motion and torque.
        joints: Joints whose zero is searched.
        expected_std: Prior standard deviation of every joint's zero [rad or m].
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        joints: tuple[int, ...],
        expected_std: Float[Array, " j"],
    ) -> None:
        self.model, self.joints = model, np.array(joints, int)
        self.expected_std = expected_std[self.joints]
        nominal_zeros = model.robot.joint_zeros
        self.start = np.array(nominal_zeros) if nominal_zeros else np.zeros(model.robot.joints)
        moving = samples.in_motion & samples.keep.any(axis=1)
        self.stride = max(-(-int(np.count_nonzero(moving)) // _MAXIMUM_ROWS), 1)
        row_slice = slice(None, None, self.stride)
        self.samples, self.row_slice = samples, row_slice
        self.rate_hz = samples.rate_hz / self.stride
        self.band_hz = min(BAND_HZ, samples.cutoff_hz, 0.5 * self.rate_hz)
        self.motion = (
            samples.position[row_slice],
            samples.velocity[row_slice],
            samples.acceleration[row_slice],
        )
        self.keep = (samples.keep & moving[:, None])[row_slice]
        self.torque = np.where(self.keep, samples.torque[row_slice], 0.0)
        self.load = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
        self.other_columns = self._other_columns(model)
        self.scale = np.maximum(self._residual_std(self.torque), 1e-9)
        prior, self.nominal, _ = gaussian_prior(model)
        self.prior = prior if np.any(model.robot.parameters) else np.zeros_like(prior)
        self.ripple = np.zeros((*self.torque.shape, 0))
        self.runs = self._runs()

    def run(self) -> ZeroSearchResult:
        """Find the zeros, first with white residuals, then with ripple columns as well."""
        zeros, _, residuals = self._iterate(self.start.copy())
        self.ripple, ripple_fraction = (
            self._ripple_columns(),
            _RIPPLE_FRACTION / np.sqrt(len(RIPPLE_ORDERS)),
        )
        std = np.repeat(
            ripple_fraction * np.maximum(self._residual_std(residuals), 1e-12),
            2 * len(RIPPLE_ORDERS),
        )
        size = len(self.nominal)
        prior = np.zeros((size + len(std), size + len(std)))
        prior[:size, :size] = self.prior
        prior[np.arange(size, len(prior)), np.arange(size, len(prior))] = std**-2.0
        self.prior = prior
        self.nominal = np.concatenate([self.nominal, np.zeros(len(std))])
        zeros, covariance, _ = self._iterate(zeros)
        return ZeroSearchResult(zeros, covariance)

    def _iterate(
        self, zeros: Float[Array, " j"]
    ) -> tuple[Float[Array, " j"], Float[Array, "c c"], Float[Array, "n j"]]:
        """Iterate until convergence: zeros, their covariance, residuals."""
        count = self.model.layout.size
        values = np.zeros(0)
        for iteration in range(_ITERATIONS):
            columns = self._columns(zeros)
            if iteration == 0:
                values = self._solve(columns, self.other_columns[..., :0], np.zeros(0))[0]
            zero_columns = self._zero_columns(zeros, values[:count])
            zero_change = (zeros - self.start)[self.joints]
            values, step, inverse = self._solve(columns, zero_columns, zero_change)
            residuals = self._mask(self.torque - columns @ values - zero_columns @ step)
            if iteration == 0:
                residual_fraction = self._residual_fraction(
                    np.concatenate([columns, zero_columns], -1), inverse
                )
            self._update_scale(residuals, residual_fraction)
            zeros[self.joints] += step
            _require_small_zeros(self.model.robot, zeros - self.start)
            if iteration > 1 and np.abs(step).max(initial=0.0) < _CONVERGED_STEP:
                break
        # With the weights from the last residuals.
        covariance = self._solve(columns, zero_columns, zero_change)[2]
        return zeros, covariance[len(values) :, len(values) :], residuals

    def _columns(self, zeros: Float[Array, " j"]) -> Float[Array, "n j p"]:
        """Regressor with the joint frames moved by these zeros, and the ripple columns."""
        q, v, a = self.motion
        if self.model.layout.of_kind(CONSERVATIVE).any():
            self.other_columns = self._other_columns(with_zeros(self.model, zeros))
        links = self.model.columns.links(q + zeros - self.start, v, a)
        return np.concatenate([links, self.other_columns, self.ripple], -1)

    def _other_columns(self, model: TorqueModel) -> Float[Array, "n j m"]:
        motor = model.columns.drive_at(self.samples, load=self.load)[self.row_slice]
        return model.columns.term_columns(self.motion[2], motor)

    def _ripple_columns(self) -> Float[Array, "n j w"]:
        """cos and sin of every motor's position, mapped to the joints it drives."""
        angle = self.motion[0][..., None] * np.array(RIPPLE_ORDERS)
        waves = np.concatenate([np.cos(angle), np.sin(angle)], -1)
        coupling = self.model.robot.drives.coupling
        n, joints, count = waves.shape
        return np.einsum("nmk,mj->njmk", waves, coupling).reshape(n, joints, joints * count)

    def _zero_columns(
        self, zeros: Float[Array, " j"], values: Float[Array, " p"]
    ) -> Float[Array, "n j c"]:
        """d tau / d q_k of links and compensators."""
        q, v, a = self.motion
        links = values[self.model.layout.links]
        position = q + zeros - self.start
        slopes = np.empty((*q.shape, len(self.joints)))
        for c, k in enumerate(self.joints):
            step = np.zeros(q.shape[1])
            step[k] = _DIFFERENCE_STEP
            above, below = (
                self.model.columns.links(position + side * step, v, a) @ links
                for side in (1.0, -1.0)
            )
            slopes[..., c] = (above - below) / (2.0 * _DIFFERENCE_STEP)
        shifted = with_zeros(self.model, zeros)
        with_values = shifted.with_values(values)
        if with_values.has_conservative_terms:
            above, below = (
                with_values.conservative_torque(q + side * _DIFFERENCE_STEP) for side in (1.0, -1.0)
            )
            slope = (above - below) / (2.0 * _DIFFERENCE_STEP)
            for c, k in enumerate(self.joints):
                slopes[:, k, c] += slope[:, k]
        return slopes

    def _solve(
        self,
        columns: Float[Array, "n j p"],
        zero_columns: Float[Array, "n j c"],
        zero_change: Float[Array, " c"],
    ) -> tuple[Float[Array, " p"], Float[Array, " c"], Float[Array, "s s"]]:
        """Solve for the parameters and the step of the zeros; covariance of both."""
        all_columns = np.concatenate([columns, zero_columns], -1)
        p, size = columns.shape[-1], all_columns.shape[-1]
        square, right = np.zeros((size, size)), np.zeros(size)
        for j, scale in enumerate(self.scale):
            joint_columns = all_columns[self.keep[:, j], j] / scale
            # A joint's torque depends on few of the columns.
            nonzero = np.flatnonzero(np.any(joint_columns, axis=0))
            joint_columns = joint_columns[:, nonzero]
            square[np.ix_(nonzero, nonzero)] += joint_columns.T @ joint_columns
            right[nonzero] += joint_columns.T @ (self.torque[self.keep[:, j], j] / scale)
        # The prior keeps unidentifiable parameters near the nominal links.
        square[:p, :p] += self.prior
        right[:p] += self.prior @ self.nominal
        if size > p:
            prior_precision = self.expected_std**-2.0
            square[np.arange(p, size), np.arange(p, size)] += prior_precision
            right[p:] -= prior_precision * zero_change
        # Dependent columns share their contribution (pseudo-inverse).
        solution, covariance = Gaussian(square, right).solve(1e-10)
        return solution[:p], solution[p:], covariance

    def _mask(self, residuals: Float[Array, "n j"]) -> Float[Array, "n j"]:
        return np.where(self.keep, residuals, 0.0)

    def _residual_std(self, values: Float[Array, "n j"]) -> Float[Array, " j"]:
        """Standard deviation over the used rows of each joint."""
        count = np.maximum(self.keep.sum(axis=0), 1)
        mean = np.where(self.keep, values, 0.0).sum(axis=0) / count
        return np.sqrt(np.sum(np.where(self.keep, values - mean, 0.0) ** 2, axis=0) / count)

    def _residual_fraction(
        self, all_columns: Float[Array, "n j s"], inverse: Float[Array, "s s"]
    ) -> Float[Array, " j"]:
        """Fraction of noise power that a fit leaves in the residuals, by joint."""
        rng, shape = np.random.default_rng(0), self.torque.shape
        before, after = np.zeros(shape[1]), np.zeros(shape[1])
        flat = all_columns.reshape(-1, all_columns.shape[-1])
        for _ in range(_NOISE_DRAWS):
            noise = self._mask(self.scale * rng.standard_normal(shape))
            fitted = inverse @ ((noise / self.scale**2).ravel() @ flat)
            before += self._density(noise)
            after += self._density(self._mask(noise - (flat @ fitted).reshape(shape)))
        return np.maximum(
            after / np.maximum(before, np.finfo(float).tiny), _MINIMUM_RESIDUAL_FRACTION
        )

    def _update_scale(
        self, residuals: Float[Array, "n j"], residual_fraction: Float[Array, " j"]
    ) -> None:
        """Set the scale of each joint: standard deviation of a row if rows were independent."""
        dof = 2.0 * self.band_hz * self.keep.sum(axis=0) / self.rate_hz * residual_fraction
        widening = [student_t_upper_quantile(0.025, max(x, _MINIMUM_DOF)) / NORMAL_95 for x in dof]
        floor = 1e-6 * np.maximum(self._residual_std(self.torque), 1e-9)
        level = np.sqrt(self._density(residuals) / residual_fraction * self.rate_hz)
        self.scale = np.maximum(level * np.array(widening), floor)

    def _density(self, residuals: Float[Array, "n j"]) -> Float[Array, " j"]:
        """Spectral density of residuals below `band_hz`, by joint."""
        joints = residuals.shape[1]
        power, seconds = np.zeros(joints), np.zeros(joints)
        for rows, lag in self.runs:
            for j in range(joints):
                is_used = self.keep[rows, j]
                density = power_with_repeats(
                    residuals[rows, j], is_used, lag, self.rate_hz, self.band_hz
                )
                if density is not None:
                    duration = np.count_nonzero(is_used) / self.rate_hz
                    power[j] += duration * density[1]
                    seconds[j] += duration
        short = seconds == 0.0
        if np.any(short):
            run = self.samples.run[self.row_slice]
            correlation_length = correlation_samples(residuals, self.keep, run)
            power[short] = (self._residual_std(residuals) ** 2 * correlation_length / self.rate_hz)[
                short
            ]
            seconds[short] = 1.0
        return power / seconds

    def _runs(self) -> list[tuple[slice, int]]:
        """Rows of every run, and the period of its motion in rows (0: not periodic)."""
        rate = self.samples.rate_hz
        out = []
        for run in self.samples.run_slices():
            period = find_period(self.samples.velocity[run], rate)
            lag = 0 if period is None else round(period * rate / self.stride)
            out.append((slice(-(-run.start // self.stride), -(-run.stop // self.stride)), lag))
        return out


def _require_small_zeros(robot: Robot, zero_change: Float[Array, " j"]) -> None:
    """RecordingError if a zero exceeds the largest misalignment."""
    is_prismatic = robot.is_prismatic
    relative = np.abs(zero_change) / np.where(is_prismatic, _MAXIMUM_PRISMATIC_ZERO, _MAXIMUM_ZERO)
    worst = int(np.argmax(relative))
    if relative[worst] <= 1.0:
        return
    limit = (
        f"{1e3 * _MAXIMUM_PRISMATIC_ZERO:.0f} mm"
        if is_prismatic[worst]
        else f"{np.degrees(_MAXIMUM_ZERO):.0f} deg"
    )
    raise RecordingError(
        f"the zero of {robot.joint_names[worst]} would be more than {limit} off: this is another "
        "pose, sign or arm, or the motion does not show it. Correct the position offset in the "
        "column map first."
    )
