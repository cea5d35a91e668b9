"""A fit to files that were fitted before: the same result, and only new files are read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import simulated_arm

from taufit.core.compute.cache import open_cache
from taufit.core.compute.cache.pack import pack, unpack
from taufit.core.compute.cache.user_folders import user_secret
from taufit.recording import read_recordings, write_recording
from taufit.recording.files import RecordingFiles, find_recordings
from taufit.regression import Information
from taufit.signals import sample_source
from taufit.signals.storage.result_cache import ResultCache
from taufit.workflow import identify, inputs, training_data


@pytest.fixture(scope="module")
def made(arm, truth, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for seed in range(5):
        path = folder / f"run{seed}.parquet"
        write_recording(simulated_arm.recording(truth, 14.0, seed, name=path.name), path)
    return arm, folder


@pytest.fixture(scope="module", autouse=True)
def _as_many_recordings():
    """Recordings count as many: nothing is fitted in memory, excerpts are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_data, "LEAD_ROWS", 100)
        patch.setattr(inputs, "LEAD_ROWS", 100)
        patch.setattr(sample_source, "MAX_EXCERPT_SAMPLES", 2000)
        yield


@pytest.fixture(scope="module")
def plain(made):
    """The fit without a cache."""
    return fitted(*made, None)[0]


@pytest.fixture(scope="module")
def cached(made, tmp_path_factory):
    """The first fit with a cache, the files it read, and the folder of the cache."""
    cache = tmp_path_factory.mktemp("cache")
    return *fitted(*made, cache), cache


@pytest.fixture(scope="module")
def cached_four(made, tmp_path_factory):
    """Folder of the cache after a fit to four of the five files."""
    cache = tmp_path_factory.mktemp("cache of four")
    fitted(*made, cache, count=4)
    return cache


@pytest.fixture
def folder(made, tmp_path):
    """Copy of the recordings."""
    for path in made[1].iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture
def filled(cached, folder):
    """Copy of the recordings with the cache of the first fit."""
    shutil.copytree(cached[2], folder, dirs_exist_ok=True)
    return folder


class Reader:
    """Counts what is read."""

    def __init__(self):
        self.read = []

    def __call__(self, path):
        self.read.append(path.name)
        return read_recordings(path)


def fitted(arm, folder, cache, count=5, **keywords):
    reader = Reader()
    found = find_recordings([folder], allow_repeats=True).paths
    files = RecordingFiles(found[:count], reader, settings=())
    done = identify(arm, files, cutoff_hz=8.0, cache=cache, **keywords)
    return done, reader.read


def test_a_second_fit_reads_nothing_and_finds_the_same(made, plain, cached, filled):
    first, read, _ = cached
    again, none = fitted(made[0], filled, filled)

    assert len(set(read)) == 5 and none == []
    for other in (first, again):
        np.testing.assert_array_equal(other.estimate.values, plain.estimate.values)
        np.testing.assert_array_equal(
            other.estimate.base_covariance, plain.estimate.base_covariance
        )
        assert other.warnings == plain.warnings
        assert [one.file for one in other.files] == [one.file for one in plain.files]
        np.testing.assert_array_equal(other.training_score.rmse, plain.training_score.rmse)


def test_the_order_of_files_and_their_place_do_not_matter(made, cached, filled, tmp_path_factory):
    first = cached[0]
    moved = tmp_path_factory.mktemp("elsewhere")
    for path in filled.glob("*.parquet"):
        shutil.move(path, moved)
    again, read = fitted(made[0], moved, filled)

    assert read == []
    np.testing.assert_array_equal(again.estimate.values, first.estimate.values)


def test_a_changed_file_is_read_again(made, filled):
    shutil.copy(filled / "run1.parquet", filled / "run0.parquet")
    again, read = fitted(made[0], filled, filled)
    plain, _ = fitted(made[0], filled, None)

    assert set(read) >= {"run0.parquet"}
    away = np.abs(again.estimate.base_values - plain.estimate.base_values)
    # Friction at the load of an earlier fit: .17 standard deviations here.
    assert np.max(away / plain.estimate.base_std) < 0.25


def test_other_settings_find_nothing_of_these(made, filled):
    reader = Reader()
    files = RecordingFiles(find_recordings([filled])[0], reader, settings=("current",))
    identify(made[0], files, cutoff_hz=8.0, cache=filled)

    assert len(set(reader.read)) == 5


@pytest.mark.parametrize("damage", ["cut", "swapped", "gone"])
def test_a_damaged_cache_is_made_again(made, cached, filled, damage):
    entries = sorted(open_cache(filled).path.glob("??/*"))
    contents = [path.read_bytes() for path in entries]
    for path, content, other in zip(entries, contents, contents[1:] + contents[:1], strict=True):
        path.write_bytes({"cut": content[:-1], "swapped": other, "gone": b""}[damage])
    again, _ = fitted(made[0], filled, filled)

    np.testing.assert_array_equal(again.estimate.values, cached[0].estimate.values)
    assert sum("made again" in text for text in again.warnings) == 1
    assert fitted(made[0], filled, filled)[1] == []


def scaled(value):
    """The same as of torque that is six per cent larger."""
    if isinstance(value, Information):
        return replace(value, target=1.06 * value.target, residual=1.06**2 * value.residual)
    if type(value) in (tuple, list):
        return type(value)(map(scaled, value))
    return value


