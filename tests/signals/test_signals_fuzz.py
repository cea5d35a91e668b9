"""Damaged recordings give finite samples or a clear refusal, never anything else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit import condition
from taufit.core.errors import TaufitError
from taufit.signals import quality_report


def _damaged(recording, rng):
    fields = {
        name: getattr(recording, name).copy() for name in ("time", "position", "velocity", "signal")
    }
    for _ in range(rng.integers(1, 4)):
        x = fields[rng.choice(list(fields))]
        if len(x) == 0:
            break
        hit = rng.integers(0, len(x), size=rng.integers(1, 60))
        kind = rng.integers(0, 6)
        if kind == 0:
            x[hit] = rng.choice([np.nan, np.inf, -1e293, 1e13])
        elif kind == 1 and x.ndim == 2:
            x[:, rng.integers(0, 6)] = rng.choice([np.nan, 0.0, 5.0, 1e11])
        elif kind == 2:
            rows = slice(0, int(rng.choice([0, 1, 6, 30, 400])))
            fields = {name: values[rows] for name, values in fields.items()}
        elif kind == 3:
            rows = rng.permutation(len(x))
            fields = {name: values[rows] for name, values in fields.items()}
        elif kind == 4:
            later = np.arange(len(fields["time"])) > len(fields["time"]) // 2
            fields["time"] = fields["time"] + later * rng.choice([-100.0, -0.05, 50.0, 1e7])
        else:
            times = int(rng.integers(2, 4))
            fields = {name: np.repeat(values, times, axis=0) for name, values in fields.items()}
    if rng.random() < 0.3:
        fields["velocity"] = None
    return replace(recording, **fields)


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_survived_or_refused(make_truth, seed):
    rng = np.random.default_rng(seed)
    recording = _damaged(make_truth(duration=8.0, rest=1.0).recorded(torque_noise=0.2), rng)
    assert all(str(finding) for finding in quality_report(recording))
    try:
        samples = condition(recording, cutoff_hz=rng.choice([5.0, 10.0]), trim=rng.random() < 0.7)
    except TaufitError as error:
        assert "simulated.csv" in str(error)
        return
    for values in (samples.position, samples.velocity, samples.acceleration, samples.torque):
        assert np.all(np.isfinite(values))
