"""The four papers made again: numbers that must agree, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import Row
from taufit.papers import PAPERS, read_paper


def rows() -> Iterator[Row]:
    for name in PAPERS:
        start = time.process_time()
        exhibits = list(read_paper(name).exhibits())
        seconds = time.process_time() - start
        entries = [entry for exhibit in exhibits for entry in exhibit.entries]
        asked = [entry for entry in entries if entry.agrees is not None]
        unexplained = [e for e in entries if e.agrees is None and not e.reason]
        missing = [exhibit.label for exhibit in exhibits if exhibit.missing]
        yield Row(
            f"{name}: numbers that agree, of those that must",
            100.0 * sum(bool(entry.agrees) for entry in asked) / len(asked),
            "%",
            ">= 100",
            f"{len(asked)} of {len(entries)} numbers; drawings, photographs and the like: "
            f"{', '.join(missing) or 'none'}",
        )
        yield Row(f"{name}: numbers without a reason", float(len(unexplained)), "", "<= 0")
        yield Row(f"{name}: CPU time", seconds, "s", "<= 300")
