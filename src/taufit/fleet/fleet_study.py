"""Study of a fleet: accumulate files by robot and day, fit the common prior, compare robots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.compute.cache import MISSING, Cache
from taufit.core.compute.engines import Engine, Processes, WorkerLostError
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.dynamics import BaseParameters
from taufit.dynamics.base_parameters import base_parameters
from taufit.fleet.fleet_files import KEYS, FleetFile, find_fleet_files, is_remote, without_repeats
from taufit.fleet.fleet_prior import (
    FleetPrior,
    RobotEvidence,
    fit_fleet_prior,
    robot_evidence,
    single_robot_estimate,
)
from taufit.fleet.friction_outliers import detectable_friction_rise
from taufit.fleet.levels import (
    FrictionCurve,
    FrictionLevels,
    curve_rows,
    drive_mask,
    friction_curve,
    friction_levels,
    level_rows,
)
from taufit.fleet.outliers import (
    FleetOutlier,
    describe_friction_outliers,
    find_mounting_outlier,
    tool_outliers,
)
from taufit.fleet.result import FleetResult, RobotDay, RobotResult
from taufit.fleet.robot_information import AccumulateFiles, FailedFile, RobotInformation
from taufit.fleet.trends import (
    DailyFriction,
    FrictionTrend,
    day_numbers,
    fit_trend,
    friction_temperature_slopes,
    significant_trends,
)
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import Conditioning
from taufit.robot import Robot
from taufit.terms import further_term
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.inputs import FileReader, Reader
from taufit.workflow.steps import model_from_request
from taufit.workflow.training_data import with_drives

# Largest size [bytes] and number of files of a task, about one second of work.
_TASK_BYTES, _TASK_FILES = 20 * 2**20, 16
# Relative standard deviation of one day's friction about the robot's mean.
_DAY_STD = 0.1


@one_blas_thread
def study_fleet(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot,
    path: str,
    *,
    by: Sequence[str] = KEYS,
    engine: Engine | None = None,
    cutoff_hz: float = 10.0,
    reader: FileReader | None = None,
    cache: Cache | None = None,
    allow_repeats: bool = False,
    watch: Callable[[int, int], None] | None = None,
) -> FleetResult:
    """Study many robots of one type: models, common prior, outliers and trends.

    Args:
        robot: Robot of the type, with its nominal links and mounting.
        path: Folder or pattern of the recordings, local or an address for fsspec.
        by: Keys that distinguish recordings: "robot", or "robot" and "day".
        engine: Engine that does the work; this process by default.
        cutoff_hz: Cut-off of the low-pass on motion and torque [Hz].
        reader: Reader of files, e.g. `Reader(column_map=..., torque_kind=...)`.
        cache: Cache of results on local files.
        allow_repeats: Whether to count local files with equal contents separately.
        watch: Called with the number of files done and of all.

    Example:
        >>> import taufit
        >>> from taufit.fleet import study_fleet
        >>> found = study_fleet(taufit.read_robot("ur5"), "fleet/")  # doctest: +SKIP
        >>> [one.robot for one in found.robots if one.is_outlier]  # doctest: +SKIP
        ['cell_17']
    """
    robot.require_serial("a fleet study")
    files, repeats = without_repeats(find_fleet_files(path, by), allow=allow_repeats)
    engine = engine or Processes()
    accumulate = _make_accumulator(robot, files, cutoff_hz, reader or Reader())
    days, failed = _accumulate_days(accumulate, files, engine, cache, watch)
    failed += [FailedFile(file.name, reason) for file, reason in repeats]
    if not days:
        raise RecordingError(
            f"none of {len(files)} files could be used; the first: {failed[0].file}: "
            f"{failed[0].reason}"
        )
    return _study(accumulate, days, failed, tuple(getattr(engine, "incidents", ())))


def prepare_reduction(
    robot: Robot,
    path: str,
    *,
    by: Sequence[str] = KEYS,
    cutoff_hz: float = 10.0,
    reader: FileReader | None = None,
) -> tuple[AccumulateFiles, list[FleetFile]]:
    """Prepare the reduction of files to triangular factors, for any system that runs functions.

    The first result is picklable: called with a tuple of files it returns their
    `RobotInformation`, or None, and the files that could not be used. Information of the same
    robot is added with +, in any grouping.

    Args:
        robot: Robot of the type, with its nominal links and mounting.
        path: Folder or pattern of the recordings, local or an address for fsspec.
        by: Keys that distinguish recordings: "robot", or "robot" and "day".
        cutoff_hz: Cut-off of the low-pass on motion and torque [Hz].
        reader: Reader of files.
    """
    files = list(find_fleet_files(path, by))
    return _make_accumulator(robot, files, cutoff_hz, reader or Reader()), files


def _make_accumulator(
    robot: Robot, files: Sequence[FleetFile], cutoff_hz: float, reader: FileReader
) -> AccumulateFiles:
    """Accumulator for all files, with the torque side of the first readable one."""
    for file in files[:50]:
        try:
            with file.local() as path:
                runs = reader(path)
            if runs[0].joints == robot.joints:
                robot = with_drives(robot, runs[:1])
                break
        except (TaufitError, OSError, ValueError):
            continue
    model = model_from_request(FitRequest(cutoff_hz=cutoff_hz), robot)
    # Short recordings would attribute gear ripple to viscous friction without ripple columns.
    model = replace(model, terms=(further_term("ripple", (1.0, 2.0, 3.0)), *model.terms))
    rows = reader.rows if reader.reads_whole_files else None
    return AccumulateFiles(model, base_parameters(model), cutoff_hz, reader, rows, reader.settings)


Group = tuple[str, str]


def _accumulate_days(
    accumulate: AccumulateFiles,
    files: Sequence[FleetFile],
    engine: Engine,
    cache: Cache | None,
    callback: Callable[[int, int], None] | None,
) -> tuple[dict[Group, RobotInformation], list[FailedFile]]:
    """Information of each robot and day, and files that could not be used."""
    tasks = list(_tasks(files))
    keys = [_cache_key(cache, accumulate, task) for task in tasks]
    cached = {} if cache is None else cache.get_many(key for key in keys if key)
    missing = [task for key, task in zip(keys, tasks, strict=True) if key not in cached]
    results = engine.map(accumulate, ((task,) for task in missing))
    days: dict[Group, RobotInformation] = {}
    failed: list[FailedFile] = []
    files_done = 0
    for key, task in zip(keys, tasks, strict=True):
        result = cached.get(key, MISSING) if key else MISSING
        if result is MISSING:
            result = next(results)
            if isinstance(result, WorkerLostError):
                result = None, tuple(FailedFile(file.name, result.reason) for file in task)
            elif cache is not None and key and not result[1]:
                cache.put(key, result)
        group = task[0].robot, task[0].day
        if result[0] is not None:
            days[group] = days[group] + result[0] if group in days else result[0]
        failed += result[1]
        files_done += len(task)
        if callback is not None:
            callback(files_done, len(files))
    for _ in results:
        pass
    return days, failed


def _tasks(fleet_files: Sequence[FleetFile]) -> Iterator[tuple[FleetFile, ...]]:
    def group_of(file: FleetFile) -> Group:
        return file.robot, file.day

    for _, files in groupby(sorted(fleet_files, key=lambda p: (group_of(p), p.name)), group_of):
        task: list[FleetFile] = []
        for file in files:
            is_full = (
                sum(p.size for p in task) + file.size > _TASK_BYTES or len(task) >= _TASK_FILES
            )
            if task and is_full:
                yield tuple(task)
                task = []
            task.append(file)
        yield tuple(task)


def _cache_key(
    cache: Cache | None, accumulate: AccumulateFiles, files: tuple[FleetFile, ...]
) -> bytes:
    """Key of the result on some files; b"" if not cacheable."""
    if cache is None or any(is_remote(file.url) for file in files):
        return b""
    content = tuple((file.name, cache.content(Path(file.url))) for file in files)
    try:
        return cache.key("condensed", accumulate, content)
    except TypeError:
        return b""


@dataclass(frozen=True, slots=True, eq=False)
class _RobotState:
    """Intermediate results of one robot."""

    information: RobotInformation
    initial: Float[Array, " p"]
    evidence: RobotEvidence
    tilt: FleetOutlier | None


def _study(
    accumulate: AccumulateFiles,
    days: dict[Group, RobotInformation],
    failed: list[FailedFile],
    incidents: tuple[str, ...],
) -> FleetResult:
    model, base = accumulate.model, accumulate.base
    robots: dict[str, RobotInformation] = {}
    for (name, _), information in days.items():
        robots[name] = robots[name] + information if name in robots else information
    states = {
        name: _initial_state(model, base, information) for name, information in robots.items()
    }
    typical_load = _typical_load(model, states)
    rows, curve_matrix = level_rows(model, typical_load), curve_rows(model, typical_load)
    regular = [name for name, state in states.items() if state.tilt is None] or list(states)
    outliers: dict[str, list[FleetOutlier]] = {}
    # Repeat without outliers, which must not affect the prior.
    for _ in range(2):
        fleet_prior = fit_fleet_prior(
            model, base, [states[n].evidence for n in regular], [states[n].initial for n in regular]
        )
        own_friction = {
            n: _own_friction(
                fleet_prior,
                state.evidence,
                _free_parameters(model, outliers.get(n, ())),
                rows,
                curve_matrix,
            )
            for n, state in states.items()
        }
        outliers = _find_outliers(
            fleet_prior, states, {n: information[1] for n, information in own_friction.items()}
        )
        outlier_names = {name for name, fleet_state in outliers.items() if fleet_state}
        if not outlier_names or len(regular) - len(outlier_names) < 3:
            break
        regular = [name for name in states if name not in outlier_names]
    own_levels = {n: information[0] for n, information in own_friction.items()}
    detectable_rise = detectable_friction_rise(
        {n: own_friction[n][1] for n, state in states.items() if state.tilt is None}
    )
    fleet_state = _FleetState(
        accumulate, days, states, fleet_prior, own_levels, outliers, detectable_rise, rows
    )
    return replace(_make_result(fleet_state), failed=tuple(failed), incidents=incidents)


def _initial_state(
    model: TorqueModel, base: BaseParameters, information: RobotInformation
) -> _RobotState:
    initial, evidence = single_robot_estimate(model, base, information)
    return _RobotState(
        information,
        initial,
        evidence,
        find_mounting_outlier(information, _gravity_direction(model.robot)),
    )


def _gravity_direction(robot: Robot) -> Float[Array, " 3"]:
    gravity = np.asarray(robot.gravity, float)
    return gravity / max(float(np.linalg.norm(gravity)), 1e-12)


def _typical_load(model: TorqueModel, states: dict[str, _RobotState]) -> Float[Array, " j"]:
    """Median load of the links on each gear [N m]."""
    mean_loads = [
        state.information.load / max(state.information.samples, 1) for state in states.values()
    ]
    return np.median(np.stack(mean_loads), axis=0)


def _free_parameters(model: TorqueModel, outliers: Sequence[FleetOutlier]) -> Bool[Array, " p"]:
    """Mask of friction, and of the last link of a robot with another tool."""
    out = drive_mask(model).copy()
    if any(outlier.kind == "tool" for outlier in outliers):
        out[model.layout.link(-1)] = True
    return out


def _own_friction(
    fleet_prior: FleetPrior,
    evidence: RobotEvidence,
    is_free: Bool[Array, " p"],
    rows: Array,
    curve_matrix: Array,
) -> tuple[FrictionLevels, FrictionCurve]:
    """Friction by a robot's own data; its links follow the fleet prior."""
    posterior = fleet_prior.posterior(evidence, is_free)
    return friction_levels(rows, *posterior), friction_curve(curve_matrix, *posterior)


