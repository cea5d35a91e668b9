"""`taufit fit` on recordings that hold magnitudes only."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from benchmarks.sign_instances import instance, kr5

from taufit.cli import main
from taufit.fitting import automatic_model
from taufit.model import read_model
from taufit.recording import read_recording
from taufit.robot import read_robot, write_robot
from taufit.signals import condition
from taufit.signs.unknown_signs import fit_unsigned, without_signs
from taufit.terms.friction import Linear


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A simulated arm's file and its recording, with signs."""
    folder = tmp_path_factory.mktemp("signs")
    write_robot(kr5(), folder / "arm.yaml")
    case = instance(1, noise=0.05, friction=True, seconds=20.0, harmonics=5)
    names = ["t", *(f"q{i}" for i in range(1, 7)), *(f"tau{i}" for i in range(1, 7))]
    s = case.samples
    table = np.column_stack([s.time, s.position, case.measured])
    folded = table.copy()
    folded[:, 7:] = np.abs(folded[:, 7:])
    for name, values in (("signed", table), ("magnitudes", folded)):
        np.savetxt(
            folder / f"{name}.csv", values, delimiter=",", header=",".join(names), comments=""
        )
    columns = {"time": "t", "position": "q{joint}", "torque": "tau{joint}"}
    for name, signed in (("plain", True), ("declared", False)):
        text = yaml.safe_dump({"columns": columns, "torque_side": "motor", "signed": signed})
        (folder / f"{name}.yaml").write_text(text)
    return folder


def fit(folder, capsys, recording, map, *options) -> dict:
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "fit",
                str(folder / "arm.yaml"),
                str(folder / recording),
                "--map",
                str(folder / map),
                "--friction",
                "linear",
                "-o",
                str(folder / "model.json"),
                "--json",
                *options,
            ]
        )
    assert stopped.value.code in (0, None)
    return json.loads(capsys.readouterr().out)


def test_magnitudes_give_nearly_the_model_that_signs_give(recorded, capsys):
    signed = fit(recorded, capsys, "signed.csv", "plain.yaml")
    assert "segments" not in signed
    unsigned = fit(
        recorded,
        capsys,
        "magnitudes.csv",
        "plain.yaml",
        "--torque-signs",
        "unknown",
        "--holdout",
        str(recorded / "signed.csv"),
    )
    assert unsigned["certified"] is True
    assert len(unsigned["signs"]) == len(unsigned["segments"]) == len(unsigned["ambiguous"])
    assert set(unsigned["signs"]) == {-1, 1}
    assert not any(unsigned["ambiguous"])
    assert unsigned["mean_nrmse"] < 1.15 * signed["mean_nrmse"] + 0.01
    assert unsigned["holdout"][0]["mean_nrmse"] < 1.15 * signed["mean_nrmse"] + 0.01
    assert unsigned["consistent"]


def test_a_map_that_says_unsigned_needs_no_option(recorded, capsys):
    asked = fit(recorded, capsys, "magnitudes.csv", "plain.yaml", "--torque-signs", "unknown")
    declared = fit(recorded, capsys, "magnitudes.csv", "declared.yaml")
    assert declared["signs"] == asked["signs"]


def test_signs_of_a_signed_recording_can_be_ignored(recorded, capsys):
    hidden = fit(recorded, capsys, "signed.csv", "plain.yaml", "--torque-signs", "unknown")
    magnitudes = fit(recorded, capsys, "magnitudes.csv", "declared.yaml")
    assert hidden["signs"] == magnitudes["signs"]


def test_signs_of_single_segments_are_kept(recorded, capsys):
    plain = fit(recorded, capsys, "magnitudes.csv", "declared.yaml")
    one = next(s for s in plain["segments"] if s["joint"] == 2 and s["t1"] - s["t0"] > 0.5)
    hint = f"2:{one['t0']:.2f}-{one['t1']:.2f}:{'+' if one['sign'] > 0 else '-'}"
    told = fit(recorded, capsys, "magnitudes.csv", "declared.yaml", "--sign-hint", hint)
    middle = 0.5 * (one["t0"] + one["t1"])
    assert not any(s["joint"] == 2 and s["t0"] < middle < s["t1"] for s in told["segments"])
    assert told["signs_confident"] and told["mean_nrmse"] < 1.01 * plain["mean_nrmse"]


