"""The whole way from recordings to a model, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simulated_arm

from taufit.calibration import gravity_findings
from taufit.core.compute.engines import Processes
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.fitting import automatic_model
from taufit.model import predicted_torque
from taufit.model.model_file import read_model, write_model
from taufit.recording import Finding
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.validation import score
from taufit.workflow import condition_for_model, cross_validate_structure, identify


def test_hold_outs_take_the_gains_of_training(arm, runs):
    gain = np.array([12.0, 12.0, 9.0, 10.0, 10.0, 10.0])
    train = simulated_arm.in_amperes(runs[0], gain, known=True)
    other = simulated_arm.in_amperes(runs[1], gain, known=False)

    done = identify(arm, [train], holdout={"other": [other]}, cutoff_hz=8.0)

    assert done.holdout_scores[0].mean_nrmse < 0.02
    np.testing.assert_array_equal(done.model.training.conditioning.gain, gain)
    np.testing.assert_array_equal(done.model.robot.drives.gain, gain)
    samples = condition_for_model(done.model, [other])
    assert score(done.model, samples).mean_nrmse == pytest.approx(done.holdout_scores[0].mean_nrmse)


def test_a_model_read_back_predicts_the_same_bits(identified, tmp_path):
    path = tmp_path / "model.json"
    write_model(identified.model, path)

    again = read_model(path)

    np.testing.assert_array_equal(
        predicted_torque(again, identified.samples),
        predicted_torque(identified.model, identified.samples),
    )
    assert again.training.base.names == identified.estimate.base_names
    covariance = again.training.base.covariance
    np.testing.assert_array_equal(covariance, identified.estimate.base_covariance)
    assert again.training.ranges.position.low == pytest.approx(
        identified.samples.position[identified.samples.in_motion].min(axis=0)
    )
    assert again.training.provenance.settings.estimator == "automatic"


def test_single_masses_are_not_presented_as_measured(identified):
    record = identified.model.training
    for name, std, word in zip(identified.model.names, record.std, record.verdicts, strict=True):
        if name.endswith(".m"):
            assert not np.isfinite(std)
            assert word in ("only in combination", "no effect")


def test_cross_validation_scores_each_run_by_a_fit_without_it(arm, runs):
    model = automatic_model(arm)
    samples = [condition(run, cutoff_hz=8.0) for run in runs]

    class Counted(Processes):
        done = 0

        def map(self, function, things):
            for result in super().map(function, things):
                self.done += 1
                yield result

    engine = Counted()
    scores = cross_validate_structure(model, samples, engine=engine)

    assert engine.done == 3
    assert [one.file for one in scores] == ["run0", "run1", "run2"]
    assert all(one.mean_nrmse < 0.02 for one in scores)
    with pytest.raises(RecordingError, match="two recordings or more"):
        cross_validate_structure(model, samples[:1])


def test_torque_against_gravity_is_told_and_refused(arm, runs):
    samples = condition(runs[0], cutoff_hz=8.0)
    assert gravity_findings(arm, samples) == ()

    turned = replace(runs[0], signal=-runs[0].signal)
    assert "joint 2" in " ".join(gravity_findings(arm, condition(turned, cutoff_hz=8.0)))
    with pytest.raises(RecordingError, match="the torque of every joint has the other sign"):
        identify(arm, [turned])
    with pytest.raises(RecordingError, match="mounting"):
        identify(arm.with_mounting("ceiling"), [runs[0]])
    tenfold = replace(runs[0], signal=10.0 * runs[0].signal)
    assert "Check the drive gain" in " ".join(
        gravity_findings(arm, condition(tenfold, cutoff_hz=8.0))
    )


def test_another_robots_recording_is_refused(arm, runs):
    with pytest.raises(RecordingError, match="expected 7 joints"):
        identify(read_robot("panda"), [runs[0]])
    labelled = replace(runs[0], meta={**runs[0].meta, "robot": "kr5"})
    with pytest.raises(RecordingError, match="is of 'kr5'"):
        identify(arm, [labelled])
    far = replace(runs[0], position=runs[0].position + np.array([0, 0, 8.0, 0, 0, 0]))
    with pytest.raises(RecordingError, match="outside what ur5e can reach: joint 3"):
        identify(arm, [far])


def test_impossible_numbers_are_refused_unless_forced(arm, runs):
    finding = Finding("corrupt_rows", "warning", "row 7 holds nan", "row dropped")
    broken = replace(runs[0], findings=(finding,))
    with pytest.raises(RecordingError, match="row 7 holds nan"):
        identify(arm, [broken])
    done = identify(arm, [broken], cutoff_hz=8.0, ignore_contradictions=True)
    assert any("row 7" in text for text in done.warnings)


def test_a_few_rows_that_were_dropped_are_told_and_the_fit_goes_on(arm, runs):
    few = Finding("corrupt_rows", "warning", "2 rows hold nan", "rows dropped", rows=(7, 90))
    done = identify(arm, [replace(runs[0], findings=(few,))], cutoff_hz=8.0)
    assert any("2 rows hold nan" in text for text in done.warnings)
    many = replace(few, rows=tuple(range(100, 100 + len(runs[0]) // 50)))
    with pytest.raises(RecordingError, match="2 rows hold nan"):
        identify(arm, [replace(runs[0], findings=(many,))])


def test_too_short_and_unmoved_are_refused(arm, truth, runs):
    with pytest.raises(RecordingError, match="too short"):
        identify(arm, [simulated_arm.recording(truth, 0.6)])
    still = runs[0]
    frozen = np.array(still.position)
    frozen[:, 3:] = frozen[0, 3:]
    velocity = np.array(still.velocity)
    velocity[:, 3:] = 0.0
    with pytest.raises(PoorExcitationError, match=r"joint 4 .*, 5 .*, 6 .* does not move"):
        identify(arm, [replace(still, position=frozen, velocity=velocity)])
    with pytest.raises(RecordingError, match="there is no recording"):
        identify(arm, [])


def test_torques_of_nothing_are_refused(arm, runs):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=runs[0].signal.shape).cumsum(axis=0)
    nonsense = replace(runs[0], signal=noise - noise.mean(axis=0))
    with pytest.raises(RecordingError, match=r"does not explain these torques|gravity"):
        identify(arm, [nonsense], cutoff_hz=8.0)


def test_a_carried_payload_is_mentioned(arm, runs):
    done = identify(arm, [replace(runs[0], payload=2.5)], cutoff_hz=8.0)
    assert any("2.5 kg" in text for text in done.warnings)
