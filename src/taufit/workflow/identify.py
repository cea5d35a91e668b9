"""The whole way in one call: robot and recordings in, a fitted model and its scores out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

import taufit
from taufit.calibration.joint_zeros import (
    EXPECTED_SLIDE_STD,
    EXPECTED_STD,
    found_zeros,
    joint_numbers,
)
from taufit.calibration.zero_search import with_zeros
from taufit.contact.noise import training_noise
from taufit.core.arrays import Array, Float
from taufit.core.compute.cache import Cache, open_cache
from taufit.core.compute.engines import Processes
from taufit.core.threads import one_blas_thread
from taufit.diagnosis import CHANNEL_KINDS, Cause, refuse, sample_causes
from taufit.diagnosis.evidence import Evidence
from taufit.diagnosis.load import with_load
from taufit.estimators import Estimator, Pbpr
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting.enough import Amount, check_enough
from taufit.fitting.fit import fit
from taufit.fitting.known_friction import KnownFriction, with_tested_friction
from taufit.fitting.one_way import one_way_findings
from taufit.fitting.selection.ripple import with_ripple
from taufit.fitting.selection.widths import with_fitted_width
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import residuals_by_state
from taufit.model.noise_by_state import NoiseByState
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    DEFAULT_CUTOFF_HZ,
    Conditioning,
    FitSettings,
    Provenance,
    Ranges,
    TrainingRecord,
)
from taufit.recording import Recording
from taufit.recording.read import Map
from taufit.regression.near import near_model
from taufit.regression.residual_structure import residual_structure
from taufit.regression.simple_terms import simple_terms
from taufit.robot import Compensator, Robot
from taufit.signals import Samples
from taufit.signals.sample_source import SampleSource
from taufit.signs.unknown_signs import (
    SignHint,
    without_signs,
)
from taufit.temperature.over_parts import follow_parts
from taufit.terms import term_to_dict
from taufit.terms.friction import Friction
from taufit.validation.files import unlike_files
from taufit.validation.grades import (
    floors,
    grade,
    worse_than_nominal,
)
from taufit.validation.in_detail import in_detail
from taufit.validation.score import Score, score, short_name
from taufit.validation.score_sums import training_scores
from taufit.workflow.conditioned import condition_like
from taufit.workflow.findings import noticed, recording_warnings, undescribed_load
from taufit.workflow.found_signs import fit_with_signs, with_signs
from taufit.workflow.identification import Identification
from taufit.workflow.inputs import (
    File,
    Holdout,
    Reader,
    Recordings,
    as_holdout,
    as_recordings,
    as_robot,
    share_of,
)
from taufit.workflow.training_data import (
    training_data,
)

Cutoff = float | Literal["auto"]


@one_blas_thread
def identify(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot | File,
    recordings: Recordings,
    *,
    holdout: Holdout = None,
    map: Map | None = None,
    effort: str | None = None,
    friction: Friction | FittedModel | str | None = "auto",
    estimator: Estimator | None = None,
    cutoff_hz: Cutoff = DEFAULT_CUTOFF_HZ,
    rotor_inertia: bool | None = None,
    offset: bool = True,
    torque_signs: Literal["recorded", "unknown"] = "recorded",
    sign_hints: Sequence[SignHint] = (),
    sign_method: Literal["exact", "tree"] = "exact",
    temperature: str = "auto",
    delay_s: float | Literal["auto"] = 0.0,
    compensator: str | Sequence[str] | None = None,
    joint_zeros: str | Sequence[str] | None = None,
    joint_zero_std: float = EXPECTED_STD,
    slide_zero_std: float = EXPECTED_SLIDE_STD,
    provenance: Mapping[str, Any] | None = None,
    force: bool = False,
    processes: int | None = 1,
    cache: Cache | File | None = None,
    watch: Callable[[], None] | None = None,
) -> Identification:
    """Fit a model to recordings of a robot and score it on others.

    Drives (where torque was measured, coupled motors, torque per ampere) come from the recordings;
    hold-out recordings are conditioned with the same low-pass and the same gains.

    Args:
        robot: The arm, with its mounting; or a bundled name or a file.
        recordings: Of one robot, fitted together: recordings, files, pandas or polars frames. Files
            are gone through one at a time, in memory that does not grow with their number.
        holdout: Recordings kept out, likewise or by the name they are to be called; or a share
            such as "30%", the last part of every recording.
        map: What the columns of files and frames are, as `read_recording` takes it.
        effort: What their torque channel is, as `read_recording` takes it.
        friction: A friction model or its name, None, "auto", or a model whose friction is known
            (from `taufit friction`): its shapes are kept and its coefficients expected.
        estimator: Replaces the automatic one.
        cutoff_hz: Of the low-pass on motion and torque alike, or "auto".
        rotor_inertia: Whether joints have one; by default where torque was measured at the motor.
        offset: Whether joints have a torque offset.
        torque_signs: "unknown" where only magnitudes were recorded.
        sign_hints: Segments whose sign is known although it was not recorded.
        sign_method: "tree" is the pruned tree search of the literature, which proves nothing; the
            fit that follows is its penalised least squares unless an estimator is given.
        temperature: How friction follows joint temperature: "none", "linear", "exponential",
            "arrhenius", "thermal-model" (temperatures estimated from heat), or "auto".
        delay_s: By how much torque was recorded later than the motion it belongs to, or "auto".
        compensator: Joints with a gravity compensator (spring, gas) whose geometry the robot's
            description does not have, by name or number.
        joint_zeros: Joints whose encoder may have its zero elsewhere, by name or number, or "all":
            what is to be added to recorded positions is estimated, and the model contains it.
        joint_zero_std: What is expected of them before, as a standard deviation [rad].
        slide_zero_std: The same of joints that slide [m].
        provenance: What the model file should say about where the data came from.
        force: Fit although the recording contradicts the robot or holds impossible numbers.
        processes: That share the files; None for one per processor. Results do not depend on it.
        cache: Folder in which results on files are kept, so that a fit to more files reads only
            the new ones; None keeps nothing.
        watch: Called whenever a file has been gone through, as happens about seven times to each.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done
        Identification(ur3e: good, nrmse ... on 1 unseen recording(s))
        >>> taufit.write_model(done.model, "model.json")
    """
    reader = Reader(map, effort, share_of(holdout))
    kept_out = as_holdout(holdout, recordings, reader)
    recordings = as_recordings(recordings, reader)
    robot = as_robot(robot, recordings)
    with Processes(processes) as engine, _opened(cache) as kept:
        engine.wake(training_data)
        data = training_data(
            robot,
            recordings,
            cutoff_hz=cutoff_hz,
            unsigned=torque_signs == "unknown",
            delay_s=delay_s,
            force=force,
            engine=engine,
            watch=watch,
            cache=kept,
        )
        robot, source = _compensated(data.robot, compensator), data.source
        expected = KnownFriction.of(friction) if isinstance(friction, FittedModel) else None
        model = automatic_model(
            robot,
            friction=friction.friction if isinstance(friction, FittedModel) else friction,
            rotor_inertia=rotor_inertia,
            offset=offset,
        )
        if isinstance(friction, FittedModel):
            model = with_tested_friction(model, friction)
        check_enough(model, source, with_prior=estimator is None)
        zeros = found_zeros(model, source, joint_zeros, joint_zero_std, slide_zero_std)
        if zeros is not None:
            robot = robot.with_joint_zeros(zeros.values)
            model = with_zeros(model, zeros.values)
        known = [f for r in data.recordings for f in r.findings if f.kind in CHANNEL_KINDS]
        excerpt = source.excerpt
        evidence = Evidence(robot, excerpt) if len(excerpt) else None
        causes = sample_causes(
            robot, data.recordings, excerpt, [Cause(finding) for finding in known], evidence, source
        )
        refuse(causes, force)
        findings = [*known, *(cause.finding for cause in causes), *data.findings]
        found_load = undescribed_load(data, evidence, findings)
        findings += one_way_findings(excerpt) + found_load
        if found_load and evidence is not None and estimator is None:
            model = replace(model, robot=with_load(model.robot, evidence))
        signs, source = with_signs(model, source, sign_hints, sign_method)
        unsigned = signs is not None
        if unsigned and sign_method == "tree":
            estimator = estimator or Pbpr(weighting="none")
        warmth = follow_parts(model, source, "none" if unsigned else temperature)
        model, source = warmth.model, warmth.source
        if friction == "auto" and estimator is None and warmth.law != "none":
            # Temperature is told by small differences, which widths that do not fit would blur.
            model = with_fitted_width(model, source)
        dropped, load = tuple(name for name in warmth.dropped if name in model.names), None
        enough = Amount.of(model, source).missing == 0.0
        if friction == "auto" and estimator is None and enough:
            chosen = source.of_excerpt(with_ripple, model)
            model, load, dropped = chosen.model, chosen.load, (*dropped, *chosen.dropped)
        if unsigned:
            estimate = fit_with_signs(model, signs, estimator, dropped, expected)
        else:
            estimate = fit(model, source, estimator, dropped=dropped, load=load, known=expected)
        fitted = fitted_model(model, estimate, source, thermal=warmth.thermal)
        scores = training_scores(fitted, robot, source)
        noise = None if unsigned else _noise(fitted, source)
        fitted = fitted.with_training(
            replace(
                fitted.training,
                score=replace(scores.all, findings=()),
                noise=noise,
                residuals=replace(
                    fitted.training.residuals,
                    by_state=residuals_by_state(fitted, source.excerpt),
                ),
            )
        )
        trained = in_detail(fitted, source.excerpt, scores.all)
        tested, tested_samples = _tested(fitted, kept_out, unsigned=unsigned)
        nominal = None if scores.before is None else scores.before.nominal.rmse
        findings += worse_than_nominal(scores.all.rmse, nominal)
        broken = unlike_files(scores.files)
        refuse([Cause(finding) for finding in broken], force)
        findings += broken
        judged = tested_samples or (source.excerpt,)
        grades = grade(
            tested or (trained,),
            [floors(robot, one, evidence) for one in judged],
            unseen=bool(tested),
            trained=trained,
            findings=findings,
        )
        found = [f"{short_name(s.file)}: {text}" for s in tested for text in s.findings]
        warnings = dict.fromkeys(
            [
                *(finding.message for finding in findings),
                *warmth.findings,
                *estimate.warnings,
                *(() if zeros is None else zeros.warnings(robot)),
                *found,
                *recording_warnings(data),
                *([kept.warning] if kept is not None and kept.warning else []),
            ]
        )
        settings = FitSettings(
            friction=term_to_dict(model.friction),
            estimator="automatic" if estimator is None else type(estimator).__name__,
            estimator_settings=dict(estimate.settings),
            dropped=tuple(estimate.dropped),
            cutoff_hz=float(source.cutoff_hz),
            cutoff_reason=source.head.reason,
            torque_signs="unknown" if unsigned else torque_signs,
            temperature=warmth.law,
        )
        record = replace(
            fitted.training,
            score=replace(trained, findings=()),
            residuals=residual_structure(fitted, source),
            simple_terms=simple_terms(fitted, source),
            joint_zero_std=None if zeros is None else zeros.std,
            hidden_zeros=() if zeros is None else zeros.hidden(robot),
            provenance=_provenance(robot, settings, provenance),
            warnings=tuple(warnings),
            contradictions=tuple(f.message for f in findings if f.severity == "error"),
        )
        return Identification(
            fitted.with_training(record),
            estimate,
            source.gathered() if source.excerpt_is_all else source.excerpt,
            trained,
            tested,
            tested_samples,
            scores.before,
            tuple(warnings),
            signs,
            scores.files,
            grades,
            tuple(dict.fromkeys([*findings, *noticed(data)])),
        )


def _compensated(robot: Robot, wanted: str | Sequence[str] | None) -> Robot:
    """The robot with compensators of unknown geometry at some joints."""
    if not wanted:
        return robot
    known = {one.joint for one in robot.compensators}
    new = [Compensator(k) for k in joint_numbers(robot, wanted) if k not in known]
    return replace(robot, compensators=(*robot.compensators, *new))


def _noise(fitted: FittedModel, source: SampleSource) -> NoiseByState | None:
    """Noise by state; of the same excerpt and nearly the same parameters it is found again."""
    near, record = near_model(fitted, source), fitted.training
    found: NoiseByState | None = source.of_excerpt(
        _noise_at, near.structure, near.values, record.ranges, record.conditioning
    )
    return found


def _noise_at(
    structure: TorqueModel,
    values: Float[Array, " p"],
    ranges: Ranges,
    conditioning: Conditioning,
    source: SampleSource,
) -> NoiseByState | None:
    record = TrainingRecord(ranges=ranges, conditioning=conditioning)
    return training_noise(FittedModel(structure, values, record), source.excerpt)


def _tested(
    fitted: FittedModel, holdout: Mapping[str, Sequence[Recording]], *, unsigned: bool
) -> tuple[tuple[Score, ...], tuple[Samples, ...]]:
    """Scores on recordings the model has not seen, and their samples."""
    scores: list[Score] = []
    kept: list[Samples] = []
    for name, others in holdout.items():
        if unsigned:
            others = [without_signs(recording) for recording in others]
        samples = condition_like(fitted, others, name=name)
        kept.append(samples)
        scores.append(in_detail(fitted, samples, score(fitted, samples, file=name)))
    return tuple(scores), tuple(kept)


def _provenance(
    robot: Robot, settings: FitSettings, sources: Mapping[str, Any] | None
) -> Provenance:
    return Provenance(
        taufit=taufit.__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        robot=robot.source or robot.name,
        settings=settings,
        sources=dict(sources or {}),
    )


def _opened(cache: Cache | File | None) -> AbstractContextManager[Cache | None]:
    """A cache that was given stays open for who gave it."""
    if cache is None or isinstance(cache, Cache):
        return nullcontext(cache)
    return open_cache(cache)
