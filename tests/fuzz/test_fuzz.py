"""A slice of `make fuzz`: no tracebacks, hangs, crashes or temporaries; exit codes as promised."""

from __future__ import annotations

import pytest
from tests.fuzz.harness import fuzz, schedule, show
from tests.fuzz.names import fuzz_names


def test_a_slice_of_the_fuzzing_holds():
    for library in ("mujoco", "h5py", "rosbags"):
        pytest.importorskip(library)
    slow = ("motion", "options", "effects")
    cases = [case for case in schedule(350, seed=7) if case[0] not in slow]
    counts, failures = fuzz(cases, jobs=2)
    show(counts, failures)
    assert failures == []
    assert sum(sum(of.values()) for of in counts.values()) == len(cases)


def test_a_slice_of_hostile_names_gets_into_no_text():
    for library in ("mujoco", "pinocchio"):
        pytest.importorskip(library)
    counts, failures = fuzz_names(40, seed=7_000_000, every=20)
    assert failures == []
    assert counts["written"] > 20


def test_cases_that_once_failed():
    """An empty pair in an effects file; a check in which no joint has both motion and torque."""
    cases = [("effects", 515151014593), ("traps", 515151014981)]
    _, failures = fuzz(cases, jobs=1)
    assert not failures, "\n".join(map(str, failures))
