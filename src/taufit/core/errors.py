"""Exceptions with messages for users: value found, value expected, remedy."""

from __future__ import annotations


class TaufitError(Exception):
    """Wrong input or rejected result. The command line exits with code 3 or 1."""


class RobotError(TaufitError):
    """Unusable robot description."""


class RecordingError(TaufitError):
    """Recording that cannot be read or is not plausible.

    Attributes:
        file: Name of the only file with the problem; None if it is not one of several files.
    """

    file: str | None = None


class PoorExcitationError(TaufitError):
    """Requested parameters that are not identifiable from the motion."""


class InfeasibleError(TaufitError):
    """Limits, bounds or parameters that cannot be met or are not physically consistent."""


class MissingExtraError(TaufitError):
    """Missing optional library; the message names the extra that installs it."""


class WireError(TaufitError):
    """Controller that cannot be reached or violates its protocol."""


class MissingInputError(TaufitError):
    """Missing input of a friction model."""
