"""Reversed torque is found against the nominal robot, also where free links would absorb it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.verdicts import first_joints
from benchmarks.clean_runs import clean_run, loaded_run
from scipy.optimize import lsq_linear

import taufit
from taufit.diagnosis import ContradictionError
from taufit.diagnosis.correction import replace_robot
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.model_contradiction import find_model_contradiction
from taufit.diagnosis.nominal_contradiction import (
    direction_warning,
    nominal_contradiction,
    zero_causes,
)
from taufit.diagnosis.nominal_torque import (
    bounded_least_squares,
    gravity_factors,
    inertia_factors,
    nominal_log_odds,
    shows_nominal_gravity,
    sign_evidence,
)
from taufit.diagnosis.other_robots import SIMILAR_ROBOTS, similar_robot_findings
from taufit.diagnosis.undescribed_load import chain_end_finding
from taufit.dynamics import gravity_torque, inverse_dynamics
from taufit.recording import Recording
from taufit.robot import read_robot
from taufit.robot.pose import pose_from_rpy


def one_course(robot, seed=1, seconds=30.0, sign=1.0, gravity=True) -> Recording:
    """All joints follow one common course; links off by 30 % from the robot's description."""
    rng = np.random.default_rng(seed)
    true = robot.with_parameters(
        robot.parameters * np.repeat(rng.uniform(0.7, 1.3, robot.joints), 10)
    )
    time = np.arange(0.0, seconds, 0.01)
    course = sum(
        a * np.sin(2 * np.pi * f * time + p)
        for f, a, p in zip((0.11, 0.23, 0.41), (0.5, 0.3, 0.15), rng.uniform(0, 6, 3), strict=True)
    )
    course *= np.minimum(1.0, np.minimum(time, time[-1] - time))
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    q = middle + course[:, None] * rng.uniform(0.3, 0.9, robot.joints)
    v = np.gradient(q, time, axis=0)
    a = np.gradient(v, time, axis=0)
    torque = inverse_dynamics(true, q, v, a)
    torque = torque if gravity else torque - gravity_torque(true, q)
    size = torque.std(axis=0)
    torque = torque + 0.2 * size * np.tanh(v / 0.02) + rng.normal(scale=0.02 * size, size=q.shape)
    return Recording(
        time, position=q, velocity=v, signal=sign * torque, torque_source="motor_torque"
    )


def evidence(robot, recording) -> HypothesisTest:
    return HypothesisTest(robot, taufit.condition(recording))


def causes_of(robot, recording):
    return find_model_contradiction(robot, [recording], evidence(robot, recording))


@pytest.mark.parametrize("arm", ["panda", "ur5e"])
def test_reversed_torque_of_a_common_course_is_refused_and_the_right_one_is_not(arm):
    robot = taufit.read_robot(arm)
    right = sign_evidence(evidence(robot, one_course(robot)))
    assert not right.reversed_joints and np.any(right.decided > 0)
    turned = sign_evidence(evidence(robot, one_course(robot, sign=-1.0)))
    assert turned.is_reversed_throughout
    np.testing.assert_array_equal(turned.decided, -right.decided)
    with pytest.raises(ContradictionError, match="every joint has the other sign") as error:
        taufit.identify(robot, [one_course(robot, sign=-1.0)], friction="linear")
    assert error.value.findings[0].kind == "torque_sign"
    assert error.value.findings[0].remedy is not None


def test_undeclared_mountings_are_not_taken_for_signs():
    robot = taufit.read_robot("panda")
    for seed in range(3):
        recording = one_course(robot, seed)
        for mounting in ((np.pi / 2, 0.0, 0.0), (np.pi, 0.0, 0.0)):
            found = sign_evidence(evidence(robot.with_mounting(mounting), recording))
            assert not found.reversed_joints, (seed, mounting, found)


def test_nominal_gravity_is_shown_where_it_is_and_not_where_it_was_subtracted():
    robot = taufit.read_robot("ur5e")
    assert shows_nominal_gravity(evidence(robot, one_course(robot, 2)))
    assert not shows_nominal_gravity(evidence(robot, one_course(robot, 2, gravity=False)))


def test_signs_that_cannot_be_checked_are_said_to_be_unchecked():
    robot = taufit.read_robot("ur5e")
    recording = one_course(robot, 3)
    bare = robot.with_parameters(0.0 * robot.parameters)
    result = taufit.identify(bare, [recording], friction="linear", ignore_contradictions=True)
    assert any("not checked against gravity" in text for text in result.warnings)
    result = taufit.identify(robot, [recording], friction="linear", ignore_contradictions=True)
    assert not any("not checked against gravity" in text for text in result.warnings)


