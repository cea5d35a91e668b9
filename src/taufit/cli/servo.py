"""`taufit servo`: servo model of a position-controlled arm, from commands and positions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import (
    Json,
    RecordingOptions,
    Report,
    RobotName,
    RobotOptions,
    usage_error,
)
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.servo.identify import RunComparison, ServoIdentification
    from taufit.servo.model import ServoModel


@dataclass(frozen=True, slots=True)
class ServoOptions:
    """Assumptions about arm and servos; surroundings."""

    floor: Annotated[
        str, typer.Option(help="Floor: auto, none, or its height above the base [m].")
    ] = "auto"
    mass: Annotated[
        list[str] | None,
        typer.Option(help="Mass of a link, or of all together. Repeatable.", metavar="LINK=KG|KG"),
    ] = None
    servo_type: Annotated[
        str | None, typer.Option(help="Servo type for the prior, e.g. sts3215, or none.")
    ] = None
    contact_point: Annotated[
        str | None,
        typer.Option(help="Lowest point of the last link X,Y,Z [m]; default the tip."),
    ] = None
    stage: Annotated[
        str | None,
        typer.Option(
            help="Stage: linear, roll-outs or roll-outs with acceleration limit; default by "
            "left-out runs."
        ),
    ] = None

    def floor_value(self) -> str | float | None:
        """Floor as `identify_servo` takes it."""
        if self.floor in ("auto", "none"):
            return None if self.floor == "none" else "auto"
        return _number(self.floor, "--floor", "expected auto, none or a height in metres")

    def masses(self) -> dict[str, float] | float | None:
        """Masses by link, or of all links."""
        out: dict[str, float] = {}
        for text in self.mass or ():
            link, separator, value = text.rpartition("=")
            mass = _number(value, "--mass", "expected LINK=KG or KG")
            if not separator:
                return mass
            out[link] = mass
        return out or None

    def point(self) -> list[float] | None:
        """Contact point in the last link's frame."""
        if self.contact_point is None:
            return None
        parts = self.contact_point.split(",")
        if len(parts) != 3:
            usage_error("--contact-point", f"expected X,Y,Z, got {self.contact_point!r}.")
        return [_number(part, "--contact-point", "expected X,Y,Z") for part in parts]


def _number(text: str, option: str, expected: str) -> float:
    try:
        return float(text)
    except ValueError:
        usage_error(option, f"{expected}, got {text!r}.")


