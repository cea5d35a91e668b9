"""Counts, sets and rows of the papers, from the bundled arms."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.cli import main
from taufit.dynamics import base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.terms.friction import Linear

_LINK = {"m": "m", "mx": "hx", "my": "hy", "mz": "hz"}
_JOINT = {"Ia": "rotor", "Fc": "coulomb", "Fv": "viscous", "B": "offset"}
LINKS = range(1, 7)


def ours(name: str) -> str:
    """The papers' `mx2`, `Ixx2`, `Ia2` as `link_2.hx`, `link_2.Ixx`, `joint_2.rotor`."""
    what, number = name[:-1], name[-1]
    if what in _JOINT:
        return f"joint_{number}.{_JOINT[what]}"
    return f"link_{number}.{_LINK.get(what, what)}"


def in_order(*groups: str) -> list[str]:
    """Each group goes through the links, its parameters together."""
    return [ours(f"{name}{i}") for group in groups for i in LINKS for name in group.split()]


ORDERS = {
    "ur10": in_order("Ixx Ixy Ixz Iyy Iyz Izz mx my mz m Ia Fc Fv B"),
    "kr5": in_order("Ixx Ixy Ixz Iyy Iyz Izz", "mx my mz", "m"),
    "ur3": in_order("m mx my mz Ixx Iyy Izz Iyz Ixz Ixy", "Fc", "Fv", "Ia"),
}
ORDERS["ur5"] = ORDERS["ur3"]


def printed_rows(reference_dir, robot: str, mounting: str) -> list[dict[str, float]]:
    if robot == "ur10":
        table = json.loads((reference_dir / "ur10_online_payload.json").read_text())
        rows = table["base_parameters"]["rows"]
    elif robot == "kr5":
        table = json.loads((reference_dir / "kr5_unsigned_torques.json").read_text())
        rows = table["base_parameters"]["rows"] + table["base_parameters"]["unreported_rows"]
    else:
        table = json.loads((reference_dir / "ur3_ur5_temperature_mounting.json").read_text())
        rows = table["base_parameters"][f"{robot.upper()}_rows"]
        # The first two appear only where gravity is not along the first axis.
        rows = rows if mounting == "wall" else rows[2:]
    return [row["coefficients"] for row in rows]


def model_of(robot: str, mounting: str) -> TorqueModel:
    arm = read_robot(robot, mounting=mounting)
    if robot == "kr5":
        return TorqueModel(arm, friction=None, rotor_inertia=False, offset=False)
    return TorqueModel(arm, friction=Linear(), rotor_inertia=True, offset=robot == "ur10")


CASES = [
    ("ur10", "ground", 58),
    ("kr5", "ground", 36),
    *((robot, *case) for robot in ("ur3", "ur5") for case in [("ground", 52), ("ceiling", 52)]),
    ("ur3", "wall", 54),
    ("ur5", "wall", 54),
]


@pytest.mark.parametrize("robot, mounting, count", CASES)
def test_every_printed_row_lies_in_the_row_space(robot, mounting, count, reference_dir):
    found = base_parameters(model_of(robot, mounting))
    rows = matrix_of(printed_rows(reference_dir, robot, mounting), found.parameter_names)

    assert found.rank == count == np.linalg.matrix_rank(rows) == len(rows)
    # Rows are printed to ten digits.
    left = rows - rows @ np.linalg.pinv(found.mapping) @ found.mapping
    assert np.abs(left).max() < 1e-9


@pytest.mark.parametrize("robot, mounting, count", CASES)
def test_the_papers_orders_give_the_papers_sets(robot, mounting, count, reference_dir):
    found = base_parameters(model_of(robot, mounting), rule="leftmost", order=ORDERS[robot])
    rows = matrix_of(printed_rows(reference_dir, robot, mounting), found.parameter_names)

    distance = np.abs(found.mapping[:, None, :] - rows[None, :, :]).max(-1)
    matches = distance < 1e-8
    assert np.all(matches.sum(0) == 1) and np.all(matches.sum(1) == 1)


def matrix_of(rows, names) -> np.ndarray:
    out = np.zeros((len(rows), len(names)))
    for k, row in enumerate(rows):
        for name, value in row.items():
            out[k, names.index(ours(name))] = value
    return out


COUNTS = {
    "ur10 --friction power_law --rotor-inertia": (84, 58, None),
    "ur10 --friction linear --rotor-inertia": (84, 58, None),
    "ur10": (60, 36, None),
    "kr5": (60, 36, None),
    "ur3 --friction linear --no-offset --rotor-inertia": (78, 52, (36, 33, 9)),
    "ur5 --friction linear --no-offset --rotor-inertia": (78, 52, (36, 33, 9)),
    "ur3 --friction linear --no-offset --rotor-inertia --mounting ceiling": (78, 52, (36, 33, 9)),
    "ur5 --friction linear --no-offset --rotor-inertia --mounting ceiling": (78, 52, (36, 33, 9)),
    "ur3 --friction linear --no-offset --rotor-inertia --mounting wall": (78, 54, (37, 34, 7)),
    "ur5 --friction linear --no-offset --rotor-inertia --mounting wall": (78, 54, (37, 34, 7)),
    "ur5 --friction linear --no-offset --rotor-inertia --mounting 30,0,0": (78, 54, (37, 34, 7)),
    "panda": (70, 43, None),
    "panda --friction polynomial": (105, 78, None),
    "panda --friction polynomial --rotor-inertia": (112, 83, None),
    "panda --mounting 0,30,0": (70, 45, None),
}


@pytest.mark.parametrize("rule", ["leftmost", "qr"])
@pytest.mark.parametrize("arguments", COUNTS)
def test_inspect_counts_equal_the_reference(arguments, rule, capsys):
    standard, rank, classes = COUNTS[arguments]

    with pytest.raises(SystemExit) as stop:
        main(["inspect", *arguments.split(), "--rule", rule, "--json"])

    assert not stop.value.code
    result = json.loads(capsys.readouterr().out)
    assert (result["standard_parameters"], result["base_parameters"]) == (standard, rank)
    assert len(result["base"]) == rank
    kinds = (result["identifiable"], result["in_combination"], result["no_effect"])
    assert sum(kinds) == standard
    if classes:
        assert kinds == classes


def test_the_parameters_without_effect_are_the_papers(reference_dir):
    table = json.loads((reference_dir / "ur3_ur5_temperature_mounting.json").read_text())
    classes = table["base_parameters"]["classification"]
    for mounting in ("ground", "wall"):
        found = base_parameters(model_of("ur5", mounting))
        expected = next(value for key, value in _leaves(classes) if key == f"no_effect_{mounting}")

        names = {found.parameter_names[i] for i in found.no_effect}
        assert names == {ours(name) for name in expected}


def _leaves(data):
    for key, value in data.items():
        yield key, value
        if isinstance(value, dict):
            yield from _leaves(value)


def test_the_table_of_true_values_follows_from_the_bundled_kr5(reference_dir):
    table = json.loads((reference_dir / "kr5_unsigned_torques.json").read_text())
    robot = read_robot("kr5")
    rows = table["base_parameters"]["rows"]
    matrix = matrix_of([row["coefficients"] for row in rows], robot.parameter_names)

    # Table II is printed to four decimals.
    np.testing.assert_allclose(matrix @ robot.parameters, [row["true"] for row in rows], atol=5e-5)
