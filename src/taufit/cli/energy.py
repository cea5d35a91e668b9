"""`taufit energy`: kinetic energy and effective mass at the tip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import Json, LoadedModel, RecordingOptions

if TYPE_CHECKING:
    from taufit.core.arrays import Array, Float
    from taufit.model import FittedModel
    from taufit.model.tip_energy import TipEnergy

# Sampling rate of motion files [Hz].
_RATE_HZ = 200.0


def command(
    arm: LoadedModel,
    motion: Annotated[
        Path,
        typer.Argument(help="Recording, or motion file of `taufit design`.", metavar="MOTION"),
    ],
    source: RecordingOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="CSV of energies at every sample to write.", metavar="FILE.csv"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute kinetic energy, effective mass and effective energy at the tip, with 95 % intervals.

    The effective mass is the inertia at the tip along its velocity; half of it times the squared
    tip speed is the effective energy. Intervals come from the covariance of the fitted parameters.
    A model of torque measured behind the gear has no rotor inertia: its energies are those of the
    links, with a warning.

    Not a safety function and not a risk assessment: clamping, edges and the reaction of the
    controller are not included.

    Next: slow the motion down at its peaks, or plan another with `taufit design --tip-speed`.
    """
    from taufit.model.tip_energy import tip_energy

    fitted = arm.read()
    time, position, velocity = _read_states(fitted, motion, source)
    energy = tip_energy(fitted, position, velocity)
    if output is not None:
        _write_csv(output, time, energy)
    page = {
        "model": str(arm.model),
        "motion": str(motion),
        "robot": fitted.robot.name,
        "rotors_included": bool(fitted.layout.has("rotor")),
        "states": len(time),
        **_peak_values(time, energy),
        "warnings": _warnings(fitted),
    }
    if output is not None:
        page["written"] = str(output)
    if as_json:
        print_json(page)
    else:
        _show(page, output)


def _read_states(
    model: FittedModel, path: Path, source: RecordingOptions
) -> tuple[Float[Array, " n"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Time, position and velocity of a motion file or a recording."""
    import numpy as np

    from taufit.core.errors import TaufitError

    if path.suffix == ".json":
        from taufit.excitation import read_motion

        planned = read_motion(path)
        if planned.joints != model.robot.joints:
            raise TaufitError(
                f"{path} moves {planned.joints} joints, the model has {model.robot.joints}. Give a "
                "motion of the same robot."
            )
        time = np.arange(int(planned.duration * _RATE_HZ) + 1) / _RATE_HZ
        position, velocity, _ = planned.at(time)
        return time, position, velocity
    from taufit.workflow import condition_for_model

    samples = condition_for_model(model, [source.read_single(path)])
    return samples.time, samples.position, samples.velocity


def _peak_values(time: Float[Array, " n"], energy: TipEnergy) -> dict[str, Any]:
    """Largest value of each quantity, its time and its interval."""
    import numpy as np

    def peak(
        name: str, value: Float[Array, " n"], std: Float[Array, " n"] | None, unit: str
    ) -> dict[str, Any]:
        from taufit.core.statistics import NORMAL_95

        k = int(np.argmax(np.where(np.isfinite(value), value, -np.inf)))
        largest = float(value[k])
        out: dict[str, Any] = {"value": largest, "unit": unit, "t": float(time[k])}
        if std is not None:
            half = NORMAL_95 * float(std[k])
            if np.isfinite(half):
                out |= {"low": max(largest - half, 0.0), "high": largest + half}
        return {name: out}

    if not all(np.isfinite(x).all() for x in (energy.kinetic, energy.effective, energy.speed)):
        from taufit.core.errors import TaufitError

        raise TaufitError("the motion is so fast that its energy is beyond all numbers.")
    k = int(np.argmax(energy.effective))
    # The effective mass of a slow tip is not meaningful.
    is_fast = energy.speed > 0.05 * energy.speed.max()
    mass = np.where(is_fast, energy.effective_mass, np.nan)
    return {
        **peak("kinetic_energy", energy.kinetic, energy.kinetic_std, "J"),
        **peak("effective_energy", energy.effective, energy.effective_std, "J"),
        **peak("tip_speed", energy.speed, None, "m/s"),
        **peak("effective_mass", mass, energy.effective_mass_std, "kg"),
        "effective_mass_at_peak_energy": float(energy.effective_mass[k]),
    }


def _warnings(model: FittedModel) -> list[str]:
    out = []
    if not model.layout.has("rotor"):
        out.append(
            "the model was fitted to torque behind the gear and has no rotor inertia: energies are "
            "those of the links. Rotors behind stiff gears add to them."
        )
    if model.training.base is None:
        out.append("the model has no covariance: energies come without intervals.")
    return out


def _write_csv(path: Path, time: Any, energy: TipEnergy) -> None:
    from dataclasses import fields

    from taufit.core.files import write_text

    names = tuple(item.name for item in fields(energy))
    lines = [",".join(("t", *names))]
    columns = [time, *(getattr(energy, name) for name in names)]
    lines += [",".join(f"{x:.9g}" for x in row) for row in zip(*columns, strict=True)]
    write_text(path, "\n".join(lines) + "\n")


def _show(page: dict[str, Any], output: Path | None) -> None:
    from math import isfinite

    from rich.table import Table

    from taufit.cli.common import plain_console

    console = plain_console()
    table = Table(title=f"{page['robot']}: largest over {page['states']} states")
    for name in ("quantity", "value", "low", "high", "at"):
        table.add_column(name, justify="left" if name == "quantity" else "right")
    for key in ("kinetic_energy", "effective_energy", "effective_mass", "tip_speed"):
        quantity = page[key]
        bounds = [f"{quantity[side]:.3g}" if side in quantity else "-" for side in ("low", "high")]
        table.add_row(
            f"{key.replace('_', ' ')}, {quantity['unit']}",
            f"{quantity['value']:.3g}" if isfinite(quantity["value"]) else "not known",
            *bounds,
            f"{quantity['t']:.2f} s",
        )
    console.print(table)
    for text in page["warnings"]:
        console.print(f"warning: {text}")
    if output is not None:
        console.print(f"Written: {output}")
    console.print(
        "Next: slow the motion down where it peaks, or plan another with --tip-speed of "
        "`taufit design`.",
    )
