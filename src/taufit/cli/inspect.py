"""`taufit inspect`: an arm as taufit understands it, and what its motion can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import Json, RobotOptions, require_choice

if TYPE_CHECKING:
    from taufit.dynamics import BaseParameters
    from taufit.dynamics.base_expressions import BaseExpression
    from taufit.robot import Robot


def command(
    which: RobotOptions,
    robot: Annotated[
        str | None, typer.Argument(help="A bundled name, .urdf, .xacro or .yaml; none lists them.")
    ] = None,
    friction: Annotated[str, typer.Option(help="Friction model to count with.")] = "none",
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="Count friction without a torque offset.")
    ] = False,
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="Count a rotor inertia per joint.")
    ] = False,
    rule: Annotated[
        str,
        typer.Option(help="Which columns to keep: leftmost (readable) or qr (best conditioned)."),
    ] = "leftmost",
    as_json: Json = False,
) -> None:
    """Show a robot: its joints and limits, and which parameters any motion can tell apart.

    Next: `taufit design ROBOT -o motion.json` plans a motion that shows them.
    """
    from taufit.dynamics.base_parameters import RULES, base_parameters
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import description_warnings
    from taufit.terms.friction import FRICTION_MODELS

    if robot is None:
        _list(as_json)
        return
    require_choice(friction, FRICTION_MODELS, "--friction")
    require_choice(rule, RULES, "--rule")
    from taufit.dynamics.base_expressions import base_expressions

    arm = which.read(robot)
    plain = friction == "none"
    model = TorqueModel(
        arm,
        friction=None if plain else FRICTION_MODELS[friction](),
        rotor_inertia=rotor_inertia,
        offset=not (plain or no_offset),
    )
    found = base_parameters(model, rule=rule)
    expressions = base_expressions(model, found)
    notes = description_warnings(arm)
    if as_json:
        print_json(_data(arm, found, expressions, notes))
    else:
        _show(arm, found, expressions, notes)


def _list(as_json: bool) -> None:
    from taufit.robot import bundled_robots, read_robot

    robots = [read_robot(name) for name in bundled_robots()]
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
    table.add_column("where the numbers come from", overflow="fold")
    for arm in robots:
        table.add_row(arm.name, str(arm.joints), arm.source)
    console = plain_console()
    console.print(table)
    console.print(
        "Any other arm: a .urdf, or a .yaml with DH, MDH or screws (docs/robots.md).\n"
        "Next: `taufit inspect NAME` shows one of them.",
    )


def _data(
    arm: Robot,
    found: BaseParameters,
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
        "standard_parameters": len(found.parameter_names),
        "base_parameters": found.rank,
        "identifiable": len(found.identifiable),
        "in_combination": len(found.in_combination),
        "no_effect": len(found.no_effect),
        "no_effect_names": [found.parameter_names[i] for i in found.no_effect],
        "singular_value_gap": found.gap,
        "notes": notes,
        "base": [
            {
                "name": name,
                "expression": expression.text,
                "coefficients": {found.parameter_names[c]: row[c] for c in np.flatnonzero(row)},
            }
            for name, expression, row in zip(found.names, expressions, found.mapping, strict=True)
        ],
    }


def _show(
    arm: Robot,
    found: BaseParameters,
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
        listed = ", ".join(f"{name} = {value:g}" for name, value in arm.lengths)
        console.print(f"lengths [m]: {listed}")

    table = Table(title="Joints")
    slides = any(link.prismatic for link in arm.links)
    angle, effort = ("deg or m", "N m or N") if slides else ("deg", "N m")
    table.add_column("")
    table.add_column("joint", overflow="fold")
    if slides:
        table.add_column("type")
    for column in (f"range\n{angle}", f"speed\n{angle}/s", f"accel.\n{angle}/s2"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in (f"torque\n{effort}", "mass\nkg"):
        table.add_column(column, justify="right", no_wrap=True)
    limits = arm.limits
    for i, link in enumerate(arm.links):
        turn = 1.0 if link.prismatic else 180.0 / np.pi
        table.add_row(
            str(i + 1),
            link.joint,
            *(("prismatic" if link.prismatic else "revolute",) if slides else ()),
            f"{_figure(limits.lower[i] * turn)} .. {_figure(limits.upper[i] * turn)}",
            _figure(limits.velocity[i] * turn),
            _figure(limits.acceleration[i] * turn),
            _figure(limits.torque[i]),
            _figure(link.parameters[0]) if np.any(link.parameters) else "?",
        )
    console.print(table)

    table = Table(title=f"{found.rank} base parameters", show_lines=False)
    table.add_column("", justify="right")
    table.add_column("what motion shows", overflow="fold")
    for k, expression in enumerate(expressions):
        table.add_row(str(k + 1), expression.text)
    console.print(table)
    console.print(
        f"{len(found.parameter_names)} standard parameters, {found.rank} base parameters: "
        f"{len(found.identifiable)} identifiable one by one, {len(found.in_combination)} in "
        f"combination, {len(found.no_effect)} without effect.",
    )
    if len(found.no_effect):
        hidden = ", ".join(found.parameter_names[i] for i in found.no_effect)
        console.print(f"without effect: {hidden}")
    for note in notes:
        console.print(f"note: {note}")
    console.print("Next: `taufit design ROBOT -o motion.json` plans a motion that shows them.")


def _figure(value: float) -> str:
    """A number, or a dash where nobody knows."""
    from math import isfinite

    return f"{value:.4g}" if isfinite(value) else "-"
