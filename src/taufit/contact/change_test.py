"""Evidence of a change of external torque at any of the recent time bins.

The residual of a bin is a level m with random walk, torque noise, and the noise of the velocities
it was differentiated from: over a window of n bins that noise telescopes, so the mean d of the
window minus the level before it has the covariance

    C = (A A' + B B') / n^2 + diag(white (1 - 1/(2 n)) / n + P + walk n / 3),

with A and B = M(q) diag(sigma) / h at the two ends of the window and P the level's variance. The
off-diagonal part matters: velocity noise of one joint loads all joints before it. A contact on
link k changes joints 1 to k by N(0, S) each; its Bayes factor against no change is

    2 ln B_k = d' (C^-1 - (C + S_k)^-1) d - ln det(I + C^-1 S_k).

Friction of a single joint may jump: the alternative is the better of no change and a jump
N(0, own) of one joint, with prior odds `_JUMP_PENALTY`. Pushes at standstill grow slowly, so the
second half of a window is also compared with the level before the window, with
walk (n - 2 m/3) for the m bins of that half. Noise differs between days and motions, so variances
are scaled by the noise of the shortest windows before the earliest start. Windows last 30 to
240 ms; the determinants account for chance: one threshold serves every regime and any number of
joints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Innovations are limited to this many standard deviations: single outliers are not contacts. At
# rest the limit is higher. An outlier is isolated, so a bin that follows another outlier on the
# same side has a limit larger by this factor.
INNOVATION_LIMIT, INNOVATION_LIMIT_AT_REST = 4.0, 8.0
REPEAT_FACTOR = 2.0
# Time constant of the noise scale, mean of d^2 / C [s], and its bounds.
_NOISE_SCALE_S = 2.0
_MIN_NOISE_SCALE, _MAX_NOISE_SCALE = 0.8, 16.0
# Time constant with which a level decays to zero [s].
_LEVEL_DECAY_S = 3.0
# Window lengths [s].
WINDOWS_S = (0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24)
# Prior odds of a friction jump of one joint, as -2 ln.
_JUMP_PENALTY = 5.0
# Variance of an unobservable joint, in prior variances.
_UNOBSERVABLE_FACTOR = 1e6


class TorqueStep(NamedTuple):
    """Most likely change of external torque.

    Attributes:
        evidence: 2 ln B against no change.
        age: Time bins since it began, at least 1.
        last: Index of the last joint it loads.
        level, variance: Level before it, per joint [N m], and its variance [(N m)^2].
    """

    evidence: float
    age: int
    last: int
    level: Float[Array, " j"]
    variance: Float[Array, " j"]


class TimeBin(NamedTuple):
    """Residual and noise of one time bin, per joint.

    Attributes:
        rows: Residual, variance of torque noise, growth of the level's variance, variance of a jump
            of the joint's friction, standard deviation of the observer, and innovation limit in
            standard deviations, one row each.
        velocity: M(q) diag(sigma) / h: effect of velocity noise [N m].
        observable: Whether the joint's change is due to external torque.
    """

    rows: Float[Array, "6 j"]
    velocity: Float[Array, "j j"]
    observable: Bool[Array, " j"]

    @property
    def residual(self) -> Float[Array, " j"]:
        """External torque [N m]."""
        return self.rows[0]

    @property
    def white(self) -> Float[Array, " j"]:
        """Variance of torque noise [(N m)^2]."""
        return self.rows[1]

    @property
    def level_growth(self) -> Float[Array, " j"]:
        """Growth of the variance of the level [(N m)^2]."""
        return self.rows[2]

    @property
    def jump_variance(self) -> Float[Array, " j"]:
        """Variance of a jump of the joint's friction [(N m)^2]."""
        return self.rows[3]

    @property
    def observer_std(self) -> Float[Array, " j"]:
        """Standard deviation of the observer's external torque [N m]."""
        return self.rows[4]

    @property
    def innovation_limit(self) -> Float[Array, " j"]:
        """Limit of innovations, in standard deviations."""
        return self.rows[5]


# Rows of the memory of a time bin.
_TORQUE, _WHITE, _WALK, _LEVEL, _VARIANCE, _NOISE_SCALE, _OBSERVABLE = range(7)


