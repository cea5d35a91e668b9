"""Every table and figure of the four papers is there, and every number is compared or explained."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from taufit.cli import main
from taufit.papers import PAPERS, paper_page, read_paper
from taufit.papers.printed_tables import printed_tables

# What the papers have, by their own numbering.
LABELS = {
    "xu2024": [*(f"Table {n}" for n in ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"])]
    + [f"Figure {n}" for n in range(1, 13)],
    "kr5": ["Table I", "Table II", "Figure 1", "Figure 2", "Figure 3"],
    "raviola2021": [f"Table {n}" for n in range(1, 9)] + [f"Figure {n}" for n in range(1, 10)],
    "luo2024": [f"Table {n}" for n in ["I", "II", "III", "IV", "V", "VI"]]
    + [f"Figure {n}" for n in range(1, 8)],
}
FILES = {
    "xu2024": "ur10_online_payload",
    "kr5": "kr5_unsigned_torques",
    "raviola2021": "ur3_ur5_temperature_mounting",
    "luo2024": "franka_lie_friction_excitation",
}


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_is_listed(name):
    labels = [label for label, _ in read_paper(name).steps]
    assert sorted(labels) == sorted(LABELS[name])


@pytest.mark.parametrize("name", PAPERS)
def test_the_shipped_tables_are_those_of_the_reference(name, reference_dir):
    theirs = json.loads((reference_dir / f"{FILES[name]}.json").read_text())

    def compare(here, there, path):
        if isinstance(here, dict):
            for key, value in here.items():
                if (path, key) != ("", "source"):
                    compare(value, there[key], f"{path}/{key}")
        elif isinstance(here, list):
            assert len(here) == len(there), path
            for k, (a, b) in enumerate(zip(here, there, strict=True)):
                compare(a, b, f"{path}/{k}")
        elif not isinstance(here, str):
            assert here == there, path

    compare(printed_tables(name), theirs, "")


@pytest.fixture(scope="module")
def kr5():
    return read_paper("kr5"), list(read_paper("kr5").exhibits())


@pytest.mark.parametrize("name", sorted(set(PAPERS) - {"kr5"}))
def test_every_number_of_the_other_papers_agrees_or_says_why(name, tmp_path):
    """By the command, in a process of its own: it goes through long motions sample by sample."""
    page = tmp_path / f"{name}.html"
    command = [sys.executable, "-m", "taufit", "reproduce", name, "--json", "--report", str(page)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    exhibits = json.loads(done.stdout)["exhibits"]
    assert sorted(one["label"] for one in exhibits) == sorted(LABELS[name])
    for entry in (entry for one in exhibits for entry in one["entries"]):
        assert entry["agrees"] or (entry["agrees"] is None and entry["why"]), entry
    text = page.read_text(encoding="utf-8")
    assert ">NO<" not in text and all(one["label"] in text for one in exhibits)


def test_every_number_agrees_or_says_why(kr5):
    for exhibit in kr5[1]:
        assert exhibit.entries or exhibit.figures or exhibit.missing
        for entry in exhibit.entries:
            assert entry.agrees or (entry.agrees is None and entry.reason), entry


def test_an_entry_outside_its_tolerance_is_shown(kr5):
    from dataclasses import replace

    paper, exhibits = kr5
    first = exhibits[1]
    wrong = replace(first, entries=(replace(first.entries[0], computed=1.0), *first.entries[1:]))
    assert ">NO<" in paper_page(paper, [wrong])
    assert ">NO<" not in paper_page(paper, exhibits)


def test_the_page_stands_alone(kr5):
    text = paper_page(*kr5)
    assert "Table II" in text and "<canvas" in text
    assert not re.search(r"(src|href)=\"https?:", text)


def test_the_command_prints_numbers_and_writes_the_page(tmp_path, capsys):
    page = tmp_path / "kr5.html"
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "kr5", "--json", "--report", str(page)])
    assert not stop.value.code
    data = json.loads(capsys.readouterr().out)
    assert data["differing"] == 0 and page.stat().st_size > 10_000
    rows = [entry for exhibit in data["exhibits"] for entry in exhibit["entries"]]
    assert sum(entry["agrees"] is True for entry in rows) >= 30


def test_an_unknown_paper_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "nobody1999"])
    assert stop.value.code == 2
