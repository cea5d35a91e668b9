"""The surface that scripts rely on: what each command prints with --json, and what Python gives.

Keys may be added; those listed here stay, with these types and meanings.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from tests.output_json import SCHEMA, parse_output

import taufit
from taufit.cli import main, weigh
from taufit.cli.app import VERBS, command_module
from taufit.payload import PayloadSettings

ROBOTS = ("ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "panda", "kr5")
FRICTION = ("none", "linear", "power_law", "polynomial", "stribeck", "stribeck_load")
ROOT = Path(__file__).parents[2]


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command, in this process."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return stop.value.code or 0, printed.out, printed.err


def answer(capsys, *arguments):
    """The JSON object of a command that must succeed and print nothing else anywhere."""
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    assert out.endswith("}\n") and out.count("\n") == 1
    assert err == ""
    return parse_output(arguments[0], out)


def numbers(values, count):
    """Whether this is a list of `count` finite numbers."""
    return len(values) == count and all(
        isinstance(x, float | int) and not isinstance(x, bool) and np.isfinite(x) for x in values
    )


def quiet(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    assert not stop.value.code, arguments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two simulated recordings and a model fitted to the first."""
    folder = tmp_path_factory.mktemp("contract")
    for name, seed in (("train", 0), ("test", 1)):
        quiet("simulate", "ur5e", "--seed", seed, "-o", folder / f"{name}.parquet", "--json")
    quiet(
        "fit", "ur5e", folder / "train.parquet", "--friction", "linear",
        "-o", folder / "model.json", "--json",
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("robot", ROBOTS)
def test_robots_are_bundled(robot):
    assert robot in taufit.bundled_robots()
    assert taufit.read_robot(robot).joints == (7 if robot == "panda" else 6)


@pytest.mark.parametrize(
    ("options", "standard"),
    [([], 60), (["--friction", "linear", "--rotor-inertia"], 84),
     (["--friction", "linear", "--no-offset"], 72), (["--mounting", "0,90,0"], 60)],
)  # fmt: skip
def test_inspect(capsys, options, standard):
    data = answer(capsys, "inspect", "ur5", *options)
    assert data["joints"] == 6
    assert data["standard_parameters"] == standard
    kinds = [data[key] for key in ("identifiable", "in_combination", "no_effect")]
    assert all(isinstance(count, int) for count in kinds) and sum(kinds) == standard
    assert len(data["base"]) == data["base_parameters"]
    for entry in data["base"]:
        assert isinstance(entry["name"], str) and isinstance(entry["expression"], str)
        assert entry["coefficients"][entry["name"]] == pytest.approx(1.0)
        assert all(isinstance(x, float) for x in entry["coefficients"].values())


@pytest.mark.parametrize("friction", FRICTION)
def test_friction_names_are_known_and_have_an_offset(capsys, friction):
    offset = answer(capsys, "inspect", "ur3", "--friction", friction)["standard_parameters"]
    none = answer(capsys, "inspect", "ur3", "--friction", friction, "--no-offset")
    # Without friction nothing is counted but links, so there is nothing to leave out.
    assert offset - none["standard_parameters"] == (0 if friction == "none" else 6)


def test_design(capsys, tmp_path):
    motion = tmp_path / "motion.json"
    data = answer(
        capsys, "design", "ur5e", "--frequency-hz", "0.2", "--harmonics", "3", "--criterion", "d",
        "--seconds", "0.4", "--seed", "3", "-o", motion,
    )  # fmt: skip
    for key in ("condition_number", "condition_number_scaled", "log_det", "worst_margin"):
        assert isinstance(data[key], float) and np.isfinite(data[key])
    assert data["condition_number"] >= 1.0 and data["condition_number_scaled"] >= 1.0
    assert data["feasible"] is True and data["worst_margin"] >= 0.0
    assert 0.0 < data["cpu_seconds"] < 30.0
    assert isinstance(data["starts"], int) and data["starts"] >= 1
    played = taufit.read_motion(motion)
    assert played.joints == 6 and played.duration == pytest.approx(5.0)


def scores(entry, file, joints=6):
    """Whether this is a hold-out entry of the contract."""
    assert entry["file"] == str(file)
    assert numbers(entry["rmse"], joints) and numbers(entry["nrmse"], joints)
    assert numbers(entry["correlation"], joints) and max(np.abs(entry["correlation"])) <= 1.0
    assert entry["mean_nrmse"] == pytest.approx(np.mean(entry["nrmse"]))
    assert isinstance(entry["samples"], int) and entry["samples"] > 100
    return True


def test_fit_and_check_agree(capsys, folder, tmp_path):
    model, test = tmp_path / "model.json", folder / "test.parquet"
    data = answer(
        capsys, "fit", "ur5e", folder / "train.parquet", "--friction", "linear",
        "--estimator", "wls", "--cutoff-hz", "8",
        "--holdout", test, "--holdout", folder / "train.parquet", "--allow-repeats", "-o", model,
    )  # fmt: skip
    assert isinstance(data["base_parameters"], int) and data["base_parameters"] > 36
    assert isinstance(data["condition_number"], float) and data["condition_number"] >= 1.0
    assert isinstance(data["consistent"], bool)
    assert numbers(data["rmse"], 6) and numbers(data["nrmse"], 6)
    assert data["mean_nrmse"] == pytest.approx(np.mean(data["nrmse"]))
    assert all(isinstance(text, str) for text in data["warnings"])
    assert data["cpu_seconds"] > 0.0
    assert len(data["holdout"]) == 2 and scores(data["holdout"][0], test)
    # The training file scored as a hold-out gets the training score: one definition of nrmse.
    assert data["holdout"][1]["nrmse"] == pytest.approx(data["nrmse"], rel=1e-6)

    checked = answer(capsys, "check", model, test, folder / "train.parquet")
    assert checked["verdict"] in ("PASS", "FAIL")
    assert [scores(entry, file) for entry, file in
            zip(checked["files"], (test, folder / "train.parquet"), strict=True)]  # fmt: skip
    for one, other in zip(checked["files"], data["holdout"], strict=True):
        for key in ("rmse", "nrmse", "correlation", "samples"):
            assert one[key] == pytest.approx(other[key], rel=1e-6), key


def test_nrmse_is_rmse_over_the_deviation_of_measured_torque_in_motion(capsys, folder):
    data = answer(capsys, "check", folder / "model.json", folder / "test.parquet",
                  "--cutoff-hz", "6")["files"][0]  # fmt: skip
    samples = taufit.condition(taufit.read_recording(folder / "test.parquet"), cutoff_hz=6.0)
    moving = samples.in_motion
    assert data["samples"] == moving.sum()
    expected = np.array(data["rmse"]) / samples.torque[moving].std(0)
    np.testing.assert_allclose(data["nrmse"], expected, rtol=1e-6)


def test_unknown_signs(capsys, folder, tmp_path):
    data = answer(
        capsys, "fit", "ur5e", folder / "train.parquet", "--friction", "linear",
        "--torque-signs", "unknown", "-o", tmp_path / "model.json",
    )  # fmt: skip
    segments = data["segments"]
    count = segments if isinstance(segments, int) else len(segments)
    assert count == len(data["signs"]) == len(data["ambiguous"]) > 6
    assert set(data["signs"]) <= {-1, 1}
    assert all(isinstance(flag, bool) for flag in data["ambiguous"])
    assert isinstance(data["certified"], bool)
    assert data["chi2_per_dof"] > 0.0
    assert data["base_parameters"] > 36 and numbers(data["nrmse"], 6)


@pytest.mark.parametrize("format", ["urdf", "mjcf", "json", "c"])
def test_export(capsys, folder, tmp_path, format):
    output = tmp_path / f"arm.{format}"
    data = answer(capsys, "export", folder / "model.json", "--format", format, "-o", output)
    assert str(output) in data["files"]
    assert output.stat().st_size > 1000
    if format == "urdf":
        assert taufit.read_robot(output).joints == 6
    if format == "json":
        assert taufit.read_model(output).values is not None


def test_payload(capsys, folder, tmp_path):
    carried = tmp_path / "carried.parquet"
    quiet("simulate", "ur5e", "--seed", 1, "--payload", "2,0,0,0.05", "-o", carried, "--json")
    capsys.readouterr()
    data = answer(capsys, "payload", folder / "model.json", carried)
    mass = data["mass"]
    assert mass["low"] <= mass["value"] <= mass["high"]
    assert mass["value"] == pytest.approx(2.0, abs=0.3)
    for key in ("com", "inertia"):
        low, value, high = (np.array(data[key][part]) for part in ("low", "value", "high"))
        assert low.shape == value.shape == high.shape and low.size >= 3
        assert np.all(low <= value) and np.all(value <= high)
    assert data["ready_at"] is None or data["ready_at"] >= 0.0
    assert "stopped_at" in data
    assert data["history"]
    for entry in data["history"]:
        assert entry.keys() >= {"t", "mass", "low", "high"}


def test_exit_codes(capsys, folder):
    assert run(capsys, "inspect", "ur5")[0] == 0
    for arguments in (["inspect", "no-such-arm"], ["check", folder / "none.json", "x.parquet"]):
        code, out, err = run(capsys, *arguments, "--json")
        error = json.loads(out)["error"]
        assert code == 3 and error["message"] and err.count("\n") <= 3
    for arguments in (["no-such-verb"], ["inspect", "--no-such-option"], ["fit", "ur5e"],
                      ["inspect", "ur5", "--friction", "magic"]):  # fmt: skip
        code, out, err = run(capsys, *arguments)
        assert code == 2 and out == "" and err


MISSING_INPUT = {
    "inspect": ["none.urdf"], "design": ["none.urdf"], "simulate": ["none.urdf"],
    "convert": ["none.csv"], "gains": ["ur5e", "none.csv"], "friction": ["ur5e", "none.csv"],
    "fit": ["ur5e", "none.csv"], "check": ["none.json", "none.csv"], "export": ["none.json"],
    "report": ["none.json"], "payload": ["none.json", "none.csv"], "open": ["none.csv"],
    "contact": ["none.json", "none.csv"], "energy": ["none.json", "none.csv"],
    "live": ["none.csv", "none.json"], "fleet": ["ur5e", "none"],
    "record": ["127.0.0.1", "none.json"], "health": ["check", "none.json"],
    "servo": ["so101", "none.csv"], "weigh": ["127.0.0.1", "none.json"],
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_the_exit_codes_and_errors_of_the_contract(capsys, tmp_path, verb):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert run(capsys, verb, "-h")[0] == 0 == run(capsys, "help", verb)[0]
        wrong, *missing = [
            run(capsys, verb, "--no-such-option", "--json"),
            *([run(capsys, verb, *MISSING_INPUT[verb], "--json")] if verb in MISSING_INPUT else []),
        ]
    for code, (returned, out, err) in zip((2, 3), (wrong, *missing), strict=False):
        page = parse_output("error", out)
        assert returned == code and err
        assert (page["error"]["kind"] == "usage") == (code == 2)
    assert not list(tmp_path.iterdir())
    # A shell's script is what `completion` prints; the others name a missing input or have none.
    assert verb in SCHEMA["$defs"] or verb == "completion"
    assert verb in MISSING_INPUT or verb in ("demo", "completion", "reproduce")


def test_further_verbs_print_what_the_schema_says(capsys, folder, tmp_path):
    """Those whose outputs no test of their own holds against it."""
    model, run_file = folder / "model.json", folder / "test.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert answer(capsys, "convert", run_file, "-o", "run.csv")["joints"] == 6
        assert answer(capsys, "report", model, "-o", "page.html")["bytes"] > 0
        assert answer(capsys, "energy", model, run_file)["states"] > 0
        assert len(answer(capsys, "contact", model, run_file)["threshold"]) == 6
        assert answer(capsys, "open", "run.csv", "--seconds", "0.1")["file"] == "run.csv"
        assert "run.parquet" in answer(capsys, "demo", "--files")["files"]
    # `weigh` needs a robot (tests/live/test_weigh.py): what it prints of an estimate.
    recording = taufit.read_recording(run_file)
    estimate = taufit.identify_payload(taufit.read_model(model), recording)
    weigh._report(
        estimate.estimate, True, None, (3.0, ""), PayloadSettings(), tmp_path, True, model
    )
    assert not parse_output("weigh", capsys.readouterr().out)["set"]


def test_an_output_outside_the_schema_is_seen():
    for page in ({"error": {"kind": "odd", "message": "", "remedy": None}}, {"error": "text"}):
        with pytest.raises(jsonschema.ValidationError):
            parse_output("error", json.dumps(page))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_is_shown_on_stderr_and_never_on_stdout(tmp_path):
    ours, theirs = os.openpty()
    words = ["design", "ur3", "--seconds", "1", "--free-space", "-o", "m.json", "--json"]
    with (tmp_path / "out").open("wb") as out:
        command = subprocess.Popen(
            [sys.executable, "-m", "taufit", *words],
            stdout=out, stderr=theirs, cwd=tmp_path, env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        # A terminal whose other end is closed gives an error on some systems, nothing on others.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        assert command.wait(timeout=60) == 0
    assert json.loads((tmp_path / "out").read_text())["feasible"] is True
    assert b"designing" in shown


PYTHON = [
    "read_robot",
    "read_recording",
    "condition",
    "TorqueModel",
    "fit",
    "check",
    "design",
    "identify_payload",
    "write_model",
    "read_model",
    "export_model",
    "Linear",
    "PowerLaw",
    "Polynomial",
    "Stribeck",
    "StribeckLoad",
    "NoFriction",
    "Ols",
    "Wls",
    "Irls",
    "ConsistentSdp",
    "Pbpr",
]


@pytest.mark.parametrize("name", PYTHON)
def test_python_gives_what_a_first_script_needs(name):
    assert name in dir(taufit)
    assert callable(getattr(taufit, name))


def test_every_public_name_exists():
    for name in taufit.__all__:
        assert getattr(taufit, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        taufit.no_such_name  # noqa: B018


def test_export_follows_the_ending(folder, tmp_path):
    model = taufit.read_model(folder / "model.json")
    for name in ("arm.urdf", "arm.xml", "arm.json", "arm.c"):
        dropped = taufit.export_model(model, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000 and isinstance(dropped, tuple)
    assert (tmp_path / "arm.h").exists()
    with pytest.raises(taufit.core.errors.TaufitError, match="format"):
        taufit.export_model(model, tmp_path / "arm.step")


def test_importing_taufit_is_quick_and_brings_no_optional_library():
    code = (
        "import sys, taufit; "
        "heavy = {'numpy', 'scipy', 'pyarrow', 'pandas', 'mujoco', 'typer'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_verb_has_its_file():
    for verb in VERBS:
        module = import_module(command_module(verb))
        assert hasattr(module, "command") or hasattr(module, "app")
    assert set(VERBS) >= {"inspect", "design", "convert", "fit", "check", "export", "report"}


@pytest.mark.parametrize(
    "name", ["ur10e_csv", "panda_csv", "lwr4_csv", "tx40_csv", "kr300_csv"]
)  # fmt: skip
def test_column_maps_are_shipped(name):
    assert (ROOT / "examples" / "columns" / f"{name}.yaml").is_file()
