"""`taufit gains`: drive gains from controller values or from a known mass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import (
    Json,
    RecordingOptions,
    RobotName,
    RobotOptions,
    require_choice,
    usage_error,
)
from taufit.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownMassOptions:
    """Runs with a payload of known mass."""

    loaded: Annotated[
        list[Path] | None,
        typer.Option("--loaded", help="Recording with the known mass. Repeatable."),
    ] = None
    mass: Annotated[
        float | None, typer.Option(help="Known mass on the last link [kg].", min=0.0)
    ] = None
    mass_std: Annotated[
        float, typer.Option(help="Standard deviation of the mass [kg].", min=0.0)
    ] = 0.0
    method: Annotated[
        str, typer.Option(help="Estimator: total_least_squares, least_squares or constrained.")
    ] = "total_least_squares"


def command(
    robot: RobotName,
    recording: Annotated[
        list[Path], typer.Argument(help="Recordings without payload.", metavar="RECORDING")
    ],
    source: RecordingOptions,
    known_mass: KnownMassOptions,
    arm: RobotOptions,
    as_json: Json = False,
) -> None:
    """Estimate drive gains [N m/A] with their uncertainty.

    With --loaded and --mass: from a payload of known mass, by total least squares. Without: from
    target torques and currents of the controller at standstill, if recorded.

    Next: write the `gains:` line into the column map and fit again.
    """
    from taufit.calibration.gains import gains_from_mass
    from taufit.calibration.known_mass import METHODS
    from taufit.signals import controller_gains

    require_choice(known_mass.method, METHODS, "--method")
    if (known_mass.loaded is None) != (known_mass.mass is None):
        usage_error("--loaded and --mass", "belong together: give both, or neither.")
    robot_model = arm.read(robot)
    unloaded = [run for path in recording for run in source.read(path)]
    if known_mass.loaded is not None and known_mass.mass is not None:
        runs = [run for path in known_mass.loaded for run in source.read(path)]
        gains = gains_from_mass(
            robot_model,
            unloaded,
            runs,
            known_mass.mass,
            mass_std=known_mass.mass_std,
            method=known_mass.method,
        )
    else:
        gains = controller_gains(unloaded)
    line = "gains: {value: [" + ", ".join(f"{x:.4f}" for x in gains.value)
    line += "], std: [" + ", ".join(f"{x:.4f}" for x in gains.std) + "]}"
    if as_json:
        data: dict[str, Any] = {
            "gains": gains.value,
            "std": gains.std,
            "source": list(gains.source),
            "findings": [str(finding) for finding in gains.findings],
            "map_line": line,
        }
        print_json(data)
        return
    for i, (value, std, origin) in enumerate(
        zip(gains.value, gains.std, gains.source, strict=True)
    ):
        print(f"joint {i + 1}: {value:.3f} +- {std:.3f} N m per A  ({origin})")
    for finding in gains.findings:
        print(f"note: {finding}")
    print(f"{line}\nNext: write that line into the column map and fit again.")
