"""Strokes of a friction test, found in noisy samples, and friction from pairs of them.

At equal position and opposite velocity the links' torque is the same and friction is opposite:

    friction = (tau_forward - tau_backward) / 2,        load = (tau_forward + tau_backward) / 2.

Any offset cancels in the first and stays in the second. Velocity is the position's difference over
a quarter of a second (less for fast strokes), so that strokes far slower than the noise of a
velocity signal are found; a stroke goes on as long as that velocity keeps its sign and size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Bool, Float, Int
from taufit.errors import PoorExcitationError, TaufitError
from taufit.signals.samples import Samples

# Velocity is averaged over the first window for slow strokes, over the second for fast ones.
_WINDOWS_S = (0.25, 0.06)
_FAST = 0.15
_SHORTEST_S = 0.15
_SLOWEST = 4e-4
_ALIKE = 0.1
_AHEAD = 5


@dataclass(frozen=True, slots=True, eq=False)
class FrictionPairs:
    """Friction of one joint at positive speeds, and the load it was measured under.

    Attributes:
        velocity: Speed of each pair [rad/s].
        torque: Friction [N m].
        load: Torque of the links [N m].
        joint: Number of the joint, from 1, for messages.
        stroke: Which pair of strokes each belongs to; all to one where None.
        temperature: Of the joint [degC], where it was recorded.
    """

    velocity: Float[Array, " n"]
    torque: Float[Array, " n"]
    load: Float[Array, " n"]
    joint: int = 1
    stroke: Int[Array, " n"] | None = None
    temperature: Float[Array, " n"] | None = None

    @classmethod
    def joined(cls, parts: Sequence[FrictionPairs]) -> FrictionPairs:
        """Pairs of one joint from several recordings: payloads, days, temperatures."""
        labels, ahead = [], 0
        for part in parts:
            own = np.zeros(len(part.velocity), int) if part.stroke is None else part.stroke
            labels.append(own + ahead)
            ahead += int(own.max(initial=-1)) + 1
        warm = [part.temperature for part in parts]
        return cls(
            np.concatenate([part.velocity for part in parts]),
            np.concatenate([part.torque for part in parts]),
            np.concatenate([part.load for part in parts]),
            parts[0].joint,
            np.concatenate(labels),
            None
            if any(w is None for w in warm)
            else np.concatenate([w for w in warm if w is not None]),
        )

    def chosen(self, rows: Bool[Array, " n"]) -> FrictionPairs:
        """Some of them."""
        return FrictionPairs(
            self.velocity[rows],
            self.torque[rows],
            self.load[rows],
            self.joint,
            None if self.stroke is None else self.stroke[rows],
            None if self.temperature is None else self.temperature[rows],
        )

    @property
    def tested_speeds(self) -> Float[Array, " s"]:
        """Speeds of the pairs of strokes, slow to fast, equal ones once [rad/s]."""
        labels = np.zeros(len(self.velocity), int) if self.stroke is None else self.stroke
        speeds = np.sort([np.median(self.velocity[labels == k]) for k in np.unique(labels)])
        new = np.r_[True, np.diff(np.log(np.maximum(speeds, 1e-12))) > 0.02]
        return speeds[new]


@dataclass(frozen=True, slots=True, eq=False)
class Stroke:
    """A steady movement of one joint, the others at rest.

    Attributes:
        rows: Samples of its steady part.
        speed: Signed [rad/s].
    """

    rows: Int[Array, " n"]
    speed: float


def strokes_in(samples: Samples, joint: int) -> list[Stroke]:
    """Strokes of one joint (from 1), in order of time."""
    found: list[Stroke] = []
    for run in samples.run_slices():
        rows = np.arange(run.start, run.stop)
        q = samples.position[run]
        here: list[Stroke] = []
        for window, slow in zip(_WINDOWS_S, (True, False), strict=True):
            half = max(1, round(0.5 * window * samples.rate_hz))
            if len(rows) <= 6 * half:
                continue
            smooth = np.zeros_like(q)
            smooth[half:-half] = (q[2 * half :] - q[: -2 * half]) * (samples.rate_hz / (2 * half))
            strokes = _steady(smooth, joint - 1, rows, half, samples.rate_hz)
            here += [one for one in strokes if (abs(one.speed) < _FAST) == slow]
        found += sorted(here, key=lambda one: int(one.rows[0]))
    return found


def _steady(
    smooth: Float[Array, "n j"], i: int, rows: Int[Array, " n"], half: int, rate_hz: float
) -> list[Stroke]:
    v = smooth[:, i]
    # Most of the time a joint keeps its velocity, so its change shows the noise.
    change = np.zeros_like(v)
    change[half:-half] = v[2 * half :] - v[: -2 * half]
    noise = 1.4826 * float(np.median(np.abs(change[half:-half]))) / np.sqrt(2.0)
    others = np.abs(np.delete(smooth, i, axis=1)).max(axis=1, initial=0.0)
    size = np.abs(v)
    steady = (size > max(_SLOWEST, 4.0 * noise)) & (np.abs(change) < 0.05 * size + 4.0 * noise)
    steady &= others < 0.03 * size + 4.0 * noise + 2e-4
    edges = np.flatnonzero(np.diff(steady.astype(int)) | np.diff(np.sign(v).astype(int))) + 1
    least = max(4, round(_SHORTEST_S * rate_hz))
    return [
        Stroke(rows[part], float(np.median(v[part])))
        for part in np.split(np.arange(len(v)), edges)
        if steady[part[0]] and len(part) >= least
    ]


def pairs_in(samples: Samples, joint: int, *, points: int = 8) -> FrictionPairs:
    """Friction of one joint (from 1) in samples of its constant-velocity strokes both ways.

    Neighbouring strokes of opposite direction and equal speed (within 10 per cent) are compared at
    the positions they share, in `points` bins each; strokes without a partner are left out.
    """
    strokes = strokes_in(samples, joint)
    i = joint - 1
    found: list[FrictionPairs] = []
    used: set[int] = set()
    for k, one in enumerate(strokes):
        for m in range(k + 1, min(k + 1 + _AHEAD, len(strokes))):
            two = strokes[m]
            alike = abs(one.speed + two.speed) < _ALIKE * max(abs(one.speed), abs(two.speed))
            if k in used or m in used or not alike:
                continue
            pair = _binned(samples, i, one, two, points)
            if pair is not None:
                found.append(pair)
                used |= {k, m}
    if not found:
        raise PoorExcitationError(
            f"joint {joint} has no constant-velocity strokes both ways at one speed over the same "
            f"positions ({len(strokes)} strokes were found). Drive it alone, forwards and "
            "backwards, at several speeds: `taufit design --kind friction-test` plans that."
        )
    return FrictionPairs.joined(found)


def _binned(
    samples: Samples, i: int, one: Stroke, two: Stroke, points: int
) -> FrictionPairs | None:
    """Means of both strokes in bins of the positions they share; None where they share few."""
    forward, backward = (one, two) if one.speed > 0 else (two, one)
    q = [samples.position[stroke.rows, i] for stroke in (forward, backward)]
    low, high = max(x.min() for x in q), min(x.max() for x in q)
    if high - low < 0.3 * min(np.ptp(x) for x in q) or high <= low:
        return None
    edges = np.linspace(low, high, points + 1)
    columns = []
    for stroke, position in zip((forward, backward), q, strict=True):
        which = np.digitize(position, edges) - 1
        inside = (which >= 0) & (which < points)
        count = np.bincount(which[inside], minlength=points)
        rows = stroke.rows[inside]
        values = [samples.velocity[rows, i], samples.torque[rows, i]]
        if samples.temperature is not None:
            values.append(samples.temperature[rows, i])
        sums = [np.bincount(which[inside], x, minlength=points) for x in values]
        columns.append((count, sums))
    good = (columns[0][0] > 0) & (columns[1][0] > 0)
    if not np.any(good):
        return None
    means = [[s[good] / count[good] for s in sums] for count, sums in columns]
    warm = None if samples.temperature is None else 0.5 * (means[0][2] + means[1][2])
    return FrictionPairs(
        0.5 * (means[0][0] - means[1][0]),
        0.5 * (means[0][1] - means[1][1]),
        0.5 * (means[0][1] + means[1][1]),
        i + 1,
        np.zeros(int(good.sum()), int),
        warm,
    )


def pairs_of(
    forward: tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]],
    backward: tuple[Float[Array, " m"], Float[Array, " m"], Float[Array, " m"]],
    *,
    points: int = 40,
    joint: int = 1,
) -> FrictionPairs:
    """Pairs from one run each way: (position, velocity, torque) of the joint that moved.

    Both runs are read at the same positions, evenly over the range they share.
    """
    (qf, vf, tf), (qb, vb, tb) = (_by_position(run) for run in (forward, backward))
    low, high = max(qf[0], qb[0]), min(qf[-1], qb[-1])
    if not low < high:
        raise PoorExcitationError(
            f"the forward and backward runs of joint {joint} share no positions. "
            "Drive the same segment both ways."
        )
    if np.median(vf) < 0 or np.median(vb) > 0:
        raise TaufitError("the first run goes forwards (v > 0), the second backwards.")
    at = np.linspace(low, high, points + 2)[1:-1]
    f, b = np.interp(at, qf, tf), np.interp(at, qb, tb)
    speed = 0.5 * (np.interp(at, qf, vf) - np.interp(at, qb, vb))
    return FrictionPairs(speed, 0.5 * (f - b), 0.5 * (f + b), joint)


def _by_position(run: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    q, v, t = (np.asarray(x, float) for x in run)
    order = np.argsort(q, kind="stable")
    return q[order], v[order], t[order]
