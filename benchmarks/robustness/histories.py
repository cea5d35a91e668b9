"""Several `health check` at once on one history: all runs are kept."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from pathlib import Path

from tests.fuzz.families import prepare

from benchmarks.robustness.kills import start


def concurrent(rounds: int = 50, writers: int = 8) -> tuple[int, int, int]:
    """Runs that reported success, runs in the history, and files beside it at the end."""
    from taufit.recording import read_recording, write_recording

    with tempfile.TemporaryDirectory(prefix="histories-") as folder:
        base = Path(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(base)
        place = base / "place"
        place.mkdir()
        history = place / "history.json"
        shutil.copy(base / "history.json", history)
        before = len(json.loads(history.read_text())["runs"])
        recording = read_recording(base / "run.parquet")
        stored = 0
        for number in range(rounds):
            children = []
            for writer in range(writers):
                file = base / f"r{number}_{writer}.parquet"
                write_recording(recording, file)
                children.append(start(["health", "check", str(history), str(file), "--json"]))
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            stored += codes.count(0)
        runs = len(json.loads(history.read_text())["runs"]) - before
        return stored, runs, len(os.listdir(place)) - 1