def _find_outliers(
    fleet_prior: FleetPrior, states: dict[str, _RobotState], curves: dict[str, FrictionCurve]
) -> dict[str, list[FleetOutlier]]:
    upright = [name for name, state in states.items() if state.tilt is None]
    friction = describe_friction_outliers({name: curves[name] for name in upright})
    tools = tool_outliers(fleet_prior, {name: states[name].evidence for name in upright})
    out: dict[str, list[FleetOutlier]] = {}
    for name, state in states.items():
        if state.tilt is not None:
            # A wrong mounting affects all other tests.
            out[name] = [state.tilt]
            continue
        robot_outliers = [*friction[name], *([tools[name]] if name in tools else [])]
        out[name] = sorted(robot_outliers, key=lambda s: -s.size)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _FleetState:
    """Intermediate results of the fleet."""

    accumulate: AccumulateFiles
    days: dict[Group, RobotInformation]
    states: dict[str, _RobotState]
    fleet_prior: FleetPrior
    own_levels: dict[str, FrictionLevels]
    outliers: dict[str, list[FleetOutlier]]
    detectable_rise: Float[Array, " j"]
    rows: Array


def _make_result(fleet_state: _FleetState) -> FleetResult:
    accumulate, states, fleet_prior = (
        fleet_state.accumulate,
        fleet_state.states,
        fleet_state.fleet_prior,
    )
    days, rows = fleet_state.days, fleet_state.rows
    free_parameters = {
        name: _outlier_parameters(fleet_prior.model, robot_outliers)
        for name, robot_outliers in fleet_state.outliers.items()
    }
    posterior = {
        name: fleet_prior.posterior(state.evidence, free_parameters[name])
        for name, state in states.items()
    }
    by_day = {
        name: _robot_levels_by_day(fleet_prior, name, posterior[name][0], days, rows)
        for name in states
    }
    slopes, reference = friction_temperature_slopes(by_day)
    tests = len(states) * fleet_prior.model.layout.joints
    robots = []
    for name, state in states.items():
        _, covariance = posterior[name]
        robot_trend = fit_trend(by_day[name], slopes, reference)
        robot_outliers = [*fleet_state.outliers[name]]
        if state.tilt is None:
            robot_outliers += [
                FleetOutlier("trend", joint, text, size)
                for joint, text, size in significant_trends(robot_trend, by_day[name], tests)
            ]
        parameters = fleet_prior.consistent_parameters(state.evidence, free_parameters[name])
        robots.append(
            RobotResult(
                name,
                _to_fitted_model(accumulate, parameters, np.diag(covariance)),
                state.information.files,
                state.information.rows,
                state.information.seconds,
                _nrmse(accumulate.base, state.information, parameters),
                friction_levels(rows, parameters, covariance),
                fleet_state.own_levels[name],
                tuple(robot_outliers),
                _robot_days(accumulate.base, name, days, by_day[name], robot_trend, parameters),
                robot_trend,
            )
        )
    robots.sort(key=_worst_first)
    return FleetResult(
        fleet_prior.model.robot.name,
        tuple(robots),
        _to_fitted_model(
            accumulate, fleet_prior.consistent_parameters(), 1.0 / np.diag(fleet_prior.precision)
        ),
        fleet_prior,
        (),
        (),
        slopes,
        fleet_state.detectable_rise,
        sum(state.information.rows for state in states.values()),
    )


