"""`taufit fleet` over more and more rows: processor time per row, memory, the same result.

Recordings of one arm (UR10e, 61 s at 500 Hz, 30,501 rows each) are simulated under a few seeds and
given again under other names, so rows repeat: reading, conditioning and adding up cost what they
cost, and what they say is that of the seeds. By default up to 1e6 rows;

    python -m benchmarks.speed.fleet_scale 1e5 1e6 1e7 1e8

measures those and prints the table of docs/fleet.md. 1e8 rows take about 20 min of processor time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import Row

ROWS, SEEDS, ROBOTS = 30_501, 4, 64
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

MEASURED = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}))
"""


def rows(sizes: Sequence[float] = (1e5, 1e6)) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = recordings(folder)
        used = {size: measured(folder, made, size) for size in sizes}
        away = _against_memory(made)
        robots = _robots(folder, made)
    least, most = min(sizes), max(sizes)
    fixed = _fixed(used, least)
    for size in sizes:
        own = used[size]
        each = 1e6 * (own["cpu"] - fixed) / own["rows"]
        long = " (long run)" if size > 1e6 else ""
        note = f"{own['rows']:,} rows, {own['files']} files, start-up of {fixed:.1f} s taken off"
        yield Row(f"fleet, {size:.0e} rows", each, "us CPU", "", note + long)
        yield Row(
            f"fleet, {size:.0e} rows, memory", own["mb"], "MB", "<= 500", f"one process{long}"
        )
    # The two smallest sizes say what is taken off; a third can differ from them.
    if len(sizes) > 2:
        middle = sorted(sizes)[-2]
        growth = (used[most]["cpu"] - fixed) / used[most]["rows"]
        growth /= max(used[middle]["cpu"] - fixed, 1e-9) / used[middle]["rows"]
        note = f"{most:.0e} over {middle:.0e} rows (long run)"
        yield Row("fleet, cost per row", growth, "x", "<= 1.3", note)
        # 10^4 robots with 10^6 rows a day each, in processors that work all day.
        hours = 1e10 * (used[most]["cpu"] - fixed) / used[most]["rows"] / 3600.0
        note = f"at the cost per row of {most:.0e} rows (long run)"
        yield Row("fleet, 1e10 rows", hours, "h CPU", "", note)
        yield Row("fleet, 1e10 rows a day, processors", hours / 24.0, "", "", note)
    note = f"{ROBOTS} robots of one file each against {ROBOTS // 4}"
    yield Row("fleet, one file per robot", robots, "us CPU", "<= 9", note)
    yield Row(
        "fleet, base parameters against one fit in memory", away, "", "<= 1e-9",
        f"{SEEDS} files, least squares, largest difference over largest value",
    )  # fmt: skip


def measured(folder: Path, made: Sequence[Path], size: float) -> dict[str, float]:
    """CPU time and memory of the command over about so many rows."""
    place, count = linked(folder, made, size)
    return {**_fleet(folder, place), "rows": count, "files": count // ROWS}


def _robots(folder: Path, made: Sequence[Path]) -> float:
    """CPU time per row of further robots with one file each [us]."""
    few, many = ROBOTS // 4, ROBOTS
    used = []
    for count in (few, many):
        place = folder / f"{count} robots"
        for k in range(count):
            (place / f"arm_{k:03d}").mkdir(parents=True)
            (place / f"arm_{k:03d}" / "run.parquet").symlink_to(made[k % len(made)])
        used.append(_fleet(folder, place)["cpu"])
    return 1e6 * (used[1] - used[0]) / ((many - few) * ROWS)


def _fleet(folder: Path, place: Path) -> dict[str, float]:
    """CPU time and memory of the command over a folder of robots."""
    command = [
        sys.executable, "-m", "taufit", "fleet", "ur10e", str(place), "--by", "robot",
        "--processes", "1", "--cache", "off", "-o", str(folder / "out"), "--json",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        check=True, capture_output=True, text=True, env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    used: dict[str, float] = json.loads(done.stdout)
    return used


def linked(folder: Path, made: Sequence[Path], size: float) -> tuple[Path, int]:
    """A fleet of about so many rows, all of one arm: the folder, and how many rows."""
    count = max(1, round(size / ROWS))
    place = folder / f"{size:.0e}"
    (place / "arm").mkdir(parents=True)
    for k in range(count):
        (place / "arm" / f"run_{k:05d}.parquet").symlink_to(made[k % len(made)])
    return place, count * ROWS


def _fixed(used: dict[float, dict[str, float]], least: float) -> float:
    """Start-up and the study itself: where a line through the two smallest sizes begins."""
    sizes = sorted(used)[:2]
    if len(sizes) < 2:
        return 0.0
    a, b = (used[size] for size in sizes)
    slope = (b["cpu"] - a["cpu"]) / (b["rows"] - a["rows"])
    return max(0.0, a["cpu"] - slope * a["rows"])


def _against_memory(made: Sequence[Path]) -> float:
    """Base parameters from files one by one, added up, against all samples in memory at once."""
    from taufit.dynamics.base_parameters import base_parameters
    from taufit.fitting import automatic_model
    from taufit.fleet.fleet_files import find_fleet_files
    from taufit.fleet.robot_information import AccumulateFiles
    from taufit.recording import read_recordings
    from taufit.regression.regression import RowsInMemory
    from taufit.regression.rows import RowBuilder, weighted_sum
    from taufit.robot import read_robot
    from taufit.signals import condition
    from taufit.workflow.training_data import with_drives

    runs = [one for path in made for one in read_recordings(path)]
    model = automatic_model(with_drives(read_robot("ur10e"), runs))
    base = base_parameters(model)
    apart, _ = AccumulateFiles(model, base, 10.0)(find_fleet_files(str(made[0].parent)))
    samples = condition(runs, cutoff_hz=10.0)
    together = RowsInMemory(RowBuilder(model, model.nominal)(samples), base).by_joint

    def solved(parts) -> np.ndarray:
        own = weighted_sum(parts, np.ones(len(parts)))
        size = np.linalg.norm(own.factor, axis=0)
        return np.linalg.lstsq(own.factor / size, own.target, rcond=1e-10)[0] / size

    one, other = solved(apart.information), solved(together)
    return float(np.abs(one - other).max() / np.abs(other).max())


def recordings(folder: Path) -> list[Path]:
    """A few minutes of an arm, under as many seeds."""
    place = folder / "made"
    place.mkdir()
    subprocess.run(
        [sys.executable, "-m", "taufit", "simulate", "ur10e", "--periods", "6", "--runs",
         str(SEEDS), "--seed", "100", "-o", str(place / "r.parquet"), "--json"],
        check=True, stdout=subprocess.DEVNULL, env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    return sorted(place.glob("r_*.parquet"))


if __name__ == "__main__":
    for row in rows([float(word) for word in sys.argv[1:]] or (1e5, 1e6)):
        print(f"{row.name:<55} {row.value:10.4g} {row.unit:<7} {row.target:<9} {row.note}")
