"""A slice of `make fuzz`: no tracebacks, hangs, crashes or temporaries; exit codes as promised."""

from __future__ import annotations

import pytest
from tests.fuzz.harness import fuzz, schedule, show


def test_a_slice_of_the_fuzzing_holds():
    for library in ("mujoco", "h5py", "rosbags"):
        pytest.importorskip(library)
    cases = [case for case in schedule(400, seed=7) if case[0] not in ("motion", "options")]
    counts, failures = fuzz(cases, jobs=2)
    show(counts, failures)
    assert failures == []
    assert sum(sum(of.values()) for of in counts.values()) == len(cases)
