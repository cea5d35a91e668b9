"""Somebody else at the controller while `taufit record` asks and plays; every step is looked at."""

from __future__ import annotations

import pytest
from benchmarks.robustness.second_client import tries

from taufit.cli import record
from taufit.wire import ur_player


def test_the_arm_never_leaves_its_limits_touches_or_starts_elsewhere():
    # 500 of them: python -m benchmarks.robustness second.
    endings, faults = tries(range(9))
    assert faults == []
    assert endings["played"] > 0 and endings["stopped"] > 0 and endings["refused"] > 0


def test_without_the_looks_before_the_start_the_same_tries_find_faults(monkeypatch):
    monkeypatch.setattr(record, "_MAX_DISPLACEMENT", 99.0)
    monkeypatch.setattr(ur_player, "_MAX_START_ERROR", 99.0)
    monkeypatch.setattr(ur_player, "_MAX_START_SPEED", 99.0)
    for seed in range(40):
        _, faults = tries(range(seed, seed + 1))
        if any("not shown" in text for text in faults):
            return
    pytest.fail("nothing was found where nothing was looked at")
