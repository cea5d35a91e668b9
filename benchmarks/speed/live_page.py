"""The live page in headless Chromium without a GPU: samples, frames, CPU; and the column mapper."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import Row
from benchmarks.accuracy.shared_drafts import SharedSet, judge_channels, shared_sets
from benchmarks.clean_runs import SHARED

# The whole figure is five minutes; TAUFIT_PAGE_SECONDS shortens it.
SECONDS = float(os.environ.get("TAUFIT_PAGE_SECONDS", "300"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# A dashboard of a pretended UR10e at 500 Hz; for every line on stdin, what its threads have cost.
_SERVED = """
import json, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from pretended import Pretended, Ticking
from taufit.live.dashboard import dashboard
from taufit.live.batch_hub import BatchHub
from taufit.live.server import open_server_socket, run_server
from taufit.live.session import Session
from taufit.robot import read_robot

robot = read_robot("ur10e")
source = Ticking(6, 500.0)
session = Session(Pretended(), source, BatchHub(), detectable_steps=lambda _: [4.0] * 6)
line, place = open_server_socket()
with run_server(dashboard(session, robot, place, about="500 Hz"), line, place):
    session.start()
    print(place.url, flush=True)
    for order in sys.stdin:
        used = {t.name: t.native_id for t in threading.enumerate()}
        out = {"sent": session.samples, "clock": time.monotonic(), "process": time.process_time()}
        for name, task in used.items():
            parts = open(f"/proc/self/task/{task}/stat").read().rsplit(")", 1)[1].split()
            out[name] = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
        print(json.dumps(out), flush=True)
    session.stop()
