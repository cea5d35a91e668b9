"""Friction at places beside the motors: the torque, the round trips, the refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit.core.errors import RobotError
from taufit.fitting.fit import automatic_model
from taufit.model import TorqueModel
from taufit.robot.from_yaml import from_yaml
from taufit.robot.to_yaml import to_yaml
from taufit.terms import FrictionPlaces, TermInput
from taufit.terms.settings import term_from_dict, term_to_dict

PSM = Path(__file__).parents[2] / "examples" / "arms" / "psm.yaml"


@pytest.fixture(scope="module")
def psm():
    return taufit.read_robot(PSM)


def random_parameters(model, seed: int):
    theta = np.abs(np.random.default_rng(seed).normal(size=model.layout.size))
    theta[[model.layout.index(name) for name in model.absent]] = 0.0
    return theta


def test_torque_of_a_place_does_the_work_of_its_friction(psm):
    rng = np.random.default_rng(0)
    model = TorqueModel(psm, terms=(FrictionPlaces(psm.drives.place_rows),))
    theta = random_parameters(model, 1)
    v = rng.normal(size=(20, 7))
    inputs = TermInput(v, np.zeros_like(v))
    columns = model.columns
    motor = columns.drive_columns(inputs)
    is_place = model.layout.select(lambda parameter: parameter.name.startswith("place_"))
    torque = columns.term_torque(np.where(is_place, theta, 0.0), 0 * v, motor)

    expected = np.zeros_like(v)
    for j, row in enumerate(psm.drives.friction_places):
        speed = v @ row
        friction = (
            theta[model.layout.index(f"joint_{j + 1}.place_coulomb")] * np.tanh(speed / 0.1)
            + theta[model.layout.index(f"joint_{j + 1}.place_viscous")] * speed
        )
        expected += friction[:, None] * row
    np.testing.assert_allclose(torque, expected, atol=1e-13)
    # It never adds energy.
    assert np.all(np.sum(torque * v, axis=1) > 0.0)


def test_all_forms_of_the_columns_agree(psm):
    rng = np.random.default_rng(2)
    model = automatic_model(psm, terms=("spring",))
    theta = random_parameters(model, 3)
    q, v, a = rng.normal(size=(3, 15, 7))
    columns = model.columns
    motor = columns.drive_columns(TermInput(v, q, rng.normal(size=(15, 7)), step=0.01))
    dense = columns.term_columns(a, motor)
    first = model.layout.after_links.start
    np.testing.assert_allclose(
        dense @ theta[first:], columns.term_torque(theta, a, motor), atol=1e-10
    )
    for joint in range(7):
        active = model.layout.active(joint, psm.drives.coupling)
        assert not np.any(dense[:, joint][:, ~active[first:]])
        for column in range(first, model.layout.size):
            written = np.empty(15)
            columns.write_term_column(written, column, joint, 1.0, columns.at_motors(a), motor)
            np.testing.assert_allclose(written, dense[:, joint, column - first], atol=1e-13)


def test_files_keep_friction_places(psm):
    again = from_yaml(to_yaml(psm))
    np.testing.assert_array_equal(again.drives.friction_places, psm.drives.friction_places)
    again = type(psm).from_dict(psm.to_dict())
    np.testing.assert_array_equal(again.drives.friction_places, psm.drives.friction_places)
    assert "friction_places" not in taufit.read_robot("ur3e").to_dict()["drives"]
    term = FrictionPlaces(psm.drives.place_rows)
    assert term_from_dict(term_to_dict(term)) == term


def test_an_unknown_joint_of_a_place_is_named():
    text = PSM.read_text().replace("friction_at: {wrist_yaw_2: 1}", "friction_at: {wrist: 1}")
    with pytest.raises(RobotError, match=r"friction_at of joint 'wrist_yaw_2'.*wrist_pitch"):
        from_yaml(text)
