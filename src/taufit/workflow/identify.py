"""The whole way in one call: robot and recordings in, a fitted model and its scores out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Unpack

from taufit.core.compute.cache import Cache, open_cache
from taufit.core.compute.engines import Processes
from taufit.core.names import renamed_keywords
from taufit.core.threads import one_blas_thread
from taufit.robot import Robot
from taufit.workflow.fit_request import FitChoices, FitRequest
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


@renamed_keywords(
    map="column_map", effort="torque_kind", force="ignore_contradictions", watch="callback"
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

    Drives (where torque was measured, coupled motors, torque per ampere) come from the recordings;
    hold-out recordings are conditioned with the same low-pass and the same gains.

    Args:
        robot: The arm, with its mounting; or a bundled name or a file.
        recordings: Of one robot, fitted together: recordings, files, pandas or polars frames. Files
            are gone through one at a time, in memory that does not grow with their number.
        holdout: Recordings kept out, likewise or by the name they are to be called; or a share
            such as "30%", the last part of every recording.
        request: The choices below as one object; single ones replace its own.
        column_map: What the columns of files and frames are, as `read_recording` takes it.
        torque_kind: What their torque channel is: "torque", "current", "torque_without_gravity" or
            "raw".
        friction: A friction model or its name, None, "auto", or a model whose friction is known
            (from `taufit friction`): its shapes are kept and its coefficients expected.
        estimator: Replaces the automatic one; an estimator or its name.
        cutoff_hz: Of the low-pass on motion and torque alike, or "auto".
        terms: Further terms beside friction, or their names, e.g. "spring".
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
        ignore_contradictions: Fit although the recording contradicts the robot or holds impossible
            numbers.
        processes: That share the files; None for one per processor. Results do not depend on it.
        cache: Folder in which results on files are kept, so that a fit to more files reads only
            the new ones (`open_cache()` is this user's own); None keeps nothing.
        allow_repeats: Count files with equal contents as often as they are there.
        callback: Called whenever a file has been gone through, about seven times for each.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done
        Identification(ur3e: good, nrmse ... on 1 unseen recording(s))
        >>> taufit.write_model(done.model, "model.json")
    """
    request = replace(request or FitRequest(), **choices)
    files, holdout_recordings = parse_inputs(
        recordings, holdout, request.reader, allow_repeats=request.allow_repeats
    )
    with Processes(request.processes) as engine, _open_cache_context(request.cache) as cache:
        data = prepare(request, robot, files, engine, cache)
        state = build_structure(request, data)
        state = diagnose(request, data, state)
        state = adapt_structure(request, state)
        fitted = solve(request, state)
        assessment = assess(request, state, fitted, holdout_recordings)
        return complete_record(request, data, state, fitted, assessment, cache)


def _open_cache_context(cache: Cache | File | None) -> AbstractContextManager[Cache | None]:
    """A cache that was given stays open for its owner."""
    if cache is None or isinstance(cache, Cache):
        return nullcontext(cache)
    return open_cache(cache)
