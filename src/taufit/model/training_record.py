"""What a fitted model remembers of its training, typed; every default is in this file.

A `TrainingRecord` says how the data were conditioned, where the motion went, how sure the
parameters are, what the residuals look like and where everything came from. Whoever uses a fitted
model later (prediction, payload, health, report, export) reads it here; `record_file` alone knows
how it is spelled in a file. To add to it, give the new part a field with a default here, and a line
in `record_file`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.codec import Limits
from taufit.model.information_share import InformationShare
from taufit.model.noise_by_state import NoiseByState
from taufit.model.score import Score
from taufit.signals.samples import Samples

# Low-pass and grid of a model whose record does not say [Hz].
DEFAULT_CUTOFF_HZ = 10.0
DEFAULT_RATE_HZ = 100.0
# Standard deviation expected of encoder zeros before a fit: revolute [rad], prismatic [m].
DEFAULT_ZERO_STD: float = math.radians(1.0)
DEFAULT_SLIDE_ZERO_STD: float = 5e-3
# Over how long the residuals of a typical arm are correlated [s].
DEFAULT_CORRELATION_S = 0.12


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning:
    """How the training data were conditioned, and so how new data must be.

    Attributes:
        cutoff_hz: Low-pass of motion and torque; infinite where there was none.
        rate_hz: Of the uniform grid.
        delay_s: By which the motion was delayed to meet the torque.
        gain: Torque per unit of the recorded signal, per joint, or None where torque was recorded.
        gain_std: Its standard deviation, or None where it is not known.
    """

    cutoff_hz: Annotated[float, Limits(low=1e-3, null=math.inf)] = DEFAULT_CUTOFF_HZ
    rate_hz: Annotated[float, Limits(low=0.1, most=1e6)] = DEFAULT_RATE_HZ
    delay_s: Annotated[float, Limits(most=10.0)] = 0.0
    gain: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    gain_std: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan, low=0.0)] = None

    @classmethod
    def from_samples(cls, samples: Samples) -> Conditioning:
        """As these samples were conditioned."""
        return cls(
            float(samples.cutoff_hz),
            float(samples.rate_hz),
            float(samples.delay_s),
            samples.gain,
            samples.gain_std,
        )

    @property
    def relative_gain_std(self) -> Float[Array, " j"] | None:
        """|std / gain| per joint, or None where either is unknown."""
        if self.gain is None or self.gain_std is None:
            return None
        return np.asarray(np.abs(self.gain_std / self.gain))


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Lowest and highest value per joint, over the samples in motion."""

    low: Float[Array, " j"]
    high: Float[Array, " j"]

    @classmethod
    def from_values(cls, values: Float[Array, "n j"], rows: Bool[Array, " n"]) -> Range:
        """Over the rows that count."""
        return cls(values[rows].min(axis=0), values[rows].max(axis=0))

    def union(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def middle(self) -> Float[Array, " j"]:
        return np.asarray(0.5 * (self.low + self.high))

    @property
    def largest(self) -> Float[Array, " j"]:
        """Largest magnitude either way."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Where the model was fitted; None where that is not known.

    Attributes:
        position: [rad or m]
        velocity: [rad/s or m/s]
        acceleration: [rad/s^2 or m/s^2]
        torque: [N m or N]
        temperature: Of the joints [degC].
    """

    position: Range | None = None
    velocity: Range | None = None
    acceleration: Range | None = None
    torque: Range | None = None
    temperature: Range | None = None

    @classmethod
    def from_samples(cls, samples: Samples) -> Ranges:
        """Of the samples in motion."""
        moving = samples.in_motion
        temperature = samples.temperature
        return cls(
            Range.from_values(samples.position, moving),
            Range.from_values(samples.velocity, moving),
            Range.from_values(samples.acceleration, moving),
            Range.from_values(samples.torque, moving),
            None if temperature is None else Range.from_values(temperature, moving),
        )

    def union(self, other: Ranges) -> Ranges:
        """Those that hold both; None where either is not known."""
        pairs = (
            (getattr(self, range_field.name), getattr(other, range_field.name))
            for range_field in fields(self)
        )
        return Ranges(*(None if a is None or b is None else a.union(b) for a, b in pairs))


@dataclass(frozen=True, slots=True, eq=False)
class BaseRecord:
    """What the data determine: combinations of standard parameters, with their covariance.

    Attributes:
        names: Of the standard parameter each combination is named after.
        expressions: Each as a sum of standard parameters.
        values: SI.
        covariance: Of `values`.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    values: Float[Array, " b"]
    covariance: Annotated[Float[Array, "b b"], Limits(missing=math.nan)]

    @property
    def std(self) -> Float[Array, " b"]:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class ResidualStructure:
    """What is known of errors of base parameters and of torque that no model holds, together.

    Attributes:
        names: Base parameters, then the repeating torques of every joint.
        mean: Their most probable values given the residuals of the fit.
        factor: Upper triangle R, row by row, with R'R their information.
    """

    names: tuple[str, ...]
    mean: Float[Array, " u"]
    factor: Float[Array, " t"]

    @property
    def information(self) -> Float[Array, "u u"]:
        """R'R."""
        size = len(self.names)
        triangle = np.zeros((size, size))
        triangle[np.triu_indices(size)] = self.factor
        return triangle.T @ triangle


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What the fit left unexplained.

    Attributes:
        noise_density: Per joint, of a new run [(N m)^2 s], or None where it was not measured.
        correlation_s: Time over which residuals are correlated [s].
        structure: What repeats in them, or None.
        by_state: Root mean square of the conditioned residuals in each friction state of each joint
            [N m], one row per entry of `friction.states.STATES`, or None where not measured.
    """

    noise_density: Float[Array, " j"] | None = None
    correlation_s: float = DEFAULT_CORRELATION_S
    structure: ResidualStructure | None = None
    by_state: Float[Array, "s j"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ThermalState:
    """Two heat stores per joint, as far as friction shows them.

    Attributes:
        fast, slow: Time constants [s].
        friction_gain: K per W of friction power, through the fast and the slow decay.
        copper_gain: K per (N m)^2 of squared torque, likewise.
        coulomb, viscous: Friction that makes the heat [N m], [N m s/rad].
        start: Above the air when the training data begin [K].
    """

    fast: Annotated[Float[Array, " j"], Limits(above=0.0)]
    slow: Annotated[Float[Array, " j"], Limits(above=0.0)]
    friction_gain: Float[Array, "j 2"]
    copper_gain: Float[Array, "j 2"]
    coulomb: Float[Array, " j"]
    viscous: Float[Array, " j"]
    start: Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class TermTriangle:
    """What the rows of one joint say about some parameters x: |y - W x|^2 = |z - R x|^2 + residual.

    Attributes:
        names: Of the parameters; all others do not act on the joint.
        factor: Upper triangle R, row by row.
        target: z.
        residual: Sum of squares no parameter can explain.
        count: Rows.
    """

    names: tuple[str, ...]
    factor: Float[Array, " t"]
    target: Float[Array, " u"]
    residual: Annotated[float, Limits(low=0.0)] = 0.0
    count: Annotated[int, Limits(low=0.0)] = 0

    @property
    def matrix(self) -> Float[Array, "u u"]:
        """R."""
        size = len(self.names)
        out = np.zeros((size, size))
        out[np.triu_indices(size)] = self.factor
        return out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimpleTerms:
    """What training says about the terms that simulators' formats have, without the recordings.

    The terms are those of `simple_structure` in regression/simple_terms.py: links, rotors, Coulomb
    friction and drag up to the third power of speed, offsets.

    Attributes:
        mounting: Roll, pitch, yaw of the base in training [rad].
        kept: One triangle per joint, over the rows that were fitted, in terms of base parameters.
        set_aside: The same over the other rows in motion; () where there are none.
        effect: Torque of each friction term of the model per joint, root mean square [N m].
    """

    mounting: tuple[float, float, float]
    kept: tuple[TermTriangle, ...]
    set_aside: tuple[TermTriangle, ...] = ()
    effect: Annotated[Float[Array, "j k"], Limits(low=0.0)]


@dataclass(frozen=True, slots=True, eq=False)
class FitSettings:
    """The settings of a fit, and what it chose.

    Attributes:
        friction: Name and settings of the friction model.
        estimator: "automatic", or the class that was asked for.
        estimator_settings: What the estimator chose from the data.
        dropped: Terms set to zero because the data do not support them.
        cutoff_hz: Of the low-pass.
        cutoff_reason: Why that one.
        torque_signs: "recorded" or "unknown".
        temperature: Law of the friction's temperature, or "none".
    """

    friction: Mapping[str, Any] = field(default_factory=dict)
    estimator: str = "automatic"
    estimator_settings: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    cutoff_hz: Annotated[float, Limits(above=0.0, null=math.inf)] = DEFAULT_CUTOFF_HZ
    cutoff_reason: str = ""
    torque_signs: str = "recorded"
    temperature: str = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Where a model came from.

    Attributes:
        taufit, python, numpy: Versions that made it.
        created: When, ISO 8601 in UTC.
        robot: The description it began with.
        settings: Of the fit.
        sources: What the caller says of the data: files, hashes, maps.
    """

    taufit: str = ""
    python: str = ""
    numpy: str = ""
    created: str = ""
    robot: str = ""
    settings: FitSettings = field(default_factory=FitSettings)
    sources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord:
    """All that a fitted model knows of its training beside its parameters.

    Attributes:
        conditioning: Of the training data.
        ranges: Where the training motion went.
        std: Of each standard parameter, infinite where it is not identifiable by itself, or None.
        verdicts: How well each standard parameter is known, in words; () where not known.
        base: Base parameters with their covariance, or None.
        residuals: What the fit left unexplained.
        noise: Residuals by friction state, where nothing touches the arm, or None.
        friction_scatter: Relative standard deviation of friction from run to run, or None.
        from_data: How much of each link and friction term came from the data, or None.
        joint_zero_std: Of the zeros that the robot has, where they were estimated [rad or m].
        hidden_zeros: Joints whose zero was looked for and is not identifiable.
        score: On the training data, or None.
        thermal: Heat stores where temperature is estimated, or None.
        simple_terms: For formats that hold less than the model, or None where not known.
        provenance: Where the model came from, or None.
        warnings: What a user of the model should know.
        contradictions: Why the fit was refused, where it was forced nevertheless.
    """

    conditioning: Conditioning = field(default_factory=Conditioning)
    ranges: Ranges = field(default_factory=Ranges)
    std: Float[Array, " p"] | None = None
    verdicts: tuple[str, ...] = ()
    base: BaseRecord | None = None
    residuals: Residuals = field(default_factory=Residuals)
    noise: NoiseByState | None = None
    friction_scatter: Float[Array, " j"] | None = None
    from_data: InformationShare | None = None
    joint_zero_std: Float[Array, " j"] | None = None
    hidden_zeros: tuple[str, ...] = ()
    score: Score | None = None
    thermal: ThermalState | None = None
    simple_terms: SimpleTerms | None = None
    provenance: Provenance | None = None
    warnings: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()

    def with_warnings(self, *further: str) -> TrainingRecord:
        """The same record with further warnings, each once."""
        return replace(self, warnings=tuple(dict.fromkeys((*self.warnings, *further))))
