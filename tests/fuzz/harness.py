"""Runs cases in processes that may die: what fails is named by family and seed."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.families import FAMILIES, SHARES, prepare

LONGEST = 20.0
MOST_MEMORY = 1_000_000_000
# A worker that keeps more than this is replaced, so that the next case starts small.
KEPT_MEMORY = 500_000_000


# A printed command repeats names from the file, and a robot may be called nan.
_COMMAND = re.compile(r"`taufit [^`]*`")
# A number that is none, shown as a result.
_NAN = re.compile(r'(?<!holds\s)(?<!["])(?<![\w./-])[+-]?nan(?![\w/.-])', re.IGNORECASE)


@dataclass(frozen=True)
class Failure:
    """A case that broke a rule."""

    family: str
    seed: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: --family {self.family} --seed {self.seed}: {self.text}"


def schedule(cases: int, seed: int) -> list[tuple[str, int]]:
    """Families by their shares, each case with a seed of its own."""
    names = [name for name, share in SHARES.items() for _ in range(share)]
    return [(names[i % len(names)], seed * 1_000_000 + i) for i in range(cases)]


def run_case(family: str, seed: int, base: Path, work: Path) -> tuple[str, str]:
    """ "" and the exit code, or what was wrong and the text."""
    from taufit.cli import main

    rng = np.random.default_rng([seed, len(family)])
    words = FAMILIES[family](base, work, rng)
    out, err = io.StringIO(), io.StringIO()
    told: list[warnings.WarningMessage] = []
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as told,
        ):
            warnings.simplefilter("always", RuntimeWarning)
            main(words)
        code: Any = "none"
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        return "traceback", f"{' '.join(words)[:300]}\n{traceback.format_exc()[-1500:]}"
    said = err.getvalue()
    if "Traceback" in said:
        return "traceback", said[-1500:]
    if code not in (0, 1, 2, 3):
        return "exit code", f"{code} of {' '.join(words)[:300]}"
    if code and not said.strip():
        return "silence", f"exit {code} without a word: {' '.join(words)[:300]}"
    if any(c in said + out.getvalue() for c in "\x1b\x07\x9b"):
        return "escape", f"a control character is shown: {' '.join(words)[:300]}"
    odd = [one for one in told if issubclass(one.category, RuntimeWarning)]
    if odd:
        where = f"{odd[0].filename}:{odd[0].lineno}: {odd[0].message}"
        return "warning", f"{where} of {' '.join(words)[:300]}"
    shown = _NAN.search(_COMMAND.sub("", " ".join(out.getvalue().split())))
    if family != "options" and code == 0 and shown:
        return "nan", f"{shown} shown by {' '.join(words)[:300]}"
    left = [name for name in os.listdir(work) if name.startswith(".taufit-")]
    if left:
        return "temporary", f"{left} left by {' '.join(words)[:300]}"
    return "", str(code)


def _memory(line_name: str) -> int:
    """VmHWM: the most this process has had; VmRSS: what it has now; in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(line_name):
                return int(line.split()[1]) * 1024
    return 0


def _worker(pipe: Any, base: Path) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        work = Path(folder) / "w"
        while True:
            task = pipe.recv()
            if task is None:
                return
            family, seed = task
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            kind, text = run_case(family, seed, base, work)
            most = _memory("VmHWM")
            if not kind and most > MOST_MEMORY:
                kind, text = "memory", f"{most / 1e9:.2f} GB"
            large = max(most, _memory("VmRSS")) > KEPT_MEMORY
            pipe.send((kind, text, large))


class Runner:
    """One worker process; a new one where it dies, hangs or has grown too large."""

    def __init__(self, base: Path) -> None:
        self.base = base
        # Workers come from a server process that holds the imports and nothing else: a fork of the
        # caller would count the caller's memory as the case's.
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["taufit.cli.app", "tests.fuzz.harness"])
        self.process: Any = None

    def start(self) -> None:
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=_worker, args=(theirs, self.base), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None

    def submit(self, family: str, seed: int) -> None:
        if self.process is None:
            self.start()
        self.task, self.since = (family, seed), time.monotonic()
        self.cpu = self._cpu()
        self.pipe.send(self.task)

    def _cpu(self) -> float:
        """CPU seconds of the worker: on a busy machine the wall clock says little."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            return 0.0

    def result(self) -> tuple[str, str] | None:
        """What the case came to; None while it runs."""
        if self.pipe.poll(0.02):
            try:
                kind, text, large = self.pipe.recv()
            except (EOFError, OSError):
                self.process.join()
                code = self.process.exitcode
                self.process = None
                return "crash", f"the process died ({code})"
            if large:
                self.stop()
            return kind, text
        slow = self._cpu() - self.cpu > LONGEST or time.monotonic() - self.since > 10 * LONGEST
        if slow:
            self.stop()
            return "hang", f"more than {LONGEST:g} CPU seconds"
        return None


def fuzz(
    cases: list[tuple[str, int]],
    *,
    jobs: int = 1,
    seconds: float = float("inf"),
    report: Any = None,
) -> tuple[dict[str, dict[str, int]], list[Failure]]:
    """Counts by family and outcome, and the failures; ends after `seconds` at the latest."""
    import taufit.cli.app  # noqa: F401 - imported once, before the forks

    counts: dict[str, dict[str, int]] = {}
    failures: list[Failure] = []
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-base-") as folder:
        base = Path(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(base)
        runners = [Runner(base) for _ in range(jobs)]
        waiting, busy, done = iter(cases), [], 0
        idle = list(runners)
        while True:
            while idle and time.monotonic() < end:
                task = next(waiting, None)
                if task is None:
                    break
                runner = idle.pop()
                runner.submit(*task)
                busy.append(runner)
            if not busy:
                break
            for runner in list(busy):
                found = runner.result()
                if found is None:
                    continue
                busy.remove(runner)
                idle.append(runner)
                kind, text = found
                family, seed = runner.task
                of = counts.setdefault(family, {})
                name = kind or f"exit {text}"
                of[name] = of.get(name, 0) + 1
                if kind:
                    failures.append(Failure(family, seed, kind, text))
                    # At once: a run that is stopped has said what it found.
                    print(failures[-1], file=sys.stderr, flush=True)
                done += 1
                if report is not None and done % 500 == 0:
                    report(done, len(failures))
        for runner in runners:
            runner.stop()
    return counts, failures


def show(counts: dict[str, dict[str, int]], failures: list[Failure]) -> None:
    names = sorted({name for of in counts.values() for name in of})
    print(f"{'family':<12}" + "".join(f"{name:>12}" for name in names) + f"{'cases':>10}")
    for family, of in counts.items():
        total = sum(of.values())
        print(f"{family:<12}" + "".join(f"{of.get(n, 0):>12}" for n in names) + f"{total:>10}")
    print(f"{sum(sum(of.values()) for of in counts.values())} cases, {len(failures)} failures")
    for failure in failures[:40]:
        print(failure)
    sys.stdout.flush()
