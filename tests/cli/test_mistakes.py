"""Mistakes: one clear sentence, exit code 1, 2 or 3, no traceback, and nothing lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from importlib import import_module
from typing import get_type_hints

import pytest

import taufit.core.files
from taufit.cli import main
from taufit.cli.app import VERBS, command_module, typer_app
from taufit.cli.options.option_groups import flatten_options

BINARY = bytes(range(256)) * 40
PRECIOUS = "precious"


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command, in this process."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return stop.value.code or 0, printed.out, printed.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording, a model, a motion, and files that are none of these."""
    folder = tmp_path_factory.mktemp("mistakes")
    for words in (
        ["simulate", "ur3", "-o", folder / "run.parquet"],
        ["simulate", "ur3", "--preset", "clean", "--periods", "0.05",
         "-o", folder / "short.parquet"],
        ["fit", "ur3", folder / "run.parquet", "--friction", "linear", "--estimator", "wls",
         "-o", folder / "wls.json"],
        ["fit", "ur3", folder / "run.parquet", "--friction", "linear",
         "--estimator", "consistent_sdp", "-o", folder / "model.json"],
        ["design", "ur3", "--seconds", "0.1", "--free-space", "-o", folder / "motion.json"],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        assert not stop.value.code, words
    (folder / "directory").mkdir()
    for ending in ("csv", "csv.gz", "parquet", "npz", "mat", "h5", "mcap", "json", "yaml", "urdf"):
        (folder / f"empty.{ending}").write_bytes(b"")
        (folder / f"binary.{ending}").write_bytes(BINARY)
    (folder / "list.yaml").write_text("- 1\n- 2\n")
    (folder / "broken.yaml").write_text("a: [1,\n b: {")
    (folder / "misspelt.yaml").write_text("colums: {time: t}\n")
    (folder / "quantity.yaml").write_text("columns: {time: t, posiion: 'q{joint}'}\n")
    (folder / "other.json").write_text('{"format": "something else"}')
    (folder / "list.json").write_text("[]")
    (folder / "two.csv").write_text("t,q1\n" + "".join(f"{i * 0.01},{i}\n" for i in range(99)))
    return folder


RECORDINGS = [
    "missing.csv", "directory", "two.csv", "model.json",
    *(f"{what}.{ending}" for what in ("empty", "binary")
      for ending in ("csv", "csv.gz", "parquet", "npz", "mat", "h5", "mcap", "json")),
]  # fmt: skip
MODELS = [
    "missing.json", "directory", "empty.json", "binary.json", "other.json", "list.json",
    "motion.json", "run.parquet", "two.csv",
]  # fmt: skip
ROBOTS = [
    "missing.urdf", "missing.yaml", "no_such_arm", "directory", "empty.urdf", "binary.urdf",
    "empty.yaml", "binary.yaml", "list.yaml", "broken.yaml", "misspelt.yaml", "two.csv",
]  # fmt: skip
MAPS = [
    "missing.yaml", "directory", "empty.yaml", "binary.yaml", "list.yaml", "broken.yaml",
    "misspelt.yaml", "quantity.yaml", "two.csv",
]  # fmt: skip

CASES = [
    *([*words, f"{{}}/{name}"] for name in RECORDINGS
      for words in (["convert", "-o", "{out}"], ["check", "{}/model.json"])),
    *(["simulate", "ur3", f"{{}}/{name}", "-o", "{out}"] for name in MODELS[:6]),
    *(["simulate", "ur3", "--model", f"{{}}/{name}", "-o", "{out}"] for name in MODELS),
    *(["export", f"{{}}/{name}", "-o", "{out}"] for name in MODELS),
    *(["report", f"{{}}/{name}", "-o", "{out}"] for name in MODELS),
    *(["check", f"{{}}/{name}", "{}/run.parquet"] for name in MODELS),
    *(["inspect", f"{{}}/{name}"] for name in ROBOTS),
    *(["design", f"{{}}/{name}", "-o", "{out}"] for name in ROBOTS[:3]),
    *(["fit", f"{{}}/{name}", "{}/run.parquet", "-o", "{out}"] for name in ROBOTS[:5]),
    *(["convert", "{}/two.csv", "--map", f"{{}}/{name}", "-o", "{out}"] for name in MAPS),
    *(["fit", "ur3", "{}/two.csv", "--map", f"{{}}/{name}", "-o", "{out}"] for name in MAPS[:4]),
    *(["simulate", "ur3", "--effects", f"{{}}/{name}", "-o", "{out}"]
      for name in ("missing.yaml", "directory", "binary.yaml", "list.yaml", "broken.yaml",
                   "misspelt.yaml")),
    *(["design", "ur3", option, f"{{}}/{name}", "--seconds", "0.1", "-o", "{out}"]
      for option in ("--envelope", "--after")
      for name in ("missing.json", "directory", "binary.json", "list.json", "model.json")),
    # The wrong arm.
    ["fit", "panda", "{}/run.parquet", "-o", "{out}"],
    ["simulate", "panda", "{}/motion.json", "-o", "{out}"],
    ["simulate", "panda", "--model", "{}/model.json", "-o", "{out}"],
    ["design", "panda", "--envelope", "{}/motion.json", "-o", "{out}"],
    ["design", "panda", "--after", "{}/motion.json", "--seconds", "0.1", "-o", "{out}"],
    ["fit", "ur3", "{}/run.parquet", "--base", "nothing", "-o", "{out}"],
    ["fit", "ur3", "{}/run.parquet", "--run", "7", "-o", "{out}"],
    ["fit", "ur3", "{}/short.parquet", "-o", "{out}"],
    ["fit", "ur3", "{}/run.parquet", "--max-rmse", "1,2", "-o", "{out}"],
    ["inspect", "ur3", "--mounting", "1,2"],
    ["inspect", "ur3", "--mounting", "nan,0,0"],
    # Formats and names of outputs.
    ["export", "{}/model.json", "--format", "step", "-o", "{out}"],
    ["export", "{}/model.json", "--format", "c", "-o", "{out}.h"],
    ["export", "{}/model.json", "-o", "{}/directory"],
    ["export", "{}/model.json", "-o", "{}/two.csv/arm.urdf"],
    ["report", "{}/model.json", "-o", "{}/directory"],
    ["convert", "{}/run.parquet", "-o", "{}/run.xyz"],
    ["convert", "{}/run.parquet", "-o", "{}/two.csv/run.parquet"],
    ["convert", "{}/run.parquet", "-o", "{}/run.parquet"],
    ["simulate", "ur3", "--preset", "clean", "--periods", "0.1", "-o", "{}/run.xyz"],
    ["design", "ur3", "--seconds", "0.1", "--free-space", "-o", "{}/two.csv/motion.json"],
    # Numbers that cannot be meant.
    *(["design", "ur3", "-o", "{out}", option, value] for option, value in (
        ("--frequency-hz", "0"), ("--frequency-hz", "1e300"), ("--harmonics", "0"),
        ("--harmonics", "200000"), ("--periods", "0"), ("--splines", "-1"), ("--splines", "200000"),
        ("--speed", "0"), ("--speed", "inf"), ("--acceleration", "-1"), ("--jerk", "0"),
        ("--tip-speed", "-1"), ("--clearance", "-1"), ("--clearance", "inf"), ("--radius", "-1"),
        ("--joint", "0"), ("--minutes", "inf"), ("--workers", "0"), ("--workers", "999999999999"),
        ("--seconds", "0"), ("--seconds", "inf"), ("--seed", "-1"), ("--start", "1,2"),
        ("--wall", "0,0,0,1"), ("--wall", "nan,0,0,1"), ("--criterion", "best"),
        ("--friction", "magic"), ("--kind", "dance"))),
    *(["simulate", "ur3", "-o", "{out}", option, value] for option, value in (
        ("--payload", "nan"), ("--payload", "-1"), ("--payload", "1e300"), ("--payload", "1@inf"),
        ("--rate-hz", "0"), ("--rate-hz", "inf"), ("--periods", "0"), ("--periods", "inf"),
        ("--rest", "-1"), ("--rest", "inf"), ("--bandwidth-hz", "0"), ("--bandwidth-hz", "1e300"),
        ("--seed", "-1"), ("--runs", "0"), ("--preset", "magic"))),
    *(["fit", "ur3", "{}/run.parquet", "-o", "{out}", option, value] for option, value in (
        ("--cutoff-hz", "inf"), ("--cutoff-hz", "0"), ("--max-nrmse", "-1"), ("--max-rmse", "nan"),
        ("--max-mean-nrmse", "inf"), ("--min-correlation", "2"), ("--temperature", "hot"))),
    *(["check", "{}/model.json", "{}/run.parquet", option, value] for option, value in (
        ("--cutoff-hz", "inf"), ("--cutoff-hz", "0"), ("--cutoff-hz", "1e5"), ("--run", "-1"),
        ("--max-nrmse", "-1"), ("--max-rmse", "nan"), ("--min-correlation", "2"))),
    *(["report", "{}/model.json", "{}/run.parquet", "-o", "{out}", "--cutoff-hz", value]
      for value in ("inf", "0", "-1", "1e5")),
    *(["convert", "{}/run.parquet", "-o", "{out}", "--payload", value]
      for value in ("inf", "-1", "1e300")),
]  # fmt: skip
ENDINGS = {"convert": "parquet", "simulate": "parquet", "export": "urdf", "report": "html"}


@pytest.mark.parametrize("words", CASES, ids=[" ".join(words) for words in CASES])
def test_mistakes_are_refused_in_words(folder, tmp_path, capsys, words):
    output = tmp_path / f"out.{ENDINGS.get(words[0], 'json')}"
    output.write_text(PRECIOUS)
    filled = [word.replace("{out}", str(output)).replace("{}", str(folder)) for word in words]
    before = sorted(folder.rglob("*"))

    code, out, err = run(capsys, *filled)

    assert code in (1, 2, 3), out
    assert "Traceback" not in err and out == ""
    # A sentence or two, not a page; usage errors bring the usage line.
    assert 10 < len(err.strip()) < 900 and err.strip().count("\n") <= 8
    assert output.read_text() == PRECIOUS
    assert list(tmp_path.iterdir()) == [output]
    assert sorted(folder.rglob("*")) == before


def numeric_options():
    """(verb, option) of every numeric option, from the commands' own signatures."""
    for verb in VERBS:
        command = getattr(import_module(command_module(verb)), "command", None)
        if command is None:
            continue  # sub-verbs
        for name, hint in get_type_hints(flatten_options(command)).items():
            if hint in (int, int | None, float, float | None):
                yield verb, "--" + name.replace("_", "-")


NUMERIC = sorted(numeric_options(), key=str)
REQUIRED = {
    "inspect": [], "demo": [], "design": ["ur3"], "simulate": ["ur3"], "convert": ["run.parquet"],
    "fit": ["ur3", "run.parquet"], "friction": ["ur3", "run.parquet"],
    "fleet": ["ur3", "run.parquet"],
    "check": ["model.json", "run.parquet"],
    "report": ["model.json"], "export": ["model.json"], "payload": ["model.json", "run.parquet"],
}  # fmt: skip


@pytest.mark.parametrize(("verb", "option"), NUMERIC)
def test_no_option_takes_nan_for_a_number(folder, tmp_path, monkeypatch, capsys, verb, option):
    monkeypatch.chdir(tmp_path)
    words = [folder / word if "." in word else word for word in REQUIRED.get(verb, ["run.parquet"])]
    code, out, err = run(capsys, verb, *words, option, "nan")
    assert code == 2 and out == ""
    assert option in err and "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_there_are_numeric_options_to_test():
    assert len(NUMERIC) > 25 and {verb for verb, *_ in NUMERIC} >= {"design", "fit", "check"}


WRONG_USAGE = [
    *(["fit", "ur3", "{}/run.parquet", "-o", "{out}", option, value] for option, value in (
        ("--friction", "magic"), ("--estimator", "magic"), ("--temperature", "hot"),
        ("--torque-signs", "some"), ("--cutoff-hz", "fast"), ("--cutoff-hz", "-1"),
        ("--mounting", "floor"), ("--max-rmse", "a"), ("--max-nrmse", "-1"),
        ("--min-correlation", "2"), ("--sign-hint", "9:1-2:+"), ("--torque-kind", "raw2"))),
    *(["check", "{}/model.json", "{}/run.parquet", option, value] for option, value in (
        ("--cutoff-hz", "0"), ("--max-rmse", "nan"), ("--max-mean-nrmse", "inf"))),
    *(["payload", "{}/model.json", "{}/run.parquet", option, value] for option, value in (
        ("--method", "magic"), ("--speed", "0"), ("--accuracy", "1"), ("--box", "1,2,-3"))),
    *(["simulate", "ur3", "-o", "{out}", option, value] for option, value in (
        ("--preset", "magic"), ("--preset", "franka"), ("--mounting", "floor"),
        ("--payload", "much"))),
    ["simulate", "ur3", "preset", "-o", "{out}"],
    ["inspect", "ur3", "--mounting", "1,2"],
    ["inspect", "ur3", "--rule", "best"],
    ["export", "{}/model.json", "--format", "step"],
    ["export", "{}/model.json", "--mounting", "floor"],
    ["convert", "{}/run.parquet", "-o", "{out}", "--mounting", "floor"],
    ["convert", "{}/run.parquet", "-o", "{out}", "--torque-kind", "magic"],
    ["gains", "ur3", "{}/run.parquet", "--method", "magic"],
    ["gains", "ur3", "{}/run.parquet", "--mass", "2"],
    ["health", "baseline", "{}/model.json", "{}/run.parquet", "-o", "{out}", "--rate", "2"],
    ["report", "{}/model.json", "-o", "{out}", "--cutoff-hz", "-1"],
]  # fmt: skip


@pytest.mark.parametrize("words", WRONG_USAGE, ids=[" ".join(words) for words in WRONG_USAGE])
def test_a_value_no_option_takes_is_wrong_usage(folder, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    filled = [w.replace("{out}", "out.parquet").replace("{}", str(folder)) for w in words]
    code, out, err = run(capsys, *filled)
    assert code == 2 and out == "", err
    assert "Usage: taufit" in err and "nvalid value" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("demo", "inspect")])
