"""Processor and wall time per test, children included, as a plugin of pytest.

    TAUFIT_COST=build/cost python -m pytest -n 2 -p tests.cost
    python -m tests.cost build/cost --by file

Each worker writes a table of its own: test, phase, processor seconds, wall seconds.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

_table: TextIO | None = None


def _processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, kinds))


def _write(test: str, phase: str, processor: float, wall: float) -> None:
    global _table
    if _table is None:
        folder = Path(os.environ.get("TAUFIT_COST", "build/cost"))
        folder.mkdir(parents=True, exist_ok=True)
        _table = (folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.tsv").open("w")
    _table.write(f"{test}\t{phase}\t{processor:.4f}\t{wall:.4f}\n")
    _table.flush()


def _timed(item: pytest.Item, phase: str) -> Iterator[None]:
    processor, wall = _processor_time(), time.perf_counter()
    yield
    _write(item.nodeid, phase, _processor_time() - processor, time.perf_counter() - wall)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item, "setup")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item, "call")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item, "teardown")


def pytest_collection_finish() -> None:
    _write("(collection)", "setup", _processor_time(), time.perf_counter())


def pytest_sessionfinish() -> None:
    _write("(whole worker)", "call", _processor_time(), time.perf_counter())


def rows(folder: Path) -> list[tuple[str, str, float, float]]:
    """Test, phase, processor seconds and wall seconds of all workers."""
    result = []
    for path in sorted(folder.glob("*.tsv")):
        for test, phase, processor, wall in csv.reader(path.open(), delimiter="\t"):
            result.append((test, phase, float(processor), float(wall)))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Show where the time of tests goes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--by", choices=("room", "file", "function", "test"), default="file")
    parser.add_argument("--most", type=int, default=40)
    given = parser.parse_args()
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for test, phase, processor, wall in rows(given.folder):
        file = test.split("::")[0]
        key = {
            "room": "/".join(file.split("/")[:2]),
            "file": file,
            "function": test.split("[")[0],
            "test": test,
        }[given.by]
        sums[key][0] += processor
        sums[key][1] += processor if phase == "setup" else 0.0
        sums[key][2] += wall
    total = sum(x[0] for key, x in sums.items() if not key.startswith("("))
    print(f"{'CPU s':>8} {'set-up':>8} {'wall s':>8}")
    print(f"{total:8.1f} {'':8} {'':8} all tests")
    for key, (processor, setup, wall) in sorted(sums.items(), key=lambda x: -x[1][0])[: given.most]:
        print(f"{processor:8.2f} {setup:8.2f} {wall:8.2f} {key}")


if __name__ == "__main__":
    main()
