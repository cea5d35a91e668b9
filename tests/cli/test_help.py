"""Help teaches, and the documentation speaks of commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from taufit.cli import main
from taufit.cli.app import VERBS, typer_app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def commands():
    """Words and click command of every verb and sub-verb."""
    for verb in VERBS:
        found = typer.main.get_command(typer_app(verb))
        yield (verb,), found
        for name, sub in getattr(found, "commands", {}).items():
            yield (verb, name), sub


COMMANDS = dict(commands())


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_fits_the_terminal_and_ends_with_the_next_step(words, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert not stop.value.code
    assert max(map(len, lines)) <= width
    assert lines[0].startswith(f"Usage: taufit {' '.join(words)}")
    # The last paragraph.
    last = "\n".join(lines).split("\n\n")[-1].strip()
    assert last.startswith("Next: "), last
    assert "\n\n  Next:" not in "\n".join(lines).removesuffix(last).rstrip()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_is_explained(words):
    for parameter in COMMANDS[words].params:
        text = getattr(parameter, "help", None)
        assert text and len(text) > 5, f"taufit {' '.join(words)}: {parameter.name}"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_of_verbs_fits_the_terminal(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert not stop.value.code and max(map(len, lines)) <= width
    assert all(any(line.startswith(f"  {verb} ") for line in lines) for verb in VERBS)
    assert lines[-1].startswith("Next: ")


def test_a_verb_is_described_by_an_act_in_one_line():
    """At most 62 characters, in the imperative: no noun phrase, no third person."""
    acts = re.findall(
        r"\w+",
        """Run Describe Show Plan Record Read Simulate Estimate Fit Identify
                      Test Write Weigh Detect Compute Monitor Reproduce Print""",
    )
    for verb, text in VERBS.items():
        assert len(text) <= 62 and text.split()[0] in acts, (verb, text)


def quoted_commands(text: str) -> list[str]:
    """Commands in code blocks, continued lines joined, and in `code`."""
    found = []
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = line.strip().removeprefix("$ ")
            if line.startswith("taufit "):
                found.append(line)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found += [one for one in re.findall(r"`([^`]+)`", prose) if one.startswith("taufit ")]
    return found


def check_command(line: str) -> str | None:
    """What is wrong with a command of the documentation, or None."""
    line = line.replace("...", " ").replace("|", " ")
    words = shlex.split(line.replace("[", " ").replace("]", " "), comments=True)[1:]
    words = words[1:] if words[:1] == ["help"] else words
    if not words or words[0] in ("--help", "--version", "COMMAND"):
        return None
    if words[0] not in VERBS:
        return f"there is no verb {words[0]!r}"
    command = COMMANDS[(words[0],)]
    if getattr(command, "commands", None) and len(words) > 1 and not words[1].startswith("-"):
        if words[1] not in command.commands:
            return f"{words[0]} has no {words[1]!r}"
        command = command.commands[words[1]]
    known = {"--help", "-h", "--quiet", "-q", "--overwrite", "--large"}
    for parameter in command.params:
        known |= {*parameter.opts, *getattr(parameter, "secondary_opts", ())}
    for word in words[1:]:
        option = word.split("=")[0].rstrip(",.;:)")
        if re.match(r"--?[a-z]", option) and option not in known:
            return f"{words[0]} has no option {option}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_documented_commands_exist(page):
    lines = quoted_commands(page.read_text(encoding="utf-8"))
    wrong = {line: fault for line in lines if (fault := check_command(line))}
    assert not wrong


def test_the_check_of_documented_commands_finds_faults():
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(quoted_commands(text)) for text in pages) > 30
    text = "```\n$ taufit fti a\n```\n`taufit fit ur5e x.csv --hold-out y` and\n"
    faults = [check_command(line) for line in quoted_commands(text)]
    assert faults == ["there is no verb 'fti'", "fit has no option --hold-out"]
    joined = quoted_commands("```\ntaufit fit ur5e x.csv \\\n    --nonsense 3\n```\n")
    assert check_command(joined[0]) == "fit has no option --nonsense"


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_documented_files_exist(page):
    """Links to pages, and the examples and maps that pages name."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", text):
        is_generated = target.startswith("reference/")
        assert is_generated or (page.parent / target).exists(), target
    for target in re.findall(r"examples/[\w./]+\.(?:py|yaml)", text):
        assert (ROOT / target).exists(), target
