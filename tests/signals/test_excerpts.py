"""Excerpts of parts: fewer samples of a longer excerpt are those of the part itself."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.signals.sample_source import middle_samples


@pytest.mark.parametrize("length", [1, 5, 700, 2048, 7625])
@pytest.mark.parametrize("middle", [0, 3, 350, 1023, 7600])
def test_the_middle_of_an_excerpt_is_that_of_the_part(length, middle):
    part = np.arange(length)
    middle = min(middle, length - 1)
    for count in (1, 2, 5, 333, 1250, 2047, 2048, 2049, 9000):
        direct = part[middle_samples(length, middle, count)]
        assert len(direct) == min(count, length)
        assert direct[0] <= middle <= direct[-1]
        for excerpt in (count, 2 * count + 1, 4096, 8192, 16384):
            if excerpt >= count:
                longer = part[middle_samples(length, middle, excerpt)]
                cut = longer[middle_samples(length, middle, count, excerpt)]
                assert np.array_equal(cut, direct), (count, excerpt)
