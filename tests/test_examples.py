"""Every example runs alone, anywhere, without a warning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# These read recordings that are not part of the project.
NEED_RECORDINGS = {"05_fit_a_real_robot"}


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example_runs(path, tmp_path, request):
    if path.stem in NEED_RECORDINGS:
        request.getfixturevalue("data_dir")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()


def test_examples_are_numbered_and_say_what_they_show():
    assert len(EXAMPLES) >= 8
    for path in EXAMPLES:
        assert path.name[:2].isdigit()
        assert path.read_text(encoding="utf-8").startswith('"""')
