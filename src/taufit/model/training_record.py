"""Training record of a fitted model, typed; all defaults are in this file.

A `TrainingRecord` holds the conditioning of the data, the training range, uncertainty of the
parameters, statistics of the residuals and provenance. Prediction, payload, health, report and
export read it here; only `record_file` knows the file format. To extend it, add a field with a
default here and a line in `record_file`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.codec import Limits
from taufit.core.dataclasses import dataclass
from taufit.model.information_share import InformationShare
from taufit.model.noise_by_state import NoiseByState
from taufit.model.score import Score
from taufit.signals.samples import Samples

if TYPE_CHECKING:
    from taufit.robot import Robot

# Default cut-off and sampling rate of a model without record [Hz].
DEFAULT_CUTOFF_HZ = 10.0
DEFAULT_RATE_HZ = 100.0
# Prior standard deviation of joint zero offsets: revolute [rad], prismatic [m].
DEFAULT_ZERO_STD: float = math.radians(1.0)
DEFAULT_SLIDE_ZERO_STD: float = 5e-3
# Correlation time of the residuals of a typical robot [s].
DEFAULT_CORRELATION_S = 0.12
# Relative standard deviation below which a base parameter counts as identifiable.
IDENTIFIABLE = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning:
    """Conditioning of the training data, to be repeated for new data.

    Attributes:
        cutoff_hz: Cut-off of the low-pass on motion and torque [Hz]; infinite without low-pass.
        rate_hz: Sampling rate of the uniform time grid [Hz].
        delay_s: Delay of torque behind motion that was compensated [s]; one number or one per
            joint.
        gain: Drive gain per joint, or None where torque was recorded.
        gain_std: Standard deviation of the gain, or None if unknown.
    """

    cutoff_hz: Annotated[float, Limits(low=1e-3, null=math.inf)] = DEFAULT_CUTOFF_HZ
    rate_hz: Annotated[float, Limits(low=0.1, most=1e6)] = DEFAULT_RATE_HZ
    delay_s: Annotated[float | tuple[float, ...], Limits(most=10.0)] = 0.0
    gain: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    gain_std: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan, low=0.0)] = None

    @classmethod
    def from_samples(cls, samples: Samples) -> Conditioning:
        """Conditioning of given samples."""
        return cls(
            float(samples.cutoff_hz),
            float(samples.rate_hz),
            samples.delay_s,
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
        """Range over the rows that count."""
        return cls(values[rows].min(axis=0), values[rows].max(axis=0))

    def union(self, other: Range) -> Range:
        """Smallest range that contains both."""
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def middle(self) -> Float[Array, " j"]:
        return np.asarray(0.5 * (self.low + self.high))

    @property
    def largest(self) -> Float[Array, " j"]:
        """Largest magnitude in either direction."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Training range of motion, torque and temperature; None if unknown.

    Attributes:
        position: Joint position [rad or m].
        velocity: Joint velocity [rad/s or m/s].
        acceleration: Joint acceleration [rad/s^2 or m/s^2].
        torque: Joint torque [N m or N].
        temperature: Joint temperature [degC].
    """

    position: Range | None = None
    velocity: Range | None = None
    acceleration: Range | None = None
    torque: Range | None = None
    temperature: Range | None = None

    @classmethod
    def from_samples(cls, samples: Samples) -> Ranges:
        """Ranges of the samples in motion."""
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
        """Smallest ranges that contain both; None where either is unknown."""
        pairs = (
            (getattr(self, range_field.name), getattr(other, range_field.name))
            for range_field in fields(self)
        )
        return Ranges(*(None if a is None or b is None else a.union(b) for a, b in pairs))


@dataclass(frozen=True, slots=True, eq=False)
class BaseRecord:
    """Base parameters, the identifiable combinations of standard parameters, with covariance.

    Attributes:
        names: Name of the standard parameter that represents each combination.
        expressions: Each combination as a sum of standard parameters.
        values: Values, SI.
        covariance: Covariance of `values` by the data.
        posterior: Covariance with the nominal links as prior, for predicted torque; None where the
            fit had no prior.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    values: Float[Array, " b"]
    covariance: Annotated[Float[Array, "b b"], Limits(missing=math.nan)]
    posterior: Float[Array, "b b"] | None = None

    @property
    def std(self) -> Float[Array, " b"]:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def std_fraction(self) -> Float[Array, " b"]:
        """Standard deviations over the magnitudes of `values`; infinite at zero."""
        relative = np.full(len(self.values), np.inf)
        np.divide(self.std, np.abs(self.values), out=relative, where=self.values != 0.0)
        return np.where(np.isfinite(relative), relative, np.inf)

    @property
    def identifiable(self) -> Bool[Array, " b"]:
        """Base parameters with a standard deviation below 30 %."""
        return self.std_fraction < IDENTIFIABLE


