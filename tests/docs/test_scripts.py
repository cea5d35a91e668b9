"""The scripts for control engineers are short and pass a strict type check."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.docs.blocks import ROOT, blocks

SCRIPTS = [b.text for b in blocks(ROOT / "docs/control.md") if b.language == "python"]


def type_errors(folder, texts):
    """Lines of mypy's complaints about scripts, checked strictly."""
    for k, text in enumerate(texts):
        (folder / f"script_{k}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir"]
        + [folder / "cache", *sorted(folder.glob("script_*.py"))],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return [line for line in done.stdout.splitlines() if ": error:" in line]


def test_scripts_have_at_most_fifteen_lines():
    assert len(SCRIPTS) >= 5
    assert all(len([x for x in text.splitlines() if x.strip()]) <= 15 for text in SCRIPTS)


def test_scripts_pass_a_strict_type_check_and_wrong_ones_do_not(tmp_path):
    wrong = [
        "import taufit\n\ntaufit.read_model('model.json').gravty([0.0])\n",
        "import taufit\n\ntaufit.identify('ur10e', 'run.parquet', holdut='30%')\n",
    ]
    errors = type_errors(tmp_path, [*SCRIPTS, *wrong])
    count = len(SCRIPTS)
    assert {line.partition(".py")[0] for line in errors} == {
        f"script_{count}", f"script_{count + 1}"
    }, errors  # fmt: skip
