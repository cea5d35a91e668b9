"""Evidence that the external torque has changed, cell by cell, at any of the last moments.

The residual of a cell is a level m that wanders, torque noise, and the noise n of the velocities it
was differentiated from: over a window of n cells that noise telescopes, so the mean d of the window
less the level before it has the covariance

    C = (A A' + B B') / n^2 + diag(white (1 - 1/(2 n)) / n + P + walk n / 3),

with A and B = M(q) diag(sigma) / h at the two ends of the window and P the level's variance. The
off-diagonal part matters: noise of one joint's velocity loads all joints before it. A contact on
link k changes joints 1 to k by N(0, S) each, and against no change it wins by the Bayes factor

    2 ln B_k = d' (C^-1 - (C + S_k)^-1) d - ln det(I + C^-1 S_k).

Friction of a single joint jumps, too: the rival is the better of no change and a jump N(0, own) of
one joint, which is rare and costs `_RARE`. Hands that push an arm at rest push ever harder, and a
mean over the whole push hides how hard: there the last half of a window is compared with the level
before all of it, too, with walk (n - 2 m/3) for the m cells of that half. Days and motions differ,
so variances are multiplied by how loud the shortest windows were before the earliest start. Windows
last 30 to 240 ms, and the determinants are what a change may explain by chance: one threshold
serves every state, and any number of joints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Innovations beyond this many standard deviations count as much as it: a glitch is no contact. At
# rest there are none. A glitch is alone, so a cell that follows another one beyond that on the same
# side counts up to so many times as much.
CLIP, CLIP_AT_REST = 4.0, 8.0
AGAIN = 2.0
# Loudness is the mean of d^2 / C over this time [s], and stays within these bounds.
_LOUD_S = 2.0
_QUIETEST, _LOUDEST = 0.8, 16.0
# A level fades to zero over this time [s].
_FADE_S = 3.0
# Lengths of the windows [s].
WINDOWS_S = (0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24)
# What a jump of one joint's friction costs, as 2 ln of its odds.
_RARE = 5.0
# A joint that says nothing is as unsure as this many times its prior variance.
_NOTHING = 1e6


class TorqueStep(NamedTuple):
    """The most likely change.

    Attributes:
        evidence: 2 ln B of it against none.
        age: Cells since it began, at least 1.
        last: Index of the last joint it loads.
        level, variance: Of the residual before it, per joint [N m], [(N m)^2].
    """

    evidence: float
    age: int
    last: int
    level: Float[Array, " j"]
    variance: Float[Array, " j"]


class TimeBin(NamedTuple):
    """What one cell says, joint by joint.

    Attributes:
        rows: Residual, variance of torque noise, growth of the level's variance, variance of a jump
            of the joint's own friction, standard deviation of the observer, and the largest
            innovation that counts in standard deviations, one row each.
        velocity: M(q) diag(sigma) / h: what velocity noise does to the cell [N m].
        sure: Whether the joint says something.
    """

    rows: Float[Array, "6 j"]
    velocity: Float[Array, "j j"]
    sure: Bool[Array, " j"]

    @property
    def residual(self) -> Float[Array, " j"]:
        """External torque [N m]."""
        return self.rows[0]

    @property
    def white(self) -> Float[Array, " j"]:
        """Variance of torque noise [(N m)^2]."""
        return self.rows[1]

    @property
    def walk(self) -> Float[Array, " j"]:
        """By how much the variance of the level grows [(N m)^2]."""
        return self.rows[2]

    @property
    def own(self) -> Float[Array, " j"]:
        """Variance of a jump of the joint's own friction [(N m)^2]."""
        return self.rows[3]

    @property
    def spread(self) -> Float[Array, " j"]:
        """Standard deviation of external torque behind the observer [N m]."""
        return self.rows[4]

    @property
    def clip(self) -> Float[Array, " j"]:
        """Largest innovation that counts, in standard deviations."""
        return self.rows[5]


# Rows of the memory of a cell.
_TORQUE, _WHITE, _WALK, _LEVEL, _VARIANCE, _LOUD, _SURE = range(7)


