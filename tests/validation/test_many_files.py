"""A fit to many files: one at a time, in flat memory, with the same digits in any order."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
import simulated_arm

from taufit.core.errors import RecordingError
from taufit.dynamics.batch import RegressorEngine
from taufit.estimators import ConsistentSdp, Wls
from taufit.fitting import automatic_model, fit_samples as fit_samples
from taufit.recording import files as recording_files, read_recordings, write_recording
from taufit.recording.files import RecordingFiles
from taufit.regression import rows
from taufit.regression.accumulate import accumulate_by_joint
from taufit.report import fit_page
from taufit.signals import condition, sample_source
from taufit.terms.friction import Presliding
from taufit.workflow import identify, inputs, training_data


@pytest.fixture(scope="module")
def paths(truth, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    out = []
    for seed in range(4):
        out.append(folder / f"run{seed}.parquet")
        one = simulated_arm.recording(truth, 14.0, seed, name=out[-1].name)
        write_recording(one, out[-1])
    return tuple(out)


def _limit(monkeypatch):
    monkeypatch.setattr(training_data, "LEAD_ROWS", 100)
    monkeypatch.setattr(inputs, "LEAD_ROWS", 100)
    monkeypatch.setattr(sample_source, "MAX_EXCERPT_SAMPLES", 2000)


@pytest.fixture
def few(monkeypatch):
    """Recordings that count as many: nothing is fitted in memory, excerpts are short."""
    _limit(monkeypatch)


@pytest.fixture(scope="module")
def first(arm, paths):
    """A fit to recordings that count as many."""
    with pytest.MonkeyPatch.context() as patch:
        _limit(patch)
        return fitted(arm, paths)


def fitted(arm, paths, **keywords):
    return identify(arm, RecordingFiles(tuple(paths), read_recordings), cutoff_hz=8.0, **keywords)


def apart(one, other):
    """Largest difference of base parameters, in standard deviations."""
    assert one.estimate.base_names == other.estimate.base_names
    away = np.abs(one.estimate.base_values - other.estimate.base_values)
    return float(np.max(away / one.estimate.base_std))


def test_order_and_processes_change_no_digit(arm, paths, first, few):
    for other in (
        fitted(arm, [paths[k] for k in (2, 0, 3, 1)]),
        fitted(arm, paths, processes=2),
    ):
        np.testing.assert_array_equal(other.estimate.values, first.estimate.values)
        np.testing.assert_array_equal(
            other.estimate.base_covariance, first.estimate.base_covariance
        )


@pytest.mark.parametrize("tile", [100, 1000])
def test_tiles_do_not_change_the_estimate(arm, paths, first, few, tile, monkeypatch):
    monkeypatch.setattr(rows, "accumulate_by_joint", partial(accumulate_by_joint, tile=tile))
    other = fitted(arm, paths)

    assert apart(first, other) < 1e-9
    np.testing.assert_allclose(other.estimate.base_std, first.estimate.base_std, rtol=1e-9)


@pytest.mark.parametrize("estimator", [Wls(), ConsistentSdp(prior_weight=10.0)])
def test_tiles_do_not_change_other_estimators(arm, runs, estimator, monkeypatch):
    model, samples = automatic_model(arm), condition(runs, cutoff_hz=8.0)

    first = fit_samples(model, samples, estimator, load_rounds=2)
    monkeypatch.setattr(rows, "accumulate_by_joint", partial(accumulate_by_joint, tile=100))
    other = fit_samples(model, samples, estimator, load_rounds=2)

    away = np.abs(first.base_values - other.base_values)
    assert np.max(away / first.base_std) < 1e-9


def test_files_and_memory_give_one_estimate(arm, paths, monkeypatch):
    together = fitted(arm, paths)
    monkeypatch.setattr(training_data, "LEAD_ROWS", 100)
    monkeypatch.setattr(inputs, "LEAD_ROWS", 100)
    apiece = fitted(arm, paths)

    assert apart(together, apiece) < 1e-9
    np.testing.assert_allclose(
        apiece.training_score.nrmse, together.training_score.nrmse, rtol=1e-9
    )
    std = apiece.estimate.base_std / together.estimate.base_std
    np.testing.assert_allclose(std, 1.0, rtol=1e-6)
    assert apiece.warnings == together.warnings


def test_every_run_has_its_training_score(first, paths):
    assert [score.file for score in first.files] == [path.name for path in paths]
    total = sum(score.samples for score in first.files)
    assert total == first.training_score.samples
    square = sum(score.samples * score.rmse**2 for score in first.files) / total
    np.testing.assert_allclose(np.sqrt(square), first.training_score.rmse, rtol=1e-12)


def test_memory_does_not_grow_with_the_number_of_files(arm, paths, few):
    def peak(files):
        tracemalloc.start()
        fitted(arm, files)
        largest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return largest

    fitted(arm, paths[:2])  # what is imported and kept on first use counts for nobody
    assert peak(paths * 3) < 1.15 * peak(paths[:2])


@pytest.fixture
def long_file(truth, tmp_path, monkeypatch):
    """A file that counts as long: three sections, each with rows before and behind it."""
    monkeypatch.setattr(recording_files, "MAX_ROWS", 3000)
    monkeypatch.setattr(recording_files, "SECTION_ROWS", 2000)
    monkeypatch.setattr(recording_files, "LEAD_ROWS", 800)
    monkeypatch.setattr(recording_files, "TAIL_ROWS", 100)
    monkeypatch.setattr(recording_files, "_MIN_BYTES", 0)
    monkeypatch.setattr(training_data, "LEAD_ROWS", 100)
    monkeypatch.setattr(inputs, "LEAD_ROWS", 100)
    path = tmp_path / "long.parquet"
    write_recording(simulated_arm.recording(truth, 60.0, name=path.name), path)
    return path


def read_rows(path, first, last):
    return read_recordings(path, rows=(first, last))


def test_sections_of_a_long_file_count_every_sample_once(long_file):
    files = RecordingFiles((long_file,), read_recordings, read_rows)
    whole = read_recordings(long_file)[0]

    assert len(files) == 3
    counted = []
    for k in range(3):
        (one,) = files[k]
        low, high = one.meta["counted_s"]
        elapsed = one.time - one.time[0]
        counted.append(one.time[(elapsed >= low) & (elapsed < high)])
    np.testing.assert_array_equal(np.concatenate(counted), whole.time)


def test_a_long_file_in_sections_gives_the_estimate_of_the_whole(arm, long_file):
    how = {"cutoff_hz": 8.0, "friction": Presliding()}
    whole = identify(arm, RecordingFiles((long_file,), read_recordings), **how)
    files = RecordingFiles((long_file,), read_recordings, read_rows)
    cut = identify(arm, files, **how)

    # Friction runs in on the rows before a section, so its state is the whole run's.
    assert abs(cut.training_score.samples - whole.training_score.samples) <= 3
    assert apart(whole, cut) < 0.3
    np.testing.assert_allclose(cut.training_score.nrmse, whole.training_score.nrmse, rtol=0.01)


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"torque_signs": "unknown"}, "search for torque signs"),
        ({"temperature": "thermal-model"}, "temperature estimated from heat"),
    ],
)
def test_what_needs_all_samples_at_once_says_how_many_it_takes(
    arm, paths, few, how, what, monkeypatch
):
    monkeypatch.setattr(sample_source, "MAX_GATHERED_SAMPLES", 3000)

    with pytest.raises(RecordingError, match=f"{what} looks at all samples at once.*3,000"):
        fitted(arm, paths, **how)


def counted(monkeypatch):
    """Samples that the links' regressor was made of, whoever asked for it."""
    seen = []

    def watched(method, length):
        def call(self, *states, **keywords):
            seen.append(length(*states))
            return method(self, *states, **keywords)

        return call

    dense = watched(RegressorEngine.regressor, lambda q, *_: len(q))
    compact = watched(RegressorEngine.write_columns, lambda q, v, a, first, last, *_: last - first)
    monkeypatch.setattr(RegressorEngine, "regressor", dense)
    monkeypatch.setattr(RegressorEngine, "write_columns", compact)
    return seen


