"""The search for joint zeros: Gauss-Newton on all parameters of a model and the zeros.

What keeps the zeros' uncertainty honest, beside the noise:

- Torque that comes back at the same position and that no model has (ripple) looks like a shifted
  joint. Waves of every joint's position are fitted along, each expected to be a share of the
  residuals, so that zeros are not taken for more certain than ripple allows.
- Zeros are told by slow torque, where noise of sensors has more power than at the low-pass on
  average: rows are weighted by the residuals' density below `BAND_HZ`.
- A fit takes part of the noise in that band out of its residuals. How much is found by fitting
  white noise the same way, and put back; what remains is known from few independent squares, and
  widens intervals as Student's distribution does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Float
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

_MOST_ROWS = 3000
_ROUNDS = 8
# Step of the central difference, and the step below which the search has ended [rad or m].
_SLOPE, _SETTLED = 1e-4, 1e-6
# Zeros further off are no misalignment: another pose, or another arm [rad], [m].
_FAR, _FAR_SLIDE = float(np.radians(15.0)), 0.1
# Cycles per turn (or per metre) of torque that repeats with position, and the share of the
# residuals' standard deviation that all of it together is expected to have.
WAVES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
_WAVE_SHARE = 0.7
# Draws of noise that say how much of it a fit takes out, and the least share believed to be left.
_DRAWS, _LEAST_LEFT = 8, 0.1
# Fewest independent squares that noise is taken to be known from.
_LEAST_FREE = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ZeroSearchResult:
    """Where a search ended.

    Attributes:
        zeros: Of all joints; those not looked for as they were [rad or m].
        covariance: Of those looked for.
    """

    zeros: Float[Array, " j"]
    covariance: Float[Array, "c c"]


def with_zeros(model: TorqueModel, zeros: Float[Array, " j"]) -> TorqueModel:
    """The model of the same arm with other zeros, its compensators included."""
    robot = model.robot.with_joint_zeros(zeros)
    return replace(model, robot=robot, terms=tuple(term.of_robot(robot) for term in model.terms))


class ZeroSearch:
    """One recording, one model, some zeros to look for.

    Args:
        model: Robot and friction; zeros the robot has are where the search begins.
        samples: Conditioned motion and torque.
        chosen: Joints whose zero is looked for.
        expected_std: Of every joint's zero before [rad or m].
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        chosen: tuple[int, ...],
        expected_std: Float[Array, " j"],
    ) -> None:
        self.model, self.chosen = model, np.array(chosen, int)
        self.expected_std = expected_std[self.chosen]
        own = model.robot.joint_zeros
        self.start = np.array(own) if own else np.zeros(model.robot.joints)
        moving = samples.in_motion & samples.keep.any(axis=1)
        self.stride = max(-(-int(np.count_nonzero(moving)) // _MOST_ROWS), 1)
        every = slice(None, None, self.stride)
        self.samples, self.every = samples, every
        self.rate_hz = samples.rate_hz / self.stride
        self.band_hz = min(BAND_HZ, samples.cutoff_hz, 0.5 * self.rate_hz)
        self.motion = samples.position[every], samples.velocity[every], samples.acceleration[every]
        self.keep = (samples.keep & moving[:, None])[every]
        self.torque = np.where(self.keep, samples.torque[every], 0.0)
        self.load = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
        self.rest = self._rest(model)
        self.scale = np.maximum(self._spread(self.torque), 1e-9)
        prior, self.nominal, _ = gaussian_prior(model)
        self.prior = prior if np.any(model.robot.parameters) else np.zeros_like(prior)
        self.waves = np.zeros((*self.torque.shape, 0))
        self.runs = self._runs()

    def run(self) -> ZeroSearchResult:
        """The zeros, first as if noise were all that the model lacks, then beside waves."""
        zeros, _, left = self._rounds(self.start.copy())
        self.waves, share = self._waves(), _WAVE_SHARE / np.sqrt(len(WAVES))
        std = np.repeat(share * np.maximum(self._spread(left), 1e-12), 2 * len(WAVES))
        size = len(self.nominal)
        prior = np.zeros((size + len(std), size + len(std)))
        prior[:size, :size] = self.prior
        prior[np.arange(size, len(prior)), np.arange(size, len(prior))] = std**-2.0
        self.prior = prior
        self.nominal = np.concatenate([self.nominal, np.zeros(len(std))])
        zeros, covariance, _ = self._rounds(zeros)
        return ZeroSearchResult(zeros, covariance)

    def _rounds(
        self, zeros: Float[Array, " j"]
    ) -> tuple[Float[Array, " j"], Float[Array, "c c"], Float[Array, "n j"]]:
        """Steps until none is left: zeros, their covariance, residuals."""
        count = self.model.layout.size
        values = np.zeros(0)
        for turn in range(_ROUNDS):
            columns = self._columns(zeros)
            if turn == 0:
                values = self._solved(columns, self.rest[..., :0], np.zeros(0))[0]
            slopes = self._slopes(zeros, values[:count])
            moved = (zeros - self.start)[self.chosen]
            values, step, inverse = self._solved(columns, slopes, moved)
            left = self._left(self.torque - columns @ values - slopes @ step)
            if turn == 0:
                share = self._left_by_fit(np.concatenate([columns, slopes], -1), inverse)
            self._weigh(left, share)
            zeros[self.chosen] += step
            _refuse_far(self.model.robot, zeros - self.start)
            if turn > 1 and np.abs(step).max(initial=0.0) < _SETTLED:
                break
        # With the weights that the last residuals ask for.
        covariance = self._solved(columns, slopes, moved)[2]
        return zeros, covariance[len(values) :, len(values) :], left

    def _columns(self, zeros: Float[Array, " j"]) -> Float[Array, "n j p"]:
        """W with the joints' frames where these zeros put them, and the waves."""
        q, v, a = self.motion
        if self.model.layout.of_kind(CONSERVATIVE).any():
            self.rest = self._rest(with_zeros(self.model, zeros))
        links = self.model.columns.links(q + zeros - self.start, v, a)
        return np.concatenate([links, self.rest, self.waves], -1)

    def _rest(self, model: TorqueModel) -> Float[Array, "n j m"]:
        motor = model.columns.drive_at(self.samples, load=self.load)[self.every]
        return model.columns.term_columns(self.motion[2], motor)

    def _waves(self) -> Float[Array, "n j w"]:
        """cos and sin of every motor's position, at the joints it drives."""
        angle = self.motion[0][..., None] * np.array(WAVES)
        both = np.concatenate([np.cos(angle), np.sin(angle)], -1)
        coupling = self.model.robot.drives.coupling
        n, joints, each = both.shape
        return np.einsum("nmk,mj->njmk", both, coupling).reshape(n, joints, joints * each)

    def _slopes(
        self, zeros: Float[Array, " j"], values: Float[Array, " p"]
    ) -> Float[Array, "n j c"]:
        """d tau / d q_k of links and compensators."""
        q, v, a = self.motion
        links = values[self.model.layout.links]
        at = q + zeros - self.start
        out = np.empty((*q.shape, len(self.chosen)))
        for c, k in enumerate(self.chosen):
            step = np.zeros(q.shape[1])
            step[k] = _SLOPE
            above, below = (
                self.model.columns.links(at + side * step, v, a) @ links for side in (1.0, -1.0)
            )
            out[..., c] = (above - below) / (2.0 * _SLOPE)
        moved = with_zeros(self.model, zeros)
        held = moved.with_values(values)
        if held.has_conservative_terms:
            above, below = (held.conservative_torque(q + side * _SLOPE) for side in (1.0, -1.0))
            slope = (above - below) / (2.0 * _SLOPE)
            for c, k in enumerate(self.chosen):
                out[:, k, c] += slope[:, k]
        return out

    def _solved(
        self,
        columns: Float[Array, "n j p"],
        slopes: Float[Array, "n j c"],
        moved: Float[Array, " c"],
    ) -> tuple[Float[Array, " p"], Float[Array, " c"], Float[Array, "s s"]]:
        """Parameters, the step of the zeros, and the covariance of both."""
        whole = np.concatenate([columns, slopes], -1)
        p, size = columns.shape[-1], whole.shape[-1]
        square, right = np.zeros((size, size)), np.zeros(size)
        for j, scale in enumerate(self.scale):
            own = whole[self.keep[:, j], j] / scale
            # A joint's torque depends on few of the columns.
            some = np.flatnonzero(np.any(own, axis=0))
            own = own[:, some]
            square[np.ix_(some, some)] += own.T @ own
            right[some] += own.T @ (self.torque[self.keep[:, j], j] / scale)
        # The nominal links to about their own size: what no motion shows stays sensible.
        square[:p, :p] += self.prior
        right[:p] += self.prior @ self.nominal
        if size > p:
            expected = self.expected_std**-2.0
            square[np.arange(p, size), np.arange(p, size)] += expected
            right[p:] -= expected * moved
        # Columns that depend on each other share what they explain.
        solution, covariance = Gaussian(square, right).solve(1e-10)
        return solution[:p], solution[p:], covariance

    def _left(self, residuals: Float[Array, "n j"]) -> Float[Array, "n j"]:
        return np.where(self.keep, residuals, 0.0)

    def _spread(self, values: Float[Array, "n j"]) -> Float[Array, " j"]:
        """Standard deviation of each joint's rows that count."""
        count = np.maximum(self.keep.sum(axis=0), 1)
        mean = np.where(self.keep, values, 0.0).sum(axis=0) / count
        return np.sqrt(np.sum(np.where(self.keep, values - mean, 0.0) ** 2, axis=0) / count)

    def _left_by_fit(
        self, whole: Float[Array, "n j s"], inverse: Float[Array, "s s"]
    ) -> Float[Array, " j"]:
        """Share of the noise's power that a fit leaves in the residuals, by joint."""
        rng, shape = np.random.default_rng(0), self.torque.shape
        before, after = np.zeros(shape[1]), np.zeros(shape[1])
        flat = whole.reshape(-1, whole.shape[-1])
        for _ in range(_DRAWS):
            noise = self._left(self.scale * rng.standard_normal(shape))
            fitted = inverse @ ((noise / self.scale**2).ravel() @ flat)
            before += self._density(noise)
            after += self._density(self._left(noise - (flat @ fitted).reshape(shape)))
        return np.maximum(after / np.maximum(before, np.finfo(float).tiny), _LEAST_LEFT)

    def _weigh(self, left: Float[Array, "n j"], share: Float[Array, " j"]) -> None:
        """Standard deviation of a row, if all rows were independent, by its joint."""
        free = 2.0 * self.band_hz * self.keep.sum(axis=0) / self.rate_hz * share
        wider = [student_t_upper_quantile(0.025, max(x, _LEAST_FREE)) / NORMAL_95 for x in free]
        floor = 1e-6 * np.maximum(self._spread(self.torque), 1e-9)
        level = np.sqrt(self._density(left) / share * self.rate_hz)
        self.scale = np.maximum(level * np.array(wider), floor)

    def _density(self, left: Float[Array, "n j"]) -> Float[Array, " j"]:
        """Of the power of residuals per hertz where motions have theirs, as it counts in a fit."""
        joints = left.shape[1]
        power, seconds = np.zeros(joints), np.zeros(joints)
        for part, lag in self.runs:
            for j in range(joints):
                there = self.keep[part, j]
                found = power_with_repeats(left[part, j], there, lag, self.rate_hz, self.band_hz)
                if found is not None:
                    own = np.count_nonzero(there) / self.rate_hz
                    power[j] += own * found[1]
                    seconds[j] += own
        short = seconds == 0.0
        if np.any(short):
            run = self.samples.run[self.every]
            apart = correlation_samples(left, self.keep, run)
            power[short] = (self._spread(left) ** 2 * apart / self.rate_hz)[short]
            seconds[short] = 1.0
        return power / seconds

    def _runs(self) -> list[tuple[slice, int]]:
        """Rows of every run, and how many a period of its motion has (0: it does not repeat)."""
        rate = self.samples.rate_hz
        out = []
        for run in self.samples.run_slices():
            period = find_period(self.samples.velocity[run], rate)
            lag = 0 if period is None else round(period * rate / self.stride)
            out.append((slice(-(-run.start // self.stride), -(-run.stop // self.stride)), lag))
        return out


def _refuse_far(robot: Robot, moved: Float[Array, " j"]) -> None:
    """RecordingError where a zero has gone further than any misalignment."""
    slides = [link.prismatic for link in robot.links]
    share = np.abs(moved) / np.where(slides, _FAR_SLIDE, _FAR)
    worst = int(np.argmax(share))
    if share[worst] <= 1.0:
        return
    limit = f"{1e3 * _FAR_SLIDE:.0f} mm" if slides[worst] else f"{np.degrees(_FAR):.0f} deg"
    raise RecordingError(
        f"the zero of {robot.joint_names[worst]} would be more than {limit} off: this is another "
        "pose, sign or arm, or the motion does not show it. Correct the position offset in the "
        "column map first."
    )
