"""Families of motions, linear in their coefficients, that start and end at rest.

Every joint moves as q(t) = centre + Phi(t) c; the conditions "velocity and acceleration are zero at
both ends" (and, optionally, "starts at the centre") are linear in c and are eliminated once, so any
c gives a motion that starts and ends at rest.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.spline import Spline


@runtime_checkable
class Basis(Protocol):
    """A family of motions of one joint, linear in `size` coefficients."""

    @property
    def size(self) -> int: ...

    @property
    def period(self) -> float:
        """Duration of one period of the motion [s]."""
        ...

    def matrices(self, time: Float[Array, " n"]) -> Float[Array, "4 n m"]:
        """Position, velocity, acceleration and jerk per unit coefficient."""
        ...

    def projectors(self, joints: int) -> Float[Array, "j m m"] | None:
        """Projectors onto the coefficients that each joint may use; None if it may use all."""
        ...

    def motion(self, centre: Float[Array, " j"], coefficients: Float[Array, "j m"]) -> Motion:
        """Motion with these coefficients."""
        ...


def _null_space(conditions: Float[Array, "c m"]) -> Float[Array, "m k"]:
    """Orthonormal columns Z with conditions @ Z = 0."""
    _, values, right = np.linalg.svd(conditions)
    rank = int(np.sum(values > 1e-12 * values[0])) if len(values) else 0
    return right[rank:].T


@dataclass(frozen=True, slots=True, eq=False)
class FourierBasis:
    """Fourier series of `harmonics` terms with a free offset.

    Attributes:
        harmonics: Number of harmonics; at least 3 are useful, since rest at both ends takes two
            conditions. More harmonics excite faster dynamics.
        frequency_hz: Frequency of the first harmonic [Hz].
        fixed_start: Start and end at the centre pose.
        periods: Number of periods played.
        form: Form of the written coefficients, "amplitude" or "velocity".
        joint_harmonics: Number of harmonics each joint may use; None: all. A slow wide arm with
            a fast wrist is (2, 2, 2, 8, 8, 8).
    """

    harmonics: int = 5
    frequency_hz: float = 0.1
    fixed_start: bool = False
    periods: int = 1
    form: str = "velocity"
    joint_harmonics: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.harmonics < 2:
            raise InfeasibleError(
                f"{self.harmonics} harmonics cannot start and end at rest: use at least 2 "
                "(5 is usual)."
            )
        if not (np.isfinite(self.frequency_hz) and self.frequency_hz > 0):
            raise InfeasibleError("the frequency of a Fourier motion must be positive.")
        for joint, count in enumerate(self.joint_harmonics or ()):
            if not 2 <= count <= self.harmonics:
                raise InfeasibleError(
                    f"joint {joint + 1} cannot use {count} harmonics: 2 to {self.harmonics}."
                )

    @property
    def period(self) -> float:
        return 1.0 / self.frequency_hz

    def projectors(self, joints: int) -> Float[Array, "j m m"] | None:
        """Projectors onto the harmonics that each joint may use; None if it may use all."""
        if self.joint_harmonics is None:
            return None
        if len(self.joint_harmonics) != joints:
            raise InfeasibleError(
                f"{len(self.joint_harmonics)} numbers of harmonics were given for {joints} joints."
            )
        directions, h = self._free_directions(), self.harmonics
        projectors = []
        for count in self.joint_harmonics:
            unused = np.r_[1 + count : 1 + h, 1 + h + count : 1 + 2 * h]
            rows = directions[unused]
            allowed = _null_space(rows) if len(rows) else np.eye(directions.shape[1])
            projectors.append(allowed @ allowed.T)
        return np.array(projectors)

    @property
    def pulsations(self) -> Float[Array, " h"]:
        return 2 * np.pi * self.frequency_hz * np.arange(1, self.harmonics + 1)

    def _free_directions(self) -> Float[Array, "m k"]:
        """Basis of the allowed (offset, a_1.., b_1..), amplitude form, scaled to equal speeds."""
        w, h = self.pulsations, self.harmonics
        rows = [np.r_[0.0, w, np.zeros(h)], np.r_[0.0, np.zeros(h), w**2 / w[-1]]]
        if self.fixed_start:
            rows.append(np.r_[1.0, np.zeros(h), -np.ones(h)])
        # Unit coefficients give similar speeds for every harmonic.
        scale = np.r_[1.0, w[0] / w, w[0] / w]
        return scale[:, None] * _null_space(np.array(rows) * scale)

    @property
    def size(self) -> int:
        return self._free_directions().shape[1]

    def matrices(self, time: Float[Array, " n"]) -> Float[Array, "4 n m"]:
        w = self.pulsations
        phase = np.asarray(time)[:, None] * w
        s, c = np.sin(phase), np.cos(phase)
        ones, zeros = np.ones((len(phase), 1)), np.zeros((len(phase), 1))
        raw = np.stack(
            [
                np.hstack([ones, s, -c]),
                np.hstack([zeros, c * w, s * w]),
                np.hstack([zeros, -s * w**2, c * w**2]),
                np.hstack([zeros, -c * w**3, -s * w**3]),
            ]
        )
        return raw @ self._free_directions()

    def motion(self, centre: Float[Array, " j"], coefficients: Float[Array, "j m"]) -> Fourier:
        full = np.asarray(coefficients) @ self._free_directions().T
        h = self.harmonics
        motion = Fourier(
            centre + full[:, 0],
            full[:, 1 : 1 + h],
            full[:, 1 + h :],
            self.frequency_hz,
            "amplitude",
            float(self.periods),
        )
        return motion.with_form(self.form)


@dataclass(frozen=True, slots=True, eq=False)
class SplineBasis:
    """Quintic B-splines with equidistant knots: local in time, for motions without a period.

    Attributes:
        pieces: Polynomial pieces over the duration.
        seconds: Duration [s].
        fixed_start: Start at the centre pose (the end is free).
    """

    pieces: int = 16
    seconds: float = 10.0
    fixed_start: bool = False

    def __post_init__(self) -> None:
        if self.pieces < 6:
            raise InfeasibleError(
                "a spline motion needs at least 6 pieces to start and end at rest."
            )
        if not (np.isfinite(self.seconds) and self.seconds > 0):
            raise InfeasibleError("the duration of a spline motion must be positive.")

    @property
    def period(self) -> float:
        return self.seconds

    def projectors(self, joints: int) -> Float[Array, "j m m"] | None:
        return None

    def _knots(self) -> Float[Array, " k"]:
        inner = np.linspace(0.0, self.seconds, self.pieces + 1)
        return np.r_[[0.0] * 5, inner, [self.seconds] * 5]

    def _raw(self, time: Float[Array, " n"]) -> list[Any]:
        from scipy.interpolate import BSpline

        knots = self._knots()
        spline = BSpline(knots, np.eye(len(knots) - 6), 5)
        t = np.clip(time, 0.0, self.seconds)
        return [spline.derivative(k)(t) if k else spline(t) for k in range(4)]

    def _free_directions(self) -> Float[Array, "m k"]:
        ends = self._raw(np.array([0.0, self.seconds]))
        # Derivatives grow with powers of pieces/seconds; rows are scaled before the null space.
        rows = [row / np.linalg.norm(row) for order in (1, 2) for row in ends[order]]
        if self.fixed_start:
            rows.append(ends[0][0])
        return _null_space(np.array(rows))

    @property
    def size(self) -> int:
        return self._free_directions().shape[1]

    def matrices(self, time: Float[Array, " n"]) -> Float[Array, "4 n m"]:
        return np.stack(self._raw(np.asarray(time))) @ self._free_directions()

    def motion(self, centre: Float[Array, " j"], coefficients: Float[Array, "j m"]) -> Spline:
        full = np.asarray(coefficients) @ self._free_directions().T
        return Spline(self._knots(), (np.asarray(centre)[:, None] + full).T)
