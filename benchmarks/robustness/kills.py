"""Kills at random moments over every verb that writes: old outputs or whole new ones, no litter.

A verb that can clean up ends within five seconds, with 128 plus the signal's number.

Each case is a process of its own, forked from one that has everything imported, so that the moment
of the kill falls into the verb's work and not into the interpreter's start.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from tests.fuzz.families import prepare

OLD = b"precious"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def verbs(base: Path, work: Path) -> dict[str, tuple[list[str], list[Path]]]:
    """Words and outputs of each writing verb."""
    arm, run, model = (str(base / x) for x in ("arm.yaml", "run.parquet", "model.json"))
    out: dict[str, tuple[list[str], list[Path]]] = {}
    for form in ("urdf", "mjcf", "json", "c"):
        target = work / f"out.{form}"
        made = [target, target.with_suffix(".h")] if form == "c" else [target]
        out[f"export {form}"] = (["export", model, "--format", form, "-o", str(target)], made)
    for end in ("csv", "csv.gz", "parquet", "npz", "mcap"):
        target = work / f"copy.{end}"
        out[f"convert {end}"] = (["convert", run, "-o", str(target)], [target])
    motion = work / "motion.json"
    plan = ["design", arm, "--seconds", "0.1", "--free-space", "-o", str(motion)]
    out["design"] = (plan, [motion])
    twin = work / "twin.parquet"
    play = ["simulate", arm, str(base / "motion.json"), "-o", str(twin)]
    out["simulate"] = (play, [twin, work / "twin.truth.json"])
    fitted = work / "fitted.json"
    out["fit"] = (
        ["fit", arm, run, "--friction", "linear", "--estimator", "ols", "--ignore-contradictions",
         "-o", str(fitted)], [fitted],
    )  # fmt: skip
    page = work / "page.html"
    out["report"] = (["report", model, run, "-o", str(page)], [page])
    out["check"] = (["check", model, run, "--track", "--report", str(page)], [page])
    out["payload"] = (["payload", model, run, "--report", str(page)], [page])
    noise = work / "noise.json"
    out["contact"] = (
        ["contact", model, run, "--contact-free", run, "-o", str(noise), "--report", str(page)],
        [noise, page],
    )
    draft = work / "map.yaml"
    out["draft"] = (["convert", str(base / "table.csv"), "--draft", str(draft)], [draft])
    history = work / "history.json"
    healthy = [str(base / f"healthy{k}.parquet") for k in range(8)]
    out["health"] = (["health", "baseline", model, *healthy, "-o", str(history)], [history])
    paper = work / "paper.html"
    out["reproduce"] = (["reproduce", "kr5", "--report", str(paper)], [paper])
    return out


def start(words: list[str]) -> int:
    """Process id of a child that is about to run a verb, its output discarded.

    Exit code 98 is an exception that left `main`; it is printed on the parent's stderr.
    """
    ready, about = os.pipe()
    child = os.fork()
    if child:
        os.close(about)
        os.read(ready, 1)
        os.close(ready)
        return child
    code = 99
    screen = os.dup(2)
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        from taufit.cli import main

        os.write(about, b".")
        main(words)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except BaseException:
        code = 98
        os.write(screen, f"{words[0]}: {traceback.format_exc()}\n".encode())
    finally:
        os._exit(code)


def _whole(path: Path) -> bool:
    """Whether an output can be read to its end."""
    data = path.read_bytes()
    if path.suffix == ".yaml":
        return b"columns" in data and data.endswith(b"\n")
    if path.suffix == ".json":
        import json

        json.loads(data)
        return True
    if path.suffix in (".parquet", ".npz", ".mcap", ".gz", ".csv"):
        from taufit.recording import read_recordings

        return len(read_recordings(path)[0]) > 100
    ends = {".urdf": b"</robot>", ".mjcf": b"</mujoco>", ".html": b"</html>", ".c": b"}",
            ".h": b"#endif"}  # fmt: skip
    return data.rstrip().endswith(ends[path.suffix])


def _litter(work: Path) -> list[str]:
    return [name for name in os.listdir(work) if name.startswith((".taufit-", ".bag-", "tmp"))]


def kills(cases: int = 200, seed: int = 1) -> dict[str, int]:
    """Outcomes of kills by signal; the keys "broken" and "litter" must stay absent."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        base, work = Path(folder) / "base", Path(folder) / "work"
        base.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(base)
        durations: dict[str, float] = {}
        slowest = 0.0
        for case in range(cases):
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            named = verbs(base, work)
            name = list(named)[case % len(named)]
            words, outputs = named[name]
            if name not in durations:
                began = time.monotonic()
                os.waitpid(start(words), 0)
                durations[name] = time.monotonic() - began
            for output in outputs:
                output.write_bytes(OLD)
            number = SIGNALS[case // len(named) % len(SIGNALS)]
            child = start(words)
            time.sleep(float(rng.uniform(0.0, 1.1 * durations[name])))
            began = time.monotonic()
            os.kill(child, number)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            slowest = max(slowest, time.monotonic() - began)
            if number != signal.SIGKILL:
                ended = (
                    "128 + signal" if code == 128 + number else "done" if code in (0, 1) else code
                )
                counts[f"exit {ended}"] += 1
                if isinstance(ended, int):
                    print(f"exit {ended}: {name} after {number.name}", file=sys.stderr)
            for output in outputs:
                old = output.read_bytes() == OLD
                kind = "old" if old else "new" if _whole(output) else "broken"
                counts[f"{kind} after {signal.Signals(number).name}"] += 1
                if kind == "broken":
                    counts["broken"] += 1
                    print(f"broken: {name} {output.name}", file=sys.stderr)
            if number == signal.SIGKILL and _litter(work):
                counts["left by SIGKILL, removed by the next run"] += 1
                os.waitpid(start(words), 0)
            if _litter(work):
                counts["litter"] += 1
                print(f"litter: {name} {number} {_litter(work)}", file=sys.stderr)
    counts["slowest end [ms]"] = round(1000 * slowest)
    return dict(counts)


def address_space(limits: range = range(200, 801, 50), patience: float = 20.0) -> list[str]:
    """A fit with `ulimit -v` [MB]: it ends by itself, or within five seconds of SIGTERM."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="limits-") as folder:
        base, work = Path(folder) / "base", Path(folder) / "work"
        base.mkdir(), work.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(base)
        model = work / "model.json"
        for limit in limits:
            model.write_bytes(OLD)
            words = [sys.executable, "-m", "taufit", "fit", base / "arm.yaml", base / "run.parquet",
                     "--ignore-contradictions", "-o", model]  # fmt: skip
            script = f'ulimit -v {1000 * limit}; exec "$@"'
            child = subprocess.Popen(
                ["sh", "-c", script, "sh", *words], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            began, asked = time.monotonic(), ""
            try:
                said = child.communicate(timeout=patience)[1]
            except subprocess.TimeoutExpired:
                began, asked = time.monotonic(), " after SIGTERM"
                child.terminate()
                said = child.communicate()[1]
            taken = time.monotonic() - began
            state = "old" if model.read_bytes() == OLD else "new" if _whole(model) else "BROKEN"
            trace = "TRACEBACK " if "Traceback" in said else ""
            words_ = said.strip().splitlines()[-1][:70] if said.strip() else ""
            lines.append(
                f"{limit} MB: exit {child.returncode} in {taken:.1f} s{asked}, output {state}, "
                f"{len(_litter(work))} left; {trace}{words_}"
            )
    return lines


FULL = """
import os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from benchmarks.robustness.kills import OLD, _litter, _whole, start, verbs
base, work = Path({base!r}), Path({work!r})
for name, (words, outputs) in verbs(base, work).items():
    for entry in list(work.iterdir()):
        entry.unlink()
    for output in outputs:
        output.write_bytes(OLD)
    filler = work / "filler"
    space = os.statvfs(work)
    room = space.f_bavail * space.f_frsize
    filler.write_bytes(bytes(max(0, room - {room})))
    _, status = os.waitpid(start(words), 0)
    states = ["old" if o.read_bytes() == OLD else "new" if _whole(o) else "BROKEN" for o in outputs]
    print(name.replace(" ", "_"), os.waitstatus_to_exitcode(status), *states, len(_litter(work)))
"""


def full_disk(room: int = 4096) -> list[str]:
    """Every verb on a tmpfs of 2 MB with `room` bytes left; one line each. Needs root."""
    with tempfile.TemporaryDirectory(prefix="full-") as folder:
        base, work = Path(folder) / "base", Path(folder) / "work"
        base.mkdir(), work.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(base)
        root = str(Path(__file__).resolve().parents[2])
        code = FULL.format(root=root, base=str(base), work=str(work), room=room)
        script = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" -c "$3"'
        ran = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", work, sys.executable, code],
            capture_output=True,
            text=True,
            check=False,
        )
        return [*ran.stdout.splitlines(), *ran.stderr.splitlines()[-3:]]
