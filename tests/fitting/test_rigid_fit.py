"""A model without friction can be fitted to torque with friction, and says what it lacks."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.core.errors import RecordingError
from taufit.sim import random_fourier


def test_links_alone_are_fitted_on_request():
    robot = taufit.read_robot("ur3e")
    run = taufit.Twin.typical(robot).run(random_fourier(robot, seed=5), seed=5).recording
    result = taufit.identify(robot, [run], friction="none")
    assert any("the model is without friction" in text for text in result.warnings)
    assert not any("coulomb" in name for name in result.model.names)
    # Its links carry gravity as those of the model with friction do.
    pose = np.array([0.1, -0.8, 0.9, 0.3, 0.5, 0.0])
    rest = np.zeros(6)
    torque = [model.torque(pose, rest, rest)
              for model in (result.model, taufit.identify(robot, [run]).model)]  # fmt: skip
    np.testing.assert_allclose(torque[0][1:3], torque[1][1:3], rtol=0.2)


def test_another_robot_is_still_refused_without_friction():
    _, (run,) = clean_runs("ur3e", 5, 1)
    turned = taufit.Recording(run.time, run.position, run.velocity,
                              -run.signal, signal_unit="N m")  # fmt: skip
    with pytest.raises(RecordingError):
        taufit.identify(taufit.read_robot("ur3e"), [turned], friction="none")
