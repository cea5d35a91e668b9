"""Steps of an identification: prepare, build_structure, diagnose, adapt_structure, solve, assess,
complete_record.

Each takes the request and the results of earlier steps: `TrainingData`, then a `FitState` extended
by each step, a `Fit`, an `Assessment`, and finally the `IdentificationResult`.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import taufit
from taufit.contact.regime_noise import training_noise
from taufit.core.arrays import Array, Float
from taufit.core.compute.engines import Processes
from taufit.core.dataclasses import dataclass
from taufit.diagnosis import CHANNEL_KINDS, Cause, raise_on_contradiction, sample_causes
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.other_robots import similar_robot_findings
from taufit.diagnosis.undescribed_load import (
    chain_end_finding,
    load_finding,
    missing_links_finding,
    with_load,
)
from taufit.estimators import Estimator
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting.data_sufficiency import (
    DataAmount,
    require_sufficient_data,
    standing_joint_findings,
)
from taufit.fitting.fit import fit
from taufit.fitting.selection.ripple import with_ripple
from taufit.fitting.unidirectional_joints import unidirectional_findings
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import residuals_by_state
from taufit.model.noise_by_state import NoiseByState
from taufit.model.score import Score
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    Conditioning,
    FitSettings,
    GravityTilt,
    Provenance,
    Ranges,
    TrainingRecord,
)
from taufit.recording import Finding, Recording
from taufit.recording.files import RecordingFiles
from taufit.regression import Estimate
from taufit.regression.residual_structure import residual_structure
from taufit.regression.result_reuse import reusable_model, reusable_tilt
from taufit.regression.simple_terms import simple_terms
from taufit.robot import Robot, read_robot
from taufit.signals import Samples
from taufit.signals.sample_source import SamplesInMemory, SampleSource
from taufit.terms import term_to_dict
from taufit.validation.grades import (
    Grades,
    RecordingEvidence,
    grade,
    nominal_rmse_findings,
    recording_evidence,
    unmeasured_findings,
)
from taufit.validation.score import short_name
from taufit.validation.score_breakdown import score_breakdown
from taufit.validation.score_sums import TrainingScores, outlier_file_findings, training_scores
from taufit.workflow.file_cache import mounting_from_recordings
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.identification import IdentificationResult
from taufit.workflow.inputs import File
from taufit.workflow.training_data import TrainingData, training_data

if TYPE_CHECKING:
    from taufit.calibration.joint_zeros import JointZeros
    from taufit.core.compute.cache import Cache
    from taufit.signs.unknown_signs import RecoveredSigns
    from taufit.temperature.law_by_parts import TemperatureLawFit


@dataclass(frozen=True, slots=True, eq=False)
class FitState:
    """Model to fit, with the results of the steps so far.

    Attributes:
        robot: Nominal robot with drives, compensators and joint zero offsets.
        model: Terms to fit.
        source: Training samples.
        zeros: Joint zero offsets, if requested.
        findings: Findings on the recordings, by kind and joint.
        evidence: Hypothesis test of the nominal robot on the excerpt; None if that is empty.
        signs: Recovered torque signs, if they were not recorded.
        temperature_fit: Temperature law of friction; None if temperatures are not used.
        dropped: Parameters without support by the data.
        load: Parameters of the initial load of load-dependent friction.
        tilt: Tilt of the base, included in the model's mounting; None for the declared one.
    """

    robot: Robot
    model: TorqueModel
    source: SampleSource
    zeros: JointZeros | None = None
    findings: tuple[Finding, ...] = ()
    evidence: HypothesisTest | None = None
    signs: RecoveredSigns | None = None
    temperature_fit: TemperatureLawFit | None = None
    dropped: tuple[str, ...] = ()
    load: Any = None
    tilt: GravityTilt | None = None

    @property
    def unsigned(self) -> bool:
        """Whether torque signs were recovered."""
        return self.signs is not None

    @property
    def is_linear(self) -> bool:
        """Whether short motion has linear friction, at all joints."""
        return any(x.kind == "linear_friction" and x.joint is None for x in self.findings)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Fitted model, estimate, and requested estimator (None: automatic)."""

    model: FittedModel
    estimate: Estimate
    estimator: Estimator | None


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """Scores and grades of a fitted model.

    Attributes:
        model: Fitted model with noise and residuals of its training.
        scores: Scores on the training data, file by file, and of the nominal robot.
        training_score: Detailed score on all training data.
        holdout_scores, holdout_samples: Scores on hold-out recordings, and samples for plots.
        grades: Grades of the model.
        findings: Findings on recordings and fit.
    """

    model: FittedModel
    scores: TrainingScores
    training_score: Score
    holdout_scores: tuple[Score, ...]
    holdout_samples: tuple[Samples, ...]
    grades: Grades
    findings: tuple[Finding, ...]


