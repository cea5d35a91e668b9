"""Real recordings with their signs hidden: what is called sure is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.sign_instances import segment_sums

from taufit.model.torque_model import TorqueModel
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.signs.segments import noise_scale
from taufit.signs.unknown_signs import find_signs, without_signs
from taufit.terms.friction import Linear

MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"


@pytest.mark.parametrize(
    ("robot", "file", "columns", "good"),
    [
        (
            "ur10e/ur10e.urdf",
            "ur10e/identification_data/ur-20_02_06-20sec_5harm.csv.gz",
            "ur10e_csv.yaml",
            (0, 1, 2, 3, 4, 5),
        ),
        ("kuka_lwr4/kuka_lwr4.urdf", "kuka_lwr4/lwr4_run1.csv.gz", "lwr4_csv.yaml", (1, 2, 3)),
    ],
)
def test_hidden_signs_of_real_arms(data_dir, robot, file, columns, good):
    arm = read_robot(data_dir / robot)
    recording = read_recording(data_dir / file, column_map=MAPS / columns)
    signed = condition(recording, cutoff_hz=10.0)
    hidden = condition(without_signs(recording), cutoff_hz=10.0)
    truth = signed.raw_torque
    rotors = recording.torque_source != "joint_torque_sensor"

    found = find_signs(TorqueModel(arm, friction=Linear(), rotor_inertia=rotors), hidden)

    assert found.certified
    keep = hidden.keep & signed.keep
    sums = segment_sums(np.where(keep, truth, 0.0), found.segments)
    assert not np.any((sums * found.signs < 0) & ~found.ambiguous)
    big = keep & (np.abs(truth) > 3.0 * noise_scale(np.abs(truth), signed.run, signed.keep))
    sure = big & found.sample_sure
    assert np.all(found.sample_sign[sure] * truth[sure] > 0)
    for joint in good:
        assert sure[:, joint].sum() > 0.7 * big[:, joint].sum()
    # Neither model is as good as the noise: both say so.
    assert not found.confident and found.chi2_per_dof > 3.0 and found.warnings
