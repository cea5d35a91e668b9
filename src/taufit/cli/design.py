"""taufit design: plan an excitation trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RobotName, RobotOptions, require_choice
from taufit.cli.options.design import (
    EffortOptions,
    GoalOptions,
    LimitAndSceneOptions,
    MotionFileOptions,
    PurposeOptions,
    SeriesOptions,
)

if TYPE_CHECKING:
    from taufit.excitation import Plan

# What the default of earlier versions was called.
_ALIASES = {"excitation": "identification"}


def command(  # noqa: PLR0913 - one parameter per group of options
    robot: RobotName,
    which: RobotOptions,
    series: SeriesOptions,
    goal: GoalOptions,
    cell: LimitAndSceneOptions,
    purpose: PurposeOptions,
    effort: EffortOptions,
    forms: MotionFileOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Motion file.")] = Path(
        "motion.json"
    ),
    kind: Annotated[
        str,
        typer.Option(
            help="identification, validation (differs from the identification motion), payload "
            "(wide slow arm, fast wrist), payload-inertia, friction-test (constant-speed strokes) "
            "or warm-up."
        ),
    ] = "identification",
    as_json: Json = False,
) -> None:
    """Plan an excitation trajectory: certified on a fine grid, or refused with the reason.

    By default the arm keeps clear of itself and of the surface it is mounted on, within the limits
    of its description. The condition number holds for the true sign of velocity, unscaled SI
    columns, the leftmost base columns and 2000 samples; a low one is not information: criterion
    "a" (default) minimises standard deviations instead. The same seed gives the same motion. A
    motion whose column-scaled condition number is above 30 (more for friction models with similar
    terms) is refused.

    Next: play the motion on the robot (--urscript, --ros2, --csv) or `taufit simulate`, then
    `taufit fit`; a friction test goes to `taufit friction`.
    """
    from taufit.clearance import clearance_block
    from taufit.cli.common import to_plain_data
    from taufit.excitation import KINDS, plan, write_motion

    kind = require_choice(_ALIASES.get(kind, kind), KINDS, "--kind")
    arm = which.read(robot)
    joints = purpose.joints(arm)
    model = goal.model(arm)
    scene = cell.scene(arm)
    with progress("designing") as bar:
        task = bar.add_task("designing", total=1.0)
        found = plan(
            kind,
            arm,
            model=model,
            criterion=goal.criterion,
            basis=series.basis(arm.joints),
            limits=cell.limits(arm),
            jerk=float("inf") if cell.jerk is None else cell.jerk,
            scene=scene,
            start=cell.pose(arm.joints),
            earlier=goal.earlier(),
            effort=effort.effort(lambda share, _: bar.update(task, completed=min(share, 1.0))),
            joints=joints,
            speeds=purpose.stroke_speeds(),
            passes=purpose.passes,
            minutes=purpose.minutes,
            inertia=purpose.inertia(arm.joints),
        )
    data = _summary(found)
    # Times differ from run to run; the file of one seed does not.
    notes = {key: to_plain_data(x) for key, x in data.items() if key not in ("kind", "cpu_seconds")}
    about: dict[str, Any] = {"robot": arm.name, "mounting": list(arm.mounting), **notes}
    proved = clearance_block(found.motion, arm, cell.cell(found, scene))
    write_motion(found.motion, output, clearance=proved, **about)
    more = forms.write(arm, found)
    if as_json:
        print_json({**data, "output": str(output)})
        return
    _print(data, output, more)


def _summary(plan: Plan) -> dict[str, Any]:
    """What `--json` says of a plan."""
    data: dict[str, Any] = {"kind": plan.kind, "duration": plan.motion.duration}
    data["joints"] = plan.motion.joints
    result = plan.design
    if result is not None:
        data |= {
            "criterion": result.criterion,
            "condition_number": result.condition_number,
            "condition_number_scaled": result.condition_number_scaled,
            "log_det": result.log_det,
            "feasible": result.feasible,
            "worst_margin": result.worst.margin,
            "worst_constraint": result.worst.name,
            "shrunk_to": result.shrunk_to,
            "iterations": result.iterations,
            "cpu_seconds": result.cpu_seconds,
            "starts": result.starts,
            "warnings": list(result.warnings),
            "base_parameters": len(result.names),
            "samples": result.samples,
            "column_scaling": "none (SI); unit columns in condition_number_scaled",
            "base_columns": "leftmost independent, base to tip",
        }
    if plan.friction_test is not None:
        data["pose"] = plan.friction_test.pose.tolist()
        data["tests"] = [
            {
                "joint": one.joint,
                "speeds": one.speeds.tolist(),
                "expected_deviation": one.deviation,
                "not_identifiable": list(one.missing),
            }
            for one in plan.friction_test.plans
        ]
    if plan.inertia is not None:
        data["inertia"] = {
            "seconds": plan.inertia.seconds,
            "wanted": plan.inertia.required_std,
            "expected_deviation": plan.inertia.deviation,
            "reached": plan.inertia.is_reached,
        }
    return data


def _print(data: dict[str, Any], output: Path, more: list[Path]) -> None:
    from rich.table import Table

    from taufit.cli.common import headline, plain_console

    console = plain_console()
    article = "An" if data["kind"][0] in "aeiou" else "A"
    console.print(f"{article} {data['kind']} motion of {data['duration']:.4g} s.")
    if "feasible" in data:
        console.print(
            headline(
                "Feasible",
                f": checked at 5000 moments; tightest is {data['worst_constraint']} "
                f"({data['worst_margin']:.3g} left).",
            )
        )
        table = Table(show_header=False, box=None)
        for key in ("base_parameters", "condition_number", "condition_number_scaled", "log_det"):
            table.add_row(key.replace("_", " "), f"{data[key]:.4g}")
        table.add_row("criterion", str(data["criterion"]))
        table.add_row("search", f"{data['iterations']} evaluations, {data['starts']} starts")
        console.print(table)
        for warning in data["warnings"]:
            console.print(headline("Warning", f": {warning}.", "yellow"))
    for one in data.get("tests", ()):
        top = max(one["speeds"])
        line = f"joint {one['joint']}: {len(one['speeds'])} speeds up to {top:.3g} rad/s"
        if one["not_identifiable"]:
            line += f"; expected above 20 %: {', '.join(one['not_identifiable'])}"
        console.print(line)
    if "inertia" in data:
        inertia = data["inertia"]
        shown = ", ".join(f"{k} {v:.2g}" for k, v in inertia["expected_deviation"].items())
        verdict = "reached" if inertia["reached"] else "not reached"
        console.print(
            f"Expected standard deviations [kg m^2]: {shown}; {inertia['wanted']:.2g} was wanted "
            f"({verdict}) in {inertia['seconds']:.3g} s."
        )
    console.print("Written: " + ", ".join(str(path) for path in [output, *more]))
    following = "`taufit friction`" if "tests" in data else f"`taufit simulate ROBOT {output}`"
    console.print(f"Next: play it on the robot, then {following}.", soft_wrap=True)
