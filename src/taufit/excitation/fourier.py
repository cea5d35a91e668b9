"""Finite Fourier series per joint: periodic, smooth, with exact derivatives.

    amplitude form   q = q0 + sum_l  a_l sin(l w t) - b_l cos(l w t)
    velocity form    q = q0 + sum_l (a_l sin(l w t) - b_l cos(l w t)) / (l w)

with w = 2 pi f and l = 1, 2, ...; both forms describe the same motions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError

FORMS = ("amplitude", "velocity")


@dataclass(frozen=True, slots=True, eq=False)
class Fourier:
    """Fourier series, played for some periods.

    Attributes:
        offset: q0 [rad or m].
        sine: a_l, one row per joint, one column per harmonic.
        cosine: b_l, one row per joint, one column per harmonic.
        frequency_hz: Frequency of the first harmonic [Hz].
        form: "amplitude" or "velocity", the meaning of the coefficients.
        periods: Number of periods; need not be an integer.
    """

    offset: Float[Array, " j"]
    sine: Float[Array, "j h"]
    cosine: Float[Array, "j h"]
    frequency_hz: float
    form: str = "velocity"
    periods: float = 1.0

    def __post_init__(self) -> None:
        for name in ("offset", "sine", "cosine"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        if self.sine.ndim != 2 or self.sine.shape != self.cosine.shape:
            raise TaufitError(
                "a Fourier motion has one row of sine and one row of cosine coefficients per "
                f"joint, equally many of each; found {self.sine.shape} and {self.cosine.shape}."
            )
        if self.offset.shape != self.sine.shape[:1]:
            raise TaufitError(
                f"a Fourier motion of {len(self.sine)} joints has {len(self.sine)} offsets; "
                f"found {self.offset.size}."
            )
        if self.form not in FORMS:
            raise TaufitError(
                f"Fourier form {self.form!r} is not known: use amplitude or velocity."
            )
        values = [self.offset.ravel(), self.sine.ravel(), self.cosine.ravel()]
        if not np.all(np.isfinite(np.concatenate(values))):
            raise TaufitError("a Fourier motion has a coefficient that is not a finite number.")
        if not (np.isfinite(self.frequency_hz) and self.frequency_hz > 0.0 and self.periods > 0.0):
            raise TaufitError("a Fourier motion needs a positive frequency and number of periods.")

    @property
    def joints(self) -> int:
        return len(self.offset)

    @property
    def harmonics(self) -> int:
        return self.sine.shape[1]

    @property
    def period(self) -> float:
        """Length of one period [s]."""
        return 1.0 / self.frequency_hz

    @property
    def duration(self) -> float:
        """Length of all periods [s]."""
        return self.periods / self.frequency_hz

    @property
    def pulsations(self) -> Float[Array, " h"]:
        """l w of every harmonic [rad/s]."""
        return 2.0 * np.pi * self.frequency_hz * np.arange(1, self.harmonics + 1)

    def amplitudes(self) -> tuple[Float[Array, "j h"], Float[Array, "j h"]]:
        """Sine and cosine coefficients of the position, for either form."""
        if self.form == "amplitude":
            return self.sine, self.cosine
        return self.sine / self.pulsations, self.cosine / self.pulsations

    def with_form(self, form: str) -> Fourier:
        """Copy with coefficients in the given form."""
        sine, cosine = self.amplitudes()
        scale = 1.0 if form == "amplitude" else self.pulsations
        return replace(self, sine=sine * scale, cosine=cosine * scale, form=form)

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        t = np.asarray(time, float)
        inside = (t >= 0.0) & (t <= self.duration)
        w = self.pulsations
        phase = np.clip(t, 0.0, self.duration)[:, None] * w
        sin, cos = np.sin(phase), np.cos(phase)
        a, b = self.amplitudes()
        position = self.offset + sin @ a.T - cos @ b.T
        velocity = cos @ (a * w).T + sin @ (b * w).T
        acceleration = cos @ (b * w**2).T - sin @ (a * w**2).T
        velocity[~inside] = 0.0
        acceleration[~inside] = 0.0
        return position, velocity, acceleration

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` returns the same motion."""
        return {
            "offset": self.offset.tolist(),
            "sine": self.sine.tolist(),
            "cosine": self.cosine.tolist(),
            "frequency_hz": self.frequency_hz,
            "form": self.form,
            "periods": self.periods,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fourier:
        """Inverse of `to_dict`."""
        return cls(
            np.array(data["offset"], float),
            np.array(data["sine"], float),
            np.array(data["cosine"], float),
            float(data["frequency_hz"]),
            str(data.get("form", "velocity")),
            float(data.get("periods", 1.0)),
        )
