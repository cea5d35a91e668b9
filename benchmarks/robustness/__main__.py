"""Figures of docs/robustness.md.

`python -m benchmarks.robustness [kills|limits|full|histories|bombs|cache|second|soak]`; `soak`
takes hours, `SOAK=0.1` runs a tenth of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.robustness.cache import poisoned, together
from benchmarks.robustness.histories import concurrent
from benchmarks.robustness.kills import address_space, full_disk, kills
from benchmarks.robustness.second_client import report as second_client
from benchmarks.robustness.soak import fits, monitor

ROOT = Path(__file__).resolve().parents[2]
MEASURED = """
import resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(ran.returncode, f"{used.ru_utime + used.ru_stime:.2f} s", f"{used.ru_maxrss / 1024:.0f} MB",
      ran.stderr.decode().strip()[-160:])
"""


def bombs(size: int = 10_000_000_000) -> None:
    """Each packed format, unpacking to 10 GB (deflate packs a thousandfold, so 1.5 GB there)."""
    sys.path.insert(0, str(ROOT / "tests" / "hostile"))
    import bombs as made

    with tempfile.TemporaryDirectory(prefix="bombs-") as folder:
        for name, make in made.BOMBS.items():
            path = Path(folder) / name
            dense = name.endswith((".csv.gz", ".npz", ".mat"))
            make(path, 1_500_000_000 if dense else size)
            command = [sys.executable, "-m", "taufit", "convert", path, "-o", f"{folder}/o.csv"]
            ran = subprocess.run(
                [sys.executable, "-c", MEASURED, *map(str, command)], capture_output=True, text=True
            )
            print(
                f"{name:<14}{path.stat().st_size / 1e6:8.2f} MB  {ran.stdout.strip()}", flush=True
            )


def main() -> None:
    what = sys.argv[1:] or ["kills", "limits", "full", "histories", "bombs", "cache", "second"]
    if "kills" in what:
        for name, count in sorted(kills().items()):
            print(f"{name}: {count}")
    if "limits" in what:
        print("\n".join(address_space()))
    if "cache" in what:
        print("\n".join(poisoned()))
        print(together())
    if "soak" in what:
        share = float(os.environ.get("SOAK", "1"))
        print(monitor(10.0 * share), flush=True)
        print(fits(round(1000 * share)))
    if "full" in what:
        print("verb, exit code, state of each output, temporaries, on a full disk")
        print("\n".join(full_disk()))
    if "histories" in what:
        stored, runs, litter = concurrent()
        print(f"8 writers x 50 rounds: {stored} reported as stored, {runs} in the history, "
              f"{litter} other files")  # fmt: skip
    if "bombs" in what:
        bombs()
    if "second" in what:
        print("\n".join(second_client()))


if __name__ == "__main__":
    main()
