"""Comparison of controllers on a simulated robot, for `taufit simulate --controller`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import require_choice, usage_error
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.excitation import Motion
    from taufit.sim import CarriedPayload, Twin


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """Torque control of the simulated robot, instead of a recording."""

    controller: Annotated[
        list[str] | None,
        typer.Option(
            help="Feed-forward: pd, nominal, rigid, coulomb-viscous, memoryless, taufit, "
            "taufit-tracked or all. Repeatable.",
            metavar="NAME",
        ),
    ] = None
    feed_forward: Annotated[
        Path | None, typer.Option(help="Fitted model of the feed-forward.", metavar="MODEL")
    ] = None


def compare_controllers(
    twin: Twin,
    make_motion: Callable[[int, float | None], Motion],
    options: LoopOptions,
    payloads: tuple[CarriedPayload, ...],
    seed: int,
    bandwidth_hz: float | None,
    as_json: bool,
) -> None:
    """Run each controller on the simulated robot; print tracking errors and torques."""
    from taufit.model import read_model
    from taufit.sim.closed_loop import CONTROLLERS, run_closed_loop

    if options.feed_forward is None:
        usage_error("--controller", "give the model of the feed-forward: --feed-forward MODEL.")
    for name in options.controller or ():
        require_choice(name, (*CONTROLLERS, "all"), "--controller")
    names = CONTROLLERS if "all" in (options.controller or ()) else tuple(options.controller or ())
    model = read_model(options.feed_forward)
    if model.robot.joints != twin.robot.joints:
        usage_error(
            "--feed-forward",
            f"{options.feed_forward} is a model of {model.robot.name} with {model.robot.joints} "
            f"joints; {twin.robot.name} has {twin.robot.joints}.",
        )
    motion = make_motion(seed, None)
    rows: list[dict[str, Any]] = []
    with progress("simulating") as bar:
        task = bar.add_task("simulating", total=float(len(names)))
        for name in names:
            result = run_closed_loop(
                twin, motion, name, model, seed=seed, payloads=payloads,
                bandwidth_hz=bandwidth_hz or 5.0,
            )  # fmt: skip
            rows.append(
                {
                    "controller": name,
                    "tracking_rms": result.rms(0.5).tolist(),
                    "reversal_peak": [
                        x if np.isfinite(x) else None for x in result.reversal_peaks(0.5).tolist()
                    ],
                    "peak_torque": result.peak_torque.tolist(),
                    "friction_level": result.level.tolist(),
                }
            )
            bar.update(task, advance=1)
    if as_json:
        print_json({"robot": twin.robot.name, "seed": seed, "controllers": rows})
        return
    print(
        f"{'feed-forward by':<18}{'tracking error':>16}{'after reversals':>17}{'peak torque':>14}"
    )
    print(f"{'':<18}{'mrad rms':>16}{'mrad':>17}{'N m':>14}")
    for row in rows:
        peaks = [x for x in row["reversal_peak"] if x is not None]
        reversal = f"{1e3 * np.mean(peaks):.3g}" if peaks else "no reversal"
        print(
            f"{row['controller']:<18}{1e3 * np.mean(row['tracking_rms']):>16.3g}{reversal:>17}"
            f"{max(row['peak_torque']):>14.3g}"
        )
    if model.robot.drives.side == "link":
        print(
            "Torque was measured behind the gear: the model has no gear friction to feed forward."
        )
    print("Means over joints, from 0.5 s on.")
    print(f"Next: `taufit export {quote(str(options.feed_forward))} -o arm.c` for your controller.")
