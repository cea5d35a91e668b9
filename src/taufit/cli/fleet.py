"""`taufit fleet`: recordings of many robots of one type in, a model for each and surprises out."""

from __future__ import annotations

from dataclasses import dataclass
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
from taufit.cli.options.cache import CacheOption, opened_cache, say_warning

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.fleet import FleetResult

_KEYS = ("robot", "day")
# Robots that are listed on the screen, worst first.
_LISTED = 12


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """How recordings are told apart and read, and where the work is done."""

    by: Annotated[
        str,
        typer.Option(
            help="What recordings are told apart by: robot, or robot,day. Below PATH the first "
            "name is the robot's and the second the day's; robot=NAME and dates say it themselves.",
            metavar="KEYS",
        ),
    ] = "robot,day"
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler whose workers do the work, e.g. tls://HOST:8786. It sends Python "
            "objects: only one you trust.",
            metavar="ADDRESS",
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            help="Processes of this computer that share the files; by default one per processor.",
            metavar="N",
            min=1,
            max=1024,
        ),
    ] = None
    cutoff_hz: Annotated[
        float, typer.Option(help="Low-pass for motion and torque alike.", metavar="HZ")
    ] = 10.0
    cache: CacheOption = "auto"
    allow_repeats: AllowRepeats = False

    def keys(self) -> tuple[str, ...]:
        """The keys, which must be known."""
        keys = tuple(part.strip() for part in self.by.split(","))
        if not keys or keys[0] != "robot" or any(key not in _KEYS for key in keys):
            usage_error("--by", f"expected robot or robot,day, got {self.by!r}.")
        return keys

    def opened(self, path: str) -> Cache | None:
        """Where results on files of this computer are kept, if they are."""
        folder = Path(path)
        return opened_cache(self.cache, folder if folder.is_dir() else None)


def command(
    robot: RobotName,
    path: Annotated[
        str,
        typer.Argument(
            help="Folder or pattern of recordings, local or an address that fsspec opens "
            "(s3://BUCKET/...).",
            metavar="PATH",
        ),
    ],
    source: RecordingOptions,
    arm: RobotOptions,
    how: FleetOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for fleet.parquet (one row per robot and day), fleet.html, typical.json "
            "and models/ROBOT.json.",
            metavar="FOLDER",
        ),
    ] = Path("fleet"),
    as_json: Json = False,
) -> None:
    """Study many robots of one type: a model for each, and which are unlike the others.

    Each robot's model uses its own recordings and what its siblings have in common. Robots whose
    friction, tool or mounting is unlike the others' are named with the cause, trends of friction
    over days have temperature taken out, and files that cannot be used are listed by name; none of
    these stops the run.

    Next: open fleet.html; `taufit fit ROBOT NEW --friction FOLDER/typical.json` starts a new arm
    from its siblings.
    """
    from contextlib import nullcontext

    from taufit.core.compute.engines import open_engine
    from taufit.fleet import study_fleet

    keys = how.keys()
    if not 0.0 < how.cutoff_hz < 1e6:
        usage_error("--cutoff-hz", f"must be a positive frequency in Hz, got {how.cutoff_hz:g}.")
    nominal = arm.read(robot)
    with (
        progress("fleet") as bar,
        how.opened(path) or nullcontext() as cache,
        open_engine(how.processes, how.scheduler) as engine,
    ):
        task = bar.add_task("reading", total=None)
        found = study_fleet(
            nominal,
            path,
            by=keys,
            engine=engine,
            cutoff_hz=how.cutoff_hz,
            reader=source,
            cache=cache,
            allow_repeats=how.allow_repeats,
            watch=lambda done, all_: bar.update(task, completed=done, total=all_),
        )
    say_warning(cache)
    _write(found, output)
    if as_json:
        print_json(found.to_dict() | {"output": str(output)})
    else:
        _show(found, output)


def _write(found: FleetResult, folder: Path) -> None:
    from taufit.core.files import write_text
    from taufit.model.model_file import write_model
    from taufit.report.fleet_page import fleet_page

    for one in found.robots:
        write_model(one.model, folder / "models" / found.file_name(one.robot))
    write_model(found.typical, folder / "typical.json")
    found.write_table(folder / "fleet.parquet")
    write_text(folder / "fleet.html", fleet_page(found))


def _show(found: FleetResult, folder: Path) -> None:
    from taufit.cli.common import headline, plain_console

    console = plain_console()
    odd = [one for one in found.robots if one.is_outlier]
    days = sum(len(one.days) for one in found.robots)
    text = f"  {len(found.robots)} robots of type {found.type}, {days} days, {found.rows:,} rows"
    console.print(headline(f"{len(odd)} unlike the others", text))
    for one in odd[:_LISTED]:
        for surprise in one.outliers:
            console.print(f"  {one.robot}: {surprise.message}")
    if len(odd) > _LISTED:
        console.print(f"  and {len(odd) - _LISTED} more, in fleet.html")
    shown = [factor for factor in found.detectable_rise if factor < float("inf")]
    if shown:
        console.print(
            "A worn joint is named on 19 of 20 robots once its friction is "
            f"{min(shown):.1f} to {max(shown):.1f} times what it was, by joint."
        )
    for incident in found.incidents:
        console.print(f"  {incident}")
    for failed in found.failed:
        console.print(f"  {failed.file} was not used: {failed.reason}")
    console.print(f"Written to {folder}: fleet.html, fleet.parquet, typical.json, models/")
