"""Former place of `taufit.terms.friction`; this name works until 0.3."""

import warnings

from taufit.terms.friction import *  # noqa: F403

warnings.warn("taufit.friction is now taufit.terms.friction.", DeprecationWarning, stacklevel=2)
