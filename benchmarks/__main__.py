"""Run the benchmarks: a table on stdout, benchmarks/results.json, and figures in the pages."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks import Row, figures

HERE = Path(__file__).parent


def main(words: list[str]) -> int:
    # One thread unless a benchmark says otherwise: ratios are of CPU work, not of cores.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    results: list[dict[str, object]] = []
    missed = 0
    for kind in ("speed", "accuracy"):
        for module in sorted(m.name for m in pkgutil.iter_modules([str(HERE / kind)])):
            if words and not any(word in f"{kind}.{module}" for word in words):
                continue
            print(f"\n{kind}/{module}", flush=True)
            start = time.process_time()
            for row in importlib.import_module(f"benchmarks.{kind}.{module}").rows():
                mark = {True: "ok  ", False: "MISS", None: "    "}[row.met]
                missed += row.met is False
                print(
                    f"  {mark} {row.name:<58} {row.value:>10.4g} {row.unit:<6} "
                    f"{row.target:<9} {row.note}",
                    flush=True,
                )
                results.append(entry(f"{kind}/{module}", row))
            print(f"  ({time.process_time() - start:.1f} CPU s)", flush=True)
    keep(results)
    print(f"\n{len(results)} figures, {missed} below target; benchmarks/results.json has them all.")
    figures.main(["--write"])
    return 0


def entry(benchmark: str, row: Row) -> dict[str, object]:
    """A figure as results.json has it."""
    return {"benchmark": benchmark, **asdict(row), "met": row.met}


def keep(results: list[dict[str, object]]) -> None:
    """Put the figures into results.json; those of benchmarks that did not run stay as they are."""
    path = HERE / "results.json"
    before = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    fresh = {row["benchmark"] for row in results}
    again = {(row["benchmark"], row["name"]) for row in results}
    # Runs of hours are asked for by hand: their figures stay until they are measured again.
    rows = [
        row
        for row in before
        if row["benchmark"] not in fresh
        or (
            str(row["note"]).endswith("(long run)") and (row["benchmark"], row["name"]) not in again
        )
    ] + results
    rows.sort(key=lambda row: str(row["benchmark"]))
    page = {"machine": platform.machine(), "cores": os.cpu_count(), "rows": rows}
    path.write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
