"""Friction history of a robot: model, healthy baseline, and all later runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import UTC, datetime

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.health.cusum import MAX_SLACK, SLACK, cusum, cusum_threshold, sudden_limit
from taufit.health.friction_index import FrictionIndex, friction_index
from taufit.health.health_report import HealthReport, JointHealth, linear_trend
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.regression.pooled_scatter import pooled_scatter
from taufit.signals.samples import Samples

# Smallest number of healthy runs; below the recommended number the threshold is clearly higher.
MIN_RUNS = 8
RECOMMENDED_RUNS = 30
# Temperature range of the baseline from which a temperature slope of the index is fitted [K].
_TEMPERATURE_RANGE = 3.0
# An increase counts beyond this many standard deviations of that slope; without a fitted slope,
# its standard deviation is this fraction of friction per kelvin.
_UNCERTAINTY_FACTOR = 2.0
_DEFAULT_SLOPE_STD = 0.002
_RECENT_RUNS = 10


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRun:
    """One run of a history.

    Attributes:
        name: Name of the recording.
        index: Friction above the model's, per joint [N m].
        std: Standard deviation of the index, from this run.
        temperature: Mean temperature per joint [degC], nan if unknown.
        speed: Mean speed per joint [rad/s].
        load: RMS torque of the links [N m].
        sha256: Hash of the file, "" without one.
        added: Time of addition, ISO 8601.
    """

    name: str
    index: Float[Array, " j"]
    std: Float[Array, " j"]
    temperature: Float[Array, " j"]
    speed: Float[Array, " j"]
    load: Float[Array, " j"]
    sha256: str = ""
    added: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Friction of a robot over its runs.

    Attributes:
        model: Model fitted while the robot was healthy.
        healthy: Number of baseline runs; they are the first.
        speed: Speed at which friction is compared, per joint [rad/s].
        level: Model friction in the baseline, per joint [N m].
        rate: False alarms per healthy run, all joints together.
        slack: Slack of the CUSUM.
        runs: All runs in order.
    """

    model: FittedModel
    healthy: int
    speed: Float[Array, " j"]
    level: Float[Array, " j"]
    rate: float = 1e-3
    slack: float = SLACK
    runs: tuple[HistoryRun, ...] = field(default=())

    @property
    def joints(self) -> int:
        return self.model.robot.joints

    def with_run(self, name: str, samples: Samples, *, sha256: str = "") -> History:
        """Copy of the history with one more run."""
        if sha256 and any(run.sha256 == sha256 and run.name == name for run in self.runs):
            raise RecordingError(
                f"{name} is in this history already (same file). Give recordings made since."
            )
        index = friction_index(self.model, samples, speed=self.speed)
        return replace(self, runs=(*self.runs, _make_run(name, index, sha256)))


def start_history(
    model: FittedModel,
    runs: Sequence[tuple[str, Samples]],
    *,
    rate: float = 1e-3,
    slack: float = SLACK,
    sha256: Sequence[str] = (),
) -> History:
    """Start a history from healthy runs.

    Args:
        model: Fitted model, preferably with temperature-dependent friction.
        runs: Names and samples, conditioned like the training data; 30 are recommended.
        rate: Accepted false alarms per healthy run, all joints together. Lower values detect wear
            later.
        slack: Changes below this many standard deviations of a run are ignored.
        sha256: Hashes of the files, to detect repeated ones.
    """
    require_fitted(model, "start a health history")
    if len(runs) < MIN_RUNS:
        raise TaufitError(
            f"{len(runs)} healthy runs are too few to know what is normal: give at least "
            f"{MIN_RUNS}, "
            f"better {RECOMMENDED_RUNS}, at the temperatures the robot works at."
        )
    if not 0.0 < rate <= 0.1:
        raise TaufitError("a false-alarm rate lies between 0 and 0.1 per run, for example 0.001.")
    if not 0.0 < slack <= MAX_SLACK:
        raise TaufitError(f"the slack lies between 0 and {MAX_SLACK:g} standard deviations.")
    indices = [friction_index(model, samples) for _, samples in runs]
    speed = np.mean([run_index.speed for run_index in indices], axis=0)
    level = np.mean([run_index.level for run_index in indices], axis=0)
    hashes = list(sha256) or [""] * len(runs)
    history_runs = tuple(
        _make_run(
            name,
            replace(run_index, index=run_index.coulomb + run_index.viscous * speed),
            digest,
        )
        for (name, _), run_index, digest in zip(runs, indices, hashes, strict=True)
    )
    return History(model, len(history_runs), speed, level, rate, slack, history_runs)


