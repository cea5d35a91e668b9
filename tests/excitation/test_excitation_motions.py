"""Motions: derivatives are derivatives, forms agree, files keep them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.excitation import Fourier, Motion, SampledMotion, read_motion, write_motion


def _fourier(form: str = "velocity") -> Fourier:
    rng = np.random.default_rng(4)
    return Fourier(rng.normal(size=3), rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), 0.1, form)


def _sampled() -> SampledMotion:
    motion = _fourier()
    time = np.linspace(0.0, motion.duration, 400)
    return SampledMotion(time, motion.at(time)[0])


@pytest.mark.parametrize("motion", [_fourier("amplitude"), _fourier("velocity"), _sampled()])
def test_velocity_and_acceleration_are_derivatives(motion):
    assert isinstance(motion, Motion)
    step = 1e-4
    t = np.linspace(0.5, motion.duration - 0.5, 50)
    q, v, a = motion.at(t)
    before, after = motion.at(t - step), motion.at(t + step)
    # Central differences err by step^2 times the third derivative, some 10^2 here.
    np.testing.assert_allclose(v, (after[0] - before[0]) / (2 * step), atol=1e-5)
    np.testing.assert_allclose(a, (after[1] - before[1]) / (2 * step), atol=1e-5)
    assert q.shape == (50, motion.joints)


@pytest.mark.parametrize("motion", [_fourier(), _sampled()])
def test_motion_rests_outside_its_duration(motion):
    q, v, a = motion.at(np.array([-1.0, motion.duration + 1.0]))
    ends = motion.at(np.array([0.0, motion.duration]))[0]
    np.testing.assert_array_equal(q, ends)
    assert not v.any() and not a.any()


def test_both_forms_are_one_motion():
    motion = _fourier("velocity")
    t = np.linspace(0, motion.duration, 30)
    for mine, other in zip(motion.at(t), motion.with_form("amplitude").at(t), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("motion", [_fourier(), _sampled()])
def test_written_motion_reads_back(motion, tmp_path):
    path = tmp_path / "motion.json"
    write_motion(motion, path, robot="arm")
    t = np.linspace(-0.1, motion.duration, 30)
    for mine, other in zip(motion.at(t), read_motion(path).at(t), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        (json.dumps({"kind": "spiral"}), "spiral"),
        (json.dumps({"kind": "fourier", "offset": [0]}), "sine"),
        (
            json.dumps(
                {
                    "kind": "fourier",
                    "offset": [0],
                    "sine": [[1]],
                    "cosine": [[1, 2]],
                    "frequency_hz": 1,
                }
            ),
            "equally many",
        ),
    ],
)
@pytest.mark.unchecked
def test_damaged_motion_file_is_refused(text, word, tmp_path):
    path = tmp_path / "motion.json"
    path.write_text(text)
    with pytest.raises(TaufitError, match=word):
        read_motion(path)
