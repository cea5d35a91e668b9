"""Run the benchmark: every arm, tool and task, kept in results.json, shown on a page.

    python -m benchmarks.open install                 one environment per tool, in build/peers
    python -m benchmarks.open [--data FOLDER] [--arms NAME ...] [--tools NAME ...] [--results FILE]
    python -m benchmarks.open splits [--data FOLDER]  row ranges and hashes into splits.json
    python -m benchmarks.open compare FILE            figures of another run beside these
    python -m benchmarks.open page [--results FILE]   docs/benchmark_table.html from the results

The data are those of the folder ../shared/data or the one given; sources are in splits.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.open import cells, page, splits, tool
from benchmarks.open.arm import ROOT, load_arms

HERE = Path(__file__).parent


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.open")
    choices = ("run", "install", "splits", "compare", "page")
    parser.add_argument("action", nargs="?", default="run", choices=choices)
    parser.add_argument("file", nargs="?", type=Path, help="results to compare with")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--arms", nargs="*")
    parser.add_argument("--tools", nargs="*")
    parser.add_argument("--results", type=Path, default=HERE / "results.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmark_table.html")
    given = parser.parse_args(words)
    arms = load_arms(given.arms)
    if given.action == "install":
        tool.install(tool.load_tools(given.tools))
    elif given.action == "splits":
        splits.write(arms, given.data)
    elif given.action == "compare":
        return compare(read_results(given.results), read_results(given.file))
    elif given.action == "run":
        measure(given)
    if given.action in ("run", "page"):
        page.write(read_results(given.results), given.page)
    return 0


def measure(given: argparse.Namespace) -> None:
    """Cells of the chosen arms and tools, kept after each."""
    results = read_results(given.results)
    tools = tool.load_tools(given.tools)
    for name, arm in load_arms(given.arms).items():
        splits.require_unchanged(name, arm, given.data)
        for key, one in tools.items():
            start = time.monotonic()
            fresh = cells.measure(name, arm, one, given.data)
            results["arms"][name] = cells.describe(arm)
            results["tools"][key] = tool.describe(one)
            results["cells"] = [
                old for old in results["cells"] if (old["arm"], old["tool"]) != (name, key)
            ] + fresh
            results["cells"].sort(key=lambda cell: (cell["arm"], cell["tool"], cell["task"]))
            given.results.write_text(json.dumps(results, indent=1) + "\n")
            for cell in fresh:
                print(cells.to_line(cell), flush=True)
            print(f"  ({time.monotonic() - start:.0f} s)", flush=True)


def read_results(path: Path) -> dict:
    """Kept results, or none."""
    if not path.exists():
        return {"arms": {}, "tools": {}, "cells": []}
    results: dict = json.loads(path.read_text("utf-8"))
    return results


def compare(these: dict, others: dict, tolerance: float = 0.02) -> int:
    """Number of cells whose figures differ by more than the tolerance, or that failed once."""
    known = {(c["arm"], c["tool"], c["task"]): c for c in others["cells"]}
    pairs = [(c, known.get((c["arm"], c["tool"], c["task"]))) for c in these["cells"]]
    worst, different = 0.0, 0
    for cell, other in pairs:
        if other is None:
            continue
        values = cell.get("value"), other.get("value")
        if None in values:
            apart = 0.0 if values[0] == values[1] else 1.0
        else:
            apart = abs(values[0] - values[1]) / max(abs(values[0]), abs(values[1]), 1e-12)
        worst = max(worst, apart)
        if apart > tolerance:
            different += 1
            print(f"{cells.to_line(cell)}   before: {values[1]}")
    count = sum(other is not None for _, other in pairs)
    print(
        f"{count} cells compared, largest difference {100 * worst:.2f} %, {different} above limit"
    )
    return different


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
