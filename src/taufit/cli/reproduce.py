"""`taufit reproduce`: tables and figures of a paper beside reproduced ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Report, require_choice

if TYPE_CHECKING:
    from taufit.papers import Exhibit


def command(
    paper: Annotated[str, typer.Argument(help="Paper: xu2024, kr5, raviola2021 or luo2024.")],
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Reproduce the tables and figures of a paper and print them beside the published ones.

    Four papers: xu2024 (payload, UR10), kr5 (unknown torque signs), raviola2021 (temperature and
    mounting, UR3 and UR5), luo2024 (friction and excitation, Franka). Experiments run on simulated
    robots; measurements that cannot be repeated are marked. Takes seconds to minutes.

    Exits with 1 if a number that must agree does not.

    Next: `taufit reproduce kr5 --report kr5.html`, and open the page.
    """
    from taufit.papers import PAPERS, paper_page, read_paper

    require_choice(paper, tuple(PAPERS), "PAPER")
    start = time.process_time()
    publication = read_paper(paper)
    exhibits = []
    with progress("reproduce") as bar:
        task = bar.add_task(paper, total=len(publication.steps))
        for label, make in publication.steps:
            bar.update(task, description=label)
            exhibits.append(make())
            bar.advance(task)
    entries = [entry for exhibit in exhibits for entry in exhibit.entries]
    differing = [entry for entry in entries if entry.agrees is False]
    if report is not None:
        from taufit.core.files import write_text

        write_text(report, paper_page(publication, exhibits))
    if as_json:
        print_json(
            {
                "paper": publication.key,
                "title": publication.title,
                "errata": list(publication.errata),
                "exhibits": [exhibit.to_dict() for exhibit in exhibits],
                "differing": len(differing),
                "cpu_seconds": time.process_time() - start,
                "report": None if report is None else str(report),
            }
        )
    else:
        _show(publication.title, exhibits, report)
    if differing:
        raise typer.Exit(1)


def _show(title: str, exhibits: list[Exhibit], report: Path | None) -> None:
    from rich.table import Table

    from taufit.cli.common import plain_console
    from taufit.report.page import show

    console = plain_console()
    console.print(title, style="bold")
    for exhibit in exhibits:
        console.print(f"\n{exhibit.label}: {exhibit.title}", style="bold")
        if exhibit.missing:
            console.print(f"Not reproduced: {exhibit.missing}")
        if not exhibit.entries:
            continue
        table = Table("", "printed", "ours", "unit", "agrees", "why")
        for entry in exhibit.entries:
            table.add_row(
                entry.what,
                show(entry.printed),
                show(entry.ours),
                entry.unit,
                {True: "yes", False: "NO", None: ""}[entry.agrees],
                entry.why,
            )
        console.print(table)
    if report is not None:
        console.print(f"\nWritten: {report}\nNext: open it in a browser.")
    else:
        console.print("\nNext: add --report page.html for the figures.")
