"""Joint-space curves with bounds on their derivatives, from coefficients instead of samples.

A curve consists of pieces, each smooth up to its ends, where one-sided values are used. On an
interval of length h inside a piece every derivative x satisfies

    max |x| <= max(|x(start)|, |x(stop)|) + h^2/8 max |x''|,

and `bound` gives max |x''| from Fourier sums, hulls of Bernstein coefficients or closed forms.
"""

from __future__ import annotations

from dataclasses import field
from math import comb, factorial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.excitation import Fourier, LineStrokes, Motion, SampledMotion, Spline, Strokes

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

# Maximum size of a table of sines: long series are evaluated in parts.
_MAXIMUM_TABLE = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Time intervals, each within one piece of a curve.

    Attributes:
        piece: Index of the piece.
        start, stop: Time from the start of the piece [s].
    """

    piece: Int[Array, " n"]
    start: Float[Array, " n"]
    stop: Float[Array, " n"]

    def __len__(self) -> int:
        return len(self.piece)

    def take(self, selected: Array) -> Intervals:
        """Selected intervals."""
        return Intervals(self.piece[selected], self.start[selected], self.stop[selected])

    @property
    def middle(self) -> Float[Array, " n"]:
        return 0.5 * (self.start + self.stop)

    @property
    def length(self) -> Float[Array, " n"]:
        return self.stop - self.start


@runtime_checkable
class Curve(Protocol):
    """Joint positions over time, in pieces."""

    @property
    def begin(self) -> Float[Array, " p"]:
        """Start time of each piece [s]."""
        ...

    @property
    def length(self) -> Float[Array, " p"]:
        """Duration of each piece [s]."""
        ...

    def value(
        self, order: int, piece: Int[Array, " n"], time: Float[Array, " n"]
    ) -> Float[Array, "n j"]:
        """Derivative at times within a piece, one-sided at its ends."""
        ...

    def bound(self, order: int, piece: Int[Array, " n"]) -> Float[Array, "n j"]:
        """Upper bound of the magnitude of a derivative on complete pieces."""
        ...


def intervals(curve: Curve, step: float) -> Intervals:
    """Split a curve into intervals no longer than `step` [s]."""
    length = curve.length
    parts = np.maximum(1, np.ceil(length / step - 1e-9)).astype(int)
    piece = np.repeat(np.arange(len(length)), parts)
    number = np.arange(len(piece)) - np.repeat(np.cumsum(parts) - parts, parts)
    size = (length / parts)[piece]
    return Intervals(piece, number * size, (number + 1) * size)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesCurve:
    """Fourier series over one time interval.

    Attributes:
        motion: Fourier series.
        seconds: Duration [s].
    """

    motion: Fourier
    seconds: float

    @property
    def begin(self) -> Float[Array, " p"]:
        return np.zeros(1)

    @property
    def length(self) -> Float[Array, " p"]:
        return np.array([self.seconds])

    def value(
        self, order: int, piece: Int[Array, " n"], time: Float[Array, " n"]
    ) -> Float[Array, "n j"]:
        """d^k/dt^k (a sin wt - b cos wt) = w^k (a sin(wt + k pi/2) - b cos(wt + k pi/2))."""
        a, b = self.motion.amplitudes()
        w = self.motion.pulsations
        rotated = {0: (a, -b), 1: (b, a), 2: (-a, b), 3: (-b, -a)}[order % 4]
        sine, cosine = ((part * w**order).T for part in rotated)
        values = np.empty((len(time), self.motion.joints))
        rows = max(1, _MAXIMUM_TABLE // max(1, len(w)))
        for first in range(0, len(time), rows):
            phase = time[first : first + rows, None] * w
            values[first : first + rows] = np.sin(phase) @ sine + np.cos(phase) @ cosine
        return values + self.motion.offset if order == 0 else values

    def bound(self, order: int, piece: Int[Array, " n"]) -> Float[Array, "n j"]:
        a, b = self.motion.amplitudes()
        bound = (np.hypot(a, b) * self.motion.pulsations**order).sum(axis=1)
        bound += np.abs(self.motion.offset) if order == 0 else 0.0
        return np.broadcast_to(bound, (len(piece), self.motion.joints))


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialCurve:
    """Polynomial per piece and joint.

    Attributes:
        begin: Start time of each piece [s].
        length: Duration of each piece [s].
        coefficients: Coefficients of powers of the time within a piece, lowest first.
    """

    begin: Float[Array, " p"]
    length: Float[Array, " p"]
    coefficients: Float[Array, "k p j"]
    _bounds: dict[int, Float[Array, "p j"]] = field(default_factory=dict, repr=False)

    def derivative(self, order: int) -> Float[Array, "m p j"]:
        """Coefficients of a derivative."""
        coefficients = self.coefficients
        for _ in range(order):
            coefficients = coefficients[1:] * np.arange(1, len(coefficients))[:, None, None]
        return coefficients if len(coefficients) else np.zeros((1, *self.coefficients.shape[1:]))

    def value(
        self, order: int, piece: Int[Array, " n"], time: Float[Array, " n"]
    ) -> Float[Array, "n j"]:
        powers = self.derivative(order)[:, piece]
        values = powers[-1].copy()
        for row in powers[-2::-1]:
            values *= time[:, None]
            values += row
        return values

    def bound(self, order: int, piece: Int[Array, " n"]) -> Float[Array, "n j"]:
        """Bound by the convex hull of the Bernstein coefficients."""
        if order not in self._bounds:
            powers = self.derivative(order)
            degree = len(powers) - 1
            scale = self.length[None, :] ** np.arange(degree + 1)[:, None]
            scaled = powers * scale[:, :, None]
            hull = np.zeros(powers.shape[1:])
            for i in range(degree + 1):
                point = sum(comb(i, m) / comb(degree, m) * scaled[m] for m in range(i + 1))
                np.maximum(hull, np.abs(point), out=hull)
            self._bounds[order] = hull
        return self._bounds[order][piece]


def hermite(
    time: Float[Array, " n"],
    position: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
    acceleration: Float[Array, "n j"] | None = None,
) -> PolynomialCurve:
    """Cubic Hermite curve through positions and velocities; quintic with accelerations.

    With s = t/h, u = h v and w = h^2 a, the cubic from 0 to 1 is
    q0 + u0 s + (3 d - 2 u0 - u1) s^2 + (u0 + u1 - 2 d) s^3 with d = q1 - q0.
    """
    time = np.asarray(time, float)
    h = np.diff(time)[:, None]
    d = np.diff(position, axis=0)
    u0, u1 = h * velocity[:-1], h * velocity[1:]
    if acceleration is None:
        powers = [position[:-1], u0, 3 * d - 2 * u0 - u1, u0 + u1 - 2 * d]
    else:
        w0, w1 = h**2 * acceleration[:-1], h**2 * acceleration[1:]
        # Remainder at s = 1 of value, slope and curvature after q0 + u0 s + w0 s^2/2.
        p, s, c = d - u0 - w0 / 2, u1 - u0 - w0, w1 - w0
        powers = [position[:-1], u0, w0 / 2, 10.0 * p - 4 * s + c / 2]
        powers += [-15 * p + 7 * s - c, 6 * p - 3 * s + c / 2]
    scaled = np.stack([power / h**k for k, power in enumerate(powers)])
    return PolynomialCurve(time[:-1], h[:, 0], scaled)


def straight_line(start: Float[Array, " j"], stop: Float[Array, " j"]) -> PolynomialCurve:
    """Straight line between two poses, in one second at constant speed."""
    powers = np.stack([start, stop - start])[:, None]
    return PolynomialCurve(np.zeros(1), np.ones(1), powers)


@dataclass(frozen=True, slots=True, eq=False)
class StrokeCurve:
    """Strokes: ramps, constant-speed parts and pauses, by their closed forms.

    Attributes:
        motion: Strokes.
    """

    motion: Strokes
    begin: Float[Array, " p"] = field(init=False)
    length: Float[Array, " p"] = field(init=False)
    _stroke: Int[Array, " p"] = field(init=False)
    _start_in_stroke: Float[Array, " p"] = field(init=False)
    _active_ramps: Int[Array, " p"] = field(init=False)

    def __post_init__(self) -> None:
        m = self.motion
        constant_time = np.abs(m.displacement - m._from) / m.speed
        total = np.diff(m._begin)
        edges = np.column_stack(
            [0 * constant_time, m.ramp, constant_time, constant_time + m.ramp, total]
        )
        edges = np.sort(edges, axis=1)
        length = np.diff(edges, axis=1)
        middle = edges[:, :-1] + 0.5 * length
        # Number of active ramps in each part.
        ramps = (middle < m.ramp[:, None]).astype(int)
        ramps += (middle > constant_time[:, None]) & (middle < (constant_time + m.ramp)[:, None])
        keep = length > 1e-12
        stroke = np.broadcast_to(np.arange(len(constant_time))[:, None], keep.shape)[keep]
        for name, values in (
            ("_stroke", stroke),
            ("_start_in_stroke", edges[:, :-1][keep]),
            ("_active_ramps", ramps[keep]),
            ("length", length[keep]),
            ("begin", m._begin[stroke] + edges[:, :-1][keep]),
        ):
            object.__setattr__(self, name, values)

    def value(
        self, order: int, piece: Int[Array, " n"], time: Float[Array, " n"]
    ) -> Float[Array, "n j"]:
        """Smooth step S(u) = u - sin(2 pi u)/(2 pi) and its derivatives, for both ramps."""
        m, k = self.motion, self._stroke[piece]
        travel = m.displacement[k] - m._from[k]
        ramp, speed = m.ramp[k], m.speed[k]
        stroke_time = np.minimum(self._start_in_stroke[piece] + time, m._begin[k + 1] - m._begin[k])
        constant_time = np.abs(travel) / speed
        # A complete piece belongs to a ramp: one-sided values at its ends.
        centre = self._start_in_stroke[piece] + 0.5 * self.length[piece]
        up = _step(order, stroke_time, centre, ramp)
        down = _step(order, stroke_time - constant_time, centre - constant_time, ramp)
        values = m.pose + m._standing[k] if order == 0 else np.zeros((len(k), m.joints))
        values[np.arange(len(k)), m.joint[k]] += np.sign(travel) * speed * (up - down)
        return values

    def bound(self, order: int, piece: Int[Array, " n"]) -> Float[Array, "n j"]:
        m, k = self.motion, self._stroke[piece]
        speed, ramp = m.speed[k], m.ramp[k]
        active_ramps = self._active_ramps[piece]
        if order == 0:
            joint_bound = np.abs(m.displacement[k] - m._from[k])
        elif order == 1:
            joint_bound = speed
        else:
            joint_bound = active_ramps * speed * _RAMP_BOUNDS[order] / ramp ** (order - 1)
        bounds = np.zeros((len(k), m.joints))
        if order == 0:
            bounds += np.abs(m.pose + m._standing[k])
        bounds[np.arange(len(k)), m.joint[k]] += joint_bound
        return bounds


@dataclass(frozen=True, slots=True, eq=False)
class LineCurve:
    """Strokes of all joints along a line, from the curve of their common path.

    Attributes:
        motion: Strokes along a line.
    """

    motion: LineStrokes
    path: StrokeCurve = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", StrokeCurve(self.motion.path))

    @property
    def begin(self) -> Float[Array, " p"]:
        return self.path.begin

    @property
    def length(self) -> Float[Array, " p"]:
        return self.path.length

    def value(
        self, order: int, piece: Int[Array, " n"], time: Float[Array, " n"]
    ) -> Float[Array, "n j"]:
        """Derivative of the given order: of the path, times the direction."""
        values = self.path.value(order, piece, time) * self.motion.direction
        return values + self.motion.pose if order == 0 else values

    def bound(self, order: int, piece: Int[Array, " n"]) -> Float[Array, "n j"]:
        bounds = self.path.bound(order, piece) * np.abs(self.motion.direction)
        return bounds + np.abs(self.motion.pose) if order == 0 else bounds


# Largest k-th derivative of a ramp for unit speed and duration: of 1 - cos and its derivatives.
_RAMP_BOUNDS = {k: (2.0 if k == 2 else (2.0 * np.pi) ** (k - 2)) for k in range(2, 7)}


def _step(
    order: int, t: Float[Array, " n"], centre: Float[Array, " n"], ramp: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Integral (order 0), value (1) and derivatives of a smooth step of length `ramp` from 0."""
    u = np.clip(t / ramp, 0.0, 1.0)
    turn = 2.0 * np.pi * u
    if order == 0:
        inside = ramp * (u**2 / 2 + (np.cos(turn) - 1.0) / (4 * np.pi**2))
        return inside + np.maximum(t - ramp, 0.0)
    if order == 1:
        return u - np.sin(turn) / (2 * np.pi)
    k = order - 2
    rate = 2.0 * np.pi / ramp
    wave = np.cos(turn + 0.5 * np.pi * k) * rate**k
    slope = ((1.0 if k == 0 else 0.0) - wave) / ramp
    return np.where((centre > 0.0) & (centre < ramp), slope, 0.0)


def exact_curve(motion: Motion) -> Curve:
    """Exact curve of a motion; one period of a Fourier series."""
    if isinstance(motion, Fourier):
        # The series is periodic.
        return SeriesCurve(motion, motion.period)
    if isinstance(motion, Spline):
        from scipy.interpolate import BSpline

        return _from_spline(BSpline(motion.knots, motion.control, 5))
    if isinstance(motion, SampledMotion):
        return _from_spline(motion._splines[0])
    if isinstance(motion, Strokes):
        return StrokeCurve(motion)
    if isinstance(motion, LineStrokes):
        return LineCurve(motion)
    raise TaufitError(f"a motion of type {type(motion).__name__} cannot be proved clear.")


def _from_spline(spline: BSpline) -> PolynomialCurve:
    """Polynomials between distinct knots, by Taylor series at the left end of each piece."""
    knots = np.unique(spline.t)
    powers = [spline.derivative(k)(knots[:-1]) / factorial(k) for k in range(spline.k + 1)]
    return PolynomialCurve(knots[:-1], np.diff(knots), np.stack(powers))
