"""A score on training data is never shown as one on unseen motion."""

from __future__ import annotations

import json
import shutil

import pytest

from taufit.cli import main


def run(*words, capsys):
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert not stop.value.code
    return capsys.readouterr().out


@pytest.fixture
def folder(tmp_path, capsys):
    for seed in (1, 2):
        run("simulate", "ur3", "--seed", seed, "-o", tmp_path / f"run{seed}.parquet", capsys=capsys)
    run("fit", "ur3", tmp_path / "run1.parquet", "--friction", "linear", "-o",
        tmp_path / "model.json", capsys=capsys)  # fmt: skip
    return tmp_path


def test_check_and_report_know_the_files_of_the_fit_by_their_contents(folder, capsys):
    # The name does not matter.
    shutil.copy(folder / "run1.parquet", folder / "other.parquet")
    model = folder / "model.json"
    for name, is_training in (("run1", True), ("other", True), ("run2", False)):
        file = folder / f"{name}.parquet"
        data = json.loads(run("check", model, file, "--json", capsys=capsys))
        kinds = [finding["kind"] for finding in data["findings"]]
        assert ("training_file" in kinds) == is_training
        page = folder / f"{name}.html"
        run("report", model, file, "-o", page, capsys=capsys)
        text = page.read_text()
        assert ("that the fit has not seen" in text) != is_training
        assert ("of its own training data" in text) == is_training