def prepare(
    request: FitRequest,
    robot: Robot | File,
    recordings: Sequence[Recording] | RecordingFiles,
    engine: Processes,
    cache: Cache | None,
) -> TrainingData:
    """Condition the recordings, with the drives that they describe."""
    if not isinstance(robot, Robot):
        robot = read_robot(robot, mounting=mounting_from_recordings(recordings, cache))
    engine.start_early(training_data)
    return training_data(request, robot, recordings, engine=engine, cache=cache)


def build_structure(request: FitRequest, data: TrainingData) -> FitState:
    """Requested model with joint zero offsets; raises for insufficient data."""
    robot, source = _with_compensators(data.robot, request.compensator), data.source
    model = model_from_request(request, robot)
    require_sufficient_data(
        model,
        source,
        with_prior=request.fixed_estimator is None,
        allow_standing_joints=request.allows_standing_joints,
        allow_short_motion=request.ignore_contradictions,
    )
    if not request.joint_zeros:
        return FitState(robot, model, source)
    from taufit.calibration.joint_zeros import estimate_requested_zeros
    from taufit.calibration.zero_search import with_zeros

    std = request.joint_zero_std, request.prismatic_zero_std
    zeros = estimate_requested_zeros(model, source, request.joint_zeros, *std)
    zeroed_robot = robot.with_joint_zeros(zeros.values)
    return FitState(zeroed_robot, with_zeros(model, zeros.values), source, zeros)


def model_from_request(request: FitRequest, robot: Robot) -> TorqueModel:
    """Requested terms, before selection by the data."""
    friction = request.friction
    model = automatic_model(
        robot,
        friction=friction.friction_model if isinstance(friction, FittedModel) else friction,
        rotor_inertia=request.rotor_inertia,
        offset=request.offset,
        terms=request.terms,
    )
    if not isinstance(friction, FittedModel):
        return model
    from taufit.fitting.friction_prior import with_friction_of_test

    return with_friction_of_test(model, friction)


def _channel_findings(data: TrainingData) -> list[Finding]:
    """Findings of the readers on channels."""
    return [f for r in data.recordings for f in r.findings if f.kind in CHANNEL_KINDS]


def diagnose(request: FitRequest, data: TrainingData, state: FitState) -> FitState:
    """Diagnose the recordings; raises if they contradict the robot.

    An undescribed load becomes part of the last link's prior.
    """
    robot, source, excerpt = state.robot, state.source, state.source.excerpt
    channels = _channel_findings(data)
    evidence = HypothesisTest(robot, excerpt) if len(excerpt) else None
    channel_causes = [Cause(finding) for finding in channels]
    causes = sample_causes(robot, data.recordings, excerpt, channel_causes, evidence, source)
    causes = _causes_beside_terms(request, causes)
    raise_on_contradiction(causes, request.ignore_contradictions)
    findings = [*channels, *(cause.finding for cause in causes), *data.findings]
    load = _find_undescribed_load(data, evidence, findings)
    findings += unidirectional_findings(excerpt) + load
    if not any(finding.kind == "wrong_arm" for finding in findings):
        findings += similar_robot_findings(robot, data.recordings)
    findings += standing_joint_findings(state.model, source)
    model = state.model
    has_load = any(finding.kind == "undescribed_load" for finding in load)
    if has_load and evidence is not None and request.fixed_estimator is None:
        model = replace(model, robot=with_load(model.robot, evidence))
    return replace(state, model=model, findings=tuple(findings), evidence=evidence)


def _causes_beside_terms(request: FitRequest, causes: Sequence[Cause]) -> list[Cause]:
    """Causes without those that a declared term explains as well.

    The nominal robot has none of the declared terms, so what it leaves says nothing about it.
    """
    if not request.terms:
        return list(causes)
    return [c for c in causes if c.finding.kind != "wrong_arm" or c.correction is not None]


