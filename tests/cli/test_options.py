"""Groups of options: on the command line one by one, in the command as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from taufit.cli import options
from taufit.cli.app import VERBS, typer_app
from taufit.cli.options.option_groups import FormerName, flatten_options
from taufit.cli.parts.existing_outputs import existing_outputs, require_replaceable_outputs
from taufit.core.files import back_up_file, write_text


@dataclass(frozen=True, slots=True)
class Colours:
    """Two options."""

    red: Annotated[int, typer.Option(help="How red.")] = 1
    blue: Annotated[float | None, typer.Option("--blue", "-b", help="How blue.")] = None


def paint(path: Path, colours: Colours, times: Annotated[int, typer.Option()] = 1) -> None:
    """Prints what it was given."""
    print(path, colours, times)


def called(*words: str):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(flatten_options(paint))
    return CliRunner().invoke(app, [*words])


def test_a_group_arrives_whole_with_its_defaults():
    assert called("wall").stdout == f"wall {Colours()} 1\n"
    found = called("wall", "-b", "0.5", "--times", "3", "--red", "7").stdout
    assert found == f"wall {Colours(7, 0.5)} 3\n"


def test_nan_is_refused_inside_a_group():
    found = called("wall", "--blue", "nan")
    assert found.exit_code == 2 and "--blue" in found.output


def test_two_groups_cannot_give_one_option_twice():
    def twice(one: Colours, two: Colours) -> None: ...

    with pytest.raises(AssertionError, match="twice"):
        flatten_options(twice)


GROUPS = [options.RecordingOptions, options.RobotOptions, options.AcceptanceOptions]


def commands():
    for verb in VERBS:
        found = typer.main.get_command(typer_app(verb))
        for name, one in getattr(found, "commands", {verb: found}).items():
            yield f"{verb} {name}" if name != verb else verb, one


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_verb_has_all_options_of_a_group_or_none_of_them(group):
    """Where a verb reads recordings, it reads them as every other verb does."""
    names = {field.name for field in fields(group)}
    marker = {"RecordingOptions": "map", "RobotOptions": "tip", "AcceptanceOptions": "max_nrmse"}
    users = 0
    for verb, command in commands():
        own = {parameter.name for parameter in command.params}
        if marker[group.__name__] in own and verb != "design":
            assert names <= own, f"taufit {verb} lacks {sorted(names - own)}"
            users += 1
    assert users >= 2


@pytest.mark.parametrize(
    ("verb", "former", "option"),
    [
        ("fit", "--effort", "--torque-kind"),
        ("fit", "--force", "--ignore-contradictions"),
        ("fit", "--mend", "--write-map"),
        ("fit", "--slide-zero-std", "--prismatic-zero-std"),
        ("contact", "--free", "--contact-free"),
        ("record", "--effort", "--torque-kind"),
    ],
)
def test_earlier_spellings_of_options_are_hidden_but_accepted(verb, former, option):
    parameters = {
        name: parameter
        for parameter in typer.main.get_command(typer_app(verb)).params
        for name in parameter.opts
    }
    assert parameters[former].hidden and not parameters[option].hidden


def test_the_value_of_an_earlier_spelling_arrives_with_a_message(capsys):
    received = []

    def command(
        torque_kind: Annotated[str, typer.Option(), FormerName("--effort")] = "raw",
        all_runs: Annotated[bool, typer.Option("--all-runs"), FormerName("--every")] = False,
    ) -> None:
        received.append((torque_kind, all_runs))

    app = typer.Typer(add_completion=False)
    app.command()(flatten_options(command))
    app(args=["--effort", "current", "--every"], standalone_mode=False)
    assert "--effort is now --torque-kind" in capsys.readouterr().err
    app(args=["--torque-kind", "torque"], standalone_mode=False)
    app(args=[], standalone_mode=False)
    assert received == [("current", True), ("torque", False), ("raw", False)]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", ["output", "report", "csv", "record"])
def test_an_existing_output_is_asked_for_or_kept_beside(option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file, backup = Path("model.json"), Path("model.json~")
    with existing_outputs(overwrite=False):
        require_replaceable_outputs({option: file})
        write_text(file, "first")
    assert not capsys.readouterr().err and not backup.exists()
    with existing_outputs(overwrite=False):
        require_replaceable_outputs({option: file})
        assert not backup.exists()  # until it is replaced
        write_text(file, "half of the second")
        write_text(file, "second")
        assert (file.read_text(), backup.read_text()) == ("second", "first")
        monkeypatch.setattr("taufit.cli.parts.existing_outputs._is_interactive", lambda: True)
        monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
        with pytest.raises(typer.BadParameter, match="was kept"):
            require_replaceable_outputs({option: file})
    assert capsys.readouterr().err == f"note: earlier contents of {file} are kept as {backup}.\n"
    with existing_outputs(overwrite=True):
        require_replaceable_outputs({option: file})
        write_text(file, "third")
    assert not capsys.readouterr().err
    assert (file.read_text(), backup.read_text()) == ("third", "first")
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, backup.name]


def test_files_beside_the_named_one_are_kept_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ("arm.c", "arm.h", "log.jsonl", "history.json", "new.json", "again.json")
    for name in names[:4]:
        Path(name).write_text("first")
    with existing_outputs(overwrite=False):
        for name in names[:2]:
            write_text(name, "second")
        back_up_file("log.jsonl")
        Path("log.jsonl").write_text("second")
        write_text("history.json", "first and second", update=True)
        write_text("new.json", "half")
        write_text("new.json", "second")
    kept = {path.name for path in tmp_path.glob("*~")}
    assert kept == {"arm.c~", "arm.h~", "log.jsonl~"}
    assert all(Path(name).read_text() == "first" for name in kept)
    assert capsys.readouterr().err.count("are kept as") == 3
    with existing_outputs(overwrite=False):
        for number in range(5):
            Path(f"{number}.csv").write_text("first")
            write_text(f"{number}.csv", "second")
    assert capsys.readouterr().err == "note: earlier contents of 5 files in . are kept as FILE~.\n"
    # Agreed to for the named file, so for those beside it.
    monkeypatch.setattr("taufit.cli.parts.existing_outputs._is_interactive", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    with existing_outputs(overwrite=False):
        require_replaceable_outputs({"output": Path("arm.c")})
        write_text("arm.h", "third")
    assert Path("arm.h~").read_text() == "first" and not capsys.readouterr().err
