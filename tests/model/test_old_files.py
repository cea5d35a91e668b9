"""A model file of version 0.1 says today what it said then.

`model_0_1.json` was written by taufit 0.1; `model_0_1_expected.json` holds what that version
predicted with it, and what its payload filter took from it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from taufit.model import read_model, write_model
from taufit.payload import PayloadSettings
from taufit.payload.filter.nuisance_model import base_parameter_prior, residual_noise

HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=["as written", "written again"])
def model(request, tmp_path_factory):
    old = read_model(HERE / "model_0_1.json")
    if request.param == "as written":
        return old
    again = tmp_path_factory.mktemp("again") / "model.json"
    write_model(old, again)
    return read_model(again)


@pytest.fixture(scope="module")
def expected():
    return {
        key: np.array(value)
        for key, value in json.loads((HERE / "model_0_1_expected.json").read_text()).items()
    }


def test_it_predicts_the_same_torque(model, expected):
    motion = (expected[name] for name in ("position", "velocity", "acceleration"))
    torque = model.torque(*motion, temperature=expected["temperature"])
    np.testing.assert_allclose(torque, expected["torque"], rtol=1e-13)


def test_it_knows_its_noise_and_its_errors(model, expected):
    noise, _ = residual_noise(model, PayloadSettings())
    np.testing.assert_allclose(noise, expected["noise"], rtol=1e-13)
    _, errors, _, known = base_parameter_prior(model)
    assert known
    np.testing.assert_allclose(
        np.diag(errors.information), expected["information_diagonal"], rtol=1e-12
    )


def test_its_record_is_typed(model):
    record = model.training
    assert record.conditioning.rate_hz == 50.0 and record.conditioning.cutoff_hz == 10.0
    assert record.residuals.correlation_s == pytest.approx(3.1692877050767376 / 50.0)
    assert record.ranges.temperature is not None and np.all(record.ranges.temperature.low > 15.0)
    assert record.base is not None and record.base.names[0] in model.names
    assert record.provenance is not None and record.provenance.taufit == "0.1.0"
    assert record.provenance.settings.estimator == "automatic"
    assert record.score is not None and record.score.mean_nrmse < 0.02