def adapt_structure(request: FitRequest, state: FitState) -> FitState:
    """Determine torque signs, temperature law, friction terms, tilt and ripple from the data."""
    signs, source = _recover_signs(request, state)
    model = state.model
    dropped: tuple[str, ...] = ()
    temperature_fit = None if signs is not None else _fit_temperature_law(request, state)
    if temperature_fit is not None:
        model, source = temperature_fit.model, temperature_fit.source
        dropped = tuple(name for name in temperature_fit.dropped if name in model.names)
    state = replace(
        state,
        model=model,
        source=source,
        signs=signs,
        temperature_fit=temperature_fit,
        dropped=dropped,
    )
    if request.selects_terms:
        state = _select_friction(request, state)
    if state.is_linear:
        # What is too short for the automatic friction terms is too short for tilt and ripple.
        return state
    if _may_tilt(request, state):
        state = _estimate_tilt(state)
    return _select_ripple(state) if request.selects_terms else state


def _may_tilt(request: FitRequest, state: FitState) -> bool:
    """Whether the tilt of the base is a parameter of this fit: not on short data.

    There it would stand in for noise, and the load of its search for the measured one.
    """
    has_prior = isinstance(request.friction, FittedModel)
    is_short = DataAmount.from_samples(state.model, state.source).prior_dependence > 0.0
    return not (state.unsigned or request.fixed_estimator or has_prior or is_short)


def _select_friction(request: FitRequest, state: FitState) -> FitState:
    """State with linear friction or a pre-sliding width where the data ask for it."""
    if state.temperature_fit is not None and state.temperature_fit.law != "none":
        from taufit.fitting.selection.presliding_width import with_fitted_width

        # Temperature effects are small and would be masked by wrong pre-sliding widths.
        return replace(state, model=with_fitted_width(state.model, state.source))
    amount = DataAmount.from_samples(state.model, state.source)
    if state.signs is not None or not amount.is_small:
        return state
    from taufit.fitting.selection.linear_friction import with_linear_friction

    model, dropped, findings = with_linear_friction(state.model, state.source)
    if model is not state.model and _may_tilt(request, state):
        tilted = _estimate_tilt(state)
        if tilted.tilt is not None and tilted.tilt.halves_agree:
            # The automatic terms take up the gravity of a wrong mounting: compare without it.
            changed, dropped, findings = with_linear_friction(tilted.model, state.source)
            model = state.model if changed is tilted.model else model
    return replace(
        state,
        model=model,
        dropped=(*state.dropped, *dropped),
        findings=(*state.findings, *findings),
    )


def _estimate_tilt(state: FitState) -> FitState:
    """State with the tilt of the base, and the load of its search."""
    from taufit.fitting.gravity_tilt import tilt_findings, with_tilt_of_excerpt

    model, tilt, load = state.source.compute_on_excerpt(
        with_tilt_of_excerpt, state.model, state.dropped
    )
    if tilt is not None:
        tilt = reusable_tilt(state.model, state.source, tilt)
        model = replace(model, robot=tilt.apply(state.model.robot))
    findings = (*state.findings, *tilt_findings(tilt))
    return replace(state, model=model, tilt=tilt, load=load, findings=findings)


def _select_ripple(state: FitState) -> FitState:
    """State with ripple where the data support it."""
    model, source = state.model, state.source
    if DataAmount.from_samples(model, source).prior_dependence > 0.0:
        return state
    ripple = source.compute_on_excerpt(with_ripple, model, state.load)
    dropped = (*state.dropped, *ripple.dropped)
    return replace(state, model=ripple.model, load=ripple.load, dropped=dropped)


def solve(request: FitRequest, state: FitState) -> Fit:
    """Estimate the parameters of the model."""
    friction_prior, estimator = None, request.fixed_estimator
    if isinstance(request.friction, FittedModel):
        from taufit.fitting.friction_prior import FrictionPrior

        friction_prior = FrictionPrior.from_model(request.friction)
    if state.signs is not None:
        from taufit.workflow.sign_recovery import fit_with_signs

        if request.sign_method == "tree" and estimator is None:
            from taufit.estimators import Pbpr

            estimator = Pbpr(weighting="none")
        estimate = fit_with_signs(
            state.model, state.signs, estimator, state.dropped, friction_prior
        )
    else:
        estimate = fit(
            state.model,
            state.source,
            estimator,
            dropped=state.dropped,
            load=state.load,
            friction_prior=friction_prior,
            ignore_contradictions=request.ignore_contradictions,
            allow_standing_joints=request.allows_standing_joints,
        )
    thermal = None if state.temperature_fit is None else state.temperature_fit.thermal
    fitted = fitted_model(state.model, estimate, state.source, thermal=thermal, tilt=state.tilt)
    return Fit(fitted, estimate, estimator)


