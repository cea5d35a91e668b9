"""Recovery of torque signs that were not recorded, before the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.errors import RecordingError, TaufitError
from taufit.estimators import Estimator
from taufit.fitting.friction_prior import FrictionPrior
from taufit.model.torque_model import TorqueModel
from taufit.regression.estimate import Estimate
from taufit.signals.sample_source import SampleSource
from taufit.signs.tree import nominal_bounds
from taufit.signs.unknown_signs import (
    RecoveredSigns,
    SignHint,
    find_signs,
    find_signs_by_tree,
    fit_signed,
)


def recover_signs(
    model: TorqueModel,
    source: SampleSource,
    hints: Sequence[SignHint],
    method: str = "exact",
) -> RecoveredSigns:
    """Recover the torque signs of samples recorded without them."""
    signed = source.head.signed
    if signed is None or np.all(signed):
        raise RecordingError(
            "signs of single segments were given, but the torque carries its sign everywhere. "
            "Leave them out, or say that signs are unknown (--torque-signs unknown)."
        )
    # The search needs all samples in memory.
    samples = source.gather_limited("the search for torque signs")
    if method != "tree":
        return find_signs(model, samples, hints=hints)
    if hints:
        raise TaufitError(
            "the tree search takes no signs of single segments: leave them out, or use the "
            "exact method."
        )
    return find_signs_by_tree(model, samples, bounds=nominal_bounds(model))


def fit_with_signs(
    model: TorqueModel,
    signs: RecoveredSigns,
    estimator: Estimator | None,
    dropped: tuple[str, ...],
    expected: FrictionPrior | None,
) -> Estimate:
    """Fit torque with recovered signs."""
    try:
        return fit_signed(model, signs, estimator, dropped=dropped, friction_prior=expected)
    except RecordingError as error:
        # Uncertain signs are the likely reason of a failed fit.
        raise RecordingError("\n".join([str(error), *signs.warnings])) from None