@dataclass(frozen=True, slots=True, eq=False)
class ResidualStructure:
    """Joint estimate of base parameter errors and unmodelled repeatable torque.

    Attributes:
        names: Base parameters, then the repeatable torques of every joint.
        mean: Maximum a posteriori values given the residuals of the fit.
        factor: Upper triangle R, row by row, with R'R the information.
    """

    names: tuple[str, ...]
    mean: Float[Array, " u"]
    factor: Float[Array, " t"]

    @property
    def information(self) -> Float[Array, "u u"]:
        """Information matrix R'R."""
        size = len(self.names)
        triangle = np.zeros((size, size))
        triangle[np.triu_indices(size)] = self.factor
        return triangle.T @ triangle


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Statistics of the residuals of the fit.

    Attributes:
        noise_density: Noise density of a new run per joint [(N m)^2 s], or None if unknown.
        correlation_s: Correlation time of the residuals [s].
        structure: Repeatable part of the residuals, or None.
        by_state: RMS of the conditioned residuals in each friction state of each joint [N m], one
            row per entry of `friction.states.STATES`, or None if unknown.
    """

    noise_density: Float[Array, " j"] | None = None
    correlation_s: float = DEFAULT_CORRELATION_S
    structure: ResidualStructure | None = None
    by_state: Float[Array, "s j"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GravityTilt:
    """Tilt of the base against the declared mounting; the model's mounting includes it.

    Attributes:
        angles: Roll and pitch to add to the declared mounting [rad].
        covariance: Their covariance [rad^2].
        halves_agree: Whether both halves of the data give the same tilt within their deviations.
    """

    angles: Float[Array, " 2"]
    covariance: Float[Array, "2 2"]
    halves_agree: bool = False

    @property
    def std(self) -> Float[Array, " 2"]:
        """Standard deviations of roll and pitch [rad]."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def chi_square(self) -> float:
        """Squared distance from zero in standard deviations."""
        return float(self.angles @ np.linalg.solve(self.covariance, self.angles))

    def apply(self, robot: Robot) -> Robot:
        """Robot of the declared mounting, tilted."""
        roll, pitch, yaw = robot.mounting
        return robot.with_mounting((roll + self.angles[0], pitch + self.angles[1], yaw))


