"""An arm at rest whose torque changes: pushes are told soon, friction that creeps is none."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.contact import ContactSettings
from taufit.contact.active_contact import ContactSample
from taufit.contact.change_test import INNOVATION_LIMIT_AT_REST, ChangeTest, TimeBin, TorqueStep
from taufit.contact.standstill import StandstillTest

STEP = 0.01
JOINTS = 3
ENOUGH = 60.0


def cell_of(torque):
    rows = np.zeros((6, JOINTS))
    rows[0], rows[1], rows[2], rows[3] = torque, 0.2**2, 0.05**2, 0.0
    rows[4], rows[5] = 1.0, INNOVATION_LIMIT_AT_REST
    return TimeBin(rows, np.zeros((JOINTS, JOINTS)), np.ones(JOINTS, bool))


def told(torques, evidences, way=0.0):
    """When a push is told [s], and whether friction has crept, for torque of the first joint."""
    judge, past, crept = StandstillTest(np.full(JOINTS, 10.0), ContactSettings()), [], False
    level = np.zeros(JOINTS)
    for k, (torque, evidence) in enumerate(zip(torques, evidences, strict=True)):
        # Where the torque pushes the joint gives way, or the other way with a start.
        place = np.array([way * torque, 0.0, 0.0])
        past.append(ContactSample(place, cell_of(np.array([torque, 0.0, 0.0]))))
        may_be = evidence > ContactSettings().first_sign * ENOUGH
        step = TorqueStep(evidence, min(k + 1, 6), 0, level, np.ones(JOINTS)) if may_be else None
        found = judge.decide(past[-24:], step, ENOUGH, k * STEP)
        crept = crept or found.creep_level is not None
        if found.push is not None:
            return k * STEP, crept
    return None, crept


def test_the_wait_for_a_start_begins_with_the_first_sign():
    torque = np.linspace(0.0, 20.0, 30)
    slowly = np.linspace(0.0, 150.0, 30)
    first = STEP * int(np.argmax(slowly > ContactSettings().first_sign * ENOUGH))
    sure = STEP * int(np.argmax(slowly > ENOUGH))
    time, _ = told(torque, slowly)
    assert time is not None
    assert sure <= time < sure + ContactSettings().standstill_wait
    assert time >= first + ContactSettings().standstill_wait - 1e-9


@pytest.mark.parametrize("most", [25.0, 55.0])
def test_a_sign_without_evidence_is_no_push(most):
    assert told(np.full(40, 20.0), np.full(40, most))[0] is None


def test_an_arm_that_gives_way_is_pushed_and_one_that_goes_along_is_not():
    torque, evidence = np.linspace(0.0, 25.0, 30), np.linspace(0.0, 300.0, 30)
    gives_way, _ = told(torque, evidence, way=1e-4)
    waits, _ = told(torque, evidence)
    assert gives_way is not None and waits is not None
    assert gives_way < waits
    assert told(torque, evidence, way=-1e-4)[0] is None


def test_a_change_that_stays_small_is_friction_that_creeps():
    # A friction level per second: hunting of a controller that sticks and slips.
    torque = 10.0 * STEP * np.arange(60)
    time, crept = told(torque[:30], np.linspace(20.0, 100.0, 30))
    assert time is None
    assert crept


def test_a_push_that_grows_gives_more_evidence_than_its_mean():
    """The last half of a window against the level before all of it."""
    rng = np.random.default_rng(4)
    quiet = 0.2 * rng.normal(size=(200, JOINTS))
    ramp = np.concatenate([np.zeros(176), np.linspace(0.0, 3.0, 24)])
    test = ChangeTest(np.full(JOINTS, 5.0), STEP)
    for noise, push in zip(quiet, ramp, strict=True):
        test.advance(cell_of(noise + np.array([push, 0.0, 0.0])))
    found = test.most_likely_step()
    assert found is not None
    means = [test._window(int(n), int(n)) for n in test.windows]
    # Of the mean of a whole window no more than its square over its variance.
    assert found.evidence > max(change[0] ** 2 / c[0, 0] for change, c, _ in means)
