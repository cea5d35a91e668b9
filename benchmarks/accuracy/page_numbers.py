"""Numbers on pages: one value per quantity on page, in the terminal and in JSON.

Two hundred fits of a two-joint arm with friction and noise from little to most of the torque, every
other one without a hold-out. Counted: pages with a negative zero, a needless exponent, a figure
without a unit, or a quantity that differs between page, terminal and JSON beyond its rounding.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row

FITS = 200


def _run(*words: object) -> str:
    from taufit.cli import main

    out = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(out):
        main([str(word) for word in words])
    return out.getvalue()


def rows() -> Iterator[Row]:
    """Pages with a fault, and with a contradiction."""
    from tests.cli.test_headline import TWO_JOINTS, two_joint_recording
    from tests.report.page_numbers import disagreements, faults

    import taufit
    from taufit.recording import write_recording

    faulty: list[str] = []
    contradicting: list[str] = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("arm.yaml").write_text(TWO_JOINTS)
            robot = taufit.read_robot("arm.yaml")
            for seed in range(FITS):
                write_recording(two_joint_recording(robot, 1000 + seed), "run.parquet")
                write_recording(two_joint_recording(robot, 5000 + seed), "other.parquet")
                words = ["fit", "arm.yaml", "run.parquet", "--friction", "linear"]
                words += ["--ignore-contradictions", "--overwrite"]
                words += ["--holdout", "other.parquet"] if seed % 2 else []
                terminal = _run(*words, "--report", "page.html")
                data = json.loads(_run(*words, "--json"))
                page = Path("page.html").read_text("utf-8")
                faulty += [f"seed {seed}: {text}" for text in faults(page)[:1]]
                found = disagreements(page, terminal, data)
                contradicting += [f"seed {seed}: {text}" for text in found[:1]]
        finally:
            os.chdir(before)
    note = f"of {FITS} fits; "
    yield Row("pages with a faulty number", len(faulty), "", "== 0", note + "; ".join(faulty[:2]))
    yield Row(
        "pages that contradict terminal or JSON", len(contradicting), "", "== 0",
        note + "; ".join(contradicting[:2]),
    )  # fmt: skip