def assess_health(history: History) -> HealthReport:
    """Assess the health of each joint from a history.

    The index x is centred and scaled on the healthy runs, its relative scatter pooled over the
    joints. Its remaining dependence on temperature T
    is a line m(T) through those runs; u(T) is the uncertainty of the line due to its slope, growing
    with the distance from the healthy temperatures:

        z = (x - m(T) - 2 u(T)) / scale.
    """
    joints, healthy = history.joints, history.healthy
    index = np.stack([run.index for run in history.runs])
    temperature = np.stack([run.temperature for run in history.runs])
    baselines = [
        _fit_baseline(index[:healthy, j], temperature[:healthy, j], history.level[j])
        for j in range(joints)
    ]
    fitted = np.array([baseline.count for baseline in baselines])
    expected = np.stack([b.index_at(temperature[:, j]) for j, b in enumerate(baselines)], -1)
    margin = np.stack([b.uncertainty(temperature[:, j]) for j, b in enumerate(baselines)], -1)
    level = np.maximum(history.level, 1e-12)
    own_scale = np.array([baseline.scale for baseline in baselines])
    squares = (healthy - fitted) * (own_scale / level) ** 2
    scale = level * pooled_scatter(squares, healthy - fitted)
    excess = index - expected - _UNCERTAINTY_FACTOR * margin
    z = excess / (scale * np.sqrt(1.0 + fitted / healthy))
    most_fitted = int(fitted.max())
    threshold = cusum_threshold(history.rate, joints, healthy, history.slack, most_fitted)
    sudden_z = sudden_limit(history.rate, joints, healthy, most_fitted)
    sums, alarms = cusum(z[healthy:], threshold, history.slack, sudden_z)
    percent = 100.0 * (index - expected) / level
    first_alarms: dict[int, str] = {}
    for n, j in alarms:
        first_alarms.setdefault(j, history.runs[healthy + n].name)
    joint_reports = []
    for j in range(joints):
        recent_change = percent[healthy:, j]
        unit = 100.0 * scale[j] / level[j]
        latest = recent_change[-_RECENT_RUNS:]
        slope, slope_std = linear_trend(recent_change, unit)
        joint_reports.append(
            JointHealth(
                joint=j + 1,
                alarm=j in first_alarms,
                alarm_run=first_alarms.get(j),
                change=float(latest.mean()) if len(latest) else float("nan"),
                change_std=unit * float(np.sqrt(1.0 / max(len(latest), 1) + 1.0 / healthy)),
                trend=slope,
                trend_std=slope_std,
                cusum=float(sums[-1, j]) if len(sums) else 0.0,
            )
        )
    alarm_names = tuple((history.runs[healthy + n].name, j + 1) for n, j in alarms)
    return HealthReport(
        tuple(joint_reports), alarm_names, z, percent, sums, threshold, history.rate
    )


@dataclass(frozen=True, slots=True, eq=False)
class _HealthyBaseline:
    """Index of healthy runs: a level, and a slope over temperature if they determine it.

    Attributes:
        level: Index at the mean temperature.
        slope: Slope per kelvin; 0 if not determined.
        slope_std: Standard deviation of the slope, also if it is 0.
        scale: Standard deviation of a run about the line.
        middle: Mean temperature of the runs, or nan.
        reach: Distance from it at which the uncertainty begins [K].
        count: Number of fitted parameters.
    """

    level: float
    slope: float
    slope_std: float
    scale: float
    mean_temperature: float
    covered_range: float
    count: int

    def _temperature_offset(self, temperature: Float[Array, " n"]) -> Float[Array, " n"]:
        return np.nan_to_num(temperature - self.mean_temperature)

    def index_at(self, temperature: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.level + self.slope * self._temperature_offset(temperature)

    def uncertainty(self, temperature: Float[Array, " n"]) -> Float[Array, " n"]:
        """Standard deviation of the line due to temperature."""
        return self.slope_std * np.maximum(
            np.abs(self._temperature_offset(temperature)) - self.covered_range, 0.0
        )


def _fit_baseline(
    index: Float[Array, " n"], temperature: Float[Array, " n"], level: float
) -> _HealthyBaseline:
    n, mean = len(index), float(np.mean(index))
    floor = 1e-9 + 1e-6 * level
    mean_temperature = float(np.mean(temperature))
    if not np.isfinite(mean_temperature) or np.ptp(temperature) < _TEMPERATURE_RANGE:
        scale = max(float(np.std(index, ddof=1)), floor)
        covered_range = 0.5 * float(np.ptp(temperature)) if np.isfinite(mean_temperature) else 0.0
        return _HealthyBaseline(
            mean, 0.0, _DEFAULT_SLOPE_STD * level, scale, mean_temperature, covered_range, 1
        )
    offset = temperature - mean_temperature
    size = float(offset @ offset)
    slope = float(offset @ index) / size
    residual = index - mean - slope * offset
    scale = max(float(np.sqrt(residual @ residual / (n - 2))), floor)
    return _HealthyBaseline(mean, slope, scale / np.sqrt(size), scale, mean_temperature, 0.0, 2)


def _make_run(name: str, index: FrictionIndex, sha256: str) -> HistoryRun:
    return HistoryRun(
        name,
        index.index,
        index.std,
        index.temperature,
        index.speed,
        index.load,
        sha256,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