def test_a_verb_without_its_arguments_says_what_is_missing(capsys, verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, verb)
    assert code == 2 and f"Usage: taufit {verb}" in err and out == ""


def test_a_misspelt_verb_is_guessed(capsys):
    code, _, err = run(capsys, "chekc")
    assert code == 2 and "`taufit check`" in err


WRITES = [
    ["export", "{}/model.json", "-o", "{out}.urdf"],
    ["export", "{}/model.json", "--format", "c", "-o", "{out}.c"],
    ["convert", "{}/short.parquet", "-o", "{out}.parquet"],
    ["convert", "{}/short.parquet", "-o", "{out}.csv"],
    ["convert", "{}/short.parquet", "-o", "{out}.npz"],
    ["report", "{}/model.json", "-o", "{out}.html"],
    ["design", "ur3", "--seconds", "0.1", "--free-space", "-o", "{out}.json"],
]


@pytest.mark.parametrize("words", WRITES, ids=[" ".join(words) for words in WRITES])
@pytest.mark.parametrize("fault", ["full", "stopped"])
def test_what_was_written_before_survives(folder, tmp_path, monkeypatch, capsys, words, fault):
    filled = [word.format(folder, out=tmp_path / "out") for word in words]
    output = tmp_path / filled[-1]
    output.write_text(PRECIOUS)

    def fail(*_):
        if fault == "stopped":
            raise KeyboardInterrupt
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(taufit.core.files.os, "replace", fail)
    code, _, err = run(capsys, *filled)
    assert "Traceback" not in err
    if fault == "full":
        assert code == 3 and os.strerror(errno.ENOSPC) in err and str(output) in err
    else:
        assert code == 130
    assert output.read_text() == PRECIOUS
    assert list(tmp_path.iterdir()) == [output]


