"""A study of a fleet: files, what each robot's say, what robots have in common, each robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.compute.cache import MISSING, Cache
from taufit.core.compute.engines import Engine, Processes, WorkerLost
from taufit.core.errors import RecordingError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.dynamics import BaseParameters
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.ripple import ORDERS
from taufit.fleet.fleet_files import KEYS, FleetFile, find_fleet_files, is_remote, without_repeats
from taufit.fleet.fleet_prior import (
    FleetPrior,
    RobotEvidence,
    evidence_of,
    fit_fleet_prior,
    single_robot_estimate,
)
from taufit.fleet.friction_outliers import detectable_friction_rise
from taufit.fleet.levels import (
    FrictionCurve,
    Levels,
    curve,
    curve_rows,
    friction_of,
    level_rows,
    levels,
)
from taufit.fleet.outliers import FleetOutlier, friction_surprises, tilted, tool_outliers
from taufit.fleet.result import FleetResult, RobotDay, RobotResult
from taufit.fleet.robot_information import AccumulateFiles, Failed, RobotInformation
from taufit.fleet.trends import (
    Day,
    Trend,
    day_numbers,
    friction_temperature_slopes,
    significant_trends,
    trend,
)
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import Conditioning
from taufit.robot import Robot
from taufit.terms import further_term
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.inputs import FileReader, Reader
from taufit.workflow.steps import requested_model
from taufit.workflow.training_data import with_drives

# A task is about a second of work: files of one robot and day, so many bytes and files at most.
_TASK_BYTES, _TASK_FILES = 20 * 2**20, 16
# Relative standard deviation of one day's friction about the robot's own.
_DAILY = 0.1


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
    """Models of many robots of one type, what they have in common, and who is unlike the others.

    Args:
        robot: The type, with its nominal links and its mounting.
        path: Folder or pattern of the recordings, local or an address for fsspec.
        by: What recordings are told apart by: "robot", or "robot" and "day".
        engine: Where the work is done; by default in this process.
        cutoff_hz: Of the low-pass on motion and torque.
        reader: How files are read, e.g. `Reader(map=..., effort=...)`; by default as they are.
        cache: What is known of local files from earlier studies.
        allow_repeats: Count local files with equal contents as often as they are there.
        watch: Called with the number of files done and of all.

    Example:
        >>> import taufit
        >>> from taufit.fleet import study_fleet
        >>> found = study_fleet(taufit.read_robot("ur5"), "fleet/")  # doctest: +SKIP
        >>> [one.robot for one in found.robots if one.outlier]  # doctest: +SKIP
        ['cell_17']
    """
    places, repeats = without_repeats(find_fleet_files(path, by), allow=allow_repeats)
    engine = engine or Processes()
    condense = _condense(robot, places, cutoff_hz, reader or Reader())
    days, failed = _gathered(condense, places, engine, cache, watch)
    failed += [Failed(place.name, why) for place, why in repeats]
    if not days:
        raise RecordingError(
            f"none of {len(places)} files could be used; the first: {failed[0].file}: "
            f"{failed[0].why}"
        )
    return _studied(condense, days, failed, tuple(getattr(engine, "incidents", ())))


def _condense(
    robot: Robot, places: Sequence[FleetFile], cutoff_hz: float, reader: FileReader
) -> AccumulateFiles:
    """What is done to every file; where torque was measured is as in the first that can be read."""
    for place in places[:50]:
        try:
            with place.local() as path:
                runs = reader(path)
            if runs[0].joints == robot.joints:
                robot = with_drives(robot, runs[:1])
                break
        except (TaufitError, OSError, ValueError):
            continue
    model = requested_model(FitRequest(cutoff_hz=cutoff_hz), robot)
    # Twenty seconds of one motion take waves of the gear for drag: they have columns of their own.
    model = replace(model, terms=(further_term("ripple", ORDERS), *model.terms))
    rows = reader.rows if reader.reads_whole_files else None
    return AccumulateFiles(model, base_parameters(model), cutoff_hz, reader, rows, reader.settings)


Group = tuple[str, str]


def _gathered(
    condense: AccumulateFiles,
    places: Sequence[FleetFile],
    engine: Engine,
    cache: Cache | None,
    watch: Callable[[int, int], None] | None,
) -> tuple[dict[Group, RobotInformation], list[Failed]]:
    """What the files of each robot and day say, and which could not be used."""
    tasks = list(_tasks(places))
    keys = [_key(cache, condense, own) for own in tasks]
    known = {} if cache is None else cache.many(key for key in keys if key)
    missing = [own for key, own in zip(keys, tasks, strict=True) if key not in known]
    made = engine.map(condense, ((own,) for own in missing))
    days: dict[Group, RobotInformation] = {}
    failed: list[Failed] = []
    done = 0
    for key, own in zip(keys, tasks, strict=True):
        result = known.get(key, MISSING) if key else MISSING
        if result is MISSING:
            result = next(made)
            if isinstance(result, WorkerLost):
                result = None, tuple(Failed(place.name, result.why) for place in own)
            elif cache is not None and key and not result[1]:
                cache.put(key, result)
        group = own[0].robot, own[0].day
        if result[0] is not None:
            days[group] = days[group] + result[0] if group in days else result[0]
        failed += result[1]
        done += len(own)
        if watch is not None:
            watch(done, len(places))
    for _ in made:
        pass
    return days, failed


def _tasks(places: Sequence[FleetFile]) -> Iterator[tuple[FleetFile, ...]]:
    def whose(place: FleetFile) -> Group:
        return place.robot, place.day

    for _, files in groupby(sorted(places, key=lambda p: (whose(p), p.name)), whose):
        own: list[FleetFile] = []
        for place in files:
            full = sum(p.size for p in own) + place.size > _TASK_BYTES or len(own) >= _TASK_FILES
            if own and full:
                yield tuple(own)
                own = []
            own.append(place)
        yield tuple(own)


def _key(cache: Cache | None, condense: AccumulateFiles, places: tuple[FleetFile, ...]) -> bytes:
    """Of what is found in some files; b"" where that is not kept."""
    if cache is None or any(is_remote(place.url) for place in places):
        return b""
    content = tuple((place.name, cache.content(Path(place.url))) for place in places)
    try:
        return cache.key("condensed", condense, content)
    except TypeError:
        return b""


@dataclass(frozen=True, slots=True, eq=False)
class _RobotState:
    """One robot on the way."""

    own: RobotInformation
    first: Float[Array, " p"]
    evidence: RobotEvidence
    tilt: FleetOutlier | None


def _studied(
    condense: AccumulateFiles,
    days: dict[Group, RobotInformation],
    failed: list[Failed],
    incidents: tuple[str, ...],
) -> FleetResult:
    model, base = condense.model, condense.base
    robots: dict[str, RobotInformation] = {}
    for (name, _), own in days.items():
        robots[name] = robots[name] + own if name in robots else own
    known = {name: _known(model, base, own) for name, own in robots.items()}
    usual_load = _usual_load(model, known)
    rows, at = level_rows(model, usual_load), curve_rows(model, usual_load)
    like = [name for name, one in known.items() if one.tilt is None] or list(known)
    surprises: dict[str, list[FleetOutlier]] = {}
    # Who is found to be unlike the others must not say what they are like: once more without.
    for _ in range(2):
        siblings = fit_fleet_prior(
            model, base, [known[n].evidence for n in like], [known[n].first for n in like]
        )
        alone = {
            n: _alone(siblings, one.evidence, _loose(model, surprises.get(n, ())), rows, at)
            for n, one in known.items()
        }
        surprises = _surprises(siblings, known, {n: own[1] for n, own in alone.items()})
        unlike = {name for name, found in surprises.items() if found}
        if not unlike or len(like) - len(unlike) < 3:
            break
        like = [name for name in known if name not in unlike]
    by_itself = {n: own[0] for n, own in alone.items()}
    shown = detectable_friction_rise(
        {n: alone[n][1] for n, one in known.items() if one.tilt is None}
    )
    found = _FleetState(condense, days, known, siblings, by_itself, surprises, shown, rows)
    return replace(_result(found), failed=tuple(failed), incidents=incidents)


def _known(model: TorqueModel, base: BaseParameters, own: RobotInformation) -> _RobotState:
    first, evidence = single_robot_estimate(model, base, own)
    return _RobotState(own, first, evidence, tilted(own, _down(model.robot)))


def _down(robot: Robot) -> Float[Array, " 3"]:
    gravity = np.asarray(robot.gravity, float)
    return gravity / max(float(np.linalg.norm(gravity)), 1e-12)


def _usual_load(model: TorqueModel, known: dict[str, _RobotState]) -> Float[Array, " j"]:
    """Torque that the links usually put on each gear."""
    each = [one.own.load / max(one.own.samples, 1) for one in known.values()]
    return np.median(np.stack(each), axis=0)


def _loose(model: TorqueModel, known: Sequence[FleetOutlier]) -> Bool[Array, " p"]:
    """Friction, and the last link of a robot that is known to carry another tool."""
    out = friction_of(model).copy()
    if any(one.kind == "tool" for one in known):
        out[model.layout.link(-1)] = True
    return out


def _alone(
    siblings: FleetPrior, evidence: RobotEvidence, loose: Bool[Array, " p"], rows: Array, at: Array
) -> tuple[Levels, FrictionCurve]:
    """Friction by a robot's own data; its links follow its siblings'."""
    found = siblings.posterior(evidence, loose)
    return levels(rows, *found), curve(at, *found)


def _surprises(
    siblings: FleetPrior, known: dict[str, _RobotState], alone: dict[str, FrictionCurve]
) -> dict[str, list[FleetOutlier]]:
    upright = [name for name, one in known.items() if one.tilt is None]
    friction = friction_surprises({name: alone[name] for name in upright})
    tools = tool_outliers(siblings, {name: known[name].evidence for name in upright})
    out: dict[str, list[FleetOutlier]] = {}
    for name, one in known.items():
        if one.tilt is not None:
            # Gravity from elsewhere looks like anything else.
            out[name] = [one.tilt]
            continue
        found = [*friction[name], *([tools[name]] if name in tools else [])]
        out[name] = sorted(found, key=lambda s: -s.size)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _FleetState:
    """A fleet on the way."""

    condense: AccumulateFiles
    days: dict[Group, RobotInformation]
    known: dict[str, _RobotState]
    siblings: FleetPrior
    alone: dict[str, Levels]
    surprises: dict[str, list[FleetOutlier]]
    named_from: Float[Array, " j"]
    rows: Array


def _result(found: _FleetState) -> FleetResult:
    condense, known, siblings = found.condense, found.known, found.siblings
    days, rows = found.days, found.rows
    own = {name: _own(siblings.model, odd) for name, odd in found.surprises.items()}
    posterior = {name: siblings.posterior(one.evidence, own[name]) for name, one in known.items()}
    by_day = {name: _days(siblings, name, posterior[name][0], days, rows) for name in known}
    slopes, usual = friction_temperature_slopes(by_day)
    tests = len(known) * siblings.model.layout.joints
    robots = []
    for name, one in known.items():
        _, covariance = posterior[name]
        moving = trend(by_day[name], slopes, usual)
        odd = [*found.surprises[name]]
        if one.tilt is None:
            odd += [
                FleetOutlier("trend", joint, text, size)
                for joint, text, size in significant_trends(moving, by_day[name], tests)
            ]
        possible = siblings.possible(one.evidence, own[name])
        robots.append(
            RobotResult(
                name,
                _fitted(condense, possible, np.diag(covariance)),
                one.own.files,
                one.own.rows,
                one.own.seconds,
                _nrmse(condense.base, one.own, possible),
                levels(rows, possible, covariance),
                found.alone[name],
                tuple(odd),
                _robot_days(condense.base, name, days, by_day[name], moving, possible),
                moving,
            )
        )
    robots.sort(key=_worst_first)
    return FleetResult(
        siblings.model.robot.name,
        tuple(robots),
        _fitted(condense, siblings.possible(), 1.0 / np.diag(siblings.precision)),
        siblings,
        (),
        (),
        slopes,
        found.named_from,
        sum(one.own.rows for one in known.values()),
    )


def _own(model: TorqueModel, odd: Sequence[FleetOutlier]) -> Bool[Array, " p"] | None:
    """Parameters in which a robot is unlike its siblings, so that they say nothing about them."""
    layout = model.layout
    out = np.zeros(layout.size, bool)
    for one in odd:
        if one.kind in ("friction", "trend"):
            mine = one.joint is None or np.asarray(layout.owner) == (one.joint or 0) - 1
            out |= friction_of(model) & mine
        elif one.kind == "tool":
            out[layout.link(-1)] = True
        else:
            out[:] = True
    return out if odd else None


def _worst_first(one: RobotResult) -> tuple[float, float]:
    return -max((s.size for s in one.surprises), default=0.0), -float(np.mean(one.nrmse))


def _days(
    siblings: FleetPrior,
    name: str,
    theta: Float[Array, " p"],
    days: dict[Group, RobotInformation],
    rows: Array,
) -> list[Day]:
    """Friction on each day: links as the robot's, friction near its own."""
    own = {day: one for (robot, day), one in days.items() if robot == name}
    order = sorted(own, key=lambda day: (day_numbers([day])[0], day))
    numbers = day_numbers(order)
    friction = friction_of(siblings.model)
    held = siblings.precision.copy()
    held[~friction] *= 1e4
    held[:, ~friction] *= 1e4
    held[np.ix_(~friction, ~friction)] /= 1e4
    spread = np.maximum(np.abs(theta), 1e-3 * np.abs(theta).max()) * _DAILY * 10.0
    held[np.ix_(friction, friction)] = np.diag(1.0 / spread[friction] ** 2)
    near = replace(siblings, mean=theta, precision=held)
    out = []
    for at, day in zip(numbers, order, strict=True):
        evidence = evidence_of(siblings.model, siblings.base, own[day], theta)
        found = levels(rows, *near.posterior(evidence))
        out.append(Day(day, at, found, own[day].temperature))
    return out


