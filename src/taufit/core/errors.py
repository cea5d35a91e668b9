"""What can go wrong, in the user's words: what was found, what was expected, what to do next."""

from __future__ import annotations


class TaufitError(Exception):
    """The user's input is wrong or a result is refused. The command line exits with code 1."""


class RobotError(TaufitError):
    """A robot description cannot be used."""


class RecordingError(TaufitError):
    """A recording cannot be read or makes no sense."""


class PoorExcitationError(TaufitError):
    """Parameters that were asked for are not identifiable from the motion."""


class InfeasibleError(TaufitError):
    """Limits, bounds or parameters that cannot be met, or are not physically possible."""


class MissingExtraError(TaufitError):
    """An optional library is not installed; the message names the extra that brings it."""


class WireError(TaufitError):
    """A controller cannot be reached, or sends what its protocol does not allow."""


class MissingInputError(TaufitError):
    """A friction model needs an input that is not known where it is used."""
