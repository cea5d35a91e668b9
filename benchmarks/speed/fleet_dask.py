"""`taufit fleet` on one Dask worker and on two, started as users start them.

What cannot be shared is the client's: start-up, adding up results, the study itself and the page.
By default 1e6 rows and processor time alone: with c of the client and w of the workers, two workers
on free cores take at best c + w / 2 instead of c + w. With a number of rows it is the wall clock
that counts, which needs two free cores:

    python -m benchmarks.speed.fleet_dask 2e7

takes about five minutes. Recordings are those of fleet_scale: a few, given again under other names.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import Row
from benchmarks.speed.fleet_scale import ONE_THREAD, linked, recordings

_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Used:
    """Of one study.

    Attributes:
        wall: From start to end of the command [s].
        client: Processor time of the command [s].
        scheduler: Of the scheduler during it [s].
        workers: Of each worker during it [s].
    """

    wall: float
    client: float
    scheduler: float
    workers: tuple[float, ...]


def rows(size: float | None = None) -> Iterator[Row]:
    asked = size is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place, count = linked(folder, recordings(folder), size or 1e6)
        used = {n: _study(folder, place, n) for n in ((1, 2) if asked else (2,))}
    note = f"{count:,} rows"
    two = used[2]
    for n, one in used.items():
        of = f"{n} workers" if n > 1 else "one worker"
        each = ", ".join(f"{w:.1f}" for w in one.workers)
        yield Row(f"fleet on {of}, workers", sum(one.workers), "s CPU", "", f"{note}; each {each}")
        yield Row(f"fleet on {of}, client", one.client, "s CPU", "", "start of Python included")
        yield Row(f"fleet on {of}, scheduler", one.scheduler, "s CPU", "", note)
        if asked:
            yield Row(f"fleet on {of}, wall clock", one.wall, "s", "", note)
    work, alone = sum(two.workers), two.client
    yield Row(
        "two workers over one, by processor time",
        (alone + work) / (alone + work / 2.0),
        "x",
        "",
        f"{note}; if nothing of the client's went on beside the workers",
    )
    if asked:
        yield Row(
            "two Dask workers over one", used[1].wall / two.wall, "x", ">= 1.6",
            f"wall clock of the command, {note}, {len(os.sched_getaffinity(0))} cores",
        )  # fmt: skip


def _study(folder: Path, place: Path, workers: int) -> Used:
    command = [
        sys.executable, "-m", "taufit", "fleet", "ur10e", str(place), "--by", "robot",
        "--cache", "off", "-o", str(folder / f"out_{workers}"), "--json",
    ]  # fmt: skip
    with _cluster(folder, workers) as (address, scheduler, each):
        before = [_spent(pid) for pid in (scheduler, *each)]
        own, start = _children(), time.perf_counter()
        subprocess.run(
            [*command, "--scheduler", address],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        wall, client = time.perf_counter() - start, _children() - own
        after = [_spent(pid) for pid in (scheduler, *each)]
    used = [b - a for a, b in zip(before, after, strict=True)]
    return Used(wall, client, used[0], tuple(used[1:]))


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[tuple[str, int, list[int]]]:
    """Address, and process ids of the scheduler and of its workers."""
    dask = Path(sys.executable).with_name("dask")
    where = folder / f"scheduler_{workers}.json"
    env = {**os.environ, **ONE_THREAD, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}

    def started(*words: object) -> subprocess.Popen[bytes]:
        line = [str(word) for word in (dask, *words, "--host", "127.0.0.1", "--no-dashboard")]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(line, stdout=quiet, stderr=quiet, env=env)

    running = [started("scheduler", "--port", 0, "--scheduler-file", where)]
    running += [
        started("worker", "--scheduler-file", where, "--no-nanny", "--nthreads", 1,
                "--local-directory", folder)
        for _ in range(workers)
    ]  # fmt: skip
    try:
        end = time.monotonic() + _PATIENCE_S
        while not where.exists() and time.monotonic() < end:
            time.sleep(0.1)
        found = re.search(r"tcp://[\d.:]+", where.read_text())
        assert found is not None
        from distributed import Client

        with Client(found[0], timeout=_PATIENCE_S) as client:
            client.wait_for_workers(workers, timeout=_PATIENCE_S)
        yield found[0], running[0].pid, [one.pid for one in running[1:]]
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def _spent(pid: int) -> float:
    """Processor time of a process so far [s]."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for row in rows(float(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(f"{row.name:<45} {row.value:10.4g} {row.unit:<7} {row.target:<8} {row.note}")