def _robot_days(
    base: BaseParameters,
    name: str,
    days: dict[Group, RobotInformation],
    by_day: list[Day],
    moving: Trend,
    theta: Float[Array, " p"],
) -> tuple[RobotDay, ...]:
    out = []
    for k, day in enumerate(by_day):
        own = days[name, day.day]
        out.append(
            RobotDay(
                day.day,
                own.files,
                own.rows,
                own.seconds,
                _nrmse(base, own, theta),
                day.levels,
                moving.adjusted[k],
                day.temperature,
            )
        )
    return tuple(out)


def _nrmse(
    base: BaseParameters, own: RobotInformation, theta: Float[Array, " p"]
) -> Float[Array, " j"]:
    values = base.mapping @ theta
    cost = np.array([one.cost(values) for one in own.information])
    return np.sqrt(cost / np.maximum(own.count, 1)) / own.spread


def _fitted(
    condense: AccumulateFiles, theta: Float[Array, " p"], variance: Float[Array, " p"]
) -> FittedModel:
    """A model file's content; links are known in combinations only, the rest one by one."""
    model = condense.model.with_values(theta)
    rest = np.arange(len(theta)) >= model.layout.after_links.start
    std = np.where(rest, np.sqrt(np.maximum(variance, 0.0)), np.inf)
    conditioning = Conditioning(cutoff_hz=condense.cutoff_hz)
    return model.with_training(replace(model.training, conditioning=conditioning, std=std))
