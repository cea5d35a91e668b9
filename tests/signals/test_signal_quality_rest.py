"""Rest is seen through a noisy velocity."""

from __future__ import annotations

import numpy as np

from taufit.recording import Recording
from taufit.signals import quality_report


def test_noise_on_velocity_is_not_motion():
    rng = np.random.default_rng(0)
    time = np.arange(5500) / 500.0
    phase = np.clip((time - 1.0) / 8.0, 0.0, 1.0)
    s = phase**3 * (10.0 - 15.0 * phase + 6.0 * phase**2)
    position = np.sin(2.0 * np.pi * np.outer(s, [2.0, 3.0]))
    velocity = np.gradient(position, time, axis=0) + 0.004 * rng.normal(size=position.shape)
    torque = 5.0 * np.cos(position) + 0.05 * rng.normal(size=position.shape)
    found = quality_report(Recording(time, position, torque, velocity=velocity))

    kinds = [finding.kind for finding in found]
    (motion,) = (finding for finding in found if finding.kind == "motion")
    words = motion.message.split()
    start, stop = float(words[2]), float(words[4])
    # A fifth-order blend is slow at first.
    assert 0.95 < start < 1.4 and 8.6 < stop < 9.2, motion.message
    assert "starts in motion" not in " ".join(finding.message for finding in found), kinds
