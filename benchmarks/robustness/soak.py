"""Memory and descriptors over hours: a monitor that is fed, and many fits in one process."""

from __future__ import annotations

import io
import os
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np


def _state() -> tuple[float, int]:
    """Resident memory [MB] and open descriptors."""
    with open("/proc/self/status") as file:
        memory = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    return memory / 1024, len(os.listdir("/proc/self/fd"))


def _arm(folder: Path) -> tuple[Path, Path]:
    from taufit.cli import main

    run, model = folder / "run.parquet", folder / "model.json"
    for words in (
        ["simulate", "ur3e", "-o", str(run)],
        ["fit", "ur3e", str(run), "--friction", "linear", "-o", str(model)],
    ):
        with redirect_stdout(io.StringIO()):
            try:
                main(words)
            except SystemExit as stop:
                assert not stop.code
    return run, model


def _judged(what: str, states: list[tuple[float, int]], cpu: float) -> str:
    """Growth after the first tenth, as a share of what there was then."""
    memory = np.array([state[0] for state in states])
    early = memory[max(1, len(memory) // 10)]
    growth = (memory[-1] - early) / early
    return (
        f"{what}: {early:.1f} -> {memory[-1]:.1f} MB ({100 * growth:+.1f} % after a tenth), "
        f"{states[0][1]} -> {states[-1][1]} descriptors, {cpu:.0f} CPU s"
    )


def monitor(hours: float = 10.0, rate_hz: float = 100.0) -> str:
    """Simulated hours through `taufit.Monitor`: one motion again and again, stamps of the day."""
    import taufit

    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        run, model = _arm(Path(folder))
        recording = taufit.read_recording(run)
        watch = taufit.Monitor(taufit.read_model(model))
        step = max(1, round(recording.rate_hz / rate_hz)) if hasattr(recording, "rate_hz") else 1
        step = max(step, round(1.0 / (rate_hz * float(np.median(np.diff(recording.time))))))
        rows = list(zip(recording.position[::step], recording.velocity[::step],
                        recording.signal[::step], strict=True))  # fmt: skip
        # There and back: no jump where the motion begins anew.
        rows += [(q, -v, tau) for q, v, tau in rows[::-1]]
        states, began, k = [], time.process_time(), 0
        total = int(hours * 3600 * rate_hz)
        for k in range(total):
            q, v, tau = rows[k % len(rows)]
            watch.feed(1.79e9 + k / rate_hz, q, v, tau)
            if k % max(1, total // 50) == 0:
                states.append(_state())
        states.append(_state())
        return _judged(f"monitor, {hours:g} simulated h", states, time.process_time() - began)


def fits(count: int = 1000) -> str:
    """Fits in one process."""
    import taufit

    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        run, _ = _arm(Path(folder))
        recording = taufit.read_recording(run)
        robot = taufit.read_robot("ur3e")
        states, began = [], time.process_time()
        for k in range(count):
            taufit.identify(robot, [recording], friction="linear", estimator="ols")
            if k % max(1, count // 50) == 0:
                states.append(_state())
        states.append(_state())
        return _judged(f"{count} fits", states, time.process_time() - began)
