"""A robot's friction, run by run: the model, the healthy runs, and every run since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError, TaufitError
from taufit.health.cusum import MOST_SLACK, SLACK, cusum, sudden_limit_for, threshold_for
from taufit.health.index import FrictionIndex, friction_index
from taufit.health.judgement import HealthReport, JointHealth, trend_of
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.signals.samples import Samples

# A scale needs some runs; with fewer than the second number the threshold is noticeably higher.
FEWEST = 8
RECOMMENDED = 30
# What temperature still does to the index is a line, fitted where the baseline spans this [K].
_TEMPERATURE_RANGE = 3.0
# A rise counts beyond this many standard deviations of that line; where the baseline cannot show
# one, the model is taken to be off by this share of friction per kelvin.
_BEYOND = 2.0
_UNKNOWN_SLOPE = 0.002
_LAST = 10


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRun:
    """One run in a history.

    Attributes:
        name: Of its recording.
        index: Friction beyond what the model expects, per joint [N m].
        std: Of the index, from the run alone.
        temperature: Mean per joint [degC], nan where unknown.
        speed: Mean per joint [rad/s].
        load: Root mean square of the links' torque [N m].
        sha256: Of the file, "" where there is none.
        added: When it was added, ISO 8601.
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
    """A robot's friction over its runs.

    Attributes:
        model: Fitted while the robot was healthy; it says what to expect.
        healthy: How many of the first runs are the baseline.
        speed: At which friction is compared, per joint [rad/s].
        level: Friction expected in the baseline, per joint [N m].
        rate: False alarms per healthy run, all joints together.
        slack: Of the CUSUM.
        runs: All of them, in order.
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
        """The history with one more run at its end."""
        if sha256 and any(run.sha256 == sha256 and run.name == name for run in self.runs):
            raise RecordingError(
                f"{name} is in this history already (same file). Give recordings made since."
            )
        found = friction_index(self.model, samples, speed=self.speed)
        return replace(self, runs=(*self.runs, _run(name, found, sha256)))


def start_history(
    model: FittedModel,
    runs: Sequence[tuple[str, Samples]],
    *,
    rate: float = 1e-3,
    slack: float = SLACK,
    sha256: Sequence[str] = (),
) -> History:
    """A history from healthy runs.

    Args:
        model: Fitted, best with friction that follows temperature.
        runs: Names and samples, conditioned like the model's training data; 30 are a good number.
        rate: False alarms per healthy run that are acceptable, all joints together.
        slack: Smaller changes, in standard deviations of a run, are forgiven for ever.
        sha256: Of the files, to notice one that is given twice.
    """
    require_fitted(model, "start a health history")
    if len(runs) < FEWEST:
        raise TaufitError(
            f"{len(runs)} healthy runs are too few to know what is normal: give at least {FEWEST}, "
            f"better {RECOMMENDED}, at the temperatures the robot works at."
        )
    if not 0.0 < rate <= 0.1:
        raise TaufitError("a false-alarm rate lies between 0 and 0.1 per run, for example 0.001.")
    if not 0.0 < slack <= MOST_SLACK:
        raise TaufitError(f"the slack lies between 0 and {MOST_SLACK:g} standard deviations.")
    first = [friction_index(model, samples) for _, samples in runs]
    speed = np.mean([one.speed for one in first], axis=0)
    level = np.mean([one.level for one in first], axis=0)
    hashes = list(sha256) or [""] * len(runs)
    made = tuple(
        _run(
            name,
            replace(one, index=one.coulomb + one.viscous * speed),
            digest,
        )
        for (name, _), one, digest in zip(runs, first, hashes, strict=True)
    )
    return History(model, len(made), speed, level, rate, slack, made)


def judge(history: History) -> HealthReport:
    """What the history says about each joint.

    The index x is centred and scaled on the healthy runs. What temperature T still does to it, the
    model's slopes being known only so well, is a line m(T) through those runs, and a run counts by
    what it has beyond the uncertainty u(T) of that line's slope, so far from the healthy
    temperatures as it is:

        z = (x - m(T) - 2 u(T)) / scale.
    """
    joints, healthy = history.joints, history.healthy
    index = np.stack([run.index for run in history.runs])
    warm = np.stack([run.temperature for run in history.runs])
    z, expected = np.zeros(index.shape), np.zeros(index.shape)
    scale, fitted = np.zeros(joints), 1
    for j in range(joints):
        line = _line(index[:healthy, j], warm[:healthy, j], history.level[j])
        fitted = max(fitted, line.count)
        expected[:, j] = line.at(warm[:, j])
        scale[j] = line.scale
        beyond = index[:, j] - expected[:, j] - _BEYOND * line.uncertainty(warm[:, j])
        z[:, j] = beyond / (line.scale * np.sqrt(1.0 + line.count / healthy))
    threshold = threshold_for(history.rate, joints, healthy, history.slack, fitted)
    sudden = sudden_limit_for(history.rate, joints, healthy, fitted)
    sums, alarms = cusum(z[healthy:], threshold, history.slack, sudden)
    percent = 100.0 * (index - expected) / np.maximum(history.level, 1e-12)
    since: dict[int, str] = {}
    for n, j in alarms:
        since.setdefault(j, history.runs[healthy + n].name)
    out = []
    for j in range(joints):
        later = percent[healthy:, j]
        unit = 100.0 * scale[j] / max(history.level[j], 1e-12)
        last = later[-_LAST:]
        slope, slope_std = trend_of(later, unit)
        out.append(
            JointHealth(
                joint=j + 1,
                alarm=j in since,
                since=since.get(j),
                change=float(last.mean()) if len(last) else float("nan"),
                change_std=unit * float(np.sqrt(1.0 / max(len(last), 1) + 1.0 / healthy)),
                trend=slope,
                trend_std=slope_std,
                sum=float(sums[-1, j]) if len(sums) else 0.0,
            )
        )
    named = tuple((history.runs[healthy + n].name, j + 1) for n, j in alarms)
    return HealthReport(tuple(out), named, z, percent, sums, threshold, history.rate)


@dataclass(frozen=True, slots=True, eq=False)
class _HealthyBaseline:
    """What the index is in healthy runs: a level, and a slope in temperature where they show it.

    Attributes:
        level: At the middle temperature.
        slope: Per kelvin; 0 where the runs cannot show it.
        slope_std: Of that, the same where it is 0.
        scale: Of a run around the line.
        middle: Mean temperature of the runs, or nan.
        reach: How far from it the uncertainty begins [K].
        count: Parameters fitted.
    """

    level: float
    slope: float
    slope_std: float
    scale: float
    middle: float
    reach: float
    count: int

    def _above(self, warm: Float[Array, " n"]) -> Float[Array, " n"]:
        return np.nan_to_num(warm - self.middle)

    def at(self, warm: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.level + self.slope * self._above(warm)

    def uncertainty(self, warm: Float[Array, " n"]) -> Float[Array, " n"]:
        """Standard deviation of the line, as far as temperature makes it."""
        return self.slope_std * np.maximum(np.abs(self._above(warm)) - self.reach, 0.0)


def _line(index: Float[Array, " n"], warm: Float[Array, " n"], level: float) -> _HealthyBaseline:
    n, mean = len(index), float(np.mean(index))
    floor = 1e-9 + 1e-6 * level
    middle = float(np.mean(warm))
    if not np.isfinite(middle) or np.ptp(warm) < _TEMPERATURE_RANGE:
        scale = max(float(np.std(index, ddof=1)), floor)
        reach = 0.5 * float(np.ptp(warm)) if np.isfinite(middle) else 0.0
        return _HealthyBaseline(mean, 0.0, _UNKNOWN_SLOPE * level, scale, middle, reach, 1)
    above = warm - middle
    size = float(above @ above)
    slope = float(above @ index) / size
    left = index - mean - slope * above
    scale = max(float(np.sqrt(left @ left / (n - 2))), floor)
    return _HealthyBaseline(mean, slope, scale / np.sqrt(size), scale, middle, 0.0, 2)


def _run(name: str, found: FrictionIndex, sha256: str) -> HistoryRun:
    return HistoryRun(
        name,
        found.index,
        found.std,
        found.temperature,
        found.speed,
        found.load,
        sha256,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
