"""`taufit design`: plan of an excitation trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RobotName, RobotOptions, require_choice
from taufit.cli.options.design import (
    GoalOptions,
    LimitAndSceneOptions,
    MotionFileOptions,
    PurposeOptions,
    SearchBudgetOptions,
    SeriesOptions,
)
from taufit.cli.parts.next_step import next_step

if TYPE_CHECKING:
    from taufit.excitation import Plan

# Earlier names of kinds.
_ALIASES = {"excitation": "identification"}


def command(  # noqa: PLR0913 - one parameter per group of options
    robot: RobotName,
    robot_options: RobotOptions,
    series: SeriesOptions,
    goal: GoalOptions,
    limit_options: LimitAndSceneOptions,
    purpose: PurposeOptions,
    budget: SearchBudgetOptions,
    file_options: MotionFileOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Motion file to write.")] = Path(
        "motion.json"
    ),
    kind: Annotated[
        str,
        typer.Option(
            help="Kind of motion: identification, validation (differs from identification), "
            "payload (large slow arm motion, fast wrist), payload-inertia, friction-test "
            "(constant-velocity strokes) or warm-up."
        ),
    ] = "identification",
    as_json: Json = False,
) -> None:
    """Plan an excitation trajectory, verified on a fine grid or rejected with the reason.

    By default the robot keeps clear of itself and of its mounting surface, within the limits of its
    description. The condition number holds for the true sign of velocity, unscaled SI columns, the
    leftmost base columns and 2000 samples; a low one does not mean small uncertainty: criterion "a"
    (default) minimises standard deviations instead. The same seed gives the same motion. A motion
    with a column-scaled condition number above 30 (more for friction models with similar terms) is
    rejected.

    Next: play the motion on the robot (--urscript, --ros2, --csv) or `taufit simulate`, then
    `taufit fit`; a friction test goes to `taufit friction`.
    """
    from taufit.clearance import clearance_block
    from taufit.core.plain_data import to_plain_data
    from taufit.excitation import KINDS, plan, write_motion

    kind = require_choice(_ALIASES.get(kind, kind), KINDS, "--kind")
    arm = robot_options.read(robot)
    joints = purpose.joints(arm)
    model = goal.model(arm)
    scene = limit_options.scene(arm)
    with progress("designing") as bar:
        task = bar.add_task("designing", total=1.0)
        planned = plan(
            kind,
            arm,
            model=model,
            criterion=goal.criterion,
            delta1=goal.delta1,
            delta2=float("inf") if goal.delta2 is None else goal.delta2,
            basis=series.basis(arm.joints),
            limits=limit_options.limits(arm),
            jerk=float("inf") if limit_options.jerk is None else limit_options.jerk,
            scene=scene,
            start=limit_options.pose(arm.joints),
            earlier=goal.earlier_motions(),
            effort=budget.effort(lambda share, _: bar.update(task, completed=min(share, 1.0))),
            joints=joints,
            speeds=purpose.stroke_speeds(),
            passes=purpose.passes,
            minutes=purpose.minutes,
            inertia=purpose.inertia(arm.joints),
        )
    data = _summary(planned)
    # Computing times differ between runs; the file of one seed must not.
    notes = {key: to_plain_data(x) for key, x in data.items() if key not in ("kind", "cpu_seconds")}
    about: dict[str, Any] = {"robot": arm.name, "mounting": list(arm.mounting), **notes}
    clearance_data = clearance_block(planned.motion, arm, limit_options.cell(planned, scene))
    write_motion(planned.motion, output, clearance=clearance_data, **about)
    other_files = file_options.write(arm, planned)
    if as_json:
        print_json({**data, "output": str(output)})
        return
    _show(robot, data, output, other_files)


def _summary(plan: Plan) -> dict[str, Any]:
    """Plan for `--json`."""
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
            **({} if result.reached is None else {"reached": result.reached}),
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
                "joint": test.joint,
                "speeds": test.speeds.tolist(),
                "expected_deviation": test.deviation,
                "not_identifiable": list(test.missing),
            }
            for test in plan.friction_test.plans
        ]
    if plan.inertia is not None:
        data["inertia"] = {
            "seconds": plan.inertia.seconds,
            "wanted": plan.inertia.required_std,
            "expected_deviation": plan.inertia.deviation,
            "reached": plan.inertia.is_reached,
        }
    return data


def _show(robot: str, data: dict[str, Any], output: Path, other_files: list[Path]) -> None:
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
        reached = {None: "", True: ", reached", False: ", not reached"}[data.get("reached")]
        table.add_row("criterion", str(data["criterion"]) + reached)
        table.add_row("search", f"{data['iterations']} evaluations, {data['starts']} starts")
        console.print(table)
        for warning in data["warnings"]:
            console.print(headline("Warning", f": {warning}.", "yellow"))
    for test in data.get("tests", ()):
        max_speed = max(test["speeds"])
        line = f"joint {test['joint']}: {len(test['speeds'])} speeds up to {max_speed:.3g} rad/s"
        if test["not_identifiable"]:
            line += f"; expected above 20 %: {', '.join(test['not_identifiable'])}"
        console.print(line)
    if "inertia" in data:
        inertia = data["inertia"]
        deviations = ", ".join(f"{k} {v:.2g}" for k, v in inertia["expected_deviation"].items())
        verdict = "reached" if inertia["reached"] else "not reached"
        console.print(
            f"Expected standard deviations [kg m^2]: {deviations}; {inertia['wanted']:.2g} was "
            f"wanted "
            f"({verdict}) in {inertia['seconds']:.3g} s."
        )
    console.print("Written: " + ", ".join(str(path) for path in [output, *other_files]))
    if "tests" in data:
        text = "Next: play it on the robot; `taufit friction` fits its recording."
    else:
        purpose = "simulates it; `taufit record` plays it on the robot."
        text = next_step("simulate", robot, output, purpose=purpose)
    console.print(text, soft_wrap=True)
