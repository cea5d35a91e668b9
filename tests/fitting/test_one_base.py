"""Whoever asks for the base parameters gets the same ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taufit
from taufit.cli.app import main
from taufit.fitting.fit_samples import fit_samples
from taufit.signals import Samples
from taufit.terms.friction import FRICTION_MODELS


@pytest.mark.parametrize("friction", ["linear", "stribeck_load", "presliding"])
def test_fit_inspect_and_python_name_the_same_base_parameters(friction, capsys):
    model = taufit.TorqueModel(taufit.read_robot("ur5e"), FRICTION_MODELS[friction]())
    rng = np.random.default_rng(0)
    q, v, a = (rng.normal(size=(400, 6)) for _ in range(3))
    torque = model.with_values(model.nominal).torque(q, v, a)
    samples = Samples.from_arrays(q, v, a, torque, rate_hz=100.0)

    asked = taufit.base_parameters(model)
    fitted = fit_samples(model, samples, require_excitation=False).base
    words = ["inspect", "ur5e", "--friction", friction, "--rotor-inertia", "--json"]
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    shown = json.loads(capsys.readouterr().out)["base"]

    assert fitted.names == asked.names == tuple(entry["name"] for entry in shown)
    np.testing.assert_array_equal(fitted.mapping, asked.mapping)
    for row, entry in zip(asked.mapping, shown, strict=True):
        named = {asked.parameter_names[c]: row[c] for c in np.flatnonzero(row)}
        assert named == pytest.approx(entry["coefficients"], abs=1e-12)
