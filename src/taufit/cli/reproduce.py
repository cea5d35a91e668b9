"""`taufit reproduce`: tables and figures of a paper beside reproduced ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Report, require_choice

if TYPE_CHECKING:
    from taufit.papers import Exhibit, Paper


def command(
    paper: Annotated[str, typer.Argument(help="Paper: xu2024, kr5, raviola2021 or luo2024.")],
    report: Report = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated runs.", min=0)] = 0,
    repetitions: Annotated[
        int | None,
        typer.Option(help="Seeds where chance plays; default by paper.", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Reproduce the tables and figures of a paper and compare them with the published ones.

    Four papers: xu2024 (payload, UR10), kr5 (unknown torque signs), raviola2021 (temperature and
    mounting, UR3 and UR5), luo2024 (friction and excitation, Franka). Experiments run on simulated
    robots. Numbers are of three kinds, counted apart: independent (computed without the printed
    value), order (of methods, over several seeds) and given (put into the simulated robot and
    returned). Takes up to five minutes.

    Exits with 1 if an independent or given number differs; an order of methods that comes out
    differently is a result.

    Next: `taufit reproduce kr5 --report kr5.html`, and open the page.
    """
    from taufit.papers import PAPERS, count_by_kind, paper_page, read_paper

    require_choice(paper, tuple(PAPERS), "PAPER")
    start = time.process_time()
    publication = read_paper(paper, seed=seed, repetitions=repetitions)
    exhibits = []
    with progress("reproduce") as bar:
        task = bar.add_task(paper, total=len(publication.steps))
        for label, make in publication.steps:
            bar.update(task, description=label)
            exhibits.append(make())
            bar.advance(task)
    items = _items(exhibits)
    differing = [x for x in items if not x["reproduced"] and x["kind"] != "order"]
    if report is not None:
        from taufit.core.files import write_text

        write_text(report, paper_page(publication, exhibits))
    if as_json:
        counts = count_by_kind(exhibits)
        print_json(
            {
                "paper": publication.key,
                "title": publication.title,
                "seed": seed,
                "errata": list(publication.errata),
                "counts": {kind: {"agree": a, "all": n} for kind, (a, n) in counts.items()},
                "items": items,
                "exhibits": [exhibit.to_dict() for exhibit in exhibits],
                "differing": len(differing),
                "cpu_seconds": time.process_time() - start,
                "report": None if report is None else str(report),
            }
        )
    else:
        _show(publication, exhibits, report)
    if differing:
        raise typer.Exit(1)


def _items(exhibits: list[Exhibit]) -> list[dict[str, Any]]:
    """Judged values of all exhibits for `--json`."""
    return [
        {
            "name": f"{exhibit.label}: {entry.name}",
            "kind": entry.kind,
            "printed": entry.printed,
            "ours": entry.computed,
            "difference": entry.difference,
            "reproduced": entry.agrees,
            "why": entry.reason,
        }
        for exhibit in exhibits
        for entry in exhibit.entries
        if entry.kind is not None
    ]


def _show(paper: Paper, exhibits: list[Exhibit], report: Path | None) -> None:
    """Print one line per table and figure, at most 25 lines of 80 characters."""
    from taufit.cli.common import plain_console
    from taufit.papers import count_by_kind

    console = plain_console()

    def show_line(label: str, title: str, cells: list[str], style: str = "") -> None:
        columns = " ".join(f"{cell:>11}" for cell in cells[:3])
        line = f"{label:<10} {title[:25]:<25} {columns} {cells[3]:>6}"
        console.print(line.rstrip(), style=style, highlight=False, soft_wrap=True)

    def counts(part: list[Exhibit]) -> list[str]:
        kinds = [f"{a} of {n}" if n else "" for a, n in count_by_kind(part).values()]
        unclassified = sum(entry.kind is None for exhibit in part for entry in exhibit.entries)
        return [*kinds, str(unclassified or "")]

    show_line("", paper.key, ["independent", "order", "given", "beside"], "bold")
    for exhibit in exhibits:
        if not exhibit.missing:
            show_line(exhibit.label, exhibit.title, counts([exhibit]))
    show_line("All", "", counts(exhibits), "bold")
    missing = ", ".join(exhibit.label for exhibit in exhibits if exhibit.missing)
    if missing:
        console.print(f"Drawings and photographs: {missing}.", highlight=False)
    if report is not None:
        console.print(f"Written: {report}\nNext: open it in a browser.")
    else:
        console.print("Next: add --report page.html for the tables and figures.")
