"""A tool that a description does not have is no reason to refuse an arm; it is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.clean_runs import LOADS, clean_run, loaded_run

from taufit.diagnosis import sample_causes
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.priors import link_priors, load_covariance
from taufit.diagnosis.undescribed_load import load_finding, with_load
from taufit.recording import read_recording
from taufit.robot import bundled_robots, read_robot
from taufit.robot.inertia import from_centre_of_mass, transform_parameters
from taufit.robot.pose import adjoint, inverse_pose, pose_from_rpy
from taufit.workflow import identify
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.training_data import training_data

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data" / "ur10e"
# 2.8 kg at the flange of a UR10e, and the same motion without.
LOADED = REAL / "identification_data" / "ur-20_02_19_14harm50secLoad.csv.gz"


def evidence_of(robot, recording, cutoff_hz: float = 10.0):
    data = training_data(FitRequest(cutoff_hz=cutoff_hz), robot, [recording])
    evidence = HypothesisTest(data.robot, data.source.excerpt)
    causes = sample_causes(data.robot, data.recordings, data.source.excerpt, evidence=evidence)
    return evidence, [str(cause.finding) for cause in causes]


@pytest.fixture(scope="module")
def real():
    if not LOADED.exists():
        pytest.skip("the shared recordings are not here")
    return read_recording(LOADED, column_map="ur10e_csv")


@pytest.mark.parametrize("mass", LOADS)
@pytest.mark.parametrize("name", ["ur10", "kr5", "panda", "scara", "weightless", "light"])
def test_an_arm_with_an_unknown_load_is_blamed_for_nothing(name, mass):
    robot, recording, kilograms = loaded_run(name, 30, mass)
    evidence, found = evidence_of(robot, recording)
    assert found == []
    values, covariance = evidence.estimate_load()
    assert abs(values[0] - kilograms) < 3.0 * np.sqrt(covariance[0, 0])
    if mass > 4.0 and name not in ("kr5", "scara"):
        said = load_finding(evidence)
        assert said is not None and said.severity == "warning" and "kg (+-" in said.message


@pytest.mark.parametrize("name", ["ur10e", "kr5", "iiwa7", "seven", "horizontal"])
def test_no_load_is_said_to_be_where_none_is(name):
    robot, recording = clean_run(name, 103)
    assert load_finding(evidence_of(robot, recording)[0]) is None


@pytest.mark.parametrize("cutoff_hz", [5.0, 10.0])
def test_a_real_arm_with_a_payload_is_itself(real, cutoff_hz):
    """Its description has 0.2 kg for a last link; with a ur5e of other lengths it would agree."""
    evidence, found = evidence_of(read_robot(REAL / "ur10e.urdf"), real, cutoff_hz)
    assert found == []
    said = load_finding(evidence)
    assert said is not None and 2.0 < said.value < 4.0


def test_a_fit_of_a_loaded_arm_says_what_it_contains(real):
    done = identify(read_robot(REAL / "ur10e.urdf"), [real], cutoff_hz=5.0, friction="linear")
    (said,) = [f for f in done.findings if f.kind == "undescribed_load"]
    assert done.grades.overall != "poor"
    assert said.message in done.warnings and "taufit payload" in said.message
    declared = replace(real, payload=2.8)
    again = identify(read_robot(REAL / "ur10e.urdf"), [declared], cutoff_hz=5.0, friction="linear")
    assert "undescribed_load" not in {f.kind for f in again.findings}
    assert any("the arm carried 2.8 kg" in text for text in again.warnings)


@pytest.mark.parametrize(("name", "seed"), [("ur5e", 1), ("light", 2)])
def test_a_fit_contains_a_load_many_times_the_last_link(name, seed):
    robot, recording, _ = loaded_run(name, seed, 5.0)
    done = identify(robot, [recording], holdout="30%")
    assert done.grades.overall in ("excellent", "good")
    assert not [text for text in done.warnings if "physically consistent" in text]


@pytest.mark.parametrize("name", ["ur5e", "ur3e"])
def test_a_loaded_arm_described_as_another_is_found(real, name):
    nameless = replace(real, meta={k: v for k, v in real.meta.items() if k != "robot"})
    _, found = evidence_of(read_robot(name), nameless)
    assert len(found) == 1 and "another arm" in found[0] and "ur10" in found[0]


@pytest.mark.parametrize("name", ["ur10", "kr5"])
def test_a_factor_on_all_torque_is_no_load(name):
    robot, recording = clean_run(name, 103)
    _, found = evidence_of(robot, replace(recording, signal=3.0 * recording.signal))
    assert len(found) == 1 and "times what gravity" in found[0]


def test_a_load_is_as_likely_in_any_frame_of_the_last_link():
    robot = read_robot("ur10")
    moved = pose_from_rpy(np.array([0.3, -0.7, 1.1]), np.array([0.4, -1.0, 2.0]))
    last = robot.links[-1]
    there = replace(
        last,
        placement=last.placement @ moved,
        screw=adjoint(inverse_pose(moved)) @ last.screw,
        parameters=transform_parameters(last.parameters, inverse_pose(moved)),
    )
    other = replace(robot, links=(*robot.links[:-1], there), urdf=None)
    load = from_centre_of_mass(2.0, np.array([0.05, -0.1, 0.2]), 0.01 * np.eye(3))
    seen = transform_parameters(load, inverse_pose(moved))
    first, second = link_priors(robot), link_priors(other)
    near, far = first.centre.copy(), second.centre.copy()
    near[-10:] += load
    far[-10:] += seen
    assert first.load_distance(near) == pytest.approx(second.load_distance(far), rel=1e-6)
    assert 0.1 < first.load_distance(near) < 10.0


@pytest.mark.parametrize("name", bundled_robots())
def test_what_an_arm_carries_has_the_moments_of_point_masses(name):
    robot = read_robot(name)
    links = robot.parameters.reshape(-1, 10)
    covariance = load_covariance(robot, links)
    mass, variance = covariance[0, 0], np.diag(covariance)
    centre = covariance[0, 1:4] / mass
    assert np.allclose(centre, links[-1, 1:4] / links[-1, 0])
    about = covariance[1:4, 1:4] / mass - np.outer(centre, centre)
    assert np.allclose(about, about[0, 0] * np.eye(3), atol=1e-12)
    # E[c_x^2 + c_y^2 + c_z^2] by the moments of inertia, and by the first moments.
    trace = covariance[0, [4, 6, 9]].sum() / mass
    assert trace == pytest.approx(2.0 * np.trace(covariance[1:4, 1:4]) / mass)
    assert np.all(variance > 0.0) and np.linalg.eigvalsh(covariance)[0] > 0.0


def test_a_moment_without_a_mass_puts_no_load_beyond_the_arm(monkeypatch):
    """A gram that pulls like a kilogram at the flange is not a gram ten metres away."""
    robot = read_robot("ur10")
    values = np.zeros(10)
    values[0], values[3] = 1e-3, 0.2
    monkeypatch.setattr(HypothesisTest, "estimate_load", lambda _: (values, np.eye(10)))
    shown = HypothesisTest.__new__(HypothesisTest)

    added = with_load(robot, shown).parameters[-10:] - robot.parameters[-10:]
    np.testing.assert_allclose(added[1:4], values[1:4])
    assert 0.1 < added[0] < 1.0
    assert np.linalg.norm(added[1:4]) / added[0] < 1.5
