"""`taufit fleet`: models and outliers of many robots of one type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    AllowRepeats,
    Json,
    RecordingOptions,
    RobotName,
    RobotOptions,
    usage_error,
)
from taufit.cli.options.result_cache import CacheOption, open_result_cache, print_cache_warning
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.fleet import FleetResult

_KEYS = ("robot", "day")
# Number of robots listed on the screen, worst first.
_MAX_LISTED = 12


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Grouping and reading of recordings, and parallel computation."""

    by: Annotated[
        str,
        typer.Option(
            help="Grouping of recordings: robot, or robot,day. Below PATH the first folder is the "
            "robot and the second the day, unless robot=NAME and dates are given.",
            metavar="KEYS",
        ),
    ] = "robot,day"
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler for the computation, e.g. tls://HOST:8786. It receives Python "
            "objects: use a trusted one only.",
            metavar="ADDRESS",
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            help="Parallel processes on this computer; default one per processor.",
            metavar="N",
            min=1,
            max=1024,
        ),
    ] = None
    cutoff_hz: Annotated[
        float,
        typer.Option(help="Cut-off of the low-pass of motion and torque [Hz].", metavar="HZ"),
    ] = 10.0
    cache: CacheOption = "auto"
    allow_repeats: AllowRepeats = False

    def grouping_keys(self) -> tuple[str, ...]:
        """Grouping keys; wrong usage if unknown."""
        keys = tuple(part.strip() for part in self.by.split(","))
        if not keys or keys[0] != "robot" or any(key not in _KEYS for key in keys):
            usage_error("--by", f"expected robot or robot,day, got {self.by!r}.")
        return keys

    def open_cache(self, path: str) -> Cache | None:
        """Open the result cache for files of this computer, if one is used."""
        folder = Path(path)
        return open_result_cache(self.cache, folder if folder.is_dir() else None)


def command(
    robot: RobotName,
    path: Annotated[
        str,
        typer.Argument(
            help="Folder or pattern of recordings, local or an fsspec address (s3://BUCKET/...).",
            metavar="PATH",
        ),
    ],
    source: RecordingOptions,
    arm: RobotOptions,
    fleet_options: FleetOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder to write: fleet.parquet (one row per robot and day), fleet.html, "
            "typical.json and models/ROBOT.json.",
            metavar="FOLDER",
        ),
    ] = Path("fleet"),
    as_json: Json = False,
) -> None:
    """Fit many robots of one type, find outliers and trends.

    The model of each robot uses its own recordings and a prior from the fleet. Outliers in
    friction,
    tool or mounting are reported with their cause, trends of friction over days are compensated for
    temperature, and unusable files are listed; none of these stops the run.

    Next: open fleet.html; `taufit fit ROBOT NEW --friction FOLDER/typical.json` fits a new robot
    with the fleet's friction as prior.
    """
    from contextlib import nullcontext

    from taufit.core.compute.engines import open_engine
    from taufit.fleet import study_fleet

    keys = fleet_options.grouping_keys()
    if not 0.0 < fleet_options.cutoff_hz < 1e6:
        usage_error(
            "--cutoff-hz", f"must be a positive frequency in Hz, got {fleet_options.cutoff_hz:g}."
        )
    nominal = arm.read(robot)
    with (
        progress("fleet") as bar,
        fleet_options.open_cache(path) or nullcontext() as cache,
        open_engine(fleet_options.processes, fleet_options.scheduler) as engine,
    ):
        task = bar.add_task("reading", total=None)
        result = study_fleet(
            nominal,
            path,
            by=keys,
            engine=engine,
            cutoff_hz=fleet_options.cutoff_hz,
            reader=source,
            cache=cache,
            allow_repeats=fleet_options.allow_repeats,
            watch=lambda done, all_: bar.update(task, completed=done, total=all_),
        )
    print_cache_warning(cache)
    _write_results(result, output)
    if as_json:
        print_json(result.to_dict() | {"output": str(output)})
    else:
        _show(result, output)


def _write_results(result: FleetResult, folder: Path) -> None:
    from taufit.core.files import write_text
    from taufit.model.model_file import write_model
    from taufit.report.fleet_page import fleet_page

    for entry in result.robots:
        write_model(entry.model, folder / "models" / result.file_name(entry.robot))
    write_model(result.typical, folder / "typical.json")
    result.write_table(folder / "fleet.parquet")
    write_text(folder / "fleet.html", fleet_page(result))


def _show(result: FleetResult, folder: Path) -> None:
    from taufit.cli.common import headline, plain_console

    console = plain_console()
    outliers = [entry for entry in result.robots if entry.is_outlier]
    days = sum(len(entry.days) for entry in result.robots)
    text = f"  {len(result.robots)} robots of type {result.type}, {days} days, {result.rows:,} rows"
    console.print(headline(f"{len(outliers)} unlike the others", text))
    for entry in outliers[:_MAX_LISTED]:
        for surprise in entry.outliers:
            console.print(f"  {entry.robot}: {surprise.message}")
    if len(outliers) > _MAX_LISTED:
        console.print(f"  and {len(outliers) - _MAX_LISTED} more, in fleet.html")
    factors = [factor for factor in result.detectable_rise if factor < float("inf")]
    if factors:
        console.print(
            "A worn joint is named on 19 of 20 robots once its friction is "
            f"{min(factors):.1f} to {max(factors):.1f} times what it was, by joint."
        )
    for incident in result.incidents:
        console.print(f"  {incident}")
    for failed in result.failed:
        console.print(f"  {failed.file} was not used: {failed.reason}")
    console.print(f"Written to {folder}: fleet.html, fleet.parquet, typical.json, models/")
