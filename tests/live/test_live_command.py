"""`taufit live` as a command: what it prints, publishes, serves and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from tests.output_json import parse_output

from taufit.live import Monitor
from taufit.model.model_file import read_model, write_model
from taufit.recording import read_recording, write_recording

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model, loaded):
    path = tmp_path_factory.mktemp("live")
    write_model(model, path / "model.json")
    write_recording(loaded, path / "run.parquet")
    return path


def start(folder, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "taufit", "live", *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder, *words):
    with start(folder, *words) as process:
        out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def alike(a, b):
    """Equal but for the last digits, which the number of BLAS threads decides."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == (pytest.approx(b, rel=1e-9, abs=1e-12) if isinstance(b, float) else b)


def test_published_lines_are_the_readings_of_the_monitor(folder):
    code, out, err = run(folder, "run.parquet", "model.json", "--publish", "-", "--pace", "0")
    assert code == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    monitor = Monitor(read_model(folder / "model.json"))
    want = [reading.to_dict() for reading in monitor.run(read_recording(folder / "run.parquet"))]
    assert len(lines) == len(want)
    assert alike(lines[-1], json.loads(json.dumps(want[-1])))
    assert err.startswith("Model of ur10") and "token=" in err
    account = monitor.sample_counts
    assert f"{account}." in " ".join(err.split()) and account.readings == len(lines)
    # Numbers of samples are those of the file: none is left out here but the first ones.
    assert [line["sample"] for line in lines] == list(range(account.settling, account.samples))


def test_the_printed_address_opens_the_page_and_a_signal_ends_it(folder):
    with start(folder, "run.parquet", "model.json", "--json") as process:
        page = parse_output("live", process.stdout.readline())
        text = urllib.request.urlopen(page["url"], timeout=60).read().decode()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert "ur10" in page["robot"] and "run.parquet" in page["source"]
    assert page["accuracy"] in ("excellent", "good", "usable", "poor")
    assert "<canvas" in text and "http" not in text.replace("http-equiv", "").lower()
    assert out == "" and "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nothing.parquet", "model.json"), 3, "no file nothing.parquet"),
        (("a b", "model.json"), 3, "not a source"),
        (("run.parquet", "run.parquet"), 3, "model"),
        (("run.parquet", "model.json", "--json", "--publish", "-"), 2, "standard output"),
        (("127.0.0.1", "model.json", "--record", "x.csv"), 2, ".parquet"),
        (("run.parquet", "model.json", "--record", "x.parquet"), 2, "recording already"),
        (("run.parquet", "model.json", "--bind", "0.0.0.0"), 3, "every address"),
        (("run.parquet", "model.json", "--bind", "203.0.113.9"), 3, "cannot listen"),
        (("127.0.0.1", "model.json", "--ports", "rtde=9"), 3, "refused"),
    ],
)
def test_what_is_wrong_is_told_in_one_message(folder, words, code, says):
    got, _, err = run(folder, *words, "--seconds", "30")
    assert got == code, err
    assert says.lower() in " ".join(err.lower().split()) and "Traceback" not in err