@pytest.mark.parametrize("stolen", [False, True])
def test_scaled_torque_in_a_cache_changes_no_result(made, cached, filled, stolen):
    """Whoever has all but the user's secret changes nothing; with it, this test would see it."""
    path, secret = open_cache(filled).path, user_secret()[0]
    for entry in path.glob("??/*"):
        key = bytes.fromhex(entry.name)
        value = scaled(unpack(entry.read_bytes(), key, secret))
        entry.write_bytes(pack(value, key, secret if stolen else bytes(32)))
    again, _ = fitted(made[0], filled, filled)

    assert np.array_equal(again.estimate.values, cached[0].estimate.values) is not stolen


def test_one_more_file_is_within_what_is_promised(made, plain, cached_four, folder):
    """Excerpt, load, residuals and noise may be those of an earlier fit."""
    shutil.copytree(cached_four, folder, dirs_exist_ok=True)
    more, read = fitted(made[0], folder, folder)

    assert "run4.parquet" in read
    away = np.abs(more.estimate.base_values - plain.estimate.base_values)
    # Friction at the load of four files: .06 standard deviations here.
    assert np.max(away / plain.estimate.base_std) < 0.1
    np.testing.assert_allclose(more.training_score.rmse, plain.training_score.rmse, rtol=1e-3)
    np.testing.assert_allclose(more.estimate.base_std, plain.estimate.base_std, rtol=0.05)


def test_an_excerpt_stays_until_a_third_more_runs_are_added(made, folder, monkeypatch):
    monkeypatch.setattr(sample_source, "_MIN_RUN_SAMPLES", 200)

    def excerpt_files(count):
        done, _ = fitted(made[0], folder, folder, count=count)
        return set(done.samples.names)

    three, four, five = map(excerpt_files, (3, 4, 5))
    assert three == four and len(five) == 5 and len(three) == 3


def test_where_parameters_stay_near_only_the_new_file_is_read(
    made, cached_four, folder, monkeypatch
):
    shutil.copytree(cached_four, folder, dirs_exist_ok=True)
    always = ResultCache.reuse_if_close

    def settled(self, name, value, is_close):
        return always(self, name, value, lambda now, known: True)

    monkeypatch.setattr(ResultCache, "reuse_if_close", settled)
    _, read = fitted(made[0], folder, folder)

    assert set(read) == {"run4.parquet"}


def test_processes_share_what_is_missing(made, plain, folder):
    files = RecordingFiles(find_recordings([folder])[0], read_recordings, settings=())
    done = identify(made[0], files, cutoff_hz=8.0, cache=folder, processes=2)

    np.testing.assert_array_equal(done.estimate.values, plain.estimate.values)


def test_recordings_of_folders_and_patterns_are_found(tmp_path):
    for name in ("b.parquet", "day/a.csv", "day/c.csv.gz", "notes.txt", ".hidden.csv", "x.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()

    for k, path in enumerate(sorted(tmp_path.rglob("*.*"))):
        path.write_text(str(k))
    found, top, _ = find_recordings([tmp_path])
    assert [path.name for path in found] == ["b.parquet", "a.csv", "c.csv.gz"]
    assert top == tmp_path
    found, top, _ = find_recordings([tmp_path / "day" / "*.csv"])
    assert [path.name for path in found] == ["a.csv"] and top == tmp_path / "day"
    one = tmp_path / "b.parquet"
    assert find_recordings([one]) == ((one,), None, ())


def test_the_command_takes_a_folder_and_keeps_results_elsewhere(tmp_path):
    def taufit(*words):
        return subprocess.run(
            [sys.executable, "-m", "taufit", *map(str, words)], capture_output=True, text=True
        )

    runs = tmp_path / "runs"
    runs.mkdir()
    assert taufit("simulate", "ur3e", "--runs", 2, "-o", runs / "r.parquet").returncode == 0
    before = set(runs.iterdir())
    done = taufit("fit", "ur3e", runs, "-o", tmp_path / "m.json", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] > 1000
    assert set(runs.iterdir()) == before
    with open_cache() as cache:
        assert f"kept in {cache.path}" in done.stderr and done.stderr.count("\n") == 1
        for path in runs.glob("*.parquet"):
            cache.content(path)
        assert cache.reads == 0

    (runs / ".taufit-cache.sqlite").write_bytes(b"of an earlier version")
    off = taufit("fit", "ur3e", runs, "-o", tmp_path / "off.json", "--json", "--cache", "off")
    assert off.returncode == 0 and off.stderr == ""
    shared = tmp_path / "shared"
    shared.mkdir()
    own = taufit("fit", "ur3e", runs, "-o", tmp_path / "m.json", "--json", "--cache", shared)
    assert own.returncode == 0 and "earlier version" in own.stderr and any(shared.iterdir())
    assert (runs / ".taufit-cache.sqlite").read_bytes() == b"of an earlier version"
    wrong = taufit("fit", "ur3e", runs, "--cache", tmp_path / "nowhere")
    assert wrong.returncode == 2 and "nowhere" in wrong.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    none = taufit("fit", "ur3e", empty)
    assert none.returncode == 3 and "no recording" in none.stderr
