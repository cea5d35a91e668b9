"""A temperature law around friction with memory keeps the memory."""

from dataclasses import replace

import numpy as np
import pytest

from taufit.model.fitted_model import FittedModel
from taufit.payload import identify_payload
from taufit.terms.friction import TemperatureDependent


def _with_law(model: FittedModel, law: str) -> FittedModel:
    """The same model under a temperature law that changes nothing."""
    friction = TemperatureDependent(model.friction_model, law=law)
    shape = None if law == "linear" else np.zeros((model.robot.joints, 1))
    structure = replace(model.structure, friction=friction, shape=shape)
    values = np.zeros(len(structure.names))
    for name, value in zip(model.names, model.values, strict=True):
        values[structure.layout.index(name)] = value
    return FittedModel.from_values(structure, values, model.training)


@pytest.mark.parametrize("law", ["linear", "exponential"])
def test_payload_with_a_temperature_law_of_no_slope_is_payload_without_one(model, loaded, law):
    assert model.friction_model.memory
    warm = replace(loaded, temperature=np.full_like(loaded.position, 41.0))

    plain = identify_payload(model, loaded).estimate
    same = identify_payload(_with_law(model, law), warm).estimate

    for name in ("mass", "mass_std", "centre", "centre_std", "inertia", "parameters"):
        np.testing.assert_allclose(getattr(same, name), getattr(plain, name), rtol=1e-12)


def test_friction_that_follows_temperature_changes_the_payload_with_it(model, loaded):
    friction = TemperatureDependent(model.friction_model, affected=("coulomb",))
    structure = replace(model.structure, friction=friction)
    values = np.zeros(len(structure.names))
    for name, value in zip(model.names, model.values, strict=True):
        values[structure.layout.index(name)] = value
    warm = replace(loaded, temperature=np.full_like(loaded.position, 41.0))
    steeper = values.copy()
    steeper[[name.endswith("coulomb_per_degree") for name in structure.names]] = 0.1

    flat, steep = (
        identify_payload(
            FittedModel.from_values(structure, x, model.training), warm
        ).estimate.parameters
        for x in (values, steeper)
    )

    assert np.abs(steep - flat).max() > 1e-3