def command(  # noqa: PLR0913 - one parameter per option
    robot: RobotName,
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings of commands and positions, or LeRobot folders.", metavar="RECORDING"
        ),
    ],
    robot_options: RobotOptions,
    source: RecordingOptions,
    options: ServoOptions,
    holdout: Annotated[
        list[str] | None,
        typer.Option(
            help="Hold-out recording to score, or a share such as 30%. Repeatable.",
            metavar="FILE|PERCENT",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path(
        "servo.json"
    ),
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Fit the servos of a position-controlled arm to its commands and encoder positions.

    No torque is needed. Ratios that do not depend on the masses come first (damping/kp, Coulomb
    friction/kp, delay, acceleration limit of the servo's own reference), then kp for the assumed
    masses; intervals come from whole runs. The verdict is the error of an open-loop
    replay of motion that was not used in the fit, beside that of the command itself and of the
    nominal actuator. Acceleration limit and floor are kept only where left-out runs improve.

    Next: `taufit export MODEL --format mjcf -o arm.xml` writes the actuators for MuJoCo.
    """
    from taufit.servo.identify import identify_servo
    from taufit.servo.model import write_servo_model

    arm = robot_options.read(robot)
    runs = [run for path in recordings for run in source.read(path)]
    shares = [text for text in holdout or () if text.endswith("%")]
    if shares and len(holdout or ()) > 1:
        usage_error("--holdout", "give files, or one share such as 30%.")
    tests: Any = shares[0] if shares else None
    if holdout and not shares:
        tests = [run for text in holdout for run in source.read(Path(text))]
    result = identify_servo(
        arm,
        runs,
        holdout=tests,
        floor=options.floor_value(),
        masses=options.masses(),
        servo_type=options.servo_type,
        point=options.point(),
        stage=options.stage,
    )
    write_servo_model(result.model, output)
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.servo_page import servo_page

        purpose = "Use the actuators in MuJoCo."
        write_text(report, servo_page(result, commands=[(purpose, _export_command(output))]))
    if as_json:
        print_json(servo_to_dict(result, output))
    else:
        _show(result, output, report)
    if result.verdict == "FAIL":
        raise typer.Exit(1)


def servo_to_dict(result: ServoIdentification, output: Path) -> dict[str, Any]:
    """Result for `--json`."""
    summary, model = result.summary(), result.model
    return {
        "robot": model.robot.name,
        "verdict": result.verdict,
        "stage": model.record["stage"],
        "replay_rms": list(summary.joints),
        "mean_replay_rms": summary.mean,
        "median_replay_rms": summary.median,
        "free_replay_rms": summary.free_mean,
        "command_rms": result.summary("command").mean,
        "nominal_rms": result.summary("nominal").mean,
        "left_out_rms": model.record["left_out_rms"],
        "floor": None if model.floor is None else model.floor.height,
        "parameters": [
            {"name": v.name, "value": v.value, "low": v.low, "high": v.high, "unit": v.unit}
            | ({"note": v.note} if v.note else {})
            for v in model.values
        ],
        "training": [run_to_dict(run) for run in result.training],
        "holdout": [run_to_dict(run) for run in result.holdout],
        "warnings": list(result.warnings),
        "cpu_seconds": result.cpu_seconds,
        "output": str(output),
    }


def run_to_dict(run: RunComparison) -> dict[str, Any]:
    """Scores of a run for `--json`."""
    return {
        "file": run.name,
        "replay_rms": run.model.rms.tolist(),
        "mean_replay_rms": run.model.mean_rms,
        "free_replay_rms": float(run.model.free_rms.mean()),
        "command_rms": run.command.mean_rms,
        "nominal_rms": run.nominal.mean_rms,
        "contact_fraction": run.model.contact_fraction,
        "extrapolated": run.is_extrapolated,
        "clipped_joints": list(run.clipped_joints),
    }


def _show(result: ServoIdentification, output: Path, report: Path | None) -> None:
    from taufit.cli.common import headline, plain_console

    console = plain_console()
    model = result.model
    data_kind = "hold-out" if result.holdout else "training"
    summary = result.summary()
    console.print(
        headline(
            result.verdict,
            f": {data_kind} replay {1e3 * summary.mean:.1f} mrad, median run "
            f"{1e3 * summary.median:.1f}, away from contact {1e3 * summary.free_mean:.1f}; command "
            f"itself {1e3 * result.summary('command').mean:.1f}, nominal actuator "
            f"{1e3 * result.summary('nominal').mean:.1f}",
        ),
        soft_wrap=True,
    )
    console.print(f"Stage: {model.record['stage']} ({result.cpu_seconds:.1f} CPU s)")
    _show_values(model)
    print(f"\n{'run':<32} replay  command  contact")
    for run in result.holdout or result.training:
        print(
            f"{run.name:<32} {1e3 * run.model.mean_rms:6.1f}  {1e3 * run.command.mean_rms:7.1f}  "
            f"{run.model.contact_fraction:7.0%}"
        )
    print("Root mean square error, mean over the joints [mrad].\n")
    for warning in result.warnings:
        console.print(f"Warning: {warning}.", soft_wrap=True)
    console.print("Written: " + ", ".join([str(output)] + ([str(report)] if report else [])))
    console.print(f"Next: `{_export_command(output)}` for MuJoCo.", soft_wrap=True)


def _show_values(model: ServoModel) -> None:
    """Print a line per joint, then what all joints have in common."""
    from taufit.servo.model import TAKEN

    texts = {}
    for value in model.values:
        scale, unit = _DISPLAY.get(value.unit, (1.0, value.unit))
        low, mid, high = (f"{scale * x:.3g}" for x in (value.low, value.value, value.high))
        mark = " *" if value.note == TAKEN else ""
        texts[value.name] = f"{mid} ({low} to {high}){mark}", unit
    kinds = {"damping_ratio": "damping/kp [ms]", "coulomb_ratio": "Coulomb/kp [mrad]"}
    kinds["kp"] = "kp [N m/rad]"
    print(f"\n{'joint':<16} " + "".join(f"{title:<24}" for title in kinds.values()).rstrip())
    for joint in model.robot.joint_names:
        cells = "".join(f"{texts.pop(f'{joint}.{kind}')[0]:<24}" for kind in kinds)
        print(f"{joint:<16} {cells}".rstrip())
    if any(value.note == TAKEN for value in model.values):
        print(f"* {TAKEN}: gravity does not show it")
    for name, (text, unit) in texts.items():
        print(f"{name.replace('_', ' ')}: {text} {unit}")


def _export_command(model: Path) -> str:
    return shlex.join(["taufit", "export", str(model), "-o", str(model.with_name("arm.xml"))])


_DISPLAY = {"s": (1e3, "ms"), "rad": (1e3, "mrad")}
