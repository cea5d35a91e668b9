"""`taufit payload` from the outside."""

import json
from dataclasses import replace

import numpy as np
import pytest

from taufit.cli.app import main
from taufit.model.model_file import write_model
from taufit.recording import read_recording, write_recording
from taufit.recording.crop import crop
from taufit.sim import read_preset
from taufit.workflow import identify


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("payload")
    preset = read_preset("ur10-paper")
    effects = preset.twin.effects
    twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=4.0)))
    empty = twin.run(preset.motion(periods=5), seed=1).recording
    write_model(identify(twin.robot, [empty]).model, folder / "model.json")
    loaded = twin.run(preset.motion(periods=1), seed=2, payload=preset.payload).recording
    write_recording(loaded, folder / "loaded.parquet")
    return folder


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["payload", *map(str, arguments)])
    return stop.value.code or 0


def test_json_has_what_scripts_rely_on(files, capsys):
    code = run(files / "model.json", files / "loaded.parquet", "--json")

    assert code == 0
    out = capsys.readouterr().out
    data = json.loads(out)
    for name in ("mass", "com", "inertia"):
        assert {"value", "low", "high"} <= set(data[name])
    assert data["mass"]["low"] < 3.5256 < data["mass"]["high"]
    assert abs(data["mass"]["value"] / 3.5256 - 1.0) < 0.02
    assert data["ready_at"] <= data["stopped_at"]
    assert {"t", "mass", "low", "high"} <= set(data["history"][0])
    assert np.all(np.diff([m["t"] for m in data["history"]]) > 0.0)
    assert data["set_payload"]["mass"] == data["mass"]["value"]
    assert len(data["set_payload"]["inertia"]) == 6


def test_words_say_the_same(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    code = run(files / "model.json", files / "loaded.parquet", "--report", page)

    assert code == 0
    out = capsys.readouterr().out
    assert out.startswith("Model of ")
    assert "carries 3.5" in out
    assert "set_target_payload(" in out
    assert "Next:" in out
    text = page.read_text()
    assert "3.5" in text and "<svg" in text and "<canvas" in text


def test_replay_shows_and_ends_with_the_same_json(files, capsys):
    code = run(
        files / "model.json", files / "loaded.parquet", "--replay", "--speed", "1000", "--json"
    )

    assert code == 0
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1])["ready"]


@pytest.mark.parametrize("method", ["direct", "difference", "khalil"])
def test_other_methods_answer_too(files, method, capsys):
    code = run(files / "model.json", files / "loaded.parquet", "--method", method, "--json")

    data = json.loads(capsys.readouterr().out)
    assert abs(data["mass"]["value"] / 3.5256 - 1.0) < 0.1
    # Their inertia is seldom that of a body; then no controller is told it.
    assert code == (1 if data["refused"] else 0)
    assert (data["set_payload"] is None) is bool(data["refused"])
    assert data["refused"] is None or "no body has this inertia" in data["refused"]


@pytest.mark.parametrize(
    "arguments", [("--method", "guess"), ("--box", "1,2"), ("--accuracy", "fine"), ("--speed", "0")]
)
def test_wrong_usage_is_exit_2(files, arguments):
    assert run(files / "model.json", files / "loaded.parquet", *arguments) == 2


def test_help_ends_with_the_next_step(capsys):
    assert run("--help") == 0
    assert "Next:" in capsys.readouterr().out


def test_a_gain_deviation_that_says_nothing_is_refused(files, capsys):
    code = run(files / "model.json", files / "loaded.parquet", "--gain-std", "1e300")

    assert code != 0
    assert "gain-std" in capsys.readouterr().err


@pytest.fixture(scope="module")
def traps(files, tmp_path_factory):
    """The loaded run with things wrong that no payload explains."""
    folder = tmp_path_factory.mktemp("traps")
    loaded = read_recording(files / "loaded.parquet")
    sign = np.ones(loaded.joints)
    sign[1] = -1.0
    write_recording(replace(loaded, signal=loaded.signal * sign), folder / "sign.parquet")
    write_recording(replace(loaded, signal=3.0 * loaded.signal), folder / "gain.parquet")
    write_recording(crop(loaded, None, 0.6), folder / "short.parquet")
    return folder


@pytest.mark.parametrize("method", ["filter", "direct", "difference", "khalil"])
@pytest.mark.parametrize("trap", ["sign", "gain"])
def test_a_result_that_is_disowned_is_not_handed_over(files, traps, trap, method, capsys):
    words = (files / "model.json", traps / f"{trap}.parquet", "--method", method)
    assert run(*words) == 1
    told = capsys.readouterr()
    assert "does not explain the torque" in told.err
    shown = told.out + told.err
    for line in ("set_target_payload", "setLoad", "LOAD_DATA", "loaddata", "(95 %)", "carries 0"):
        assert line not in shown

    assert run(*words, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert "does not explain" in data["refused"] and data["set_payload"] is None
    assert data["mass"]["low"] is None and "value" in data["mass"]


def test_what_is_not_ready_is_no_result(files, traps, capsys):
    assert run(files / "model.json", traps / "short.parquet") == 1
    told = capsys.readouterr()
    assert "not ready" in told.out and "set_target_payload" not in told.out


def test_only_the_line_of_the_arms_make_is_shown(files, capsys):
    assert run(files / "model.json", files / "loaded.parquet") == 0
    out = capsys.readouterr().out
    assert "set_target_payload" in out and "LOAD_DATA" not in out and "setLoad" not in out


def test_contact_names_none_where_the_model_does_not_explain_the_torque(files, traps, capsys):
    def contact(*words):
        with pytest.raises(SystemExit) as stop:
            main(["contact", *map(str, words)])
        return stop.value.code or 0

    words = (files / "model.json", traps / "sign.parquet")
    assert contact(*words, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["events"] == [] and "joint 2" in data["refused"]
    assert contact(*words) == 1
    told = capsys.readouterr()
    assert "false alarms" not in told.out and "does not explain" in told.err
