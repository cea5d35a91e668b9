"""Sufficiency of the recorded motion for a fit, with and without priors."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.recording import require_joints
from taufit.recording.finding import Finding
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples

# Independent samples per parameter required without priors.
_MIN_PER_PARAMETER = 4.0
# Independent samples per parameter required with priors on links and friction.
_MIN_PER_PARAMETER_WITH_PRIOR = 0.5
# Samples per parameter below which linear friction may predict better than all terms. xMate and
# Kinova have 2-6; on the KR300 with 10 left-out blocks prefer linear friction wrongly by 17 %.
_FEW_PER_PARAMETER = 8.0
# Shortest motion from which friction is identifiable [s].
_MIN_DURATION_S = 1.0
# Independent samples per parameter below which residuals contain no information on noise.
_NO_NOISE_INFORMATION = 1.0
# Typical residual relative to the torque; assumed noise where residuals cannot show it.
_TYPICAL_NOISE_RATIO = 0.05
# Smallest range of motion of a joint for friction and inertia to be identifiable [rad or m].
_MIN_RANGE = 0.02


@dataclass(frozen=True, slots=True)
class DataAmount:
    """Amount of data in a recording, compared with the number of parameters.

    Attributes:
        seconds: Duration of motion [s].
        independent: Effective number of independent torque values behind the low-pass.
        required: Number of parameters.
    """

    seconds: float
    independent: float
    required: int

    @classmethod
    def from_samples(cls, model: TorqueModel, source: SampleSource) -> DataAmount:
        """Amount of data in the samples in motion."""
        summary, joints = source.summary, model.robot.joints
        terms = len(model.term_sum.parameters)
        return cls(
            summary.moving_samples / source.rate_hz,
            float(summary.kept_moving.sum()) / source.filter_correlation_length,
            6 * joints
            + joints * (model.has("rotor") + terms + model.has("offset"))
            - len(model.absent),
        )

    @property
    def samples_per_parameter(self) -> float:
        """Independent torque values per parameter."""
        return self.independent / self.required

    @property
    def is_small(self) -> bool:
        """Whether the automatic friction terms are compared with linear friction."""
        return self.samples_per_parameter < _FEW_PER_PARAMETER

    @property
    def sufficient_duration_s(self) -> float:
        """Duration of such motion that determines a model without priors [s]."""
        return max(self.seconds * _MIN_PER_PARAMETER / max(self.samples_per_parameter, 1e-3), 5.0)

    @property
    def prior_dependence(self) -> float:
        """1 if residuals contain no information on the noise, 0 if they determine it."""
        return float(
            np.clip(
                (_MIN_PER_PARAMETER - self.samples_per_parameter)
                / (_MIN_PER_PARAMETER - _NO_NOISE_INFORMATION),
                0.0,
                1.0,
            )
        )

    def describe(self, verb: str) -> str:
        """Sentence on the amount of data."""
        return (
            f"{self.seconds:.1f} s of motion {verb}. They are worth about {self.independent:.0f} "
            f"independent torque values for about {self.required} parameters."
        )

    def minimum_noise(self, source: SampleSource) -> Float[Array, " j"]:
        """Lower limit of each joint's noise [N m]; 0 for a recording of sufficient length.

        Residuals of many parameters fitted to few rows are too small and would give these rows,
        and single joints, too much weight.
        """
        size = np.hypot(source.summary.torque_std, source.summary.torque_mean)
        return np.asarray(
            np.sqrt(self.prior_dependence) * _TYPICAL_NOISE_RATIO * np.nan_to_num(size)
        )

    def findings(self) -> list[str]:
        """Warning if the result depends strongly on priors."""
        if self.prior_dependence == 0.0:
            return []
        return [
            f"{self.describe('are short')} What they do not show leans on the nominal robot and on "
            f"usual friction: record {self.sufficient_duration_s:.0f} s or more for a model to "
            "rely on."
        ]


def standing_joint_findings(model: TorqueModel, source: SampleSource) -> list[Finding]:
    """Finding on joints whose range of motion shows neither friction nor inertia."""
    still = np.flatnonzero(source.summary.ranges["position"].width < _MIN_RANGE)
    if not len(still):
        return []
    joint_text = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in still)
    text = (
        f"joint {joint_text} does not move: neither its friction nor the inertia it turns can "
        "be seen.\nAdd a recording in which every joint turns back and forth, or plan one with "
        "`taufit design`."
    )
    return [Finding("standing_joints", "error", text)]


def require_sufficient_data(
    model: TorqueModel,
    samples: Samples | SampleSource,
    *,
    with_prior: bool = False,
    allow_standing_joints: bool = False,
    allow_short_motion: bool = False,
) -> None:
    """Raise if the robot differs, joints do not move, or the recording is too short."""
    source = as_source(samples)
    joints = model.robot.joints
    require_joints(source.joints, joints, name=source.names[0], robot=model.robot.name)
    summary = source.summary
    kept_count, span = summary.kept_moving, summary.ranges["position"].width
    # Joints without torque are moved, not fitted.
    varies = np.ptp(source.excerpt.torque, axis=0) > 1e-6 * np.abs(source.excerpt.torque).max(
        axis=0
    )
    unusable = np.flatnonzero((span >= _MIN_RANGE) & (kept_count == 0) & varies)
    if len(unusable):
        joint_text = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in unusable)
        raise PoorExcitationError(
            f"joint {joint_text} moves, but no sample of it can be used: its velocity is lost in "
            "noise or shaking.\n"
            "Look at the recording with `taufit convert RECORDING --report`, and move faster."
        )
    findings = standing_joint_findings(model, source)
    is_still = float(span.max()) < _MIN_RANGE
    if findings and (is_still or not allow_standing_joints):
        raise PoorExcitationError(findings[0].message)
    amount = DataAmount.from_samples(model, source)
    has_masses = bool(np.any(model.robot.parameters))
    has_prior = with_prior and has_masses
    is_short = amount.seconds < _MIN_DURATION_S or amount.samples_per_parameter < (
        _MIN_PER_PARAMETER_WITH_PRIOR if has_prior else _MIN_PER_PARAMETER
    )
    if is_short and not (allow_short_motion and has_prior and amount.seconds > 0.0):
        raise RecordingError(
            f"{', '.join(dict.fromkeys(source.names))}: {amount.describe('are too short')}\n"
            f"Record at least {amount.sufficient_duration_s:.0f} s, raise --cutoff-hz, or choose "
            "simpler friction (--friction linear)."
        )