@dataclass(frozen=True, slots=True, eq=False)
class ThermalState:
    """Thermal model with two time constants per joint, as identified from friction.

    Attributes:
        fast, slow: Time constants [s].
        friction_gain: Temperature rise per friction power [K/W], through the fast and the slow
            decay.
        copper_gain: Temperature rise per squared torque [K/(N m)^2], likewise.
        coulomb, viscous: Friction that produces the heat [N m], [N m s/rad].
        start: Temperature above ambient at the beginning of the training data [K].
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
    """Information of one joint's rows on parameters x: |y - W x|^2 = |z - R x|^2 + residual.

    Attributes:
        names: Parameter names; all others do not act on the joint.
        factor: Upper triangle R, row by row.
        target: z.
        residual: Sum of squares that no parameter values explain.
        count: Number of rows.
    """

    names: tuple[str, ...]
    factor: Float[Array, " t"]
    target: Float[Array, " u"]
    residual: Annotated[float, Limits(low=0.0)] = 0.0
    count: Annotated[int, Limits(low=0.0)] = 0

    @property
    def matrix(self) -> Float[Array, "u u"]:
        """Factor R as a matrix."""
        size = len(self.names)
        out = np.zeros((size, size))
        out[np.triu_indices(size)] = self.factor
        return out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimpleTerms:
    """Training information on the terms of simulator formats, without the recordings.

    The terms are those of `simulator_structure`: links, rotors, Coulomb friction, viscous friction
    up to third order, offsets.

    Attributes:
        mounting: Roll, pitch, yaw of the base in training [rad].
        kept: One triangle per joint, over the fitted rows, in base parameters.
        set_aside: Triangles over the other rows in motion; () if there are none.
        effect: RMS torque of each friction term of the model per joint [N m].
    """

    mounting: tuple[float, float, float]
    kept: tuple[TermTriangle, ...]
    set_aside: tuple[TermTriangle, ...] = ()
    effect: Annotated[Float[Array, "j k"], Limits(low=0.0)]


@dataclass(frozen=True, slots=True, eq=False)
class FitSettings:
    """Settings of a fit, given and automatic ones.

    Attributes:
        friction: Name and settings of the friction model.
        estimator: "automatic", or the class of the requested estimator.
        estimator_settings: Settings that the estimator derived from the data.
        dropped: Terms set to zero because the data do not support them.
        cutoff_hz: Cut-off of the low-pass [Hz].
        cutoff_reason: Reason for that cut-off.
        torque_signs: "recorded" or "unknown".
        temperature: Temperature law of friction, or "none".
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
    """Origin of a model.

    Attributes:
        taufit, python, numpy: Software versions.
        created: Time of the fit, ISO 8601 in UTC.
        robot: Initial robot description.
        settings: Settings of the fit.
        sources: The caller's description of the data: files, hashes, maps.
    """

    taufit: str = ""
    python: str = ""
    numpy: str = ""
    created: str = ""
    robot: str = ""
    settings: FitSettings = field(default_factory=FitSettings)
    sources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelAccuracy:
    """Accuracy of a model when it was fitted.

    Attributes:
        unexplained: Nrmse over all samples in motion, mean over the measured joints.
        word: excellent, good, usable or poor.
        headroom: `unexplained` over what no model explains, or None if unknown.
        on_holdout: Whether it was judged on recordings kept out of the fit.
    """

    unexplained: Annotated[float, Limits(null=math.nan)]
    word: str
    headroom: float | None = None
    on_holdout: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord:
    """Record of a fitted model's training besides its parameters.

    Attributes:
        conditioning: Conditioning of the training data.
        ranges: Training ranges.
        std: Standard deviation of each standard parameter, infinite if not identifiable alone, or
            None.
        verdicts: Accuracy class of each standard parameter; () if unknown.
        base: Base parameters with their covariance, or None.
        residuals: Statistics of the residuals.
        noise: Contact-free noise by friction state, or None.
        friction_scatter: Relative standard deviation of friction from run to run, or None.
        from_data: Information share of each link and friction term, or None.
        joint_zero_std: Standard deviation of estimated joint zero offsets [rad or m].
        hidden_zeros: Joints whose zero offset was estimated but is not identifiable.
        score: Score on the training data, or None.
        accuracy: Accuracy on hold-out data, else on the training data, or None if unknown.
        thermal: Thermal state where temperature is estimated, or None.
        tilt: Estimated tilt of the base, or None where the declared mounting is used.
        simple_terms: Information for export to simpler formats, or None if unknown.
        provenance: Origin of the model, or None.
        warnings: Messages for users of the model.
        contradictions: Contradictions that were ignored in the fit.
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
    accuracy: ModelAccuracy | None = None
    thermal: ThermalState | None = None
    tilt: GravityTilt | None = None
    simple_terms: SimpleTerms | None = None
    provenance: Provenance | None = None
    warnings: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        cutoff_hz, rate_hz = self.conditioning.cutoff_hz, self.conditioning.rate_hz
        text = f"TrainingRecord(low-pass {cutoff_hz:g} Hz at {rate_hz:g} Hz"
        return f"{text}; see .conditioning, .ranges, .std)"

    def with_warnings(self, *further: str) -> TrainingRecord:
        """Record with further warnings, each once."""
        return replace(self, warnings=tuple(dict.fromkeys((*self.warnings, *further))))
