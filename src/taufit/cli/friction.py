"""`taufit friction`: friction curves from recordings of friction tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    cutoff_given,
    require_choice,
    usage_error,
)

if TYPE_CHECKING:
    from taufit.calibration.friction_identification import FrictionIdentification, JointFriction
    from taufit.core.arrays import Array
    from taufit.signals import Samples


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """Which joints, which curve, and what is known already."""

    friction: Annotated[
        str,
        typer.Option(
            help="auto (by BIC over all joints), linear, linear_load, power_law, polynomial, "
            "stribeck, stribeck_load or stribeck_load_smooth."
        ),
    ] = "auto"
    joint: Annotated[
        list[int] | None,
        typer.Option(help="Only this joint, from 1; repeatable. All with strokes else.", min=1),
    ] = None
    not_passive: Annotated[
        bool, typer.Option("--not-passive", help="Let the viscous part fall with speed.")
    ] = False
    links: Annotated[
        Path | None, typer.Option(help="Fitted model whose links are kept.", metavar="MODEL")
    ] = None
    cutoff_hz: Annotated[float, typer.Option(help="Low-pass of motion and torque.")] = 10.0


def command(
    robot: RobotName,
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="Friction tests; several payloads and days are fitted at once.",
            metavar="RECORDING...",
        ),
    ],
    which: RobotOptions,
    source: RecordingOptions,
    curve: CurveOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model to write.")] = Path(
        "friction.json"
    ),
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Fit friction curves of all joints to recordings of constant-speed strokes.

    Strokes are found by the smoothed velocity's sign, neighbours that pass the same positions both
    ways are paired (half their torque difference is friction, half their sum the load), and all
    payloads and temperatures of a joint are fitted at once. Terms without support are dropped and
    named: by BIC, or when their sign changes without the fastest speed. `valid_to` is the speed up
    to which a curve is known within 15 %.

    Next: `taufit fit ROBOT RECORDING --friction MODEL` fits the links with this friction; `taufit
    payload` and `taufit export` read the file as it is.
    """
    from taufit.calibration.friction_identification import COMPARISON_MODELS, identify_friction
    from taufit.model.model_file import read_model, write_model
    from taufit.signals import condition
    from taufit.terms.friction import FRICTION_MODELS

    require_choice(curve.friction, ("auto", *FRICTION_MODELS), "--friction")
    cutoff_given(curve.cutoff_hz)
    arm = which.read(robot)
    for number in curve.joint or ():
        if number > arm.joints:
            usage_error("--joint", f"this arm has joints 1 to {arm.joints}, not {number}.")
    known = None if curve.links is None else read_model(curve.links)
    with progress("friction") as bar:
        task = bar.add_task("friction", total=len(recordings) + 1.0)

        def samples() -> Iterator[Samples]:
            """One recording in memory at a time."""
            for path in recordings:
                for one in source.read(path):
                    yield condition(one, cutoff_hz=curve.cutoff_hz)
                bar.advance(task)

        found = identify_friction(
            arm,
            samples(),
            friction=curve.friction,
            joints=curve.joint,
            passive=not curve.not_passive,
            links=known,
            beside=() if report is None else COMPARISON_MODELS,
        )
        bar.advance(task)
    write_model(found.model, output)
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.friction_page import friction_page

        write_text(report, friction_page(arm, found))
    data = {
        "robot": arm.name,
        "model": found.name,
        "scores": found.scores,
        "compared": found.rms_by_model,
        "joints": [_joint(one) for one in found.joints],
        "warnings": list(found.warnings),
        "output": str(output),
    }
    if as_json:
        print_json(data)
        return
    _print(found, output, report)


def _joint(one: JointFriction) -> dict[str, Any]:
    """A joint as `--json` gives it."""
    fit, warm = one.fit, one.pairs.temperature
    terms = [term.name for term in fit.model.parameters]
    shapes = [shape.name for shape in fit.model.shapes]
    values = dict(zip(terms, fit.coefficients.tolist(), strict=True))
    deviations = dict(zip(terms, fit.coefficient_std.tolist(), strict=True))
    return {
        "joint": one.joint,
        "model": type(fit.model).__name__,
        "coefficients": {**values, **dict(zip(shapes, fit.shape.tolist(), strict=True))},
        "std": {**deviations, **dict(zip(shapes, fit.shape_std.tolist(), strict=True))},
        "rmse": fit.rms,
        "rmse_all_terms": fit.full_rms,
        "correlation": fit.correlation,
        "dropped": list(fit.dropped),
        "tested_speeds": fit.tested_speeds.tolist(),
        "valid_to": fit.valid_to,
        "load": [float(x) for x in _span(abs(one.pairs.load))],
        "temperature": None if warm is None else [float(x) for x in _span(warm)],
        "pairs": len(one.pairs.torque),
    }


def _span(values: Array) -> Array:
    """Least, median and largest."""
    import numpy as np

    return np.asarray(np.quantile(values, [0.0, 0.5, 1.0]))


def _print(found: FrictionIdentification, output: Path, report: Path | None) -> None:
    from taufit.cli.common import plain_console

    console = plain_console()
    console.print(f"Friction model: {found.name}")
    for one in found.joints:
        fit = one.fit
        shown = ", ".join(
            f"{term.name} {value:.3g}"
            for term, value in zip(fit.model.parameters, fit.coefficients, strict=True)
            if term.name not in fit.dropped
        )
        console.print(
            f"joint {one.joint}: {shown}; RMSE {fit.rms:.3g} N m, {len(fit.tested_speeds)} speeds "
            f"up to {fit.fastest:.3g} rad/s, known to {fit.valid_to:.3g} rad/s",
            soft_wrap=True,
        )
    for warning in found.warnings:
        console.print(f"Warning: {warning}.", soft_wrap=True)
    written = [str(output)] + ([str(report)] if report else [])
    console.print("Written: " + ", ".join(written))
    console.print(
        f"Next: `taufit fit ROBOT RECORDING --friction {output}` for the links; `taufit payload` "
        "and `taufit export` read it as it is.",
        soft_wrap=True,
    )
