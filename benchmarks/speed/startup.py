"""What a user waits for before anything happens: import, help, a first `inspect`."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import Row


def cpu_seconds(*arguments: str, repeats: int = 5) -> float:
    """Least CPU time of a fresh Python process, children included."""
    best = float("inf")
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used)
    return best


def rows() -> Iterator[Row]:
    bare = cpu_seconds("-c", "pass")
    note = f"least of 5 fresh processes; Python alone {bare:.3f} s"
    yield Row("import taufit", cpu_seconds("-c", "import taufit"), "CPU s", "< 0.5", note)
    yield Row("taufit --help", cpu_seconds("-m", "taufit", "--help"), "CPU s", "< 0.5", note)
    yield Row(
        "taufit inspect ur10 --json", cpu_seconds("-m", "taufit", "inspect", "ur10", "--json"),
        "CPU s", "", note,
    )  # fmt: skip

    import taufit

    for name, model in (
        ("UR10, 36 of 60", taufit.read_robot("ur10")),
        ("UR10 with joints, 58 of 84", taufit.TorqueModel(taufit.read_robot("ur10"))),
        ("Panda with joints, 69 of 98", taufit.TorqueModel(taufit.read_robot("panda"))),
    ):
        # Many at once: clocks of processor time may tick coarsely.
        best, count = float("inf"), 20
        for _ in range(7):
            start = time.process_time()
            for _ in range(count):
                taufit.base_parameters(model)
            best = min(best, (time.process_time() - start) / count)
        yield Row(f"base parameters, {name}", best, "CPU s", "< 0.1", "least of 7")
