"""W has one maker, and its forms agree."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit import TorqueModel, read_robot
from taufit.terms import TermInput
from taufit.terms.friction import FRICTION_MODELS

SOURCE = Path(taufit.__file__).parent
JOINING = {"concatenate", "stack", "hstack", "block", "column_stack"}
# Parts of W: the links' columns, and what stands behind them.
LINKS = {"regressor", "links"}
BEHIND = {"rotors", "to_joints", "rest", "term_columns", "own", "joint_columns", "friction_columns"}


def arm(coupled: bool):
    robot = read_robot("ur5e")
    if not coupled:
        return robot
    coupling = np.eye(6)
    coupling[4, 3], coupling[5, 4], coupling[3, 5] = 1.0, -0.5, 0.2
    return replace(robot, drives=replace(robot.drives, coupling=coupling))


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("friction", sorted(FRICTION_MODELS))
def test_every_form_of_the_columns_gives_the_same_torque(friction, coupled):
    model = TorqueModel(arm(coupled), FRICTION_MODELS[friction]())
    columns, layout = model.columns, model.layout
    rng = np.random.default_rng(2)
    q, v, a, load = rng.normal(size=(4, 30, 6))
    theta = rng.normal(size=layout.size)
    motor = columns.drive_columns(TermInput(v, q, 9.0 * load, 30.0 + load, step=0.01))

    dense = columns.dense(q, v, a, motor)

    rest = columns.term_torque(theta, a, motor)
    np.testing.assert_allclose(
        dense[..., layout.after_links] @ theta[layout.after_links], rest, atol=1e-12
    )
    written = np.empty(len(q))
    for joint in range(6):
        for column in range(layout.after_links.start, layout.size):
            columns.write_term_column(written, column, joint, 2.0, columns.at_motors(a), motor)
            np.testing.assert_allclose(written, 2.0 * dense[:, joint, column], atol=1e-12)
    if not coupled:
        own = columns.motor_columns(a, motor)
        mine = [
            [c for c in range(layout.after_links.start, layout.size) if layout.owner[c] == j]
            for j in range(6)
        ]
        for joint in range(6):
            np.testing.assert_allclose(own[:, joint], dense[:, joint, mine[joint]], atol=1e-12)


def _called(node: ast.AST) -> set[str]:
    return {
        getattr(part.func, "attr", getattr(part.func, "id", ""))
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    }


def _assemblies(tree: ast.AST) -> list[int]:
    """Lines that join the links' columns and those behind them, or several of the latter."""
    lines = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        made: dict[str, set[str]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                parts = _called(node.value) & (LINKS | BEHIND)
                for target in node.targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name):
                            made.setdefault(name.id, set()).update(parts)
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append":
                name = getattr(getattr(node.func, "value", None), "id", "")
                made.setdefault(name, set()).update(_called(node.args[0]) & (LINKS | BEHIND))
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in JOINING:
                names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                joined = _called(node) & (LINKS | BEHIND)
                joined |= set().union(*(made.get(name, set()) for name in names))
                if (joined & LINKS and joined & BEHIND) or len(joined & BEHIND) > 1:
                    lines.append(node.lineno)
    return lines


def test_nobody_else_puts_w_together():
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "dynamics"
        for line in _assemblies(ast.parse(path.read_text()))
    ]

    assert [place.split(":")[0] for place in found] == ["model/columns.py"]


def test_the_search_for_makers_of_w_finds_them():
    one = """
def rows(model, q, v, a):
    links = regressor(model.robot, q, v, a)
    rest = model.joint_columns(v, a)
    return np.concatenate([links, rest], -1)
"""
    two = """
def rows(model, q, v, a):
    parts = [regressor(model.robot, q, v, a)]
    parts.append(columns.rotors(a))
    return np.concatenate(parts, -1)
"""
    assert _assemblies(ast.parse(one)) == [5] and _assemblies(ast.parse(two)) == [5]
