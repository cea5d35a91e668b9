"""Open benchmark: its page followed literally in a copy; scores, splits and page of results."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from benchmarks.open import cells, page, scores, splits
from benchmarks.open.__main__ import compare, read_results
from benchmarks.open.arm import TASKS, load_arms
from benchmarks.open.conditioning import condition
from benchmarks.open.tool import load_tools
from tests.browser import LOOKS, opened
from tests.docs.blocks import ROOT, blocks, commands

HERE = ROOT / "benchmarks" / "open"
RESULTS = read_results(HERE / "results.json")


def test_an_arm_and_a_tool_are_added_by_following_the_page(tmp_path):
    for name in ("benchmarks/__init__.py", "benchmarks/pinocchio_arm.py", "benchmarks/open"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    steps = [b for b in blocks(ROOT / "docs/open_benchmark.md") if b.title == "in a checkout"]
    assert len(steps) == 5
    for step in steps:
        if step.language == "python":
            path, _, text = step.text.removeprefix("# ").partition("\n")
            assert not (tmp_path / path).exists()
            (tmp_path / path).write_text(text)
            continue
        for words in commands(step.text):
            start = [sys.executable] if words[0] == "python" else [sys.executable, "-m", words[0]]
            done = subprocess.run(
                [*start, *words[1:]], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, shlex.join(words) + done.stdout + done.stderr
    results = json.loads((tmp_path / "my_results.json").read_text())
    found = {(c["tool"], c["task"]): c for c in results["cells"]}
    assert len(found) == 2 * len(TASKS) and not any("failure" in c for c in found.values())
    ours, theirs = (found[tool, "unseen motion"]["value"] for tool in ("taufit", "my_tool"))
    assert 0.0 < ours < 0.15 < theirs
    assert "my tool" in (tmp_path / "my_page.html").read_text()
    assert "my_arm" in json.loads((tmp_path / "benchmarks/open/splits.json").read_text())
    # A changed file is refused by name.
    (tmp_path / "my_data/log.csv.gz").write_bytes(
        (tmp_path / "my_data/other_log.csv.gz").read_bytes()
    )
    words = ["-m", "benchmarks.open", "--arms", "my_arm", "--data", "my_data"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "log.csv.gz is not the published file" in done.stderr


def test_rows_of_the_arms_are_the_published_ones():
    known, arms = splits.published(), load_arms()
    assert set(known) == set(arms) and len(arms) >= 9
    for name, arm in arms.items():
        assert json.loads(json.dumps(splits.rows(arm.splits))) == known[name]["rows"]
        assert set(known[name]["sha256"]) == set(arm.files())
        for split in arm.splits.values():
            for a in split.training:
                for b in split.test:
                    ends = [x.last or np.inf for x in (a, b)]
                    assert a.file != b.file or ends[0] <= b.first or ends[1] <= a.first


def test_files_are_the_published_ones(data_dir):
    arm = load_arms(["kr300"])["kr300"]
    splits.require_unchanged("kr300", arm, data_dir)


def test_every_cell_is_a_figure_a_failure_or_not_applicable():
    arms, tools = load_arms(), load_tools()
    assert len(arms) >= 9 and len(tools) >= 6
    known = {(c["arm"], c["tool"], c["task"]): c for c in RESULTS["cells"]}
    assert set(known) == {(a, t, k) for a in arms for t in tools for k in TASKS}
    for cell in known.values():
        kinds = [key for key in ("value", "failure", "not_applicable") if key in cell]
        assert len(kinds) == 1 and cell[kinds[0]] not in ("", None)
        assert not re.search(r"/(tmp|work|root|home)/", json.dumps(cell))
    assert sum(any("value" in known[a, t, k] for a in arms for t in tools) for k in TASKS) >= 5


def test_the_page_is_that_of_the_results():
    text = (ROOT / "docs" / "benchmark_table.html").read_text("utf-8")
    assert len(text.encode()) < 1_000_000
    contents = [re.sub(r'<(style|script)>.*?</\1>|<p class="foot">.*', "", t, flags=re.S)
                for t in (text, page.render(RESULTS))]  # fmt: skip
    assert contents[0] == contents[1]


def test_scores_tell_a_right_prediction_from_wrong_ones():
    time = np.arange(0.0, 8.0, 0.002)
    q = np.stack([np.sin(2.0 * time), 0.5 * np.cos(3.0 * time)], 1)
    torque = 5.0 * q + 2.0 * np.gradient(q, time, axis=0)
    run = condition(time, q, None, torque, 10.0)
    assert scores.joint_nrmse([run], [run.torque]).max() < 1e-12
    np.testing.assert_allclose(scores.joint_nrmse([run], [-run.torque]), 2.0, rtol=0.05)
    use = run.moving
    np.testing.assert_allclose((5.0 * run.q + 2.0 * run.v)[use], run.torque[use], atol=0.05)
    assert scores.joint_nrmse([run], [run.torque[:, ::-1]]).min() > 0.5


def test_a_phantom_force_has_the_size_of_the_force():
    from benchmarks.pinocchio_arm import arrays_of

    from taufit.robot import read_robot

    arm = arrays_of(read_robot("ur10e"))
    time = np.arange(0.0, 4.0, 0.01)
    q = np.array([0.3, -1.2, 1.4, -0.6, 1.1, 0.2]) + 0.2 * np.sin(time)[:, None]
    run = condition(time, q, None, np.zeros_like(q), 10.0)
    jacobian = scores.flange_jacobian(arm)
    force = np.array([20.0, 0.0, 0.0])
    pushed = -np.array([jacobian(x).T @ force for x in run.q])
    assert 17.0 < scores.phantom_force(arm, [run], [pushed]) < 20.0
    assert scores.phantom_force(arm, [run], [0.0 * pushed]) < 1e-9


def test_runs_that_differ_are_named(capsys):
    changed = json.loads(json.dumps(RESULTS))
    cell = next(c for c in changed["cells"] if "value" in c)
    cell["value"] *= 1.03
    assert compare(RESULTS, RESULTS) == 0 and compare(RESULTS, changed) == 1
    assert cells.to_line(cell)[:30] in capsys.readouterr().out


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_the_page_is_sorted_and_accessible(browser, look):
    from axe_playwright_python.sync_playwright import Axe

    address = (ROOT / "docs" / "benchmark_table.html").as_uri()
    with opened(browser, address, **LOOKS[look]) as window:
        window.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        table = window.locator('table[data-name="cells"]')
        table.locator("th button").nth(2).click()
        column = "rows => rows.map(r => r.cells[2].dataset.value).filter(v => v).map(Number)"
        values = table.locator("tbody tr").evaluate_all(column)
        assert len(values) > 40 and values in (sorted(values), sorted(values, reverse=True))
        assert not window.trouble and window.asked == [address]
        found = Axe().run(window).response["violations"]
        assert not found, [(v["id"], v["nodes"][0]["html"]) for v in found]
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert window.evaluate(wide)
