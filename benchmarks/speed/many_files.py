"""`taufit fit` on more and more files: CPU time per further row, and memory that stays where it is.

Recordings are simulated once (UR10e, 61 s at 500 Hz, 30,501 rows each) and given again under other
names for the larger counts; one more file holds as many rows as all of them. Compared with a dense
regressor stack solved by NumPy's QR, and with the kernel's own floor: one pass of compact columns
and triangles over as many samples.

On a computer that others use too, wall clocks say nothing: two processes are judged by processor
time, the first process's own and half of what its workers take together.
`python -m benchmarks.speed.many_files 64 328` takes as many files instead, 328 being ten million
rows, and measures by the clock how much sooner two processes are done: on two free cores only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row

FILES = (1, 4, 16)
RUNS = 4
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

MEASURED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
own = json.loads(done.stdout)["cpu_seconds"]
cpu = used.ru_utime + used.ru_stime
wall = time.perf_counter() - start
print(json.dumps({"cpu": cpu, "mb": used.ru_maxrss / 1024, "own": own, "wall": wall}))
"""

DENSE = """
import json, resource, time
import numpy as np
from taufit.model.torque_model import TorqueModel
from taufit.dynamics import base_parameters
from taufit.robot import read_robot
model = TorqueModel(read_robot("ur10e"))
columns = base_parameters(model).columns
q, v, a, y = np.random.default_rng(0).normal(size=(4, 100_000, 6))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
rows = model.regressor(q, v, a)[..., columns].reshape(-1, len(columns))
np.linalg.qr(np.column_stack([rows, y.ravel()]), mode="r")
cpu = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"us": 1e6 * cpu / len(q), "kb": (peak - before) / len(q)}))
"""

FLOOR = """
import time
import numpy as np
from taufit.model.torque_model import TorqueModel
from taufit.regression import Batch, accumulate as accumulate
from taufit.dynamics import base_parameters
from taufit.robot import read_robot
model = TorqueModel(read_robot("ur10e"))
states = np.random.default_rng(0).normal(size=(4, 100_000, 6))
columns = base_parameters(model).columns
start = time.process_time()
accumulate(model, Batch(*states), columns=columns)
print(1e6 * (time.process_time() - start) / 100_000)
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = _recordings(folder)
        n = 30_501
        used = {k: _fit(folder, paths[:k]) for k in FILES}
        few, many = FILES[1], FILES[-1]
        each = 1e6 * (used[many]["cpu"] - used[few]["cpu"]) / ((many - few) * n)
        page = _fit(folder, paths, "--report", str(folder / "page.html"))
        alone = _fit(folder, paths[:1], "--report", str(folder / "page.html"))
        shared = _fit(folder, paths, processes=2)
        single = _fit(folder, [_one_file(folder, paths)])
        held = {k: _fit(folder, paths[:k], "--holdout", "30%") for k in (few, many)}
        tested = {k: _check(folder, paths[:k]) for k in (few, many)}
    note = f"`taufit fit`, {many} files of {n:,} rows against {few}, one process"
    yield Row("fit, further rows", each, "us CPU", "<= 15", note)
    more = (page["cpu"] - used[many]["cpu"]) - (alone["cpu"] - used[1]["cpu"])
    yield Row("report, further rows", 1e6 * more / ((many - 1) * n), "us CPU", "<= 5", note)
    growth = used[many]["mb"] / used[1]["mb"]
    yield Row("fit, memory", used[many]["mb"], "MB", "<= 450", f"{many} files")
    yield Row("fit, memory over that of one file", growth, "x", "<= 1.15", f"{many} files")
    for name, measured in (("hold-out of 30 %", held), ("check", tested)):
        yield Row(f"{name}, memory", measured[many]["mb"], "MB", "<= 600", f"{many} files")
        rows_more = (many - few) * n
        each = 1e6 * (measured[many]["mb"] - measured[few]["mb"]) / rows_more
        note = f"{many} files of {n:,} rows against {few}"
        yield Row(f"{name}, memory of a further row", each, "B", "<= 25", note)
    yield Row(
        "two processes, ideally", used[many]["cpu"] / _shared(shared), "x", ">= 1.6",
        f"{many} files: processor time of one process over that of the first and half its workers'",
    )  # fmt: skip
    yield Row(
        "one file of as many rows, memory", single["mb"], "MB", "<= 500", f"{many * n:,} rows"
    )
    yield Row(
        "one file of as many rows, CPU", single["cpu"] / used[many]["cpu"], "x", "",
        f"against {many} files",
    )  # fmt: skip
    dense = json.loads(_python(DENSE))
    floor = float(_python(FLOOR))
    # A row of 500 Hz is half a sample of the grid.
    yield Row("dense stack, per sample", dense["us"], "us CPU", "", "100,000 samples, QR, no file")
    yield Row("dense stack, memory", dense["kb"], "kB", "", "per sample")
    yield Row(
        "fit over the dense stack", 2.0 * each / dense["us"], "x", "", "the whole fit, per sample"
    )
    yield Row("fit over the kernel's floor", 2.0 * each / floor, "x", "", "one pass of triangles")


def long_rows(counts: list[int]) -> Iterator[Row]:
    """One process and two over many files, by the clock; the memory of the largest over one's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = _recordings(folder, max(counts))
        alone = _fit(folder, paths[:1])
        for count in counts:
            one, two = (_fit(folder, paths[:count], processes=k) for k in (1, 2))
            of = f"{count} files"
            note = f"`taufit fit`, {count * 30_501:,} rows of a UR10e (long run)"
            yield Row(f"{of}, CPU", one["cpu"], "s", "", note)
            yield Row(f"{of}, memory", one["mb"], "MB", "<= 450", note)
            yield Row(
                f"{of}, memory over one file's", one["mb"] / alone["mb"], "x", "<= 1.15", note
            )
            each = 1e6 * (one["cpu"] - alone["cpu"]) / ((count - 1) * 30_501)
            yield Row(f"{of}, further rows", each, "us CPU", "<= 15", note)
            yield Row(
                f"{of}, two processes over one", one["wall"] / two["wall"], "x", ">= 1.6", note
            )