"""


@contextmanager
def _chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


def _family(process: int) -> list[int]:
    found = [process]
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += _family(int(child))
    return found


def _browser_cpu(server: int) -> float:
    """CPU seconds of everything this process has started, less the server [s]."""
    total = 0
    for process in _family(os.getpid())[1:]:
        if process == server:
            continue
        try:
            parts = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(parts[11]) + int(parts[12])
    return total / os.sysconf("SC_CLK_TCK")


def _dashboard(browser: Any) -> Iterator[Row]:
    with subprocess.Popen(
        [sys.executable, "-c", _SERVED, str(Path(__file__).parents[2] / "tests" / "live")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        url = server.stdout.readline().strip()

        def told() -> dict[str, float]:
            server.stdin.write("\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        page = browser.new_page(viewport={"width": 1280, "height": 860})
        trouble: list[str] = []
        foreign: list[str] = []
        own = url.split("/?")[0]
        page.on("console", lambda m: trouble.append(m.text))
        page.on("pageerror", lambda e: trouble.append(str(e)))
        page.on("request", lambda r: None if r.url.startswith(own) else foreign.append(r.url))
        page.goto(url)
        page.wait_for_timeout(12_000)
        paint = page.evaluate("performance.getEntriesByType('paint')[0].startTime")
        before, count, cpu = told(), page.evaluate("taufit.count"), _browser_cpu(server.pid)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            page.wait_for_timeout(1000)
        after, last, cpu = told(), page.evaluate("taufit.count"), _browser_cpu(server.pid) - cpu
        page.close()
        server.stdin.close()
    seconds = after["clock"] - before["clock"]
    frames = last["frames"] - count["frames"]
    arrived = last["received"] - count["received"]
    note = f"{seconds:.0f} s at 500 Hz, 6 joints, 1280 x 860, no GPU"
    yield Row("first paint", paint / 1e3, "s", "< 2", "of the page's own clock")
    yield Row("samples missing in the page", last["missing"], "", "== 0", note)
    yield Row("samples that arrived", arrived / seconds, "/s", "", note)
    yield Row("frames", frames / seconds, "/s", ">= 15", "drawn by the page, one per batch")
    yield Row("CPU per frame", 1e3 * cpu / frames, "ms", "< 20", "all processes of the browser")
    share = (after["taufit page"] - before["taufit page"]) / seconds
    yield Row("server", 100 * share, "% core", "< 3", "thread that serves the page and its stream")
    share = (after["taufit live"] - before["taufit live"]) / seconds
    told = "reads samples, packs readings; source and readings are made up"
    yield Row("session", 100 * share, "% core", "", told)
    share = (after["process"] - before["process"]) / seconds
    told = "both and everything else of the process; the monitor's own cost is that of speed/live"
    yield Row("whole server process", 100 * share, "% core", "< 3", told)
    yield Row("console messages", len(trouble), "", "== 0", "; ".join(trouble[:2]))
    yield Row("requests to others", len(foreign), "", "== 0", "; ".join(foreign[:2]))


_READY = "taufit.state !== null && document.body.getAttribute('aria-busy') === 'false'"


def _until(page: Any, expression: str) -> None:
    for _ in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def _map(browser: Any, one: SharedSet, folder: Path) -> tuple[int, bool, str]:
    """Choices until the map works, whether it is right, and the answer of the gravity check."""
    from taufit.live.mapper.app import LIMITS, mapper
    from taufit.live.mapper.mapping_session import MappingSession
    from taufit.live.server import open_server_socket, run_server

    out = folder / f"{one.name.replace('/', '_')}.yaml"
    file, *companions = [SHARED / name for name in one.files]
    desk = MappingSession(file, out, folder / "model.json", companions=tuple(companions))
    line, place = open_server_socket()
    with run_server(mapper(desk, place), line, place, LIMITS):
        page = browser.new_page()
        page.goto(place.url)
        _until(page, _READY)
        if one.robot:
            if one.robot.endswith(".urdf"):
                page.set_input_files("#file", file.parent / one.robot)
            else:
                page.select_option("#robot", one.robot)
            _until(page, f"taufit.state.robot !== null && {_READY}")
        if one.rate_hz is not None and page.is_visible("#rate"):
            page.fill("#rate", str(one.rate_hz))
            page.press("#rate", "Enter")
            _until(page, f"taufit.state.rate_hz !== null && {_READY}")
        page.click("#save", timeout=5000)
        _until(page, "document.querySelector('#saved').textContent !== ''")
        choices, check = page.evaluate("taufit.choices"), page.evaluate("taufit.state.check")
        page.close()
    is_right = judge_channels(one, out.read_text(), "") == "right"
    return choices, is_right, "" if check is None else check["verdict"]


def _mapper(browser: Any) -> Iterator[Row]:
    """Whole recordings: all files of a run together, each judged by its robot's own columns."""
    sets = [one for one in shared_sets() if one.says_robot]
    most, right, verdicts = 0, 0, list[str]()
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for one in sets:
            try:
                choices, is_right, verdict = _map(browser, one, Path(folder))
            except Exception as error:
                failed.append(f"{one.name}: {str(error)[:60]}")
                continue
            if not is_right:
                failed.append(f"{one.name}: other columns")
            most = max(most, choices)
            right += is_right
            verdicts.append(verdict)
    note = "; ".join([f"of {len(sets)} shared recordings, files of a run together", *failed[:3]])
    yield Row("taufit open: working maps", right, "", f">= {len(sets)}", note)
    note = "the robot, by name or dropped; the rate of files without time"
    yield Row("taufit open: choices at most", most, "", "<= 2", note)
    shown = [v for v in verdicts if v]
    yield Row("gravity check: yes", shown.count("yes"), "", "", f"of {len(shown)} with a robot")
    yield Row("gravity check: cannot tell", shown.count("open"), "", "", "gravity hardly changes")
    yield Row("gravity check: wrongly no", shown.count("no"), "", "== 0", "right robots only")


def rows() -> Iterator[Row]:
    """The figures."""
    if CHROMIUM is None:
        print("no chromium on this machine: nothing was measured", file=sys.stderr)
        return
    with _chromium() as browser:
        yield from _dashboard(browser)
        if SHARED.exists():
            yield from _mapper(browser)