def test_errors_of_the_system_are_told_in_one_line(monkeypatch, capsys):
    def fail(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "somewhere/arm.urdf")

    monkeypatch.setattr("taufit.robot.read_robot", fail)
    code, _, err = run(capsys, "inspect", "ur3")
    assert code == 3 and err == f"taufit: somewhere/arm.urdf: {os.strerror(errno.EACCES)}.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux only")
def test_names_need_not_be_utf8(folder, tmp_path):
    odd = os.fsencode(tmp_path) + b"/r\xff\xe9n"
    (tmp_path / "model.json").write_bytes((folder / "model.json").read_bytes())

    def call(*words):
        command = [os.fsencode(sys.executable), b"-m", b"taufit", *words]
        return subprocess.run(command, capture_output=True, check=False)

    source = os.fsencode(folder / "run.parquet")
    first = call(b"convert", source, b"-o", odd + b".parquet")
    assert first.returncode == 0, first.stderr
    assert os.path.exists(odd + b".parquet")
    second = call(b"report", os.fsencode(tmp_path / "model.json"), odd + b".parquet", b"-o",
                  odd + b".html")  # fmt: skip
    assert second.returncode == 0, second.stderr
    assert os.path.getsize(odd + b".html") > 10000
    third = call(b"convert", odd + b"_missing.csv")
    assert third.returncode == 3 and b"there is no file" in third.stderr
    assert b"Traceback" not in first.stderr + second.stderr + third.stderr


def test_a_reader_that_hangs_up_is_no_error(folder):
    command = f"{sys.executable} -m taufit inspect ur3 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_apps_are_made_for_every_verb():
    for verb in VERBS:
        assert callable(typer_app(verb))
