"""Evidence that the external torque has changed, sample by sample, at any of the last moments.

The residual of a joint is a level m that wanders plus white noise; a Kalman filter follows the
level. A step of size theta that began at cell s leaves its signature g in the innovations nu that
follow (g starts at 1 and fades as the level adapts), so with innovation variance S

    A = sum g^2 / S,   b = sum g nu / S,      theta ~ N(b/A, 1/A),

and against theta ~ N(0, P) no step loses by the Bayes factor

    2 ln B = b^2 / (A + 1/P) - ln(1 + A P).

A force on link k loads joints 1 to k, so the evidence of a contact is the largest sum over the
first k joints. Days and motions differ, so variances are multiplied by how loud the innovations
were before the earliest start that is looked at. The determinants are what a step may explain by
chance: one threshold serves every state, and any number of joints. A, b and g of every start within
the last quarter of a second are carried along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taufit.arrays import Array, Bool, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Innovations beyond this many standard deviations count as much as it: a glitch is no contact. At
# rest there are none.
CLIP, CLIP_AT_REST = 4.0, 8.0
# Loudness is the mean of squared innovations over this time [s], and stays within these bounds.
_LOUD_S = 2.0
_QUIETEST, _LOUDEST = 0.8, 16.0
# A level fades to zero over this time [s].
_FADE_S = 3.0
# Steps are looked for that began this long ago [s].
SHORTEST_S, LONGEST_S = 0.025, 0.24


class Step(NamedTuple):
    """The most likely step.

    Attributes:
        evidence: 2 ln B of it against none.
        age: Cells since it began, at least 1.
        joints: 2 ln B of each joint's part.
        last: Index of the last joint it loads.
        level, variance: Of the residual before it, per joint [N m], [(N m)^2].
    """

    evidence: float
    age: int
    joints: Float[Array, " j"]
    last: int
    level: Float[Array, " j"]
    variance: Float[Array, " j"]


class ChangeTest:
    """Level of each joint's residual, and evidence for a step in it.

    Args:
        prior: Standard deviation of steps before anything is known [N m].
        step: Between two cells [s].
    """

    def __init__(self, prior: Float[Array, " j"], step: float) -> None:
        self.prior = np.asarray(prior, float) ** 2
        self.joints = len(self.prior)
        self._fade = float(np.exp(-step / _FADE_S))
        self.longest = max(round(LONGEST_S / step), 3)
        self.shortest = min(max(round(SHORTEST_S / step), 1), self.longest)
        # Level, its variance and loudness, per joint.
        self._state = np.stack([np.zeros(self.joints), 4.0 * self.prior, np.ones(self.joints)])
        # Per start that is looked at: signature, A, b; level, variance and loudness before it.
        self._starts = np.zeros((6, self.longest, self.joints))
        self._starts[5] = 1.0
        self._learn = -float(np.expm1(-step / _LOUD_S))
        self._parts = np.zeros(self.joints)
        self.forget()

    @property
    def level(self) -> Float[Array, " j"]:
        """Of the residual [N m], a copy."""
        return self._state[0].copy()

    @property
    def variance(self) -> Float[Array, " j"]:
        """Of the level [(N m)^2], a copy."""
        return self._state[1].copy()

    def forget(self) -> None:
        """Steps that began before now are not looked for."""
        self._starts[1:3] = 0.0
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

    def advance(
        self,
        residual: Float[Array, " j"],
        white: Float[Array, " j"],
        walk: Float[Array, " j"],
        sure: Bool[Array, " j"],
        clip: Float[Array, " j"],
    ) -> Step | None:
        """The next cell, and the most likely step then; None before there can be one.

        Args:
            residual: External torque [N m].
            white, walk: Variance of a cell's noise, and by how much that of the level grows.
            sure: Joints that say something; what others said before is forgotten.
            clip: Largest innovation that counts, in standard deviations.
        """
        # At rest everything is quieter, and a start is louder than anything.
        learn = self._learn * (sure & (clip <= CLIP))
        step = self._compiled if _kernel is not None else self._plain
        evidence, slot, last = step(residual, white, walk, sure, clip, learn)
        self._count += 1
        if self._count < self.shortest:
            return None
        age = (self._count - 1 - slot) % self.longest + 1
        return Step(
            evidence,
            age,
            self._parts.copy(),
            last,
            self._starts[3, slot].copy(),
            self._starts[4, slot].copy(),
        )

    def _compiled(
        self,
        residual: Array,
        white: Array,
        walk: Array,
        sure: Array,
        clip: Array,
        learn: Array,
    ) -> tuple[float, int, int]:
        found: tuple[float, int, int] = _kernel.change_test(
            np.ascontiguousarray(residual, float),
            white,
            walk,
            np.ascontiguousarray(sure),
            self.prior,
            self._state,
            self._starts,
            self._parts,
            self._count,
            self.shortest,
            self._fade,
            clip,
            learn,
            _QUIETEST,
            _LOUDEST,
        )
        return found

    def _plain(
        self,
        residual: Array,
        white: Array,
        walk: Array,
        sure: Array,
        clip: Array,
        learn: Array,
    ) -> tuple[float, int, int]:
        """The same in NumPy."""
        slot = self._count % self.longest
        signature, a, b, levels, variances, loudness = self._starts
        factor = np.clip(loudness[slot], _QUIETEST, _LOUDEST)
        levels[slot], variances[slot], loudness[slot] = self._state
        signature[slot] = a[slot] = b[slot] = 0.0
        level = self._fade * self._state[0]
        variance = self._fade**2 * self._state[1] + walk
        expected = variance + white
        total = factor * expected
        bound = clip * np.sqrt(total)
        innovation = np.clip(residual - level, -bound, bound)
        gain = variance / expected
        self._state[2] += learn * (innovation**2 / expected - self._state[2])
        signature *= self._fade
        seen = 1.0 - signature
        a += seen**2 / total
        b += seen * innovation / total
        a[:, ~sure] = b[:, ~sure] = 0.0
        signature += gain * seen
        self._state[0] = level + gain * innovation
        self._state[1] = (1.0 - gain) * variance

        each = b**2 / (a + 1.0 / self.prior) - np.log1p(a * self.prior)
        sums = np.cumsum(each, axis=1)
        last = sums.argmax(axis=1)
        whole = sums[np.arange(self.longest), last]
        age = (self._count - np.arange(self.longest)) % self.longest + 1
        whole = np.where((age >= self.shortest) & (age <= self._count + 1), whole, -np.inf)
        best = int(whole.argmax())
        self._parts[:] = each[best]
        return float(whole[best]), best, int(last[best])
