"""`taufit contact`: one JSON object, a page, exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from taufit.cli.app import typer_app
from taufit.model import read_model, write_model
from taufit.model.training_record import ModelAccuracy
from taufit.recording import write_recording
from taufit.report.contact_page import _start_notes
from taufit.sim import HandPush, random_fourier


@pytest.fixture(scope="module")
def files(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("contact")
    write_model(bench.model, folder / "model.json")
    for seed in (51, 52):
        write_recording(bench.run(seed).recording, folder / f"free{seed}.parquet")
    return folder


def run(*words):
    return CliRunner().invoke(typer_app("contact"), [str(word) for word in words])


def test_a_recording_gives_one_json_object_and_a_page(files):
    page = files / "page.html"
    done = run(
        files / "model.json", files / "free52.parquet", "--contact-free", files / "free51.parquet",
        "--report", page, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["events"] == [] and told["false_alarms_per_hour"] == 1.0
    assert len(told["threshold"]) == 6 and told["seconds"] > 9.0 and told["free_runs"] == 1
    assert told["safety_function"] is False
    text = page.read_text(encoding="utf-8")
    assert "not a safety function" in text and "Friction regimes" in text


def test_a_page_shows_each_contact_with_its_force_on_the_arm(files, bench):
    push = HandPush(start=4.0, duration=0.4, force=(0.0, 45.0, 10.0))
    twin = replace(bench.twin, effects=replace(bench.twin.effects, pushes=(push,)))
    motion = random_fourier(twin.robot, seed=53)
    write_recording(twin.run(motion, seed=53, rest=(1.0, 1.0)).recording, files / "pushed.parquet")
    page = files / "pushed.html"
    done = run(
        files / "model.json", files / "pushed.parquet", "--contact-free", files / "free51.parquet",
        "--report", page, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = [one for one in json.loads(done.stdout)["events"] if one["kind"] == "contact"]
    assert told
    text = page.read_text(encoding="utf-8")
    assert "the strongest" in text and "noticed after [ms]" in text
    # The arm from foot to flange at every contact, with an arrow.
    drawing = text[text.index("Contact no.") :].split("</svg>")[0]
    assert drawing.count("<circle") == twin.robot.joints + 1 and drawing.count('Z"') == 1
    assert f"{told[0]['t']:.2f}" in text


def test_free_runs_alone_say_what_can_be_found_and_are_stored(files):
    stored = files / "refined.json"
    done = run(
        files / "model.json", "--contact-free", files / "free51.parquet", "-o", stored, "--json"
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert 0.0 <= told["pulses"]["share"] <= 1.0 and told["rests_on_minutes"] > 0.1
    noise = read_model(stored).training.noise
    assert noise.runs == 1 and noise.tail is not None


def test_words_say_what_was_found(files):
    done = run(files / "model.json", files / "free52.parquet")
    assert done.exit_code == 0 and "1 false alarm per hour" in done.output


def graded(bench, path, word, unexplained):
    accuracy = ModelAccuracy(unexplained, word, on_holdout=True)
    record = replace(bench.model.training, accuracy=accuracy)
    write_model(bench.model.with_training(record), path)
    return path


def test_the_first_line_says_whose_model_it_is_and_its_grade(files, bench):
    model = graded(bench, files / "good.json", "good", 0.0803)
    done = run(model, files / "free52.parquet")
    first = done.output.splitlines()[0]
    assert first.startswith("Model of ur10e") and "good, 8.0 % of the torque unexplained" in first
    told = json.loads(run(model, files / "free52.parquet", "--json").stdout)
    assert told["accuracy"] == "good" and told["unexplained"] == pytest.approx(0.0803)


def test_a_poor_model_states_a_rate_only_where_it_was_measured(files, bench):
    model = graded(bench, files / "poor.json", "poor", 0.6)
    done = run(model, files / "free52.parquet")
    assert "poor, 60.0 %" in done.output and "false alarm per hour" not in done.output
    assert "no rate of false alarms is stated" in " ".join(done.output.split())
    page = files / "poor.html"
    told = json.loads(run(model, files / "free52.parquet", "--json", "--report", page).stdout)
    assert told["false_alarms_per_hour"] is None
    assert "false alarm per hour" not in page.read_text(encoding="utf-8")
    free = "--contact-free", files / "free51.parquet"
    told = json.loads(run(model, files / "free52.parquet", *free, "--json").stdout)
    assert told["false_alarms_per_hour"] == 1.0


@pytest.mark.parametrize(
    "words", [(), ("--alarms-per-hour", "0"), ("--tool", "1,2"), ("--output", "x.json")]
)
def test_wrong_usage_is_told(files, words):
    recording = () if not words else (files / "free52.parquet",)
    assert run(files / "model.json", *recording, *words).exit_code == 2


@pytest.mark.unchecked
def test_evidence_of_a_start_from_rest_is_explained_on_the_page():
    standing = np.array([[3, 3], [4, 4], [0, 1]])
    run_at_rest = {"time": np.arange(3.0), "state": standing, "threshold": 60.0, "contacts": ()}
    for evidence, has_note in (([90, 0, 0], True), ([0, 0, 90], False), ([0, 50, 0], False)):
        result = SimpleNamespace(**run_at_rest, evidence=np.array(evidence))
        assert bool(_start_notes(result)) == has_note
    contact = SimpleNamespace(start_time=0.0, end_time=0.5)
    result = SimpleNamespace(
        **run_at_rest | {"contacts": (contact,)}, evidence=np.array([90, 0, 0])
    )
    assert not _start_notes(result)
