"""Every example runs alone, anywhere, without a warning."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# These read recordings that are not part of the project.
NEED_RECORDINGS = {"15_fit_a_real_robot"}


def children_seconds() -> float:
    """Processor time of commands that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example_runs(path, tmp_path, request):
    if path.stem in NEED_RECORDINGS:
        request.getfixturevalue("data_dir")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    before = children_seconds()
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
    # Nobody waits longer than a minute for an example; processor time, since machines are busy.
    assert children_seconds() - before < 60.0


def test_examples_are_numbered_and_say_what_they_show():
    assert len(EXAMPLES) >= 8
    for path in EXAMPLES:
        assert path.name[:2].isdigit()
        assert path.read_text(encoding="utf-8").startswith('"""')


NOTEBOOKS = sorted(FOLDER.glob("notebooks/*.ipynb"))


def run_notebook(path: Path) -> int:
    """Run every cell in order, and show what its last line is, as a notebook does."""
    space: dict[str, object] = {"__name__": "__main__"}
    shown = 0
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "notebooks are kept without outputs"
        tree = ast.parse("".join(cell["source"]))
        where = f"{path.name}, cell {number}"
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), space)
            page = getattr(value, "_repr_html_", None)
            shown += page is not None and page().startswith("<iframe")
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_runs_and_its_nouns_show_themselves(path, tmp_path, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    shared = FOLDER.parents[1] / "shared" / "data"
    monkeypatch.setenv("TAUFIT_DATA", str(shared))
    monkeypatch.chdir(tmp_path)
    assert run_notebook(path) >= 2
    from matplotlib import pyplot

    pyplot.close("all")


def test_there_are_two_notebooks():
    assert len(NOTEBOOKS) >= 2
