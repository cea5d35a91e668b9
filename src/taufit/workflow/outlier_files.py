"""Files that cannot be used in a fit of several: the fit goes on without them and names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from taufit.core.errors import RecordingError
from taufit.recording import Finding, Recording
from taufit.recording.files import HoldoutFiles, RecordingFiles
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.identification import IdentificationResult

# At most one of so many files is left out; with fewer, or more bad ones, the error is raised.
_FILES_PER_OUTLIER = 3

Files = Sequence[Recording] | RecordingFiles
HoldoutRecordings = Mapping[str, Sequence[Recording]]


@runtime_checkable
class IdentifyFiles(Protocol):
    """Identification from files, with findings to be added to its result."""

    def __call__(
        self,
        request: FitRequest,
        files: Files,
        holdout: HoldoutRecordings,
        findings: tuple[Finding, ...],
        /,
    ) -> IdentificationResult: ...


def without_outlier_files(
    identify: IdentifyFiles, request: FitRequest, files: Files, holdout: HoldoutRecordings
) -> IdentificationResult:
    """Identify from all files; a file that alone is refused is left out, with a warning.

    Raises:
        RecordingError: The first one, if more than one of three files would be left out.
    """
    names = [path.name for path in files.paths] if isinstance(files, RecordingFiles) else []
    findings: list[Finding] = []
    first_error: RecordingError | None = None
    while True:
        try:
            return identify(request, files, holdout, tuple(findings))
        except RecordingError as error:
            first_error = first_error or error
            may_leave_out = (len(findings) + 1) * _FILES_PER_OUTLIER <= len(names)
            if names.count(error.file or "") != 1 or not may_leave_out:
                raise first_error from None
            assert error.file is not None and isinstance(files, RecordingFiles)
            findings.append(_left_out_finding(error.file, str(error)))
            files, holdout = files.without(error.file), _without_tail(files, holdout, error.file)
            left_out = [finding.file for finding in findings]
            request = replace(
                request, provenance={**(request.provenance or {}), "left_out": left_out}
            )


def _without_tail(
    files: RecordingFiles, holdout: HoldoutRecordings, name: str
) -> HoldoutRecordings:
    """Hold-out recordings without the tail of a file; further hold-out files stay."""
    if not getattr(files.read, "share", 0.0) or not isinstance(holdout, HoldoutFiles):
        return holdout
    return HoldoutFiles({key: read for key, read in holdout.readers.items() if key != name})


def _left_out_finding(name: str, reason: str) -> Finding:
    reason = reason.splitlines()[0].removeprefix(f"{name}: ").rstrip(".")
    return Finding(
        "file_left_out", "warning", f"{name} was left out of the fit: {reason}", file=name
    )