def assess(
    request: FitRequest,
    state: FitState,
    fitted: Fit,
    holdout: Mapping[str, Sequence[Recording]],
) -> Assessment:
    """Scores on training data and hold-out recordings, and grades."""
    source, robot = state.source, state.robot
    scores = training_scores(fitted.model, robot, source)
    model = _with_residuals(fitted.model, state, scores)
    training_score = score_breakdown(model, source.excerpt, scores.overall)
    holdout_scores: tuple[Score, ...] = ()
    facts: tuple[RecordingEvidence, ...] = ()
    samples: tuple[Samples, ...] = ()
    if holdout:
        from taufit.workflow.holdout import score_holdout

        holdout_scores, facts, samples = score_holdout(model, state.robot, state.unsigned, holdout)
    nominal = None if scores.nominal_comparison is None else scores.nominal_comparison.nominal.rmse
    outliers = outlier_file_findings(scores.files)
    raise_on_contradiction([Cause(finding) for finding in outliers], request.ignore_contradictions)
    judged_scores = holdout_scores or (training_score,)
    findings = (
        *state.findings,
        *nominal_rmse_findings(training_score.rmse, nominal, training_score.measured),
        *outliers,
        *unmeasured_findings(judged_scores),
    )
    grades = grade(
        judged_scores,
        facts or (recording_evidence(robot, source.excerpt, training_score),),
        on_holdout=bool(holdout_scores),
        findings=findings,
        training=training_score,
    )
    return Assessment(model, scores, training_score, holdout_scores, samples, grades, findings)


def complete_record(
    request: FitRequest,
    data: TrainingData,
    state: FitState,
    fitted: Fit,
    assessment: Assessment,
    cache: Cache | None,
) -> IdentificationResult:
    """Result with the complete training record of the model."""
    source, zeros, estimate = state.source, state.zeros, fitted.estimate
    warnings = _collect_warnings(data, state, estimate, assessment, cache)
    model = assessment.model
    record = replace(
        model.training,
        score=replace(assessment.training_score, findings=()),
        accuracy=assessment.grades.accuracy,
        residuals=residual_structure(model, source),
        simple_terms=simple_terms(model, source),
        joint_zero_std=None if zeros is None else zeros.std,
        hidden_zeros=() if zeros is None else zeros.unidentifiable_joints(state.robot),
        provenance=_make_provenance(request, state, fitted),
        warnings=warnings,
        contradictions=tuple(f.message for f in assessment.findings if f.severity == "error"),
    )
    return IdentificationResult(
        model.with_training(record),
        estimate,
        source.gather() if source.excerpt_is_all else source.excerpt,
        assessment.training_score,
        assessment.holdout_scores,
        assessment.holdout_samples,
        assessment.scores.nominal_comparison,
        warnings,
        state.signs,
        assessment.scores.files,
        assessment.grades,
        tuple(dict.fromkeys([*assessment.findings, *data.reader_findings])),
    )


def _with_compensators(robot: Robot, joints: str | Sequence[str] | None) -> Robot:
    """Robot with compensators of unknown geometry at some joints."""
    if not joints:
        return robot
    from taufit.calibration.joint_zeros import joint_numbers
    from taufit.robot import Compensator

    compensated = {compensator.joint for compensator in robot.compensators}
    additional = [Compensator(k) for k in joint_numbers(robot, joints) if k not in compensated]
    return replace(robot, compensators=(*robot.compensators, *additional))


def _find_undescribed_load(
    data: TrainingData, evidence: HypothesisTest | None, findings: Sequence[Finding]
) -> list[Finding]:
    """Findings on an undescribed load, missing links and the end of the description.

    Empty if a fault makes them unreliable.
    """
    has_fault = any(f.severity == "error" or f.kind == "gains_unknown" for f in findings)
    if evidence is None or has_fault or not _can_show_load(data):
        return []
    load = load_finding(evidence) or missing_links_finding(evidence)
    return [f for f in (load, chain_end_finding(data.robot)) if f is not None]