class ChangeTest:
    """Level of each joint's residual, and evidence for a change of it.

    Args:
        prior: Standard deviation of changes before anything is known [N m].
        step: Between two cells [s].
    """

    def __init__(self, prior: Float[Array, " j"], step: float) -> None:
        self.prior = np.array(prior, float) ** 2
        self.joints = len(self.prior)
        self.windows = np.unique([max(round(s / step), 2) for s in WINDOWS_S]).astype(np.int64)
        self.longest = int(self.windows[-1])
        self._fade = float(np.exp(-step / _FADE_S))
        self._learn = -float(np.expm1(-step / _LOUD_S))
        # Per joint: level, its variance, loudness, and on which side the last cell was clipped.
        nothing = np.zeros(self.joints)
        self._state = np.stack([nothing, 4.0 * self.prior, np.ones(self.joints), nothing])
        # The last cells, one more than the longest window, in a ring.
        self._cells = np.zeros((self.longest + 1, 7, self.joints))
        self._ends = np.zeros((self.longest + 1, self.joints, self.joints))
        numbers = np.array([self._fade, self._learn, _QUIETEST, _LOUDEST, _RARE, CLIP, AGAIN])
        if _kernel is not None:
            self._loop = _kernel.ChangeTest(
                self.prior, numbers, self.windows, self._state, self._cells, self._ends
            )
        self._found = (-np.inf, 0, 0)
        self.forget()

    @property
    def level(self) -> Float[Array, " j"]:
        """Of the residual [N m]; the next cell changes it."""
        return self._state[0]

    @property
    def std(self) -> Float[Array, " j"]:
        """Standard deviation of the level [N m], a copy."""
        out: Array = np.sqrt(self._state[1])
        return out

    def forget(self) -> None:
        """Changes that began before now are not looked for."""
        self._count = 0

    def lose(self, joints: Bool[Array, " j"], level: Float[Array, " j"] | None = None) -> None:
        """The level of some joints is not known any more.

        Args:
            joints: Which.
            level: What is taken to be their level instead [N m].
        """
        if level is not None:
            self._state[0, joints] = level[joints]
        self._state[1, joints] = 4.0 * self.prior[joints]

    def wait(self, walk: Float[Array, " j"]) -> None:
        """A cell that says nothing: the level is where it was, and less well known."""
        self._state[1] += walk

    def advance(self, cell: TimeBin) -> float:
        """The next cell: evidence of the most likely change then, -inf before there can be one."""
        if _kernel is not None:
            self._found = self._loop.advance(*cell, self._count)
        else:
            self._take(cell)
            self._found = self._most_likely(cell)
        self._count += 1
        return self._found[0]

    def found(self) -> TorqueStep | None:
        """The most likely change after the last cell; None before there can be one."""
        evidence, age, last = self._found
        if age == 0:
            return None
        before = self._cells[(self._count - age) % len(self._cells)]
        return TorqueStep(evidence, age, last, before[_LEVEL].copy(), before[_VARIANCE].copy())

    # ---- the same as the kernel, in NumPy ------------------------------------------------------

    def _row(self, age: int) -> int:
        """Where the cell of an age is kept, 1 for the newest."""
        return (self._count + 1 - age) % len(self._cells)

    def _loudness(self) -> Float[Array, " j"]:
        """Before the earliest window: what is to be found must not hide itself."""
        oldest = self._cells[self._row(min(self._count + 1, self.longest))]
        return np.clip(oldest[_LOUD], _QUIETEST, _LOUDEST)

    def _take(self, cell: TimeBin) -> None:
        """Follow the level, and remember the cell."""
        row = self._cells[self._row(1)]
        row[_LEVEL], row[_VARIANCE], row[_LOUD] = self._state[:3]
        loud = self._loudness()
        level = self._fade * self._state[0]
        spread = self._fade**2 * self._state[1] + cell.walk
        shaken = np.sum(cell.velocity**2, axis=1)
        # A single cell has half of the torque noise (it is a mean of two) and both ends' velocity.
        single = spread + 0.5 * cell.white + 2.0 * shaken
        off = cell.residual - level
        bound = cell.clip * np.sqrt(loud * single)
        side = np.where(np.abs(off) > bound, np.sign(off), 0.0)
        bound = np.where((side != 0.0) & (side == self._state[3]), AGAIN * bound, bound)
        self._state[3] = side
        innovation = np.clip(off, -bound, bound)
        gain = spread / (spread + cell.white + shaken)
        self._state[0] = level + gain * innovation
        self._state[1] = (1.0 - gain) * spread
        row[_TORQUE], row[_WHITE] = level + innovation, cell.white
        row[_WALK], row[_SURE] = cell.walk, cell.sure
        self._ends[self._row(1)] = cell.velocity

    def _listen(
        self, size: Float[Array, " j"], loud: Float[Array, " j"], use: Bool[Array, " j"]
    ) -> None:
        """Learn how loud the shortest window is; at rest everything is quieter."""
        size = np.minimum(size, CLIP**2 * loud)
        self._state[2] += np.where(use, self._learn * (size - self._state[2]), 0.0)

    def _most_likely(self, cell: TimeBin) -> tuple[float, int, int]:
        """Evidence, age and last joint of the best window; age 0 where there is none."""
        loud = self._loudness()
        at_rest = bool((cell.clip > CLIP).all())
        best = (-np.inf, 0, 0)
        for n in self.windows:
            # The window's start has a cell before it.
            if n > self._count:
                break
            halves = at_rest and n >= 2 * self.windows[0]
            for m in (n, n // 2) if halves else (n,):
                change, covariance, use = self._window(n, m)
                if n == self.windows[0]:
                    self._listen(change**2 / np.diag(covariance), loud, use & (cell.clip <= CLIP))
                prior = np.where(use, self.prior, 0.0) / loud
                own = np.where(use, cell.own, 0.0) / loud
                parts = np.cumsum(_evidence(change / np.sqrt(loud), covariance, prior, own))
                last = int(parts.argmax())
                if parts[last] > best[0]:
                    best = (float(parts[last]), int(n), last)
        return best

    def _window(
        self, n: int, m: int
    ) -> tuple[Float[Array, " j"], Float[Array, "j j"], Bool[Array, " j"]]:
        """Mean of the last m cells less the level n cells ago, its covariance, who counts."""
        rows = [self._row(age) for age in range(1, n + 1)]
        inside, first = self._cells[rows], self._cells[rows[-1]]
        late = inside[:m]
        use = inside[:, _SURE].min(axis=0) > 0.0
        change = np.where(use, late[:, _TORQUE].mean(axis=0) - first[_LEVEL], 0.0)
        now, then = self._ends[rows[0]], self._ends[self._row(m + 1)]
        covariance = (now @ now.T + then @ then.T) / m**2
        white, walk = late[:, _WHITE].mean(axis=0), inside[:, _WALK].mean(axis=0)
        alone = white * (1.0 - 0.5 / m) / m + first[_VARIANCE] + walk * (n - 2.0 * m / 3.0)
        covariance += np.diag(alone + np.where(use, 0.0, _NOTHING * self.prior))
        return change, covariance, use


def _evidence(
    change: Float[Array, " j"],
    covariance: Float[Array, "j j"],
    prior: Float[Array, " j"],
    own: Float[Array, " j"],
) -> Float[Array, " j"]:
    """Parts of 2 ln B: the sum of the first k is that of a contact which loads joints 1 to k."""
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, change)
    unit = np.linalg.inv(root)
    loads = unit * np.sqrt(prior)
    small = np.linalg.cholesky(np.eye(len(change)) + loads.T @ loads)
    seen = np.linalg.solve(small, loads.T @ white)
    parts = seen**2 - 2.0 * np.log(np.diag(small))
    jumps = unit * np.sqrt(own)
    size = np.sum(jumps**2, axis=0)
    rival = (jumps.T @ white) ** 2 / (1.0 + size) - np.log1p(size) - _RARE
    parts[0] -= max(float(rival.max()), 0.0)
    return parts
