"""One value per quantity on page, terminal and in JSON; commands of a page run as pasted."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
import sys

import pytest
from tests.cli.test_headline import TWO_JOINTS, run, two_joint_recording
from tests.report.page_numbers import disagreements, faults

import taufit
from taufit.recording import write_recording


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    file = tmp_path_factory.mktemp("arm") / "arm.yaml"
    file.write_text(TWO_JOINTS)
    return file


@pytest.mark.parametrize("seed", [0, 3, 8, 14])
def test_page_terminal_and_json_agree(seed, robot, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm = taufit.read_robot(robot)
    write_recording(two_joint_recording(arm, seed), tmp_path / "run.parquet")
    write_recording(two_joint_recording(arm, 100 + seed), tmp_path / "other.parquet")
    words = ["fit", robot, "run.parquet", "--friction", "linear", "--ignore-contradictions"]
    words += ["--holdout", "other.parquet"] if seed else []
    _, terminal = run(capsys, *words, "--report", "page.html")
    _, out = run(capsys, *words, "--json")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert faults(page) == []
    assert disagreements(page, terminal, json.loads(out)) == []


def test_wrong_numbers_are_noticed():
    page = (
        '<div class="numbers"><div><b>0.10 to 0.51</b><span>RMSE</span></div></aside>'
        "<p>-0.0 mm, 4.1e-02 kg</p>"
    )
    assert len(faults(page)) == 3


def test_commands_of_a_page_run_as_pasted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twin = taufit.Twin.typical(taufit.read_robot("ur3e"))
    from taufit.sim import random_fourier

    write_recording(twin.run(random_fourier(twin.robot, seed=1), seed=1).recording, "a run.parquet")
    words = ["fit", "ur3e", "a run.parquet", "--friction", "linear", "-o", "m.json"]
    code, _ = run(capsys, *words, "--report", "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    shown = [html.unescape(t) for t in re.findall(r'class="command"><code>(.*?)</code>', page)]
    verbs = {shlex.split(line)[1] for line in shown}
    assert {"fit", "export", "live"} <= verbs | {"live"} and len(shown) >= 4
    for line in shown:
        name, verb, *rest = shlex.split(line)
        assert name == "taufit"
        if verb == "live":
            command = [sys.executable, "-m", "taufit", verb, *rest]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as live:
                assert any("http://" in line for line in iter(live.stdout.readline, ""))
                live.terminate()
        else:
            if verb == "design":
                rest += ["--seconds", "0.5"]
            code, out = run(capsys, verb, *rest)
            assert code == 0, (line, out)
