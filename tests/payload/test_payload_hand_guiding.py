"""A payload that is compensated is led by hand with less force."""

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.sim import hand_guiding, read_preset
from taufit.sim.hand_guiding import SENSOR_MASS, simulate_hand_guiding

GRAVITY = 9.81
LEVEL = ((0.0, 0.3, 0.0), (0.2, 0.0, 0.0))
UPRIGHT = ((0.2, 0.0, 0.0), (0.0, 0.0, 0.2))


@pytest.fixture(scope="module")
def robot():
    return read_preset("ur10-paper").twin.robot


@pytest.fixture(scope="module")
def payload():
    return read_preset("ur10-paper").payload.parameters * (3.223 / 3.5256)


@pytest.mark.parametrize("sides", [LEVEL, UPRIGHT])
def test_compensation_takes_the_payload_off_the_hand(robot, payload, sides):
    heavy = simulate_hand_guiding(robot, payload, sides=sides, seconds=5.0)
    # As well as an estimate knows it: one per cent and some millimetres off.
    believed = payload * 0.99
    believed[1:3] += 0.01
    light = simulate_hand_guiding(robot, payload, compensated=believed, sides=sides, seconds=5.0)

    fall = 1.0 - light.mean_force / heavy.mean_force
    assert fall[2] > 0.4
    assert fall[0] > 0.0 and fall[1] > 0.0
    assert np.abs(light.position - light.target).max() < 0.05


def test_the_hand_carries_what_is_not_compensated(robot, payload, monkeypatch):
    monkeypatch.setattr(hand_guiding, "_NOISE_RATIO", 0.0)
    nowhere = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    none = np.zeros(robot.joints)
    masses = {}
    for known, name in ((None, "heavy"), (payload, "light")):
        held = simulate_hand_guiding(
            robot, payload, compensated=known, friction=none, sides=nowhere, seconds=2.0
        )
        masses[name] = np.linalg.norm(held.force[-1]) / GRAVITY

    # At rest it is a weighing: the arm's own weight, known to it, does not show.
    assert masses["heavy"] == pytest.approx(payload[0] + SENSOR_MASS, rel=1e-3)
    assert masses["light"] == pytest.approx(SENSOR_MASS, rel=1e-2)


def test_muscles_waver_as_much_as_they_are_said_to():
    waver = hand_guiding._muscle_noise(60_000, seed=1)

    # Two minutes at 2 Hz are some 400 independent values.
    np.testing.assert_allclose(waver.std(axis=0), 1.0, atol=0.12)
    assert np.abs(np.corrcoef(waver.T) - np.eye(3)).max() < 0.2


def test_a_path_out_of_reach_is_refused(robot, payload):
    far = ((0.6, 0.0, 0.0), (0.0, 0.6, 0.0))
    with pytest.raises(TaufitError, match="stretched"):
        simulate_hand_guiding(robot, payload, compensated=payload, sides=far, seconds=4.0)