def _outlier_parameters(
    model: TorqueModel, outliers: Sequence[FleetOutlier]
) -> Bool[Array, " p"] | None:
    """Mask of parameters in which a robot deviates from the fleet, for a wide prior."""
    layout = model.layout
    out = np.zeros(layout.size, bool)
    for outlier in outliers:
        if outlier.kind in ("friction", "trend"):
            is_joint = outlier.joint is None or np.asarray(layout.owner) == (outlier.joint or 0) - 1
            out |= drive_mask(model) & is_joint
        elif outlier.kind == "tool":
            out[layout.link(-1)] = True
        else:
            out[:] = True
    return out if outliers else None


def _worst_first(robot: RobotResult) -> tuple[float, float]:
    return -max((s.size for s in robot.outliers), default=0.0), -float(np.mean(robot.nrmse))


def _robot_levels_by_day(
    fleet_prior: FleetPrior,
    name: str,
    theta: Float[Array, " p"],
    days: dict[Group, RobotInformation],
    rows: Array,
) -> list[DailyFriction]:
    """Friction levels on each day: links of the robot, friction near its mean."""
    information = {
        day: day_information for (robot, day), day_information in days.items() if robot == name
    }
    order = sorted(information, key=lambda day: (day_numbers([day])[0], day))
    numbers = day_numbers(order)
    friction = drive_mask(fleet_prior.model)
    precision = fleet_prior.precision.copy()
    precision[~friction] *= 1e4
    precision[:, ~friction] *= 1e4
    precision[np.ix_(~friction, ~friction)] /= 1e4
    friction_width = np.maximum(np.abs(theta), 1e-3 * np.abs(theta).max()) * _DAY_STD * 10.0
    precision[np.ix_(friction, friction)] = np.diag(1.0 / friction_width[friction] ** 2)
    day_prior = replace(fleet_prior, mean=theta, precision=precision)
    out = []
    for number, day in zip(numbers, order, strict=True):
        evidence = robot_evidence(fleet_prior.model, fleet_prior.base, information[day], theta)
        day_levels = friction_levels(rows, *day_prior.posterior(evidence))
        out.append(DailyFriction(day, number, day_levels, information[day].temperature))
    return out