def _recordings(folder: Path, count: int = max(FILES)) -> list[Path]:
    _taufit(
        "simulate", "ur10e", "--periods", "6", "--runs", str(RUNS), "--seed", "100",
        "-o", str(folder / "r.parquet"), "--json",
    )  # fmt: skip
    made = sorted(folder.glob("r_*.parquet"))
    out = []
    for k in range(count):
        out.append(folder / f"file_{k:03d}.parquet")
        os.link(made[k % len(made)], out[-1])
    return out


def _one_file(folder: Path, paths: list[Path]) -> Path:
    """All recordings one after the other, a second apart."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out, start = folder / "long.parquet", 0.0
    schema = pq.read_schema(paths[0])
    with pq.ParquetWriter(out, schema, compression="zstd", use_dictionary=False) as writer:
        for path in paths:
            table = pq.read_table(path)
            time = table.column("t").to_numpy()
            time = time - time[0] + start
            start = float(time[-1]) + 1.0
            at = table.column_names.index("t")
            writer.write_table(table.set_column(at, schema.field("t"), pa.array(time)))
    return out


def _shared(used: dict[str, float]) -> float:
    """Processor time that two processes wait for, their work evenly shared."""
    return used["own"] + 0.5 * (used["cpu"] - used["own"])


def _fit(folder: Path, paths: list[Path], *more: str, processes: int = 1) -> dict[str, float]:
    command = [
        sys.executable, "-m", "taufit", "fit", "ur10e", *map(str, paths),
        "--processes", str(processes), "-o", str(folder / "model.json"), "--json", *more,
    ]  # fmt: skip
    found: dict[str, float] = json.loads(_python(MEASURED, *command))
    return found


def _check(folder: Path, paths: list[Path]) -> dict[str, float]:
    command = [sys.executable, "-m", "taufit", "check", str(folder / "model.json")]
    command += [*map(str, paths), "--allow-repeats", "--json"]
    found: dict[str, float] = json.loads(_python(MEASURED, *command))
    return found


def _taufit(*arguments: str) -> None:
    command = [sys.executable, "-m", "taufit", *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **ONE_THREAD})


def _python(script: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    ).stdout


if __name__ == "__main__":
    for row in long_rows([int(word) for word in sys.argv[1:]]):
        print(f"{row.name:<45} {row.value:10.4g} {row.unit:<7} {row.target:<8} {row.note}")
