"""Former place of `taufit.core.errors`; this name works until 0.3."""

import warnings

from taufit.core.errors import *  # noqa: F403

warnings.warn("taufit.errors is now taufit.core.errors.", DeprecationWarning, stacklevel=2)