def _robot_days(
    base: BaseParameters,
    name: str,
    days: dict[Group, RobotInformation],
    by_day: list[DailyFriction],
    robot_trend: FrictionTrend,
    theta: Float[Array, " p"],
) -> tuple[RobotDay, ...]:
    out = []
    for k, day in enumerate(by_day):
        information = days[name, day.day]
        out.append(
            RobotDay(
                day.day,
                information.files,
                information.rows,
                information.seconds,
                _nrmse(base, information, theta),
                day.levels,
                robot_trend.friction_at_reference[k],
                day.temperature,
            )
        )
    return tuple(out)


def _nrmse(
    base: BaseParameters, information: RobotInformation, theta: Float[Array, " p"]
) -> Float[Array, " j"]:
    values = base.mapping @ theta
    cost = np.array(
        [joint_information.cost(values) for joint_information in information.information]
    )
    return np.sqrt(cost / np.maximum(information.count, 1)) / information.torque_std


def _to_fitted_model(
    accumulate: AccumulateFiles, theta: Float[Array, " p"], variance: Float[Array, " p"]
) -> FittedModel:
    """Fitted model; links are identifiable in combinations only, terms individually."""
    model = accumulate.model.with_values(theta)
    is_term = np.arange(len(theta)) >= model.layout.after_links.start
    std = np.where(is_term, np.sqrt(np.maximum(variance, 0.0)), np.inf)
    conditioning = Conditioning(cutoff_hz=accumulate.cutoff_hz)
    return model.with_training(replace(model.training, conditioning=conditioning, std=std))
