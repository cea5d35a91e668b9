"""`taufit fit` as a user runs it: wall clock with start-up, and memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "ur10e"
MAP = ROOT / "examples" / "columns" / "ur10e_csv.yaml"


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    runs = DATA / "identification_data"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "taufit",
            "fit",
            str(DATA / "ur10e.urdf"),
            str(runs / "ur-20_02_19_14harm50sec.csv.gz"),
            "--map",
            str(MAP),
            "--holdout",
            str(runs / "ur-20_02_10-30sec_12harm.csv.gz"),
            "-o",
            f"{folder}/model.json",
            "--json",
        ]
        walls, processors = [], []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=os.environ)
            walls.append(time.perf_counter() - start)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    note = "UR10e, 50 s recording and a 30 s hold-out, gz CSV, start-up included; best of 3"
    yield Row("fit command wall", min(walls), "s", "<= 3", note)
    yield Row("fit command CPU", min(processors), "s", "", note)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
    yield Row("fit command memory", peak, "MB", "<= 400", "largest child of this benchmark process")
