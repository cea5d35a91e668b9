"""Options of hand guiding with a force log, and its output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.options import RecordingOptions, usage_error
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.model import FittedModel
    from taufit.payload import PayloadEstimate
    from taufit.payload.hand_guiding import GuidedForce


@dataclass(frozen=True, slots=True)
class GuidingOptions:
    """Force log of hand guiding."""

    force_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a force sensor at the tip [N]; gives mean and variance of the hand "
            "force with and without the payload's weight.",
            metavar="FX,FY,FZ",
        ),
    ] = None
    guiding: Annotated[
        Path | None,
        typer.Option(
            help="Log of hand guiding, if not RECORDING; with the same column map.",
            metavar="LOG",
        ),
    ] = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the three columns; None without them."""
        if self.force_columns is None:
            if self.guiding is not None:
                usage_error(
                    "--guiding", "say which columns hold the force: --force-columns FX,FY,FZ."
                )
            return None
        names = tuple(name.strip() for name in self.force_columns.split(","))
        if len(names) != 3 or not all(names):
            usage_error("--force-columns", f"expected three names, got {self.force_columns!r}.")
        return names

    def force(
        self,
        source: RecordingOptions,
        recording: Path,
        model: FittedModel,
        estimate: PayloadEstimate,
    ) -> GuidedForce | None:
        """Hand force with and without the payload; None without columns."""
        names = self.names
        if names is None:
            return None
        from taufit.payload.hand_guiding import force_columns, guiding_force
        from taufit.recording import reorder_joints

        path = self.guiding or recording
        log = source.read_single(path)
        ordered = reorder_joints(log, model.robot.joint_names, robot=model.robot.name)
        force = force_columns(path, log, names)
        return guiding_force(model.robot, ordered.position, force, estimate)


def show_force(guided: GuidedForce) -> None:
    """Print the hand force with and without the payload's weight."""
    from rich.table import Table

    from taufit.cli.common import plain_console

    table = Table(title=f"force of the hand over {guided.samples} rows, axes of the tip")
    for name in ("quantity", "x", "y", "z"):
        table.add_column(name, justify="left" if name == "quantity" else "right")
    for name, values in (
        ("mean, N", guided.mean),
        ("mean with the payload compensated, N", guided.mean_compensated),
        ("variance, N^2", guided.variance),
        ("variance with the payload compensated, N^2", guided.variance_compensated),
    ):
        table.add_row(name, *(f"{x:.3g}" for x in values))
    console = plain_console()
    console.print(table)
    console.print(
        f"Weight that may stay because the mass is not known better: {guided.residual:.2g} N "
        "(standard deviation).",
    )
