"""A payload that is compensated is led by hand with less force."""

import numpy as np

from taufit.sim import read_preset
from taufit.sim.hand_guiding import guide


def test_compensation_takes_the_payload_off_the_hand():
    preset = read_preset("ur10-paper")
    payload = preset.payload.parameters * (3.223 / 3.5256)

    heavy = guide(preset.twin.robot, payload, seconds=4.0)
    # As well as an estimate knows it: one per cent and some millimetres off.
    believed = payload * 0.99
    believed[1:3] += 0.01
    light = guide(preset.twin.robot, payload, compensated=believed, seconds=4.0)

    fall = 1.0 - light.mean_force / heavy.mean_force
    assert fall[2] > 0.4
    assert fall[0] > 0.0 and fall[1] > 0.0
    # The hand carries what is not compensated.
    assert heavy.mean_force[2] > 0.7 * 9.81 * payload[0]
    assert np.abs(light.position - light.wanted).max() < 0.05
