"""Score: figures of predicted against measured torque."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.codec import Limits
from taufit.core.dataclasses import dataclass

# Fraction of noise in the torque of a joint above which it does not count as measured. Only noise
# faster than the cut-off is seen; slower noise cannot be told from torque of the motion. The best
# fit of shared recordings (UR10e, Panda, Airbot, TX40, KR300) leaves 1.5 to 4 times what is seen,
# so that beyond this limit about half of the torque is noise. Chosen on simulated runs of iiwa7
# and iiwa14 (seeds 8100-8119).
MAX_NOISE = 0.3
_OPTIONAL = ("inside", "moving_nrmse", "standing_share", "standing_rmse", "noise_share")


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Predicted against measured torque of one recording, with equal low-pass.

    With e the error over the N samples in motion of j joints:

        rmse = sqrt(mean e^2),  nrmse = rmse / std of the measured torque   (per joint)
        e_n  = sqrt(e'e) / N over all joints, comparable only at equal N

    Attributes:
        file: Name of the recording.
        samples: Number of samples N.
        seconds: Duration of motion [s].
        cutoff_hz: Cut-off of the low-pass [Hz]; figures are comparable only at equal cut-off.
        rmse: Root mean square error [N m].
        nrmse: RMSE over the standard deviation of the measured torque.
        correlation: Correlation of measured and predicted torque.
        bias: Mean error, measured less predicted [N m].
        largest: Largest error [N m].
        e_n: Error measure defined above.
        findings: Remarks on the recording, e.g. that it leaves the training range.
        inside: Fraction of samples inside the model's 95 % interval, or None if not computed.
        moving_nrmse: Nrmse over the samples in which the joint itself moves, or None.
        standing_share: Fraction of the samples in which it stands while others move, or None.
        standing_rmse: Error over the standing samples [N m], 0 if there are none, or None.
        noise_share: Noise in the torque over its standard deviation, nan where unknown, or None.
    """

    file: str
    samples: Annotated[int, Limits(low=0.0)]
    seconds: Annotated[float, Limits(low=0.0)]
    cutoff_hz: Annotated[float, Limits(above=0.0, null=math.inf)]
    rmse: Annotated[Float[Array, " j"], Limits(low=0.0)]
    nrmse: Annotated[Float[Array, " j"], Limits(missing=math.nan)]
    correlation: Annotated[Float[Array, " j"], Limits(missing=math.nan)]
    bias: Annotated[Float[Array, " j"], Limits(missing=math.nan)]
    largest: Annotated[Float[Array, " j"], Limits(missing=math.nan)]
    e_n: Annotated[float, Limits(null=math.nan)]
    findings: tuple[str, ...] = ()
    inside: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    moving_nrmse: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    standing_share: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    standing_rmse: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None
    noise_share: Annotated[Float[Array, " j"] | None, Limits(missing=math.nan)] = None

    def __repr__(self) -> str:
        nrmse = " ".join(f"{x:.3f}" for x in self.nrmse)
        return f"Score({self.file}: {self.samples} samples, nrmse per joint: {nrmse})"

    @property
    def measured(self) -> Bool[Array, " j"]:
        """Joints with measured torque: it varies, and noise is a minor part of it."""
        varies = np.isfinite(self.nrmse)
        noise = np.zeros(len(varies)) if self.noise_share is None else self.noise_share
        return np.asarray(varies & ~(noise > MAX_NOISE))

    @property
    def measured_nrmse(self) -> Float[Array, " j"]:
        """Nrmse of measured joints; nan elsewhere."""
        return np.where(self.measured, self.nrmse, np.nan)

    @property
    def mean_nrmse(self) -> float:
        """Mean over the measured joints; nan if there are none."""
        values = self.nrmse[self.measured]
        return float(np.mean(values)) if len(values) else float("nan")

    @property
    def mean_inside(self) -> float | None:
        """Coverage of the 95 % interval, mean over the joints."""
        return None if self.inside is None else float(np.mean(self.inside))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "file": self.file,
            "rmse": self.rmse.tolist(),
            "nrmse": self.nrmse.tolist(),
            "mean_nrmse": self.mean_nrmse,
            "correlation": self.correlation.tolist(),
            "samples": self.samples,
            "seconds": self.seconds,
            "cutoff_hz": None if np.isinf(self.cutoff_hz) else self.cutoff_hz,
            "bias": self.bias.tolist(),
            "largest": self.largest.tolist(),
            "e_n": self.e_n,
            "n_val": self.samples,
            "findings": list(self.findings),
            "mean_inside": self.mean_inside,
            **{
                name: None if (values := getattr(self, name)) is None else values.tolist()
                for name in _OPTIONAL
            },
        }