def test_a_false_sign_is_told_where_nothing_fits_it(recorded, capsys):
    plain = fit(recorded, capsys, "magnitudes.csv", "declared.yaml")
    one = next(s for s in plain["segments"] if s["joint"] == 2 and s["t1"] - s["t0"] > 0.5)
    false = f"2:{one['t0']:.2f}-{one['t1']:.2f}:{'-' if one['sign'] > 0 else '+'}"
    with pytest.raises(SystemExit) as stopped:
        main(
            ["fit", str(recorded / "arm.yaml"), str(recorded / "magnitudes.csv")]
            + ["--map", str(recorded / "declared.yaml"), "--sign-hint", false]
            + ["--friction", "linear", "-o", str(recorded / "refused.json")]
        )
    assert stopped.value.code == 3
    assert "only an arm of negative inertia" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("recording", "map", "hint", "code", "told"),
    [
        ("magnitudes.csv", "declared.yaml", "2:3.1:+", 2, "JOINT:T0-T1:+"),
        ("magnitudes.csv", "declared.yaml", "7:3.1-4:+", 2, "no joint '7'"),
        ("magnitudes.csv", "declared.yaml", "2:300-400:+", 3, "no sample of joint 2"),
        ("signed.csv", "plain.yaml", "2:3.1-4:+", 3, "carries its sign everywhere"),
    ],
)
def test_hints_that_cannot_be_meant(recorded, capsys, recording, map, hint, code, told):
    with pytest.raises(SystemExit) as stopped:
        main(
            ["fit", str(recorded / "arm.yaml"), str(recorded / recording)]
            + ["--map", str(recorded / map), "--sign-hint", hint, "--friction", "linear"]
            + ["-o", str(recorded / "refused.json")]
        )
    assert stopped.value.code == code
    # Words may be broken over lines by a frame.
    assert told.replace(" ", "") in "".join(c for c in capsys.readouterr().err if c not in " │\n")
    assert not (recorded / "refused.json").exists()


def test_check_compares_magnitudes_with_magnitudes(recorded, capsys):
    fit(recorded, capsys, "magnitudes.csv", "declared.yaml")
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "check",
                str(recorded / "model.json"),
                str(recorded / "magnitudes.csv"),
                "--map",
                str(recorded / "declared.yaml"),
                "--json",
            ]
        )
    assert stopped.value.code in (0, None)
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "PASS"
    assert data["files"][0]["mean_nrmse"] < 0.1


def test_people_are_told_about_the_signs(recorded, capsys):
    with pytest.raises(SystemExit):
        main(
            [
                "fit",
                str(recorded / "arm.yaml"),
                str(recorded / "magnitudes.csv"),
                "--map",
                str(recorded / "declared.yaml"),
                "--friction",
                "linear",
                "-o",
                str(recorded / "model.json"),
                "--report",
                str(recorded / "page.html"),
            ]
        )
    out = " ".join(capsys.readouterr().out.split())
    assert "0 ambiguous; proven optimal" in out
    assert "<svg" in (recorded / "page.html").read_text()


@pytest.mark.parametrize("friction", ["linear", "auto"])
def test_the_command_and_fit_unsigned_give_the_same_numbers(recorded, capsys, friction):
    fit(
        recorded, capsys, "magnitudes.csv", "plain.yaml",
        "--torque-signs", "unknown", "--friction", friction,
    )  # fmt: skip
    command = read_model(recorded / "model.json")

    robot = read_robot(recorded / "arm.yaml")
    recording = read_recording(recorded / "magnitudes.csv", column_map=recorded / "plain.yaml")
    model = automatic_model(
        robot, side="motor", friction="auto" if friction == "auto" else Linear()
    )
    samples = condition([without_signs(recording)], cutoff_hz=10.0)
    python = fit_unsigned(model, samples)

    assert python.model.names == command.names
    np.testing.assert_allclose(python.values, command.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(python.estimate.std, command.training.std, rtol=1e-6, atol=1e-12)


def test_the_tree_search_of_the_literature_is_there_to_compare_with(recorded, capsys):
    options = ("--no-offset", "--no-rotor-inertia", "--ignore-contradictions")
    tree = fit(
        recorded, capsys, "magnitudes.csv", "declared.yaml", "--sign-method", "tree", *options
    )
    exact = fit(recorded, capsys, "magnitudes.csv", "declared.yaml", *options)
    assert not tree["certified"] and exact["certified"]
    assert all(tree["ambiguous"])
    assert not any(tree["confident"])
    assert len(exact["signs"]) > len(tree["signs"]) >= 20
    assert exact["mean_nrmse"] <= tree["mean_nrmse"]
    assert tree["consistent"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--friction", "auto"), 3, "known beforehand"),
        (("--friction", "linear", "--sign-hint", "2:3.1-4.0:-"), 3, "takes no signs"),
        (("--friction", "linear", "--sign-method", "guess"), 2, "--sign-method"),
    ],
)
def test_what_the_tree_search_cannot_use_is_refused(recorded, capsys, words, code, text):
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "fit",
                str(recorded / "arm.yaml"),
                str(recorded / "magnitudes.csv"),
                "--map",
                str(recorded / "declared.yaml"),
                "--sign-method",
                "tree",
                *words,
            ]
        )
    assert stopped.value.code == code
    assert text in capsys.readouterr().err
