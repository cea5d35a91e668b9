"""`taufit simulate`: files, JSON, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.output_json import parse_output

from taufit.cli.app import main
from taufit.excitation import write_motion
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.sim import random_fourier


@pytest.fixture
def motion(tmp_path):
    path = tmp_path / "motion.json"
    write_motion(random_fourier(read_robot("ur10"), frequency_hz=0.5), path)
    return path


def _simulate(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["simulate", *map(str, arguments)])
    return stop.value.code


def test_recording_and_truth_are_written(tmp_path, motion, capsys):
    output = tmp_path / "run.parquet"
    assert _simulate("ur10", motion, "-o", output, "--payload", "2.5,0,0,0.05", "--json") == 0
    result = parse_output("simulate", capsys.readouterr().out)
    recording = read_recording(output)
    assert result["samples"] == len(recording) and result["file"] == str(output)
    # Nobody told the controller: the file does not give the payload away.
    assert recording.payload is None and recording.signal_unit == "A"
    truth = json.loads((tmp_path / "run.truth.json").read_text())
    assert truth["payload"][0]["parameters"][0] == 2.5
    assert (
        truth["robot"]["name"] == "ur10"
        and truth["effects"]["friction"]["model"]["name"] == "linear"
    )


def test_same_seed_same_file(tmp_path, motion):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert _simulate("ur10", motion, "-o", tmp_path / f"{name}.parquet", "--seed", seed) == 0
    first, again, other = ((tmp_path / f"{n}.parquet").read_bytes() for n in "abc")
    assert first == again != other


def test_presets_rates_effects_and_mounting(tmp_path, capsys):
    effects = tmp_path / "effects.yaml"
    effects.write_text("sensing: {absolute: true}\nfriction: null\n")
    output = tmp_path / "run.parquet"
    code = _simulate(
        "ur10", "preset", "--preset", "ur10-paper", "--periods", "0.3", "--rate-hz", "500",
        "--effects", effects, "--mounting", "wall", "-o", output, "--payload", "3@1:2",
    )  # fmt: skip
    assert code == 0
    recording = read_recording(output)
    truth = json.loads((tmp_path / "run.truth.json").read_text())
    assert not recording.signed.any() and "friction" not in truth["effects"]
    assert truth["robot"]["mounting"][0] == pytest.approx(np.pi / 2)
    assert [item["from"] for item in truth["payload"]] == [None, 1.0, 2.0]
    assert np.median(np.diff(recording.time)) == pytest.approx(0.002)
    assert "Next: `taufit fit" in capsys.readouterr().out


def test_several_runs_are_numbered_and_a_recording_can_be_played_again(tmp_path, motion):
    assert _simulate("ur10", motion, "-o", tmp_path / "run.parquet", "--runs", "2") == 0
    assert (tmp_path / "run_002.truth.json").exists()
    again = tmp_path / "again.parquet"
    assert _simulate("ur10", tmp_path / "run_001.parquet", "-o", again, "--preset", "clean") == 0
    assert len(read_recording(again)) > 100


def test_presets_are_listed(capsys):
    assert _simulate("ur10", "--preset", "list", "--json") == 0
    assert "ur10e-real" in parse_output("simulate", capsys.readouterr().out)["presets"]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--payload", "500"], 1, "no such arm"),
        (["--payload", "heavy"], 2, "MASS"),
        (["--bandwidth-hz", "900"], 1, "unstable"),
        (["--preset", "kr5-unsigned"], 2, "is a kr5"),
        (["--preset", "none"], 2, "ur10-paper"),
        (["--rate-hz", "5000"], 3, "1000 Hz"),
        (["--effects", "nowhere.yaml"], 3, "nowhere.yaml"),
        (["--mounting", "sideways"], 2, "sideways"),
    ],
)
def test_wrong_input_is_refused_and_nothing_is_written(
    arguments, code, word, tmp_path, motion, capsys
):
    output = tmp_path / "run.parquet"
    assert _simulate("ur10", motion, "-o", output, *arguments) == code
    captured = capsys.readouterr()
    assert word in captured.err and not captured.out
    assert not output.exists() and not (tmp_path / "run.truth.json").exists()


def test_missing_motion_says_what_would_do(tmp_path, capsys):
    assert _simulate("ur10", tmp_path / "no.json", "-o", tmp_path / "run.parquet") == 3
    assert "taufit design" in capsys.readouterr().err


def test_torque_beyond_the_limits_is_never_written_without_a_word(tmp_path, capsys):
    words = ["simulate", "ur10e", "-o", str(tmp_path / "run.parquet"), "--json"]
    heavy = ["--payload", "14,0,0,0.1"]
    # With gains for the usual pose, seed 147 ran away where the arm folds over its first axis.
    for more, over in ((heavy, True), (["--seed", "147"], False), (["--seed", "1"], False)):
        with pytest.raises(SystemExit):
            main([*words, *more])
        done = parse_output("simulate", capsys.readouterr().out)
        recording = read_recording(tmp_path / "run.parquet")
        beyond = np.abs(recording.signal).max(axis=0) > read_robot("ur10e").limits.torque
        assert bool(beyond.any()) is over
        assert bool(done["warnings"]) is over
        assert not over or "joint 3" in done["warnings"][0]


def test_dots_in_names_stay(tmp_path, motion):
    for name in ("run_3.035.parquet", "run_3.5.csv.gz"):
        assert _simulate("ur10", motion, "-o", tmp_path / name) == 0
    assert {path.name for path in tmp_path.glob("*.truth.json")} == {
        "run_3.035.truth.json",
        "run_3.5.truth.json",
    }
    assert _simulate("ur10", motion, "-o", tmp_path / "v1.2.parquet", "--runs", "2") == 0
    assert (tmp_path / "v1.2_002.parquet").exists()
    assert (tmp_path / "v1.2_002.truth.json").exists()


def test_a_run_goes_on_where_another_ended(tmp_path, motion, capsys):
    effects = tmp_path / "heat.yaml"
    effects.write_text("thermal: {capacity: 400, copper: 0.01, viscous_slope: -0.1}")
    first, second, third = (tmp_path / f"run.{k}.parquet" for k in (1, 2, 3))
    own = ("ur10", motion, "--effects", effects)
    assert _simulate(*own, "-o", first) == 0
    assert _simulate(*own, "-o", second, "--after", first, "--seed", 1) == 0
    truth = json.loads((tmp_path / "run.1.truth.json").read_text())
    start = read_recording(second).temperature[0]
    # Heat goes on while the arm settles before the first row.
    np.testing.assert_allclose(start, truth["temperature_end"], atol=0.2)
    assert np.max(start) > 22.8
    later = json.loads((tmp_path / "run.2.truth.json").read_text())
    given = later["effects"]["thermal"]
    np.testing.assert_allclose(given["initial_housing"], truth["housing_end"])
    # A recording alone tells what its sensors showed last.
    (tmp_path / "run.1.truth.json").unlink()
    assert _simulate(*own, "-o", third, "--after", first) == 0
    last = read_recording(first).temperature[-1]
    np.testing.assert_allclose(read_recording(third).temperature[0], last, atol=0.2)
    capsys.readouterr()
    assert _simulate("ur10", motion, "-o", third, "--after", first) == 3
    assert "nothing warms this arm" in capsys.readouterr().err
    cold = tmp_path / "cold.parquet"
    assert _simulate("ur10", motion, "-o", cold) == 0
    (tmp_path / "cold.truth.json").unlink()
    assert _simulate(*own, "-o", third, "--after", cold) == 3
    assert "no joint temperatures" in capsys.readouterr().err


def test_the_tip_of_a_tree_that_is_named_carries_the_payload(tmp_path, capsys):
    motion = tmp_path / "motion.json"
    write_motion(random_fourier(read_robot("baxter"), frequency_hz=0.5), motion)
    runs = []
    for options in ((), ("--payload", "2", "--at", "left_hand")):
        output = tmp_path / "run.parquet"
        assert _simulate("baxter", motion, "-o", output, *options) == 0
        runs.append(read_recording(output).signal)
    change = np.abs(runs[1] - runs[0]).max(axis=0)
    assert change[1] > 5.0 and np.all(change[7:] < 0.1 * change[1])
    assert _simulate("baxter", motion, "-o", output, "--payload", "2") == 3
    assert "choose one" in capsys.readouterr().err
