"""Commands printed on pages run as pasted, in the folder where the page was made."""

from __future__ import annotations

import html
import re
import shlex
import shutil

import pytest
from tests.servo.servo_arms import recording

import taufit
from taufit.cli import main
from taufit.recording.crop import crop

# Commands that write pages, in a folder with what `taufit demo --files` writes.
PAGES = [
    "fit ur10e run.parquet --friction linear -o 'my model.json' --report 'a fit.html'",
    "fit ur10e log.csv.gz --map columns.yaml --friction linear -o logged.json --report log.html",
    "report 'my model.json' other_day.parquet -o report.html",
    "report 'my model.json' -o untested.html",
    "check model.json other_day.parquet --track --report tracked.html",
    "payload model.json loaded.parquet --report payload.html",
    "contact model.json other_day.parquet --report contact.html",
    "health baseline model.json HEALTHY -o history.json",
    "health check history.json loaded.parquet --report health.html",
    "design ur10e --seconds 0.2 --free-space -o motion.json --plot motion.html",
    "design ur3e --kind friction-test --minutes 2 --free-space -o strokes.json",
    "simulate ur3e strokes.json -o strokes.parquet",
    "friction ur3e strokes.parquet --friction linear -o friction.json --report friction.html",
    "servo so101 servo_0.parquet servo_1.parquet --stage linear -o 'my servo.json' --report s.html",
    "fleet ur10e plant --by robot,day -o fleet",
]
# The command serves a page until it is stopped.
SERVER = ("live", "open")


def printed_commands(page: str) -> list[str]:
    """Commands of a page; a verb alone is the name of a command."""
    texts = [html.unescape(text) for text in re.findall(r"<code>(.*?)</code>", page, flags=re.S)]
    return [text for text in texts if re.match(r"taufit \S+ \S", text)]


def run(line: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return stop.value.code or 0


def _healthy_runs() -> list[str]:
    """Nine parts of the three days, as many runs of a healthy robot."""
    names = []
    for day in ("run", "other_day", "third_day"):
        whole = taufit.read_recording(f"{day}.parquet")
        for start in (0.0, 2.5, 5.0):
            names.append(f"{day} from {start}.parquet")
            taufit.write_recording(crop(whole, start, start + 5.0), names[-1])
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder with all pages."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("demo --files") == 0
        for seed in range(2):
            taufit.write_recording(recording(seed, seconds=20.0), f"servo_{seed}.parquet")
        for k, name in enumerate(("run", "other_day", "third_day")):
            place = folder / "plant" / f"cell_{k}"
            place.mkdir(parents=True)
            shutil.copy(f"{name}.parquet", place / "2026-03-01.parquet")
        healthy = shlex.join(_healthy_runs())
        for line in PAGES:
            assert run(line.replace("HEALTHY", healthy)) in (0, 1), line
    return folder


def test_every_command_on_a_page_runs_as_pasted(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    pages = list(folder.rglob("*.html"))
    assert len(pages) >= 12
    found = {command: page.name for page in pages for command in printed_commands(page.read_text())}
    assert len(found) >= 6, found
    failed = {}
    for command, page in found.items():
        words = shlex.split(command)
        line = command.removeprefix("taufit ")
        if words[1] in SERVER:
            line += " --seconds 1"
        if code := run(line):
            failed[command] = (page, code, capsys.readouterr().err[-300:])
    assert not failed


def test_a_spoilt_command_is_noticed(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    page = next(folder.glob("a fit.html")).read_text("utf-8")
    command = next(line for line in printed_commands(page) if "export" in line)
    assert run(command.removeprefix("taufit ").replace("my model", "no model")) == 3


def test_the_count_of_parameters_in_the_advice_is_that_of_the_table(folder):
    text = (folder / "log.html").read_text("utf-8")
    poor, total = map(int, re.search(r"(\d+) of (\d+) parameters show poorly", text).groups())
    identifiable, base = map(int, re.search(r"(\d+) of (\d+) identifiable", text).groups())
    assert (poor + identifiable, total) == (total, base)