class ChangeTest:
    """Tracks the level of each joint's residual and tests it for changes.

    Args:
        prior: Prior standard deviation of changes [N m].
        step: Time between two bins [s].
    """

    def __init__(self, prior: Float[Array, " j"], step: float) -> None:
        self.prior = np.array(prior, float) ** 2
        self.joints = len(self.prior)
        self.windows = np.unique([max(round(s / step), 2) for s in WINDOWS_S]).astype(np.int64)
        self.max_window = int(self.windows[-1])
        self._decay = float(np.exp(-step / _LEVEL_DECAY_S))
        self._learning_rate = -float(np.expm1(-step / _NOISE_SCALE_S))
        # Per joint: level, its variance, noise scale, and side on which the last bin was limited.
        zeros = np.zeros(self.joints)
        self._state = np.stack([zeros, 4.0 * self.prior, np.ones(self.joints), zeros])
        # Ring of the last bins, one more than the longest window.
        self._cells = np.zeros((self.max_window + 1, 7, self.joints))
        self._ends = np.zeros((self.max_window + 1, self.joints, self.joints))
        numbers = np.array(
            [
                self._decay,
                self._learning_rate,
                _MIN_NOISE_SCALE,
                _MAX_NOISE_SCALE,
                _JUMP_PENALTY,
                INNOVATION_LIMIT,
                REPEAT_FACTOR,
            ]
        )
        if _kernel is not None:
            self._loop = _kernel.ChangeTest(
                self.prior, numbers, self.windows, self._state, self._cells, self._ends
            )
        self._best = (-np.inf, 0, 0)
        self.restart()

    @property
    def level(self) -> Float[Array, " j"]:
        """Level of the residual [N m]; a view."""
        return self._state[0]

    @property
    def std(self) -> Float[Array, " j"]:
        """Standard deviation of the level [N m], a copy."""
        out: Array = np.sqrt(self._state[1])
        return out

    def restart(self) -> None:
        """Ignore changes that began before now."""
        self._count = 0

    def reset_level(
        self, joints: Bool[Array, " j"], level: Float[Array, " j"] | None = None
    ) -> None:
        """Reset the level of some joints to unknown.

        Args:
            joints: Mask of the joints.
            level: New value of their level [N m]; None keeps the old one.
        """
        if level is not None:
            self._state[0, joints] = level[joints]
        self._state[1, joints] = 4.0 * self.prior[joints]

    def skip_bin(self, level_growth: Float[Array, " j"]) -> None:
        """Skip a bin: the level stays, its variance grows."""
        self._state[1] += level_growth

    def advance(self, time_bin: TimeBin) -> float:
        """Process the next bin; return the evidence of the most likely change, -inf at first."""
        if _kernel is not None:
            self._best = self._loop.advance(*time_bin, self._count)
        else:
            self._track(time_bin)
            self._best = self._test_windows(time_bin)
        self._count += 1
        return self._best[0]

    def most_likely_step(self) -> TorqueStep | None:
        """Most likely change after the last bin; None at first."""
        evidence, age, last_joint = self._best
        if age == 0:
            return None
        start_bin = self._cells[(self._count - age) % len(self._cells)]
        return TorqueStep(
            evidence, age, last_joint, start_bin[_LEVEL].copy(), start_bin[_VARIANCE].copy()
        )

    # ---- NumPy equivalent of the kernel --------------------------------------------------------

    def _row(self, age: int) -> int:
        """Index of the bin with an age, 1 for the newest."""
        return (self._count + 1 - age) % len(self._cells)

    def _noise_scale_before(self) -> Float[Array, " j"]:
        """Noise scale before the longest window, so that a change does not raise it."""
        oldest = self._cells[self._row(min(self._count + 1, self.max_window))]
        return np.clip(oldest[_NOISE_SCALE], _MIN_NOISE_SCALE, _MAX_NOISE_SCALE)

    def _track(self, time_bin: TimeBin) -> None:
        """Track the level and store the bin."""
        row = self._cells[self._row(1)]
        row[_LEVEL], row[_VARIANCE], row[_NOISE_SCALE] = self._state[:3]
        scale = self._noise_scale_before()
        level = self._decay * self._state[0]
        variance = self._decay**2 * self._state[1] + time_bin.level_growth
        velocity_variance = np.sum(time_bin.velocity**2, axis=1)
        # A single bin has half of the torque noise (mean of two) and the velocity noise of both
        # ends.
        bin_variance = variance + 0.5 * time_bin.white + 2.0 * velocity_variance
        deviation = time_bin.residual - level
        bound = time_bin.innovation_limit * np.sqrt(scale * bin_variance)
        side = np.where(np.abs(deviation) > bound, np.sign(deviation), 0.0)
        bound = np.where((side != 0.0) & (side == self._state[3]), REPEAT_FACTOR * bound, bound)
        self._state[3] = side
        innovation = np.clip(deviation, -bound, bound)
        gain = variance / (variance + time_bin.white + velocity_variance)
        self._state[0] = level + gain * innovation
        self._state[1] = (1.0 - gain) * variance
        row[_TORQUE], row[_WHITE] = level + innovation, time_bin.white
        row[_WALK], row[_OBSERVABLE] = time_bin.level_growth, time_bin.observable
        self._ends[self._row(1)] = time_bin.velocity

    def _update_noise_scale(
        self, size: Float[Array, " j"], scale: Float[Array, " j"], observable: Bool[Array, " j"]
    ) -> None:
        """Update the noise scale from the shortest window, except at rest."""
        size = np.minimum(size, INNOVATION_LIMIT**2 * scale)
        self._state[2] += np.where(observable, self._learning_rate * (size - self._state[2]), 0.0)

    def _test_windows(self, time_bin: TimeBin) -> tuple[float, int, int]:
        """Evidence, age and last joint of the best window; age 0 without one."""
        scale = self._noise_scale_before()
        at_rest = bool((time_bin.innovation_limit > INNOVATION_LIMIT).all())
        best = (-np.inf, 0, 0)
        for n in self.windows:
            # The bin before the window must exist.
            if n > self._count:
                break
            test_half = at_rest and n >= 2 * self.windows[0]
            for m in (n, n // 2) if test_half else (n,):
                change, covariance, observable = self._window(n, m)
                if n == self.windows[0]:
                    self._update_noise_scale(
                        change**2 / np.diag(covariance),
                        scale,
                        observable & (time_bin.innovation_limit <= INNOVATION_LIMIT),
                    )
                prior = np.where(observable, self.prior, 0.0) / scale
                jump_variance = np.where(observable, time_bin.jump_variance, 0.0) / scale
                cumulative = np.cumsum(
                    _evidence(change / np.sqrt(scale), covariance, prior, jump_variance)
                )
                last_joint = int(cumulative.argmax())
                if cumulative[last_joint] > best[0]:
                    best = (float(cumulative[last_joint]), int(n), last_joint)
        return best

    def _window(
        self, n: int, m: int
    ) -> tuple[Float[Array, " j"], Float[Array, "j j"], Bool[Array, " j"]]:
        """Mean of the last m bins minus the level n bins ago, its covariance, observable joints."""
        rows = [self._row(age) for age in range(1, n + 1)]
        inside, first = self._cells[rows], self._cells[rows[-1]]
        averaged = inside[:m]
        observable = inside[:, _OBSERVABLE].min(axis=0) > 0.0
        change = np.where(observable, averaged[:, _TORQUE].mean(axis=0) - first[_LEVEL], 0.0)
        end_noise, start_noise = self._ends[rows[0]], self._ends[self._row(m + 1)]
        covariance = (end_noise @ end_noise.T + start_noise @ start_noise.T) / m**2
        white, walk = averaged[:, _WHITE].mean(axis=0), inside[:, _WALK].mean(axis=0)
        joint_variance = white * (1.0 - 0.5 / m) / m + first[_VARIANCE] + walk * (n - 2.0 * m / 3.0)
        covariance += np.diag(
            joint_variance + np.where(observable, 0.0, _UNOBSERVABLE_FACTOR * self.prior)
        )
        return change, covariance, observable


def _evidence(
    change: Float[Array, " j"],
    covariance: Float[Array, "j j"],
    prior: Float[Array, " j"],
    jump_variance: Float[Array, " j"],
) -> Float[Array, " j"]:
    """Parts of 2 ln B: the sum of the first k belongs to a contact that loads joints 1 to k."""
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, change)
    whitener = np.linalg.inv(factor)
    loads = whitener * np.sqrt(prior)
    inner_factor = np.linalg.cholesky(np.eye(len(change)) + loads.T @ loads)
    projected = np.linalg.solve(inner_factor, loads.T @ whitened)
    parts = projected**2 - 2.0 * np.log(np.diag(inner_factor))
    jumps = whitener * np.sqrt(jump_variance)
    size = np.sum(jumps**2, axis=0)
    jump_evidence = (jumps.T @ whitened) ** 2 / (1.0 + size) - np.log1p(size) - _JUMP_PENALTY
    parts[0] -= max(float(jump_evidence.max()), 0.0)
    return parts
