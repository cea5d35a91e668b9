"""Where shared recordings and the papers' tables are, and how tests skip without them."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
import threadpoolctl

# Tests keep nothing in the home of whoever runs them.
_HOME = tempfile.mkdtemp(prefix="taufit-tests-")
os.environ["XDG_CACHE_HOME"] = f"{_HOME}/cache"
os.environ["XDG_STATE_HOME"] = f"{_HOME}/state"
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

# Plugins of pytest may have loaded NumPy before these lines: its threads would wait for each other
# where two workers share two cores.
assert np.__version__
threadpoolctl.threadpool_limits(1)

# TAUFIT_SHAPES=0 leaves the check of annotations out: a little faster, and a debugger steps better.
if os.environ.get("TAUFIT_SHAPES", "1") != "0":
    import tests.shapes
    from jaxtyping import install_import_hook

    # Before anything imports taufit.
    install_import_hook(tests.shapes.ROOMS, "tests.shapes.checker")

# A suite that runs in the background was handed these as ignored; commands under test are not.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases of tests/long.txt, and mark the tests that `make quick` leaves out.

    `python -m tests.slow FOLDER` renews the list of the latter.
    """
    if os.environ.get("TAUFIT_LONG") != "1" and len(items) > 1000:
        _leave_out_cases(config, items)
    listed = set((Path(__file__).parent / "slow.txt").read_text("utf-8").split())
    for item in items:
        if item.nodeid.split("[")[0] in listed or item.nodeid.split("::")[0] in listed:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Leave modules and test items out of garbage collection: each would take half a second."""
    gc.collect()
    gc.freeze()


def _leave_out_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one case in N of what tests/long.txt lists with its N, and none where N is 0.

    A line names a family or one of its cases.
    """
    lines = (Path(__file__).parent / "long.txt").read_text("utf-8").splitlines()
    listed = (x.split(maxsplit=1) for x in lines if not x.startswith("#"))
    shares = {name: int(n) for n, name in listed}
    seen: Counter[str] = Counter()
    kept, left_out = [], []
    for item in items:
        family = item.nodeid.split("[")[0]
        share = shares.get(item.nodeid, shares.get(family, 1))
        (kept if share and seen[family] % share == 0 else left_out).append(item)
        seen[family] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real robots' recordings, beside the project as ../shared/data; never part of it."""
    path = SHARED / "data"
    if not path.is_dir():
        pytest.skip("the shared recordings are not beside this checkout (../shared/data)")
    return path


@pytest.fixture(scope="session")
def reference_dir() -> Path:
    """The papers' tables, beside the project as ../shared/reference."""
    path = SHARED / "reference"
    if not path.is_dir():
        pytest.skip("the papers' tables are not beside this checkout (../shared/reference)")
    return path


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; its tests skip where there is none."""
    from tests.browser import launched

    with launched() as browser:
        yield browser


@pytest.fixture(autouse=True)
def _no_shape_check_for_wrong_shapes(request):
    """Tests of our own messages about wrong input get past the check of annotations."""
    if "tests.shapes" in sys.modules:
        sys.modules["tests.shapes"].begin_test(request.path)
    # Drawn input differs from run to run: only rooms of plain arrays are checked with it.
    is_drawn = getattr(request.node.obj, "is_hypothesis_test", False)
    is_plain = request.path.parent.name in ("robot", "dynamics", "signals")
    if request.node.get_closest_marker("unchecked") is None and (is_plain or not is_drawn):
        yield
        return
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
