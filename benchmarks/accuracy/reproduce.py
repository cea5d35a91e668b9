"""The four papers made again: numbers of each kind, orders of methods over seeds, and the cost."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import Row
from taufit.papers import PAPERS, Exhibit, count_by_kind, read_paper


def rows() -> Iterator[Row]:
    for name in PAPERS:
        start = time.process_time()
        exhibits = list(read_paper(name, repetitions=20 if name == "kr5" else None).exhibits())
        seconds = time.process_time() - start
        counts = count_by_kind(exhibits)
        missing = ", ".join(exhibit.label for exhibit in exhibits if exhibit.missing)
        note = f"drawings and photographs: {missing or 'none'}"
        for kind in ("independent", "given"):
            agree, count = counts[kind]
            yield Row(
                f"{name}: {kind} numbers that agree",
                100.0 * agree / count if count else 100.0,
                "%",
                ">= 100",
                f"{agree} of {count}; {note}",
            )
        yield Row(f"{name}: CPU time", seconds, "s", "<= 300")
        yield from _details(name, exhibits)


def _details(name: str, exhibits: list[Exhibit]) -> Iterator[Row]:
    """Orders of methods, and values with a distribution over the seeds that are judged."""
    for exhibit in exhibits:
        for entry in exhibit.entries:
            if entry.kind == "order" and entry.computed is not None:
                label = f"{name}, {exhibit.label}: {entry.name}"
                yield Row(label, entry.computed, entry.unit, "", entry.reason)
            elif entry.kind == "independent" and entry.computed is not None and entry.interval:
                target = f"<= {(entry.printed or 0.0) + (entry.within or 0.0):g}"
                low, high = entry.interval
                note = f"{low:.3g} to {high:.3g}"
                yield Row(
                    f"{name}, {exhibit.label}: {entry.name}",
                    entry.computed,
                    entry.unit,
                    target if exhibit.label == "Table I" else "",
                    note,
                )
            elif "all signs right" in entry.name and entry.computed is not None:
                label = f"{name}, {exhibit.label}: {entry.name}"
                target = "" if entry.within is None else f">= {100.0 - entry.within:g}"
                yield Row(label, entry.computed, entry.unit, target, entry.reason)
