"""Identification in one call: robot and recordings in, fitted model and scores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from taufit.core.compute.engines import Processes
from taufit.core.names import renamed_keywords
from taufit.core.threads import one_blas_thread
from taufit.recording import Finding, Recording
from taufit.recording.files import RecordingFiles, holdout_fraction
from taufit.robot import Robot
from taufit.workflow.fit_request import FitRequest, apply_choices
from taufit.workflow.identification import IdentificationResult
from taufit.workflow.inputs import File, Holdout, Recordings, parse_inputs
from taufit.workflow.steps import (
    adapt_structure,
    assess,
    build_structure,
    complete_record,
    diagnose,
    prepare,
    solve,
)

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.workflow.fit_choices import FitChoices


@renamed_keywords(
    map="column_map",
    effort="torque_kind",
    force="ignore_contradictions",
    watch="callback",
    slide_zero_std="prismatic_zero_std",
)
@one_blas_thread
def identify(
    robot: Robot | File,
    recordings: Recordings,
    *,
    holdout: Holdout = None,
    request: FitRequest | None = None,
    **choices: Unpack[FitChoices],
) -> IdentificationResult:
    """Fit a model to recordings of a robot and score it on others.

    Drives (side of the torque measurement, coupling, gains) come from the recordings; hold-out
    recordings are conditioned with the same low-pass and gains.

    Args:
        robot: Robot with its mounting; or the name of a bundled robot, or a file.
        recordings: Recordings of one robot, fitted together: recordings, files, pandas or polars
            frames. Files are processed one at a time, in memory independent of their number.
        holdout: Hold-out recordings, likewise or as a mapping from names; or a fraction such as
            "30%", the tail of every recording.
        request: All settings below as one object; single keywords replace its values.
        column_map: Column map of files and frames, as for `read_recording`.
        torque_kind: Meaning of the torque channel: "torque", "current", "torque_without_gravity" or
            "raw".
        friction: Friction model or its name, None, "auto", or a model with known friction (from
            `taufit friction`), whose shapes are kept and whose coefficients are the prior.
        estimator: Estimator, or its name, in place of the automatic one.
        cutoff_hz: Cut-off of the zero-phase low-pass on motion and torque [Hz], or "auto". Lower
            values remove noise and fast dynamics.
        terms: Further terms besides friction, or their names, e.g. "spring".
        rotor_inertia: Whether joints have a rotor inertia; by default if torque is measured at the
            motor.
        offset: Whether joints have a torque offset.
        torque_signs: "unknown" if only magnitudes of torque were recorded.
        sign_hints: Segments with known sign although it was not recorded.
        sign_method: "exact", or "tree" for the pruned tree search of the literature without proof
            of optimality, followed by its penalised least squares unless an estimator is given.
        temperature: Temperature law of friction: "none", "linear", "exponential", "arrhenius",
            "thermal-model" (estimated temperatures), or "auto".
        delay_s: Delay of torque behind motion [s], a tuple with one per joint, or "auto".
        compensator: Joints with a gravity compensator (spring, gas) of unknown geometry, by name or
            number.
        joint_zeros: Joints with an unknown zero offset, by name or number, or "all": the offset to
            add to recorded positions is estimated and stored in the model.
        joint_zero_std: Prior standard deviation of zero offsets of revolute joints [rad]. Larger
            values allow larger offsets.
        prismatic_zero_std: Prior standard deviation of zero offsets of prismatic joints [m].
        provenance: Description of the data sources for the model file.
        ignore_contradictions: Whether to fit although the recording contradicts the robot or has
            invalid numbers.
        allow_standing_joints: Whether joints that do not move make a poor model that names them,
            instead of an error.
        processes: Number of processes that share the files; None for one per processor. Results do
            not depend on it.
        cache: Folder for cached results on files, so that a later fit reads only new files
            (`open_cache()` is the user's); None for no cache.
        allow_repeats: Whether to count files with equal contents separately.
        callback: Function called after each pass over a file, about seven times per file.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done
        IdentificationResult(ur3e: ..., nrmse ... on 1 unseen recording)
          nrmse per joint: ...
          ... warning...; see .model, .warnings, .plot()
        >>> taufit.write_model(done.model, "model.json")
    """
    request = apply_choices(request, choices, "identify")
    files, holdout_recordings = parse_inputs(
        recordings, holdout, request.reader, allow_repeats=request.allow_repeats
    )
    if share := holdout_fraction(holdout):
        request = replace(
            request, provenance={"holdout_share": share, **(request.provenance or {})}
        )
    with Processes(request.processes) as engine, _open_cache_context(request.cache) as cache:

        def identify_files(
            request: FitRequest,
            files: Sequence[Recording] | RecordingFiles,
            holdout: Mapping[str, Sequence[Recording]],
            findings: tuple[Finding, ...],
        ) -> IdentificationResult:
            data = prepare(request, robot, files, engine, cache)
            data = replace(data, findings=(*data.findings, *findings))
            state = build_structure(request, data)
            state = diagnose(request, data, state)
            state = adapt_structure(request, state)
            fitted = solve(request, state)
            assessment = assess(request, state, fitted, holdout)
            return complete_record(request, data, state, fitted, assessment, cache)

        if len(files) == 1:
            return identify_files(request, files, holdout_recordings, ())
        from taufit.workflow.outlier_files import without_outlier_files

        return without_outlier_files(identify_files, request, files, holdout_recordings)


def _open_cache_context(cache: Cache | File | None) -> AbstractContextManager[Cache | None]:
    """Context of a cache; one opened by the caller stays open."""
    if cache is None:
        return nullcontext()
    from taufit.core.compute.cache import Cache, open_cache

    if isinstance(cache, Cache):
        return nullcontext(cache)
    return open_cache(cache)