def test_gravity_far_below_the_nominal_robots_is_a_unit():
    robot = taufit.read_robot("panda")
    recording = one_course(robot, 4)
    factors = gravity_factors(evidence(robot, recording))
    assert 0.6 < np.nanmedian(factors) < 1.5
    small = replace(recording, signal=0.1 * recording.signal)
    np.testing.assert_allclose(gravity_factors(evidence(robot, small)), 0.1 * factors, rtol=1e-3)
    with pytest.raises(ContradictionError) as error:
        taufit.identify(robot, [small], friction="linear")
    assert error.value.findings[0].kind == "unit"


def test_a_unit_is_found_in_three_seconds_of_motion():
    robot = taufit.read_robot("panda")
    part = taufit.recording.crop(one_course(robot, 4), 5.0, 8.0)
    assert not any(c.finding.kind == "unit" for c in causes_of(robot, part))
    for factor in (0.1, 8.85):
        small = replace(part, signal=factor * part.signal)
        (cause,) = causes_of(robot, small)
        assert (cause.finding.kind, cause.finding.severity) == ("unit", "error")


def test_inertia_shows_a_unit_where_gravity_does_not():
    # Vertical axes: no joint carries gravity.
    robot, recording = clean_run("scara", 3)
    factors = inertia_factors(evidence(robot, recording))[:3]
    assert np.nanmin(factors) > 0.7 and np.nanmax(factors) < 2.0
    small = replace(recording, signal=0.1 * recording.signal)
    cause = nominal_contradiction(evidence(robot, small), sign_evidence(evidence(robot, small)))
    assert cause is not None and cause.finding.kind == "unit"
    # Rotors and loads may increase inertia: without gravity a large factor is no unit.
    for factor in (1.0, 8.85):
        scaled = evidence(robot, replace(recording, signal=factor * recording.signal))
        assert nominal_contradiction(scaled, sign_evidence(scaled)) is None


def test_torque_far_above_the_nominal_robots_is_a_unit_and_a_load_is_not():
    robot = taufit.read_robot("panda")
    recording = one_course(robot, 4)
    large = evidence(robot, replace(recording, signal=8.85 * recording.signal))
    cause = nominal_contradiction(large, sign_evidence(large))
    assert cause is not None and cause.finding.kind == "unit"
    described, loaded, _ = loaded_run("ur5e", 1, 5.0)
    heavy = evidence(described, loaded)
    assert np.nanmax(gravity_factors(heavy)) > 4.0
    assert nominal_contradiction(heavy, sign_evidence(heavy)) is None


def test_a_joint_zero_that_free_links_absorb_is_a_wrong_direction_of_gravity():
    robot = taufit.read_robot("panda")
    recording = one_course(robot, 5)
    right = evidence(robot, recording)
    assert nominal_contradiction(right, sign_evidence(right)) is None
    assert direction_warning(right, sign_evidence(right)) == []
    offset = np.eye(robot.joints)[1] * np.radians(30.0)
    shifted = evidence(robot, replace(recording, position=recording.position - offset))
    cause = nominal_contradiction(shifted, sign_evidence(shifted))
    assert cause is not None and cause.finding.kind == "mounting"
    assert "joint zero is wrong" in cause.finding.message


def test_a_chain_that_is_cut_is_said_to_miss_links():
    robot, recording = clean_run("ur5e", 2)
    whole = taufit.identify(robot, [recording], friction="linear")
    cut = first_joints(robot, 3)
    part = recording.map(lambda x: x[:, :3])
    part = replace(part, meta={"name": "cut"}, gain=None, gain_std=None, signed=None)
    result = taufit.identify(cut, [part], friction="linear")
    kinds = {"missing_links", "undescribed_load"}
    assert kinds & {f.kind for f in result.findings}
    assert not kinds & {f.kind for f in whole.findings}


def test_a_chain_cut_before_a_light_link_is_named_by_its_build():
    """The torque does not show it; a tip, or all the joints of its build, end the doubt."""
    for name, count in (("ur10e", 5), ("panda", 6), ("kr5", 4)):
        robot = taufit.read_robot(name)
        cut = first_joints(robot, count)
        finding = chain_end_finding(cut)
        assert finding is not None and f"ends at joint {count} " in finding.message
        assert f"have {robot.joints} joints" in finding.message
        assert (
            chain_end_finding(replace(cut, tip=pose_from_rpy(np.full(3, 0.1), np.zeros(3)))) is None
        )
        assert chain_end_finding(robot) is None
    robot, recording = clean_run("ur5e", 2)
    part = replace(recording, meta={"name": "cut"}, gain=None, gain_std=None, signed=None)
    part = part.map(lambda x: x[:, :5])
    result = taufit.identify(first_joints(robot, 5), [part], friction="linear")
    kinds = {"chain_end", "missing_links", "undescribed_load"}
    assert kinds & {f.kind for f in result.findings}
    assert any("joint 5" in text or "last link" in text for text in result.warnings)


