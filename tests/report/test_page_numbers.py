"""One value per quantity on page, terminal and in JSON; commands of a page run as pasted."""

from __future__ import annotations

import json

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


# 1147: the fit is as good as the description, a gain of -0.
@pytest.mark.parametrize("seed", [0, 3, 8, 1147])
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
