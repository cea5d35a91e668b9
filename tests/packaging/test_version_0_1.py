"""Files that version 0.1.0 has written are read as it read them, or refused with the remedy.

`version_0_1` holds a robot, a recording, a motion, a model, a history and a cache folder of that
version, and in `expected.json` the numbers that it took from them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit.cli.app import main

OLD = Path(__file__).parent / "version_0_1"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


def exit_code(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main([*words])
    return int(stop.value.code or 0)


def test_models_predict_the_same_torque(tmp_path):
    model = taufit.read_model(OLD / "model.json")
    motion = [np.array(EXPECTED[name]) for name in "qva"]
    np.testing.assert_allclose(model.torque(*motion), EXPECTED["torque"], rtol=1e-12)
    taufit.write_model(model, tmp_path / "again.json")
    again = taufit.read_model(tmp_path / "again.json")
    np.testing.assert_allclose(again.torque(*motion), EXPECTED["torque"], rtol=1e-12)


def test_recordings_have_the_same_rows():
    recording = taufit.read_recording(OLD / "run_1.parquet")
    assert len(recording) == EXPECTED["rows"]
    np.testing.assert_allclose(recording.position.mean(0), EXPECTED["position_mean"], rtol=1e-12)
    np.testing.assert_allclose(recording.signal.mean(0), EXPECTED["signal_mean"], rtol=1e-12)


def test_motions_take_the_same_course():
    from taufit.excitation import read_motion

    motion = read_motion(OLD / "motion.json")
    for now, then in zip(motion.at(np.array(EXPECTED["times"])), EXPECTED["motion"], strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-12, atol=1e-12)


def test_motions_are_not_played_without_a_certificate_and_the_remedy_is_named(folder, capsys):
    words = ("motion.json", "--robot", "two_joints.yaml", "--dry-run", "--json")
    assert exit_code("record", "127.0.0.1", *words) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["cleared"] and "--uncertified accepts that" in found["reasons"][0]


def test_histories_go_on(folder, capsys):
    recording = taufit.read_recording("run_1.parquet")
    later = recording.map(lambda values: values[5:], time=recording.time[5:])
    taufit.write_recording(later, "later.parquet")
    assert exit_code("health", "check", "history.json", "later.parquet") == 0
    assert exit_code("health", "check", "history.json", "later.parquet") == 3
    assert "is in this history already" in capsys.readouterr().err


def test_a_cache_of_0_1_is_left_alone(folder):
    entries = {p: p.read_bytes() for p in (folder / "cache").rglob("*") if p.is_file()}
    code = exit_code(
        "fit", "two_joints.yaml", "run_1.parquet", "--cache", "cache", "-o", "new.json"
    )
    assert code in (0, 1) and (folder / "new.json").exists()
    assert all(path.read_bytes() == contents for path, contents in entries.items() if contents)


def test_a_file_of_a_later_version_is_refused_with_the_remedy(folder):
    data = json.loads((folder / "model.json").read_text())
    (folder / "later.json").write_text(json.dumps({**data, "version": 99}))
    with pytest.raises(taufit.core.errors.TaufitError, match=r"Fit again|taufit that wrote it"):
        taufit.read_model(folder / "later.json")