@pytest.mark.parametrize("seed", range(30))
def test_bounded_least_squares_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    n, c = 200, int(rng.integers(1, 8))
    columns = rng.normal(size=(n, c))
    torque = columns @ rng.normal(size=c) + rng.normal(size=n)
    lower = np.where(rng.random(c) < 0.3, -np.inf, rng.normal(size=c) - 1.0)
    upper = np.where(np.isinf(lower) | (rng.random(c) < 0.3), np.inf, lower + rng.random(c) + 0.01)
    expected = lsq_linear(columns, torque, (lower, upper), method="bvls", tol=1e-14).x
    found = bounded_least_squares(columns, torque, lower, upper)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize(("joint", "angle"), [(1, 10.0), (1, -10.0), (2, 10.0)])
def test_a_zero_off_by_ten_degrees_is_named_and_a_right_one_is_not(joint, angle):
    robot = taufit.read_robot("ur10e")
    recording = clean_run("ur10e", 5)[1]
    right = evidence(robot, recording)
    assert zero_causes(right) == []
    offset = np.radians(angle) * np.eye(robot.joints)[joint]
    wrong = evidence(robot, replace(recording, position=recording.position + offset))
    (cause,) = zero_causes(wrong)
    assert (cause.finding.joint, cause.finding.severity) == (joint + 1, "warning")
    assert np.degrees(cause.finding.value) == pytest.approx(angle, abs=5.1)


@pytest.mark.parametrize("name", ["panda", "kr5", "fr3"])
def test_a_zero_that_links_do_not_make_up_for_is_an_error_with_its_offset(name):
    robot, recording = clean_run(name, 5)
    offset = np.radians(-10.0) * np.eye(robot.joints)[1]
    wrong = evidence(robot, replace(recording, position=recording.position + offset))
    (cause,) = zero_causes(wrong)
    assert (cause.finding.joint, cause.finding.severity) == (2, "error")
    assert cause.finding.remedy is not None
    (edit,) = cause.finding.remedy.edits
    np.testing.assert_allclose(edit.value, -offset, atol=np.radians(2.0))


def test_a_zero_is_doubted_only_if_it_is_with_other_masses_too(monkeypatch):
    robot = taufit.read_robot("ur10e")
    recording = clean_run("ur10e", 5)[1]
    offset = np.radians(10.0) * np.eye(robot.joints)[1]
    wrong = evidence(robot, replace(recording, position=recording.position + offset))
    described = robot.parameters

    def odds(rows, correction):
        is_described = np.array_equal(rows.rows.robot.parameters, described)
        return nominal_log_odds(rows, correction) if is_described else 0.0

    monkeypatch.setattr("taufit.diagnosis.nominal_contradiction.nominal_log_odds", odds)
    assert zero_causes(wrong) == []


@pytest.mark.parametrize("pair", SIMILAR_ROBOTS)
def test_robots_that_no_torque_tells_apart_are_named_beside_each_other(pair):
    robot, recording = clean_run(pair[0], 50, periods=1.0)
    (finding,) = similar_robot_findings(robot, [recording])
    assert finding.severity == "info" and f"{pair[0]} from {pair[1]}" in finding.message
    # Twice the log odds by the fitted links, which another size of the same maker loses by far.
    assert abs(evidence(robot, recording).log_odds(replace_robot(read_robot(pair[1])))) < 10.0
    named = replace(recording, meta={**recording.meta, "robot": pair[0]})
    assert similar_robot_findings(robot, [named]) == []
    assert similar_robot_findings(read_robot("kr5"), [recording]) == []


def test_a_robot_that_explains_less_than_a_constant_is_the_wrong_one():
    robot = taufit.read_robot("ur5e")
    rows = evidence(robot, one_course(robot))
    signs = sign_evidence(rows)
    assert np.all(signs.residual[:3] < 0.3)
    assert nominal_contradiction(rows, signs) is None
    # A wrist that is not explained is no reason, nor is one of the first joints.
    for residual in ([0.1, 0.1, 0.1, 9.0, 9.0, 9.0], [0.1, 0.1, 9.0, 0.1, 0.1, 0.1]):
        assert nominal_contradiction(rows, replace(signs, residual=np.array(residual))) is None
    wrong = nominal_contradiction(rows, replace(signs, residual=np.array([1.1, 1.2, 0.3, 0, 0, 0])))
    assert wrong is not None and wrong.finding.kind == "wrong_arm"
    assert wrong.finding.severity == "error"
