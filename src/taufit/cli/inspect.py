"""`taufit inspect`: description and base parameters of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import Json, RobotOptions, require_choice
from taufit.cli.parts.next_step import next_step

if TYPE_CHECKING:
    from taufit.dynamics import BaseParameters
    from taufit.dynamics.base_expressions import BaseExpression
    from taufit.robot import Robot


def command(
    robot_options: RobotOptions,
    robot: Annotated[
        str | None,
        typer.Argument(help="Bundled name, .urdf, .xacro, .xml (MJCF) or .yaml; none: list."),
    ] = None,
    friction: Annotated[str, typer.Option(help="Friction model to include.")] = "none",
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="Friction without torque offset.")
    ] = False,
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="Include a rotor inertia per joint.")
    ] = False,
    rule: Annotated[
        str,
        typer.Option(help="Choice of base columns: leftmost (readable) or qr (best conditioned)."),
    ] = "leftmost",
    as_json: Json = False,
) -> None:
    """Show a robot: joints, limits, and base parameters identifiable from motion.

    Next: `taufit design ROBOT -o motion.json` plans a motion that identifies them.
    """
    from taufit.dynamics.base_parameters import RULES, base_parameters
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import description_warnings
    from taufit.terms.friction import FRICTION_MODELS

    if robot is None:
        _list_robots(as_json)
        return
    require_choice(friction, FRICTION_MODELS, "--friction")
    require_choice(rule, RULES, "--rule")
    from taufit.dynamics.base_expressions import base_expressions

    arm = robot_options.read(robot)
    is_frictionless = friction == "none"
    model = TorqueModel(
        arm,
        friction=None if is_frictionless else FRICTION_MODELS[friction](),
        rotor_inertia=rotor_inertia,
        offset=not (is_frictionless or no_offset),
    )
    base = base_parameters(model, rule=rule)
    expressions = base_expressions(model, base)
    notes = description_warnings(arm)
    if as_json:
        print_json(_to_dict(arm, base, expressions, notes))
    else:
        _show(robot, arm, base, expressions, notes)


def _list_robots(as_json: bool) -> None:
    from taufit.robot import bundled_robots, read_robot

    robots = [read_robot(name) for name in bundled_robots(trees=True)]
    if as_json:
        print_json(
            {
                "robots": [
                    {"name": arm.name, "joints": arm.joints, "source": arm.source} for arm in robots
                ]
            }
        )
        return
    from rich.table import Table

    from taufit.cli.common import plain_console

    table = Table(title="Bundled robots")
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("joints", justify="right")
    table.add_column("source of the values", overflow="fold")
    for arm in robots:
        table.add_row(arm.name, str(arm.joints), arm.source)
    console = plain_console()
    console.print(table)
    console.print(
        "Any other arm: a .urdf, or a .yaml with DH, MDH or screws (docs/robots.md).\n"
        + next_step("inspect", robots[-1].name, purpose="shows one of them."),
    )


def _to_dict(
    arm: Robot,
    base: BaseParameters,
    expressions: tuple[BaseExpression, ...],
    notes: tuple[str, ...],
) -> dict[str, Any]:
    import numpy as np

    limits = arm.limits
    return {
        "robot": arm.name,
        "source": arm.source,
        "mounting_deg": np.degrees(arm.mounting),
        "joints": arm.joints,
        "joint_names": arm.joint_names,
        "link_names": arm.link_names,
        "limits": {
            key: getattr(limits, key)
            for key in ("lower", "upper", "velocity", "acceleration", "torque")
        },
        "lengths": dict(arm.lengths),
        "standard_parameters": len(base.parameter_names),
        "base_parameters": base.rank,
        "identifiable": len(base.identifiable),
        "in_combination": len(base.in_combination),
        "no_effect": len(base.no_effect),
        "no_effect_names": [base.parameter_names[i] for i in base.no_effect],
        "singular_value_gap": base.gap,
        "notes": notes,
        "base": [
            {
                "name": name,
                "expression": expression.text,
                "coefficients": {base.parameter_names[c]: row[c] for c in np.flatnonzero(row)},
            }
            for name, expression, row in zip(base.names, expressions, base.mapping, strict=True)
        ],
    }


def _show(
    robot: str,
    arm: Robot,
    base: BaseParameters,
    expressions: tuple[BaseExpression, ...],
    notes: tuple[str, ...],
) -> None:
    import numpy as np
    from rich.table import Table

    from taufit.cli.common import headline, plain_console

    console = plain_console()
    console.print(headline(arm.name, f"  {arm.source}"))
    roll, pitch, yaw = np.degrees(arm.mounting)
    console.print(f"mounting: roll {roll:g}, pitch {pitch:g}, yaw {yaw:g} degrees")
    if arm.lengths:
        length_text = ", ".join(f"{name} = {value:g}" for name, value in arm.lengths)
        console.print(f"lengths [m]: {length_text}")

    table = Table(title="Joints")
    has_prismatic = any(link.is_prismatic for link in arm.links)
    position_unit, torque_unit = ("deg or m", "N m or N") if has_prismatic else ("deg", "N m")
    table.add_column("")
    table.add_column("joint", overflow="fold")
    if has_prismatic:
        table.add_column("type")
    for column in (
        f"range\n{position_unit}",
        f"speed\n{position_unit}/s",
        f"accel.\n{position_unit}/s2",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    for column in (f"torque\n{torque_unit}", "mass\nkg"):
        table.add_column(column, justify="right", no_wrap=True)
    limits = arm.limits
    for i, name in enumerate(arm.joint_names):
        link = arm.links[arm.carriers[i]]
        unit_factor = 1.0 if link.is_prismatic else 180.0 / np.pi
        table.add_row(
            str(i + 1),
            name,
            *(("prismatic" if link.is_prismatic else "revolute",) if has_prismatic else ()),
            f"{_format_number(limits.lower[i] * unit_factor)} .. "
            f"{_format_number(limits.upper[i] * unit_factor)}",
            _format_number(limits.velocity[i] * unit_factor),
            _format_number(limits.acceleration[i] * unit_factor),
            _format_number(limits.torque[i]),
            _format_number(link.parameters[0]) if np.any(link.parameters) else "?",
        )
    console.print(table)

    table = Table(title=f"{base.rank} base parameters", show_lines=False)
    table.add_column("", justify="right")
    table.add_column("expression", overflow="fold")
    for k, expression in enumerate(expressions):
        table.add_row(str(k + 1), expression.text)
    console.print(table)
    console.print(
        f"{len(base.parameter_names)} standard parameters, {base.rank} base parameters: "
        f"{len(base.identifiable)} identifiable one by one, {len(base.in_combination)} in "
        f"combination, {len(base.no_effect)} without effect.",
    )
    if len(base.no_effect):
        names = ", ".join(base.parameter_names[i] for i in base.no_effect)
        console.print(f"without effect: {names}")
    for note in notes:
        console.print(f"note: {note}")
    words, purpose = ("design", robot, "-o", "motion.json"), "plans a motion that shows them."
    if arm.is_tree:
        # Motions are planned for serial arms.
        words, purpose = ("simulate", robot, "-o", "run.parquet"), "makes a recording to try."
    console.print(next_step(*words, purpose=purpose), soft_wrap=True)


def _format_number(value: float) -> str:
    """Number as text, a dash if unknown."""
    from math import isfinite

    return f"{value:.4g}" if isfinite(value) else "-"
