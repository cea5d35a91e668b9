"""Options of version 0.1 are accepted by the same verbs, renamed ones with one message each.

options_0_1.txt was listed from the parsers of version 0.1: verb, option, and whether it is a flag
or takes a value.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import typer

from taufit.cli.app import VERBS, typer_app
from taufit.cli.options import option_groups

FORMER = [
    line.rsplit(" ", 2)
    for line in Path(__file__).with_name("options_0_1.txt").read_text("utf-8").splitlines()
]
# On by default in 0.1, so nobody had to write it; now it names a known payload (docs/upgrade.md).
CHANGED = [("live", "--payload", "flag")]
VALUES = {"--effort": "torque", "--mend": "map.yaml", "--slide-zero-std": "1", "--free": "f.csv"}


@cache
def verb_command(verb: str):
    """Click command of a verb or sub-verb."""
    first, *rest = verb.split()
    found = typer.main.get_command(typer_app(first))
    for name in rest:
        found = found.commands[name]
    return found


def option_of(verb: str, option: str):
    parameters = verb_command(verb).params
    return next((p for p in parameters if option in (*p.opts, *p.secondary_opts)), None)


def test_the_list_is_that_of_the_verbs():
    assert len(FORMER) > 300 and {verb.split()[0] for verb, _, _ in FORMER} <= {*VERBS}


def test_every_option_is_accepted():
    for verb, option, kind in FORMER:
        if (verb, option, kind) not in CHANGED:
            found = option_of(verb, option)
            assert found is not None, f"taufit {verb} {option}"
            assert found.is_flag == (kind == "flag"), f"taufit {verb} {option}"


RENAMED = [
    (verb, option)
    for verb, option, _ in FORMER
    if (found := option_of(verb, option)) is not None and found.hidden
]


@pytest.mark.parametrize(("verb", "option"), RENAMED, ids=" ".join)
def test_a_renamed_option_gives_one_message_and_has_effect(verb, option, capsys, monkeypatch):
    received = {}

    def stop(values):
        received.update(values)
        raise typer.Exit(0)

    monkeypatch.setattr(option_groups, "require_argument_order", stop)
    found = option_of(verb, option)
    words = ["x" for p in verb_command(verb).params if p.param_type_name == "argument"]
    words += [option] if found.is_flag else [option, VALUES[option]]
    verb_command(verb).main(words, standalone_mode=False)
    lines = capsys.readouterr().err.splitlines()
    present = found.name.removeprefix("former_")
    assert lines == [f"taufit: {option} is now --{present.replace('_', '-')}."]
    assert received[present]


def test_options_that_were_renamed_are_known():
    assert {option for _, option in RENAMED} == {
        *("--effort", "--force", "--mend", "--slide-zero-std", "--free")
    }
