"""Slips of users: each is answered with its cause, the exit code of its kind, and what works.

A row has the slip, its exit code, words of the message, and the command that the message leads to.
"""

from __future__ import annotations

import json
import shlex
from importlib import resources

import jsonschema
import pytest

from taufit.cli import main

SCHEMA = json.loads(resources.files("taufit").joinpath("output_schema.json").read_text("utf-8"))
CHECK = "check model.json run.parquet"
SLIPS = [
    # Commands and options.
    ("fti ur3 run.parquet", 2, "`taufit fit`", "help fit"),
    ("expotr model.json", 2, "`taufit export`", "help export"),
    ("version", 2, "`taufit --help`", "--version"),
    ("inspect ur3 --jsn", 2, "--json", "inspect ur3 --json"),
    ("check model.json run.parquet --max-nrsme 1", 2, "--max-nrmse", CHECK),
    ("inspect ur3 --friction stribek", 2, "'stribeck'", "inspect ur3 --friction stribeck"),
    ("inspect ur3 --friction", 2, "requires an argument", "help inspect"),
    ("fit ur3", 2, "Missing argument", "help fit"),
    ("export", 2, "Missing argument 'MODEL'", "help export"),
    ("inspect ur3 ur5", 2, "unexpected extra argument", "inspect ur5"),
    ("health chek", 2, "check", "health check --help"),
    ("completion powershell", 2, "bash, zsh, fish", "completion bash"),
    # Order of arguments.
    ("fit run.parquet ur3", 2, "`ur3 run.parquet`", "help fit"),
    ("check run.parquet model.json", 2, "`model.json run.parquet`", CHECK),
    ("payload run.parquet model.json", 2, "the model comes first", "help payload"),
    ("contact run.parquet model.json", 2, "the model comes first", "help contact"),
    ("report run.parquet", 3, "is a recording", "report model.json -o page.html"),
    ("export run.parquet", 3, "is a recording", "export model.json -o arm.urdf"),
    ("fit model.json run.parquet", 3, "model.json", "inspect ur3"),
    # Missing files and names.
    ("check modle.json run.parquet", 3, "Similar: model.json", CHECK),
    ("check model.json rnu.parquet", 3, "Similar: run.parquet", CHECK),
    ("convert logs/run.parquet", 3, "There is no folder logs", "convert run.parquet --report"),
    ("convert deep.csv", 3, "below/deep.csv", "convert below/deep.csv --draft drafted.yaml"),
    ("inspect ur33", 3, "Did you mean 'ur3'", "inspect ur3"),
    ("inspect robot.urdf", 3, "robot.urdf", "inspect"),
    ("convert log.csv --map mpa.yaml", 3, "no column map", "convert log.csv --draft drafted.yaml"),
    ("simulate ur3 motion.jsn", 3, "motion.jsn", "help simulate"),
    ("check model.json nothing_*.parquet", 3, "there is no recording", CHECK),
    ("check model.json empty", 3, "there is no recording", CHECK),
    ("check model.json run.xyz", 3, "run.xyz", CHECK),
    # Endings and formats.
    ("export model.json -o arm.c --format urdf", 2, "arm.urdf", "export model.json -o arm.urdf"),
    ("export model.json -o arm.step", 2, ".urdf, .xml", "export model.json -o arm.xml"),
    ("export model.json -o arm.pdf", 2, ".urdf, .xml", "export model.json -o arm.urdf"),
    ("export model.json --format stl", 2, "urdf, mjcf", "export model.json -o arm.json"),
    ("export model.json --fmi 2", 2, "--format fmu", "help export"),
    ("report model.json -o page.pdf", 2, "in the browser", "report model.json -o page.html"),
    ("report model.json -o page.json", 2, ".html", "report model.json -o page.html"),
    ("fit ur3 run.parquet -o model.urdf", 2, "`taufit export`", "help export"),
    ("fit ur3 run.parquet --report page.pdf", 2, "in the browser", "help fit"),
    ("convert run.parquet -o run.xlsx", 3, ".csv", "convert run.parquet -o run.csv"),
    ("convert run.parquet -o run.parquet", 3, "run.parquet", "convert run.parquet -o copy.parquet"),
    # Numbers and units.
    ("fit ur3 run.parquet --cutoff-hz 10Hz", 2, "frequency in Hz", "help fit"),
    ("fit ur3 run.parquet --delay-s 20", 2, "seconds below 10", "help fit"),
    ("fit ur3 run.parquet --holdout 130", 2, "between 0 and 100", "help fit"),
    ("fit ur3 run.parquet --holdout 0%", 2, "between 0 and 100", "help fit"),
    ("inspect ur3 --mounting 0,90", 2, "--mounting", "inspect ur3 --mounting 0,90,0"),
    ("inspect ur3 --mounting celing", 2, "ceiling", "inspect ur3 --mounting ceiling"),
    ("design ur3 --harmonics five", 2, "--harmonics", "help design"),
    ("design ur3 --speed 200", 2, "--speed", "help design"),
    ("simulate ur3 --payload 2kg", 2, "--payload", "help simulate"),
    ("check model.json run.parquet --max-rmse 1,2", 3, "6", CHECK),
    ("check model.json run.parquet --from 900", 3, "900", CHECK),
    ("check model.json run.parquet --run 7", 3, "run", CHECK),
    # Files that are something else, or may not be written.
    ("check notes.json run.parquet", 3, "notes.json", CHECK),
    ("check model.json notes.csv", 3, "notes.csv", CHECK),
    ("fit ur3 log.csv --map notes.json", 3, "notes.json", "convert log.csv --draft drafted.yaml"),
    ("fit panda run.parquet", 3, "joints", "inspect ur3"),
    ("report model.json -o notes.csv/page.html", 3, "notes.csv", "report model.json -o page.html"),
    ("report model.json -o below", 3, "below", "report model.json -o page.html"),
    ("export model.json --mounting wall --format urdf -o run.csv", 2, "run.urdf",
     "export model.json -o arm.urdf"),
    # Case, dashes, fractions, an output without its option.
    ("FIT ur3 run.parquet", 2, "`taufit fit`", "help fit"),
    ("-v", 2, "`taufit --version`", "--version"),
    ("fit ur3 run.parquet -holdout 30%", 2, "`--holdout`", "help fit"),
    ("design ur3 -seconds=1", 2, "one dash", "help design"),
    ("inspect ur3 --mounting_x 1", 2, "--mounting", "inspect ur3 --mounting wall"),
    ("fit ur3 run.parquet --cutoff_hz 5", 2, "--cutoff-hz", "help fit"),
    ("fit ur3 run.parquet --holdout 0.3", 2, "write 30%", "help fit"),
    ("fit ur3 run.parquet --estimator OLS", 2, "Did you mean 'ols'", "help fit"),
    ("fit ur3 run.parquet --friction=Linear", 2, "Did you mean 'linear'", "help fit"),
    ("fit ur3 run.parquet --cutoff-hz -5", 2, "positive frequency", "help fit"),
    ("fit ur3 run.parquet --cutoff-hz 5000", 3, "below half the rate", "help fit"),
    ("fit ur3 run.parquet --from 8 --to 2", 3, "is not before --to 2", "help fit"),
    ("fit ur3 run.parquet --holdout run.parquet", 3, "--holdout 30%", "help fit"),
    ("export model.json arm.urdf", 2, "`-o arm.urdf`", "export model.json -o arm.urdf"),
    ("simulate ur3 -o run.json", 3, "written as .parquet", "help simulate"),
    ("weigh model.json localhost", 2, "`localhost model.json`", "help weigh"),
    ("live model.json run.parquet", 2, "`run.parquet model.json`", "help live"),
    ("inspect run.parquet", 3, "Bundled are", "inspect ur3"),
    ("payload model.json notes.json", 3, ".json is not known; taufit reads", "help payload"),
    ("health check model.json run.parquet", 3, "not a health history", "help health"),
    ("reproduce xu2023", 2, "Did you mean 'xu2024'", "help reproduce"),
    ("open nothing.csv", 3, "there is no file", "help open"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recording, model, motion and logs of a user."""
    folder = tmp_path_factory.mktemp("slips")
    run(folder, "simulate ur3 --periods 0.6 -o run.parquet")
    run(folder, "fit ur3 run.parquet --friction linear --estimator consistent_sdp -o model.json")
    (folder / "empty").mkdir()
    (folder / "below").mkdir()
    run(folder, "convert run.parquet -o below/deep.csv")
    lines = (folder / "below" / "deep.csv").read_text().splitlines()
    lines[0] = lines[0].replace("position", "angle")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "below" / "deep.csv").write_text("\n".join(lines) + "\n")
    (folder / "notes.json").write_text('{"a": 1}')
    (folder / "notes.csv").write_text("hello\nworld\n")
    (folder / "run.xyz").write_text("?")
    return folder


def run(folder, line):
    """Exit code of a command in a folder, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
    return stop.value.code or 0


@pytest.mark.parametrize(("slip", "code", "cause", "remedy"), SLIPS, ids=[s[0] for s in SLIPS])
def test_a_slip_is_answered_with_its_cause(folder, capsys, slip, code, cause, remedy):
    assert run(folder, slip) == code, capsys.readouterr().err
    printed = capsys.readouterr()
    assert cause in " ".join(printed.err.split()) and "Traceback" not in printed.err
    assert printed.out == ""
    # The same as JSON.
    assert run(folder, f"{slip} --json") == code
    page = json.loads(capsys.readouterr().out)
    jsonschema.validate(page, {**SCHEMA, "anyOf": [{"$ref": "#/$defs/error"}]})
    assert cause in " ".join(page["error"]["message"].split()) or code == 2


@pytest.mark.parametrize("remedy", sorted({slip[3] for slip in SLIPS}))
def test_the_command_of_the_remedy_works(folder, capsys, remedy):
    # A model of 0.6 periods may fail its test, which is an answer too.
    allowed = (0, 1) if remedy.startswith("check") else (0,)
    assert run(folder, remedy) in allowed, capsys.readouterr().err


def test_there_are_sixty_slips():
    assert len(SLIPS) >= 60
