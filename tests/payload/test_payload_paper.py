"""Facts of [Xu2024]: its algebra is exact, its estimator is ridge regression, its table no arm."""

import json

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.dynamics import base_parameters, regressor
from taufit.model.torque_model import TorqueModel
from taufit.payload.parameter_difference import (
    RecursiveLeastSquares,
    paper_chain,
    paper_relations,
    solve_difference,
)
from taufit.robot import read_robot
from taufit.robot.from_dh import from_dh
from taufit.robot.inertia import pseudo_inertia
from taufit.sim import read_preset
from taufit.terms.friction import PowerLaw

ORDER = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


@pytest.fixture(scope="module")
def paper(reference_dir):
    return json.loads((reference_dir / "ur10_online_payload.json").read_text())


@pytest.fixture(scope="module")
def robot(paper):
    rows = np.array(paper["kinematics"]["rows"])
    # The printed angles are those of the drawn pose, not offsets.
    rows[:, 0] = 0.0
    return from_dh(rows, convention="modified", name="ur10")


def coefficients(paper, link):
    """How the ten parameters of a link enter the paper's 58."""
    out = np.zeros((58, 10))
    for row in paper["base_parameters"]["rows"]:
        for name, value in row["coefficients"].items():
            if name.endswith(str(link)) and name[:-1] in ORDER:
                out[row["index"] - 1, ORDER.index(name[:-1])] = value
    return out


def test_the_arm_has_58_base_parameters(robot):
    model = TorqueModel(robot, PowerLaw())

    assert base_parameters(model).rank == 58


def test_the_chain_returns_any_payload(paper):
    rng = np.random.default_rng(0)
    a3, a4 = paper["kinematics"]["rows"][2][2], paper["kinematics"]["rows"][3][2]
    d5, d6 = paper["kinematics"]["rows"][4][1], paper["kinematics"]["rows"][5][1]
    folded = coefficients(paper, 6)

    for _ in range(50):
        phi = rng.normal(size=10)
        difference = folded @ phi

        np.testing.assert_allclose(paper_chain(difference, a3, a4, d5, d6), phi, atol=1e-12)


def test_all_relations_return_the_same_payload(paper):
    rng = np.random.default_rng(1)
    folded = coefficients(paper, 6)
    used = np.flatnonzero(np.any(folded, axis=1))
    square = rng.normal(size=(len(used), len(used)))
    phi = rng.normal(size=10)

    solved, _ = solve_difference(
        folded[used] @ phi, square @ square.T + np.eye(len(used)), folded[used]
    )

    np.testing.assert_allclose(solved, phi, atol=1e-10)


def test_only_the_listed_parameters_change_with_a_payload(paper):
    changed = np.flatnonzero(np.any(coefficients(paper, 6), axis=1)) + 1

    listed = [i for i in paper["parameter_difference"]["base_index_of_eps_nz"] if i <= 36]
    assert changed.tolist() == listed


def test_its_recursion_is_ridge_regression():
    rng = np.random.default_rng(2)
    before = rng.normal(size=20)
    rls = RecursiveLeastSquares.from_values(before)
    rows, torque = rng.normal(size=(200, 6, 20)), rng.normal(size=(200, 6)) * 5
    for y, tau in zip(rows, torque, strict=True):
        rls.update(y, tau)

    flat, right = rows.reshape(-1, 20), torque.reshape(-1)
    ridge = np.linalg.solve(
        flat.T @ flat / 100.0 + np.eye(20) / 10.0, flat.T @ right / 100.0 + before / 10.0
    )

    np.testing.assert_allclose(rls.values, ridge, atol=1e-10)


def test_its_motion_starts_and_ends_at_rest():
    motion = read_preset("ur10-paper").motion()
    position, velocity, acceleration = motion.at(np.array([0.0, motion.duration]))

    rest = np.array([0, -np.pi / 2, 0, -np.pi / 2, 0, 0])
    # Four printed digits leave this much.
    assert np.abs(position - rest).max() < 2e-4
    assert np.abs(velocity).max() < 2e-4
    assert np.abs(acceleration).max() < 3e-4


def test_its_identified_robot_is_impossible(paper, robot):
    table = np.array([row["value"] for row in paper["base_parameters"]["rows"]])
    names = [f"{name}{i}" for i in range(1, 7) for name in ORDER]
    names += [f"Ia{i}" for i in range(1, 7)]
    folded = np.zeros((58, len(names)))
    for row in paper["base_parameters"]["rows"]:
        for name, value in row["coefficients"].items():
            if name in names:
                folded[row["index"] - 1, names.index(name)] = value
    theta = np.linalg.lstsq(folded, table, rcond=None)[0]
    rng = np.random.default_rng(3)
    pose = rng.uniform(-np.pi, np.pi, (20, 6))
    unit = np.eye(6)

    for q in pose:
        at_rest = regressor(robot, q[None], 0 * q[None], 0 * q[None])[0]
        moved = regressor(robot, np.tile(q, (6, 1)), np.zeros((6, 6)), unit)
        matrix = ((moved - at_rest) @ theta[:60]).T + np.diag(theta[60:])

        assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() < -0.1


def test_its_payload_estimates_are_impossible(paper):
    order = paper["payload"]["order"]
    for name in ("algorithm1_khalil2007", "proposed"):
        values = dict(zip(order, paper["payload"][name], strict=True))
        m = values["m"]
        phi = np.array(
            [m, m * values["rx"], m * values["ry"], m * values["rz"]]
            + [values[k] for k in ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")]
        )

        assert np.linalg.eigvalsh(pseudo_inertia(phi)).min() < -0.1


def test_the_printed_relations_return_a_payload_from_any_base(robot):
    model = TorqueModel(robot, PowerLaw())
    base = base_parameters(model, rule="leftmost")
    columns, mapping = np.asarray(base.columns), base.mapping
    phi = np.random.default_rng(3).normal(size=10)
    change = np.zeros(len(model.names))
    change[50:60] = phi

    relations, lengths = paper_relations(model, columns, mapping)

    np.testing.assert_allclose(
        paper_chain(relations @ (mapping @ change), *lengths), phi, atol=1e-9
    )


def test_an_arm_of_another_build_is_told_that_the_printed_relations_do_not_hold():
    model = TorqueModel(read_robot("kr5"), PowerLaw())
    base = base_parameters(model, rule="leftmost")

    with pytest.raises(TaufitError, match="difference"):
        paper_relations(model, np.asarray(base.columns), base.mapping)