def _can_show_load(data: TrainingData) -> bool:
    """Whether torque is signed, links are described and no payload was declared."""
    has_payload = any(recording.payload for recording in data.recordings)
    is_described = bool(np.any(data.robot.parameters))
    return is_described and not has_payload and not _has_unsigned_torque(data.source)


def _has_unsigned_torque(source: SampleSource) -> bool:
    """Whether torque of some joint was recorded without its sign."""
    signed = source.head.signed
    return signed is not None and not np.all(signed)


def _recover_signs(
    request: FitRequest, state: FitState
) -> tuple[RecoveredSigns | None, SampleSource]:
    """Torque signs if they were not recorded, and samples with signs."""
    if not _has_unsigned_torque(state.source) and not request.sign_hints:
        return None, state.source
    from taufit.workflow.sign_recovery import recover_signs

    signs = recover_signs(state.model, state.source, request.sign_hints, request.sign_method)
    return signs, SamplesInMemory(signs.fit_samples)


def _fit_temperature_law(request: FitRequest, state: FitState) -> TemperatureLawFit | None:
    """Temperature law that the samples support; None if none was requested or recorded."""
    has_temperature = state.source.head.temperature is not None
    if request.temperature == "none" or (request.temperature == "auto" and not has_temperature):
        return None
    from taufit.temperature.law_by_parts import with_temperature_law_by_parts

    return with_temperature_law_by_parts(state.model, state.source, request.temperature)


def _with_residuals(model: FittedModel, state: FitState, scores: TrainingScores) -> FittedModel:
    """Model with noise and residuals of its training data."""
    by_state = residuals_by_state(model, state.source.excerpt)
    return model.with_training(
        replace(
            model.training,
            score=replace(scores.overall, findings=()),
            noise=None if state.unsigned else _reusable_noise(model, state.source),
            residuals=replace(model.training.residuals, by_state=by_state),
        )
    )


def _reusable_noise(fitted: FittedModel, source: SampleSource) -> NoiseByState | None:
    """Noise by state; cached for equal excerpts and nearly equal parameters."""
    reusable, record = reusable_model(fitted, source), fitted.training
    noise: NoiseByState | None = source.compute_on_excerpt(
        _estimate_noise, reusable.structure, reusable.values, record.ranges, record.conditioning
    )
    return noise


def _estimate_noise(
    structure: TorqueModel,
    values: Float[Array, " p"],
    ranges: Ranges,
    conditioning: Conditioning,
    source: SampleSource,
) -> NoiseByState | None:
    record = TrainingRecord(ranges=ranges, conditioning=conditioning)
    return training_noise(FittedModel(structure, values, record), source.excerpt)


def _collect_warnings(
    data: TrainingData,
    state: FitState,
    estimate: Estimate,
    assessment: Assessment,
    cache: Cache | None,
) -> tuple[str, ...]:
    """Warnings, each once, in the order of the steps."""
    messages = [finding.message for finding in assessment.findings]
    messages += [
        *(state.temperature_fit.findings if state.temperature_fit else ()),
        *estimate.warnings,
    ]
    if state.zeros is not None:
        messages += state.zeros.warnings(state.robot)
    messages += [
        f"{short_name(s.file)}: {text}" for s in assessment.holdout_scores for text in s.findings
    ]
    messages += data.warnings
    if cache is not None and cache.warning:
        messages.append(cache.warning)
    return tuple(dict.fromkeys(messages))


def _make_provenance(request: FitRequest, state: FitState, fitted: Fit) -> Provenance:
    estimator, source, robot = fitted.estimator, state.source, state.robot
    settings = FitSettings(
        friction=term_to_dict(state.model.friction),
        estimator="automatic" if estimator is None else type(estimator).__name__,
        estimator_settings=dict(fitted.estimate.settings),
        dropped=tuple(fitted.estimate.dropped),
        cutoff_hz=float(source.cutoff_hz),
        cutoff_reason=source.head.reason,
        torque_signs="unknown" if state.unsigned else request.torque_signs,
        temperature="none" if state.temperature_fit is None else state.temperature_fit.law,
    )
    return Provenance(
        taufit=taufit.__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        robot=robot.source or robot.name,
        settings=settings,
        sources=dict(request.provenance or {}),
    )
