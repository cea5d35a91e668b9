"""Whether a recording is worth a fit, and what a fit of a short one must lean on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.recording import require_joints
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples

# Fewer independent rows per parameter than this determine nothing by themselves.
_ALONE = 4.0
# With priors on links and friction a fit degrades gracefully: this many are enough to begin with.
_WITH_PRIOR = 0.5
# Shorter motion than this shows no friction, whatever the low-pass leaves of it [s].
_SHORTEST_S = 1.0
# Residuals of a fit to less than this many rows per parameter say nothing about the noise.
_NOTHING = 1.0
# Part of a joint's torque that a model of a real arm leaves unexplained: what the noise is taken to
# be where residuals cannot show it.
_USUAL_NOISE = 0.05
# A joint that turns less than this shows neither friction nor inertia [rad or m].
_SMALLEST_RANGE = 0.02


@dataclass(frozen=True, slots=True)
class DataAmount:
    """How much a recording says beside how much is asked of it.

    Attributes:
        seconds: Of motion.
        independent: Torque values, as far as the low-pass leaves them independent.
        wanted: Parameters.
    """

    seconds: float
    independent: float
    wanted: int

    @classmethod
    def of(cls, model: TorqueModel, source: SampleSource) -> DataAmount:
        """Of the samples in motion."""
        seen, joints = source.summary, model.robot.joints
        terms = len(model.term_sum.parameters)
        return cls(
            seen.moving / source.rate_hz,
            float(seen.kept_moving.sum()) / source.correlation_guess,
            6 * joints
            + joints * (model.has("rotor") + terms + model.has("offset"))
            - len(model.absent),
        )

    @property
    def share(self) -> float:
        """Independent values per parameter."""
        return self.independent / self.wanted

    @property
    def enough_s(self) -> float:
        """Seconds of such motion that determine a model by themselves."""
        return max(self.seconds * _ALONE / max(self.share, 1e-3), 5.0)

    @property
    def missing(self) -> float:
        """1 where residuals say nothing about the noise, 0 where they say all."""
        return float(np.clip((_ALONE - self.share) / (_ALONE - _NOTHING), 0.0, 1.0))

    def words(self, verb: str) -> str:
        """What it is, in words."""
        return (
            f"{self.seconds:.1f} s of motion {verb}. They are worth about {self.independent:.0f} "
            f"independent torque values for about {self.wanted} parameters."
        )

    def least_noise(self, source: SampleSource) -> Float[Array, " j"]:
        """Below which no joint's noise is taken to be [N m]; 0 for a recording of usual length.

        A fit of many parameters to few rows leaves next to nothing, and would trust rows, and
        one joint more than the others, by that.
        """
        size = np.hypot(source.summary.torque_std, source.summary.torque_mean)
        return np.asarray(np.sqrt(self.missing) * _USUAL_NOISE * np.nan_to_num(size))

    def findings(self) -> list[str]:
        """A warning where priors have much to say."""
        if self.missing == 0.0:
            return []
        return [
            f"{self.words('are short')} What they do not show leans on the nominal robot and on "
            f"usual friction: record {self.enough_s:.0f} s or more for a model to rely on."
        ]


def require_sufficient_data(
    model: TorqueModel, samples: Samples | SampleSource, *, with_prior: bool = False
) -> None:
    """Refuse recordings of another arm, of joints that stand still, and those too short."""
    source = as_source(samples)
    joints = model.robot.joints
    require_joints(source.joints, joints, name=source.names[0], robot=model.robot.name)
    seen = source.summary
    kept, span = seen.kept_moving, seen.extents["position"].width
    lost = np.flatnonzero((span >= _SMALLEST_RANGE) & (kept == 0))
    if len(lost):
        which = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in lost)
        raise PoorExcitationError(
            f"joint {which} moves, but no sample of it can be used: its velocity is lost in noise "
            "or shaking.\n"
            "Look at the recording with `taufit convert RECORDING --report`, and move faster."
        )
    still = np.flatnonzero(span < _SMALLEST_RANGE)
    if len(still):
        which = ", ".join(f"{i + 1} ({model.robot.joint_names[i]})" for i in still)
        raise PoorExcitationError(
            f"joint {which} does not move: neither its friction nor the inertia it turns can be "
            "seen.\n"
            "Add a recording in which every joint turns back and forth, or plan one with "
            "`taufit design`."
        )
    amount = DataAmount.of(model, source)
    described = bool(np.any(model.robot.parameters))
    helped = with_prior and described
    if amount.seconds < _SHORTEST_S or amount.share < (_WITH_PRIOR if helped else _ALONE):
        raise RecordingError(
            f"{', '.join(dict.fromkeys(source.names))}: {amount.words('are too short')}\n"
            f"Record at least {amount.enough_s:.0f} s, raise --cutoff-hz, or choose simpler "
            "friction (--friction linear)."
        )
