"""Signals end a command within seconds, wherever it is, and leave nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

kernel = pytest.importorskip("taufit._kernel")

# A verb that writes, and while it does so is in a call that does not come back.
STUCK = """
import os, sys, time
from pathlib import Path
import numpy as np
from taufit.cli.parts import process
from taufit.core.process_cleanup import temporary_folder
from taufit.core.files import replace_file
if sys.argv[3] == "python":
    sys.modules["taufit._kernel"] = None
process.configure_process()
with process.handle_signals(wait_for_end=sys.argv[3] == "patient"):
    with temporary_folder() as folder, replace_file(sys.argv[1]) as place:
        (folder / "inner").mkdir()
        (folder / "inner" / "part").write_text("half")
        place.write_text("half")
        print(folder, flush=True)
        if sys.argv[2] == "gil":
            sum(range(10**12))
        elif sys.argv[2] == "blas":
            np.linalg.svd(np.random.default_rng(0).normal(size=(4000, 4000)))
        else:
            try:
                time.sleep(60)
            finally:
                time.sleep(6 if sys.argv[3] == "patient" else 0)
"""


def stopped(tmp_path, work, number, how="kernel"):
    """Seconds until the end, exit code, what is left of the output and beside it."""
    target = tmp_path / "model.json"
    target.write_text("old")
    child = subprocess.Popen(
        [sys.executable, "-c", STUCK, target, work, how], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder = child.stdout.readline().strip()
    time.sleep(0.3)
    began = time.monotonic()
    child.send_signal(number)
    try:
        _, said = child.communicate(timeout=20)
    finally:
        child.kill()
    taken = time.monotonic() - began
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"] and not os.path.exists(folder)
    return taken, child.returncode, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("work", ["gil", "sleep"])
def test_a_call_that_holds_the_interpreter_is_ended(tmp_path, work, number):
    taken, code, said = stopped(tmp_path, work, number)
    assert taken < (6.0 if work == "gil" else 2.0)
    if work == "gil":
        assert code == 128 + number
        assert said == "stopped inside a long computation; nothing half-written is left.\n"
    else:
        assert code in (128 + number, 1, -number)  # the exception reached the top of this script


def test_without_the_kernel_a_call_that_lets_threads_run_is_ended(tmp_path):
    taken, code, _ = stopped(tmp_path, "blas", signal.SIGTERM, "python")
    assert taken < 6.0 and code == 143


def test_a_session_takes_the_time_it_needs(tmp_path):
    taken, code, said = stopped(tmp_path, "sleep", signal.SIGTERM, "patient")
    assert taken > 5.9 and code == 143 and said == ""


def test_a_fork_ends_nothing_of_its_parent(tmp_path):
    """Guarded signals of a fork do what Python says, and no alarm."""
    code = """
import os, signal, sys, time
from taufit.cli.parts import process
from taufit.core.process_cleanup import temporary_folder
with process.handle_signals(), temporary_folder() as folder:
    child = os.fork()
    if child == 0:
        try:
            time.sleep(30)
        finally:
            os._exit(7)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), folder.exists())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split() == ["7", "True"], ran.stderr
