"""Whether a recording is worth a fit, and what a fit of a short one must lean on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.recording import require_joints
from taufit.signals.sample_source import SampleSource, source_of
from taufit.signals.samples import Samples

# Fewer independent rows per parameter than this determine nothing by themselves.
_MIN_PER_PARAMETER = 4.0
# With priors on links and friction a fit degrades gracefully: this many are enough to begin with.
_MIN_PER_PARAMETER_WITH_PRIOR = 0.5
# Shorter motion than this shows no friction, whatever the low-pass leaves of it [s].
_MIN_DURATION_S = 1.0
# Residuals of a fit to less than this many rows per parameter say nothing about the noise.
_NO_NOISE_INFORMATION = 1.0
# Part of a joint's torque that a model of a real arm leaves unexplained: what the noise is taken to
# be where residuals cannot show it.
_TYPICAL_NOISE_RATIO = 0.05
# A joint that turns less than this shows neither friction nor inertia [rad or m].
_MIN_RANGE = 0.02


@dataclass(frozen=True, slots=True)
class DataAmount:
    """How much a recording says beside how much is asked of it.

    Attributes:
        seconds: Of motion.
        independent: Torque values, as far as the low-pass leaves them independent.
        required: Parameters.
    """

    seconds: float
    independent: float
    required: int

    @classmethod
    def from_samples(cls, model: TorqueModel, source: SampleSource) -> DataAmount:
        """Of the samples in motion."""
        summary, joints = source.summary, model.robot.joints
        terms = len(model.term_sum.parameters)
        return cls(
            summary.moving / source.rate_hz,
            float(summary.kept_moving.sum()) / source.correlation_guess,
            6 * joints
            + joints * (model.has("rotor") + terms + model.has("offset"))
            - len(model.absent),
        )

    @property
    def samples_per_parameter(self) -> float:
        """Independent values per parameter."""
        return self.independent / self.required

    @property
    def sufficient_duration_s(self) -> float:
        """Seconds of such motion that determine a model by themselves."""
        return max(self.seconds * _MIN_PER_PARAMETER / max(self.samples_per_parameter, 1e-3), 5.0)

    @property
    def prior_dependence(self) -> float:
        """1 where residuals say nothing about the noise, 0 where they say all."""
        return float(
            np.clip(
                (_MIN_PER_PARAMETER - self.samples_per_parameter)
                / (_MIN_PER_PARAMETER - _NO_NOISE_INFORMATION),
                0.0,
                1.0,
            )
        )

    def describe(self, verb: str) -> str:
        """What it is, in words."""
        return (
            f"{self.seconds:.1f} s of motion {verb}. They are worth about {self.independent:.0f} "
            f"independent torque values for about {self.required} parameters."
        )

    def minimum_noise(self, source: SampleSource) -> Float[Array, " j"]:
        """Below which no joint's noise is taken to be [N m]; 0 for a recording of usual length.

        A fit of many parameters to few rows leaves next to nothing, and would trust rows, and
        one joint more than the others, by that.
        """
        size = np.hypot(source.summary.torque_std, source.summary.mean)
        return np.asarray(
            np.sqrt(self.prior_dependence) * _TYPICAL_NOISE_RATIO * np.nan_to_num(size)
        )

    def findings(self) -> list[str]:
        """A warning where priors have much to say."""
        if self.prior_dependence == 0.0:
            return []
        return [
            f"{self.describe('are short')} What they do not show leans on the nominal robot and on "
            f"usual friction: record {self.sufficient_duration_s:.0f} s or more for a model to "
            "rely on."
        ]


def require_sufficient_data(
    model: TorqueModel, samples: Samples | SampleSource, *, with_prior: bool = False
) -> None:
    """Refuse recordings of another arm, of joints that stand still, and those too short."""
    source = source_of(samples)
    joints = model.robot.joints
    require_joints(source.joints, joints, name=source.names[0], robot=model.robot.name)
    summary = source.summary
    kept_count, span = summary.kept_moving, summary.extents["position"].span
    unusable = np.flatnonzero((span >= _MIN_RANGE) & (kept_count == 0))
    if len(unusable):
        joint_text = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in unusable)
        raise PoorExcitationError(
            f"joint {joint_text} moves, but no sample of it can be used: its velocity is lost in "
            "noise or shaking.\n"
            "Look at the recording with `taufit convert RECORDING --report`, and move faster."
        )
    still = np.flatnonzero(span < _MIN_RANGE)
    if len(still):
        joint_text = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in still)
        raise PoorExcitationError(
            f"joint {joint_text} does not move: neither its friction nor the inertia it turns can "
            "be seen.\n"
            "Add a recording in which every joint turns back and forth, or plan one with "
            "`taufit design`."
        )
    amount = DataAmount.from_samples(model, source)
    has_masses = bool(np.any(model.robot.parameters))
    has_prior = with_prior and has_masses
    if amount.seconds < _MIN_DURATION_S or amount.samples_per_parameter < (
        _MIN_PER_PARAMETER_WITH_PRIOR if has_prior else _MIN_PER_PARAMETER
    ):
        raise RecordingError(
            f"{', '.join(dict.fromkeys(source.names))}: {amount.describe('are too short')}\n"
            f"Record at least {amount.sufficient_duration_s:.0f} s, raise --cutoff-hz, or choose "
            "simpler friction (--friction linear)."
        )
