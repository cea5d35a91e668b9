"""`taufit friction`: friction curves from friction tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    Json,
    RecordingOptions,
    Report,
    RobotName,
    RobotOptions,
    require_choice,
    require_cutoff,
    usage_error,
)
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.calibration.friction_identification import FrictionIdentification, JointFriction
    from taufit.core.arrays import Array
    from taufit.signals import Samples


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """Friction curves: model, joints and known links."""

    friction: Annotated[
        str,
        typer.Option(
            help="Friction model: auto (by the evidence of all joints), linear, linear_load, "
            "power_law, polynomial, stribeck, stribeck_load or stribeck_load_smooth."
        ),
    ] = "auto"
    joint: Annotated[
        list[int] | None,
        typer.Option(help="Joint number from 1, repeatable; default all with strokes.", min=1),
    ] = None
    not_passive: Annotated[
        bool, typer.Option("--not-passive", help="Allow viscous friction that falls with speed.")
    ] = False
    links: Annotated[
        Path | None,
        typer.Option(help="Fitted model whose link parameters are used.", metavar="MODEL"),
    ] = None
    cutoff_hz: Annotated[
        float, typer.Option(help="Cut-off of the low-pass of motion and torque [Hz].")
    ] = 10.0


def command(
    robot: RobotName,
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="Friction tests; several payloads and days are fitted together.",
            metavar="RECORDING",
        ),
    ],
    robot_options: RobotOptions,
    source: RecordingOptions,
    curve: CurveOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path(
        "friction.json"
    ),
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Fit friction curves of all joints to recordings of constant-velocity strokes.

    Strokes are segmented by the sign of the smoothed velocity; neighbours over the same positions
    in both directions are paired (half their torque difference is friction, half their sum the
    load), and all payloads, temperatures and joints are fitted together: what the strokes of one
    joint do not show is taken from the others. Terms without support are dropped and listed.
    `valid_to` is the speed up to which a curve is known within 15 %.

    Next: `taufit fit ROBOT RECORDING --friction MODEL` fits the links with this friction; `taufit
    payload` and `taufit export` read the file directly.
    """
    from taufit.calibration.friction_identification import COMPARISON_MODELS, identify_friction
    from taufit.model.model_file import read_model, write_model
    from taufit.signals import condition
    from taufit.terms.friction import FRICTION_MODELS

    require_choice(curve.friction, ("auto", *FRICTION_MODELS), "--friction")
    require_cutoff(curve.cutoff_hz)
    arm = robot_options.read(robot)
    for number in curve.joint or ():
        if number > arm.joints:
            usage_error("--joint", f"this arm has joints 1 to {arm.joints}, not {number}.")
    links_model = None if curve.links is None else read_model(curve.links)
    with progress("friction") as bar:
        task = bar.add_task("friction", total=len(recordings) + 1.0)

        def samples() -> Iterator[Samples]:
            """Read one recording at a time."""
            for path in recordings:
                for recording in source.read(path):
                    yield condition(recording, cutoff_hz=curve.cutoff_hz)
                bar.advance(task)

        result = identify_friction(
            arm,
            samples(),
            friction=curve.friction,
            joints=curve.joint,
            passive=not curve.not_passive,
            links=links_model,
            beside=() if report is None else COMPARISON_MODELS,
        )
        bar.advance(task)
    write_model(result.model, output)
    if report is not None:
        from taufit.cli.parts.report_commands import model_commands
        from taufit.core.files import write_text
        from taufit.report.friction_page import friction_page

        commands = model_commands(output, (), source)
        write_text(report, friction_page(arm, result, commands=commands))
    data = {
        "robot": arm.name,
        "model": result.name,
        "scores": result.scores,
        "compared": result.rms_by_model,
        "joints": [_joint_to_dict(friction) for friction in result.joints],
        "warnings": list(result.warnings),
        "output": str(output),
    }
    if as_json:
        print_json(data)
        return
    _show(result, output, report)


def _joint_to_dict(friction: JointFriction) -> dict[str, Any]:
    """Friction of a joint for `--json`."""
    fit, temperature = friction.fit, friction.pairs.temperature
    terms = [term.name for term in fit.model.parameters]
    shapes = [shape.name for shape in fit.model.shapes]
    values = dict(zip(terms, fit.coefficients.tolist(), strict=True))
    deviations = dict(zip(terms, fit.coefficient_std.tolist(), strict=True))
    return {
        "joint": friction.joint,
        "model": type(fit.model).__name__,
        "coefficients": {**values, **dict(zip(shapes, fit.shape.tolist(), strict=True))},
        "std": {**deviations, **dict(zip(shapes, fit.shape_std.tolist(), strict=True))},
        "rmse": fit.rms,
        "rmse_all_terms": fit.full_rms,
        "correlation": fit.correlation,
        "dropped": list(fit.dropped),
        "tested_speeds": fit.tested_speeds.tolist(),
        "valid_to": fit.valid_to,
        "load": [float(x) for x in _quantiles(abs(friction.pairs.load))],
        "temperature": None if temperature is None else [float(x) for x in _quantiles(temperature)],
        "pairs": len(friction.pairs.torque),
    }


def _quantiles(values: Array) -> Array:
    """Minimum, median and maximum."""
    import numpy as np

    return np.asarray(np.quantile(values, [0.0, 0.5, 1.0]))


def _show(result: FrictionIdentification, output: Path, report: Path | None) -> None:
    from taufit.cli.common import plain_console

    console = plain_console()
    console.print(f"Friction model: {result.name}")
    for friction in result.joints:
        fit = friction.fit
        coefficients = ", ".join(
            f"{term.name} {value:.3g}"
            for term, value in zip(fit.model.parameters, fit.coefficients, strict=True)
            if term.name not in fit.dropped
        )
        console.print(
            f"joint {friction.joint}: {coefficients}; RMSE {fit.rms:.3g} N m, "
            f"{len(fit.tested_speeds)} speeds "
            f"up to {fit.fastest:.3g} rad/s, known to {fit.valid_to:.3g} rad/s",
            soft_wrap=True,
        )
    for warning in result.warnings:
        console.print(f"Warning: {warning}.", soft_wrap=True)
    written = [str(output)] + ([str(report)] if report else [])
    console.print("Written: " + ", ".join(written))
    console.print(
        "Next: give `--friction " + str(output) + "` to a fit of the links; "
        "payload and export read it as it is.",
        soft_wrap=True,
    )
