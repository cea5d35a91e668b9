"""Laws over `EXPORTS`: a form is tested by being listed."""

from __future__ import annotations

import numpy as np
import pytest

import taufit
from taufit.core.errors import TaufitError
from taufit.export import EXPORTS, export_model, write_export
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.terms.friction import FRICTION_MODELS, Linear


@pytest.fixture(scope="module")
def fitted():
    robot = read_robot("ur3")
    model = TorqueModel(robot, Linear())
    values = np.full(len(model.names), 0.5)
    values[model.layout.links] = robot.parameters
    return model.with_values(values)


@pytest.mark.parametrize("name", EXPORTS)
def test_the_same_model_gives_the_same_files(fitted, name, tmp_path):
    written = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / f"arm{EXPORTS[name].ending}"
        done = write_export(fitted, name, path)
        # A package is a folder, every other form a file with others beside it.
        assert path in (done.files[0], done.files[0].parent)
        made = [file for file in (tmp_path / folder).rglob("*") if file.is_file()]
        assert sorted(made) == sorted(done.files)
        assert all(file.stat().st_size > 100 for file in done.files)
        assert all(isinstance(part, str) and part for part in done.dropped)
        written.append([file.read_bytes() for file in done.files])
    assert written[0] == written[1]


@pytest.mark.parametrize("name", EXPORTS)
def test_the_ending_names_the_form(fitted, name, tmp_path):
    path = tmp_path / f"arm{EXPORTS[name].ending}"
    by_ending = export_model(fitted, path)
    file = path / "package.xml" if path.is_dir() else path
    content = file.read_bytes()
    by_name = export_model(fitted, path, format=name)
    assert by_ending == by_name and file.read_bytes() == content


@pytest.mark.parametrize("friction", FRICTION_MODELS)
@pytest.mark.parametrize("name", EXPORTS)
def test_every_friction_model_is_written_or_listed_as_dropped(name, friction, tmp_path):
    """Never refused, never dropped in silence: a form holds a friction term or names it."""
    robot = read_robot("kr5")
    model = TorqueModel(robot, FRICTION_MODELS[friction](), offset=False)
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = robot.parameters
    done = write_export(model.with_values(values), name, tmp_path / f"arm{EXPORTS[name].ending}")
    form = EXPORTS[name].reduce(model.with_values(values))
    assert form.dropped == done.dropped
    if form.model.friction_model == model.friction:
        assert not any("friction" in part for part in done.dropped)
        return  # these hold every term; test_c_code compares torques
    held = {(term.name, term.unit) for term in form.model.friction_model.parameters}
    terms = () if model.friction is None else model.friction.parameters
    for term in terms:
        listed = any(f"{term.name!r}" in part for part in done.dropped)
        assert listed != ((term.name, term.unit) in held), term


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.unchecked
def test_a_model_without_values_is_refused(name, tmp_path):
    bare = TorqueModel(read_robot("ur3"), Linear())
    with pytest.raises(TaufitError, match="fit"):
        write_export(bare, name, tmp_path / "arm")
    assert not list(tmp_path.iterdir())


def test_forms_differ_in_their_endings_and_unknown_ones_name_those_that_exist(fitted, tmp_path):
    endings = [form.ending for form in EXPORTS.values()]
    assert len(set(endings)) == len(endings)
    with pytest.raises(TaufitError, match="urdf"):
        taufit.export_model(fitted, tmp_path / "arm.step", format="step")