def test_a_fit_with_its_report_makes_eight_regressor_passes(truth, monkeypatch):
    """Everything counts: what is looked at before the fit, scores, hold-outs and the page."""
    kept_out = {"other": [simulated_arm.recording(truth, 15.0, 1)]}
    recorded = [simulated_arm.recording(truth, 50.0)]
    seen = counted(monkeypatch)

    done = identify(truth.robot, recorded, cutoff_hz=8.0, holdout=kept_out)
    fit_page(done)

    assert len(done.samples) == 5000
    assert sum(seen) / len(done.samples) <= 8.0


def test_longer_recordings_cost_no_further_looks_for_causes(arm, truth, monkeypatch):
    """A robot unlike its description has causes looked for, on rows whose number is bounded."""
    recorded = [[simulated_arm.recording(truth, seconds)] for seconds in (60.0, 120.0)]
    seen = counted(monkeypatch)
    made, samples = [], []
    for one in recorded:
        seen.clear()
        done = identify(arm, one, cutoff_hz=8.0)
        fit_page(done)
        made.append(sum(seen))
        samples.append(len(done.samples))

    assert (made[1] - made[0]) / (samples[1] - samples[0]) <= 8.0


def test_further_files_cost_four_regressor_passes(arm, paths, few, monkeypatch):
    """Of many files every further one is gone through: twice for parameters, for covariance and
    for the residuals; the last two look at every few samples only."""
    seen = counted(monkeypatch)
    made, samples = [], []
    for files in (paths, paths * 2):
        seen.clear()
        done = fitted(arm, files)
        fit_page(done)
        made.append(sum(seen))
        samples.append(sum(score.samples for score in done.files))

    assert (made[1] - made[0]) / (samples[1] - samples[0]) <= 4.0
