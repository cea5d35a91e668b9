"""What comes back in every run of one motion cannot pass for a difference between the runs."""

from __future__ import annotations

import numpy as np

from taufit.fitting.fit_samples import fit_samples
from taufit.model.torque_model import TorqueModel
from taufit.regression.repeated_motion import average_over_repeats, has_repeated_runs
from taufit.robot.from_dh import from_dh
from taufit.signals import Samples
from taufit.terms.friction import Linear, TemperatureDependent

RATE = 50.0


def runs_of(count: int, structure: float) -> tuple[TorqueModel, Samples]:
    """One joint, the same motion at `count` temperatures, with torque the model does not hold."""
    rng = np.random.default_rng(5)
    link = np.array([2.0, 0.3, 0.1, 0.0, 0.1, 0.0, 0.2, 0.0, 0.0, 0.3])
    robot = from_dh(np.array([[0.0, 0.1, 0.2, np.pi / 2]]), parameters=link[None], name="one")
    friction = TemperatureDependent(Linear(0.02), "linear", 35.0, ("viscous",))
    model = TorqueModel(robot, friction, offset=False)
    own = np.concatenate([link, [0.5], [5.0, 6.0, -0.06]])
    t = np.arange(0.0, 16.0, 1.0 / RATE)[:, None]
    q = np.sin(1.7 * t) + 0.6 * np.sin(2.9 * t + 1.0)
    v = 1.7 * np.cos(1.7 * t) + 0.6 * 2.9 * np.cos(2.9 * t + 1.0)
    a = -(1.7**2) * np.sin(1.7 * t) - 0.6 * 2.9**2 * np.sin(2.9 * t + 1.0)
    parts = []
    for warmth in np.linspace(25.0, 45.0, count):
        heat = np.full_like(q, warmth)
        torque = model.with_values(own).torque(q, v, a, temperature=heat)
        torque = torque + structure * np.sin(7.0 * q) + 0.05 * rng.normal(size=q.shape)
        samples = Samples.from_arrays(q, v, a, torque, rate_hz=RATE)
        parts.append(samples.with_channels(temperature=heat))
    return model, Samples.concatenate(parts)


def test_columns_in_common_are_means_over_runs_of_one_motion():
    _, samples = runs_of(3, 0.0)
    n = len(samples) // 3
    columns = np.stack([samples.velocity[:, 0], samples.run.astype(float)])
    common = average_over_repeats(columns, samples)
    assert has_repeated_runs(samples) and not has_repeated_runs(samples.rows(slice(0, n)))
    np.testing.assert_allclose(common[0], columns[0])
    np.testing.assert_allclose(common[1], 1.0)


def test_structure_that_repeats_makes_coefficients_uncertain_but_no_slope():
    plain, odd = (
        fit_samples(*runs_of(6, structure), require_excitation=False) for structure in (0.0, 0.5)
    )
    names = list(plain.base_names)
    slope, level = names.index("joint_1.viscous_per_degree"), names.index("joint_1.viscous")
    added = odd.base_std**2 - plain.base_std**2
    # In the same unit: viscous friction at the spread of the temperatures.
    spread = np.linspace(25.0, 45.0, 6).std()
    assert added[level] > 0.0
    assert added[slope] * spread**2 < 0.3 * added[level]
