"""A model file says everything and nothing else: written, read back, damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.model.model_file import model_from_dict, model_to_dict, read_model, schema, write_model
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.terms import start_shape
from taufit.terms.friction import FRICTION_MODELS


def some_model(name: str, **settings) -> TorqueModel:
    robot = read_robot("ur3")
    friction = FRICTION_MODELS[name]()
    shape = np.tile(start_shape(friction), (robot.joints, 1)) if friction.shapes else None
    model = TorqueModel(robot, friction, shape=shape, **settings)
    rng = np.random.default_rng(0)
    values = model.nominal + 0.01 * rng.normal(size=len(model.names))
    return model.with_values(values)


@pytest.mark.parametrize("name", FRICTION_MODELS)
def test_read_back_gives_the_same_torque(name, tmp_path):
    model = some_model(name)
    write_model(model, tmp_path / "model.json")

    again = read_model(tmp_path / "model.json")

    rng = np.random.default_rng(1)
    q, v, a = (rng.normal(size=(20, 6)) for _ in range(3))
    heat = rng.uniform(20, 40, (20, 6))
    assert again.names == model.names
    np.testing.assert_array_equal(
        again.torque(q, v, a, temperature=heat), model.torque(q, v, a, temperature=heat)
    )


@pytest.mark.parametrize("rotor", [True, False])
@pytest.mark.parametrize("offset", [True, False])
def test_switches_survive(rotor, offset, tmp_path):
    model = some_model("linear", rotor_inertia=rotor, offset=offset)
    write_model(model, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    assert (again.rotor_inertia, again.offset) == (rotor, offset)
    assert again.robot.mounting == model.robot.mounting


def test_the_file_keeps_its_schema():
    data = model_to_dict(some_model("presliding"))
    rules = schema()
    assert set(rules["required"]) <= set(data)
    assert set(data) <= set(rules["properties"])
    assert data["version"] == rules["properties"]["version"]["const"]
    json.dumps(data, allow_nan=False)


@pytest.mark.unchecked
def test_unfitted_and_infinite_models_are_not_written(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("precious")
    with pytest.raises(TaufitError, match="no parameters yet"):
        write_model(TorqueModel(read_robot("ur3")), path)
    broken = some_model("linear")
    values = broken.values.copy()
    values[3] = np.nan
    with pytest.raises(TaufitError, match=r"link_1\.hz is not a finite number"):
        write_model(broken.with_values(values), path)
    assert path.read_text() == "precious"


def test_damaged_files_are_named(tmp_path):
    data = model_to_dict(some_model("linear"))

    def refuse(change, words):
        other = json.loads(json.dumps(data))
        change(other)
        with pytest.raises(TaufitError, match=words):
            model_from_dict(other, "m.json")

    refuse(lambda d: d.update(format="else"), "not a taufit model")
    refuse(lambda d: d.update(version=99), "version 99")
    refuse(lambda d: d.pop("friction"), "no friction")
    refuse(lambda d: d["parameters"].pop(), "parameters where")
    refuse(lambda d: d["parameters"][0].update(name="x"), "x where link_1.m belongs")
    refuse(lambda d: d["parameters"][0].update(value=None), r"parameters\[0\]\.value is None")
    refuse(lambda d: d["robot"].pop("links"), r"it has no robot\.links")
    refuse(lambda d: d["friction"].update(name="magic"), "'magic' is not known")
    with pytest.raises(TaufitError, match="there is no file"):
        read_model(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(TaufitError, match="line 1 is not JSON"):
        read_model(tmp_path / "bad.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(TaufitError, match="not a taufit model"):
        read_model(tmp_path / "list.json")
