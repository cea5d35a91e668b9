"""A joint that moves but whose samples cannot be used is not called still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.simulated_samples import simulated

from taufit.core.errors import PoorExcitationError
from taufit.fitting import fit as fit
from taufit.terms.friction import Linear


def test_unusable_and_still_are_told_apart():
    model, _, _, samples = simulated(Linear(), n=1500, noise=0.02)
    keep = samples.keep.copy()
    keep[:, 2] = False
    with pytest.raises(PoorExcitationError, match=r"joint 3 .* no sample of it can be used"):
        fit(model, replace(samples, keep=keep))
    position = samples.position.copy()
    position[:, 1] = np.mean(position[:, 1])
    with pytest.raises(PoorExcitationError, match=r"joint 2 .* does not move"):
        fit(model, replace(samples, position=position))
