"""The order of theta, and that nobody else counts it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit import TorqueModel, read_robot
from taufit.core.parameters import LINK_PARAMETERS, parse_name
from taufit.terms import INERTIAL, Offset, ParameterLayout, Rotor, Spring
from taufit.terms.friction import FRICTION_MODELS, Linear

SOURCE = Path(taufit.__file__).parent
LAYOUTS = [
    ParameterLayout.from_terms(joints, (*rotor, *terms, *offset))
    for joints in (1, 3, 7)
    for terms in ((), (Linear(),), (Linear(), Spring()))
    for rotor in ((), (Rotor(),))
    for offset in ((), (Offset(),))
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_parts_follow_each_other_and_cover_theta(layout):
    parts = [layout.links, layout.block_slice("rotor"), layout.drive, layout.block_slice("offset")]

    assert np.concatenate([np.arange(layout.size)[part] for part in parts]).tolist() == list(
        range(layout.size)
    )
    assert len(layout.names) == len(layout.kinds) == len(layout.owner) == layout.size
    assert layout.names == layout.names[layout.links] + tuple(
        f"joint_{k + 1}.{one.name}"
        for terms in ((Rotor(),), (Linear(), Spring()), (Offset(),))
        for k in range(layout.joints)
        for term in terms
        for one in term.parameters
        if f"joint_1.{one.name}" in layout.names
    )
    assert set(layout.kinds[layout.links]) == {INERTIAL}
    for k in range(layout.joints):
        assert set(layout.owner[layout.link(k)]) == {k}
        assert set(layout.owner[layout.drive_of(k)]) <= {k}
    assert layout.link(-1) == layout.link(layout.joints - 1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_names_are_found_again(layout):
    for i, name in enumerate(layout.names):
        owner = parse_name(name)
        assert layout.index(name) == i
        assert (owner.number, owner.quantity) == (layout.owner[i], layout.quantities[i])
        assert owner.kind == ("link" if i < layout.links.stop else "joint")


def test_a_name_that_does_not_exist_comes_with_those_that_do():
    layout = ParameterLayout.from_terms(2, (Rotor(), Spring(), Offset()))

    with pytest.raises(KeyError, match=r"joint_2.viscous.*joint_2.rotor, joint_2.stiffness"):
        layout.index("joint_2.viscous")


def test_split_and_join_is_theta():
    layout = ParameterLayout.from_terms(3, (Rotor(), Linear(), Offset()))
    theta = np.arange(layout.size, dtype=float)

    assert np.array_equal(np.concatenate([part.ravel() for part in layout.split(theta)]), theta)
    bare = ParameterLayout.from_terms(3).split(np.arange(30.0))
    assert not np.any(bare.rotors) and not np.any(bare.offsets) and bare.drive.shape == (3, 0)


def test_masses_are_the_masses():
    layout = ParameterLayout.from_terms(4, (Rotor(), Linear()))

    assert layout.names[layout.masses] == tuple(f"link_{k}.m" for k in range(1, 5))
    assert LINK_PARAMETERS[0] == "m"


@pytest.mark.parametrize("coupled", [False, True])
def test_columns_outside_live_are_zero_and_each_inside_can_be_nonzero(coupled):
    from dataclasses import replace

    robot = read_robot("ur5e")
    coupling = np.eye(6)
    if coupled:
        coupling[4, 3] = coupling[5, 4] = 1.0
        robot = replace(robot, drives=replace(robot.drives, coupling=coupling))
    model = TorqueModel(robot, FRICTION_MODELS["linear"](), terms=(Spring(),))
    rng = np.random.default_rng(3)
    rows = model.regressor(*(rng.normal(size=(50, 6)) for _ in range(3)))

    for joint in range(6):
        live = model.layout.active(joint, coupling)
        assert np.all(rows[:, joint, ~live] == 0.0)
        # A link's own inertia about other axes than its joint's does not show in its own row.
        assert np.any(rows[:, joint, live], axis=0)[
            np.flatnonzero(live) >= model.layout.links.stop
        ].all()
        assert np.array_equal(model.layout.active_columns(joint, coupling), np.flatnonzero(live))


# What ten is multiplied by where theta is meant: joints, links, or the number of one.
_COUNTED = re.compile(r"joint|link|^\w$|^len\(")


def _counts_in_tens(tree: ast.AST) -> list[int]:
    """Lines that multiply by ten (or eleven: links and rotors), or step or count back by ten."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_ten(one) and _COUNTED.search(ast.unparse(other)):
                    lines.append(node.lineno)
        if isinstance(node, ast.Slice) and any(
            _is_ten(end) for end in (node.lower, node.step) if end is not None
        ):
            lines.append(node.lineno)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reshape":
            lines += [node.lineno for argument in node.args if _is_ten(argument)]
    return lines


def _is_ten(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in (10, 11)


def _spells_names(tree: ast.AST) -> list[int]:
    """Lines that build "link_3" or cut such a name."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            if any(str(text).endswith(("link_", "joint_")) for text in texts):
                lines.append(node.lineno)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            "startswith",
            "removeprefix",
        ):
            words = [w.value for a in node.args for w in ast.walk(a) if isinstance(w, ast.Constant)]
            if any(word in ("link_", "joint_") for word in words):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("look", [_counts_in_tens, _spells_names])
def test_nobody_else_knows_the_order_of_theta(look):
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "parameters.py"
        for line in look(ast.parse(path.read_text()))
    ]

    assert found == []


def test_the_search_for_counting_finds_it():
    lines = "a = 10 * joints\nb = x[10 * k :]\nc = x[::10]\nd = x[-10:]\ne = x.reshape(-1, 10)\n"

    assert sorted(set(_counts_in_tens(ast.parse(lines)))) == [1, 2, 3, 4, 5]
    assert _spells_names(ast.parse('a = f"link_{i}"\nb = n.startswith("joint_")')) == [1, 2]
