"""Several writers of one history: every run that is reported as stored is stored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import worn_arm

from taufit.core.errors import TaufitError
from taufit.health import add_runs, read_history, start_history, write_history

ADD = """
import sys
sys.path.insert(0, sys.argv[1])
import worn_arm
from taufit.health import add_runs
path, writer, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
samples = worn_arm.samples(30.0)
for k in range(count):
    history = add_runs(path, [(f"{writer}-{k}", samples)])
    assert any(run.name == f"{writer}-{k}" for run in history.runs)
    print(f"{writer}-{k}", flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", ADD, Path(__file__).parent, path, name, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def names(path: Path) -> list[str]:
    return [run.name for run in read_history(path).runs]


def test_writers_at_the_same_time_lose_nothing(healthy, tmp_path):
    path = tmp_path / "h.json"
    write_history(healthy, path)
    before = names(path)
    running = [writer(path, name, 6) for name in "abcd"]
    said = [line for process in running for line in process.communicate(timeout=300)[0].split()]
    assert [process.returncode for process in running] == [0] * 4
    after = names(path)
    assert after[: len(before)] == before
    assert sorted(after[len(before) :]) == sorted(said) and len(said) == 24
    assert os.listdir(tmp_path) == ["h.json"]


def test_a_killed_writer_loses_at_most_the_run_in_flight(healthy, tmp_path):
    path = tmp_path / "h.json"
    write_history(healthy, path)
    before = len(names(path))
    for after in (1, 2, 3):
        process = writer(path, f"k{after}", 1000)
        said = [process.stdout.readline().strip() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        said += process.communicate(timeout=60)[0].split()
        now = names(path)
        new = [name for name in now if name.startswith(f"k{after}-")]
        # Reported as stored means stored; one more may be, whose report was cut off.
        assert new[: len(said)] == said and len(new) <= len(said) + 1
    assert len(names(path)) >= before + 6
    add_runs(path, [("last", worn_arm.samples(30.0))])
    assert os.listdir(tmp_path) == ["h.json"]


def test_runs_are_not_added_to_another_baseline(healthy, tmp_path, model):
    path = tmp_path / "h.json"
    write_history(healthy, path)
    other = start_history(model, [(f"o{k}", worn_arm.samples(40.0 + k, k)) for k in range(8)])
    write_history(other, path)
    with pytest.raises(TaufitError, match="started again with another model"):
        add_runs(path, [("a", worn_arm.samples(30.0))], expected=healthy)
    assert len(names(path)) == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"format": "taufit-health", "version": 1' + "0" * 5000 + "}", "5001 digits"),
        ('{"format": "taufit-health", "version": 1, "version": 1}', "gives 'version' twice"),
        ('{"format": "taufit-health", "version": NaN}', "NaN is not a number"),
        ('{"rate": 1e999}', "1e999 is too large"),
        ("\udcff", "is not UTF-8 text"),
    ],
)
def test_hostile_histories_are_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "h.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(TaufitError, match=message):
        read_history(path)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["runs"][1]["index"].__setitem__(0, "x"), r"runs\[1\]\.index\[0\] is 'x'"),
        (lambda d: d["runs"][1]["index"].pop(), r"runs\[1\]\.index is .* a list of 3 numbers"),
        (lambda d: d.update(rate=[]), r"rate is \[\], expected a number"),
        (lambda d: d.update(slack=-1), "slack is -1, expected a number above 0"),
        (lambda d: d.update(slack=7), "slack is 7, expected at most 1.5"),
        (lambda d: d["runs"].__setitem__(0, 7), r"runs\[0\] is 7"),
        (lambda d: d["runs"][0].pop("load"), r"it has no runs\[0\]\.load"),
        (lambda d: d.update(level=[1, 2]), "level is .* a list of 3 numbers"),
        (lambda d: d.update(level=[1, 2, 1e300]), r"level\[2\] is .* at most 1e"),
        (lambda d: d.update(healthy=8.5), "healthy is 8.5"),
    ],
)
def test_a_damaged_history_is_named_by_its_place(healthy, tmp_path, change, place):
    path = tmp_path / "h.json"
    write_history(healthy, path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(TaufitError, match=place):
        read_history(path)
