"""The parts of the filter: grid, low-pass, friction that remembers, and bodies that can exist."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from taufit.core.errors import TaufitError
from taufit.payload import PayloadSettings
from taufit.payload.filter.body import mass_at_place, most_probable_body
from taufit.payload.filter.body_search import _parameters
from taufit.payload.filter.causal_lowpass import CausalLowpass
from taufit.payload.filter.sliding_direction import SlidingDirection
from taufit.payload.filter.time_grid import TimeGrid
from taufit.robot.inertia import from_centre_of_mass, pseudo_inertia
from taufit.terms import TermInput
from taufit.terms.friction.presliding import dahl_state, split_at_reversal


@settings(deadline=None, derandomize=True, database=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rate=st.floats(20.0, 900.0))
@example(seed=44, rate=24.578125)
def test_a_straight_line_stays_one_on_the_grid(seed, rate):
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.3, 1.7, 400)) / rate
    slope, offset = rng.normal(size=3), rng.normal(size=3)
    grid = TimeGrid(0.008, 3, 10.0)
    centres, cells = [], []
    for i, t in enumerate(time):
        grid.push(float(t), offset + slope * t)
        if i % 7 == 0:
            t_cells, values = grid.take()
            centres.append(t_cells)
            cells.append(values)

    t_cells, values = np.concatenate(centres), np.concatenate(cells)

    assert len(t_cells) > 3
    np.testing.assert_allclose(np.diff(t_cells), 0.008, atol=1e-9)
    np.testing.assert_allclose(values, offset + np.outer(t_cells, slope), atol=1e-9)


def test_the_low_pass_does_not_care_about_chunks():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(200, 4))
    whole = CausalLowpass(100.0, 10.0)(signal)
    parts = CausalLowpass(100.0, 10.0)

    pieces = np.concatenate([parts(signal[i : i + 7]) for i in range(0, 200, 7)])

    np.testing.assert_allclose(pieces, whole, atol=1e-12)


def test_friction_remembers_its_path_across_chunks(model):
    rng = np.random.default_rng(1)
    n, joints = 60, model.robot.joints
    velocity = rng.normal(size=(n, joints)) * 0.05
    sliding = SlidingDirection(model.friction_model, joints)
    inputs = TermInput(velocity, load=rng.normal(size=(n, joints)), step=0.008)
    state, parts, ways = model.columns.start(), [], []
    for first in range(0, n, 9):
        chunk = slice(first, first + 9)
        columns, state = model.columns.advance(state, inputs.select_rows(chunk))
        parts.append(columns)
        ways.append(sliding(velocity[chunk], 0.008))
    direction, left = (np.concatenate(part) for part in zip(*ways, strict=True))

    whole = model.columns.drive_columns(inputs)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    # Coulomb friction's column is the direction of sliding.
    np.testing.assert_allclose(direction, whole[..., 0], atol=1e-12)
    for k, width in enumerate(model.friction_model.widths):
        # A start from z = 1 differs from one from 0 by exactly what is left of it.
        travel = velocity[:, 0] * 0.008
        there, back, turns = split_at_reversal(np.concatenate([travel[:1], travel[:-1]]), travel)
        way = np.abs(there)
        way[turns] += np.abs(back)
        fade = np.exp(-np.cumsum(way) / width)
        np.testing.assert_allclose(left[:, 0, k], fade, atol=1e-12)
        assert np.all(np.abs(dahl_state(travel, width) + fade) <= 1.0 + 1e-12)


@settings(deadline=None, derandomize=True, database=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_point_is_a_body_and_its_derivative_is_right(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=10) * 0.5
    phi, jacobian = _parameters(x)

    assert np.linalg.eigvalsh(pseudo_inertia(phi)).min() > 0.0
    for k in range(10):
        step = np.zeros(10)
        step[k] = 1e-6
        slope = (_parameters(x + step)[0] - _parameters(x - step)[0]) / 2e-6
        np.testing.assert_allclose(jacobian[:, k], slope, rtol=1e-5, atol=1e-7)


def test_a_known_body_is_found_again():
    truth = from_centre_of_mass(3.0, np.array([0.02, -0.05, 0.1]), np.diag([0.02, 0.03, 0.01]))
    rng = np.random.default_rng(2)
    square = rng.normal(size=(60, 10)) * 1e5
    information = square.T @ square

    body = most_probable_body(information, information @ truth, PayloadSettings())

    np.testing.assert_allclose(body.parameters, truth, atol=1e-5)
    assert body.prior_share < 0.1


def test_an_impossible_estimate_is_read_out_as_a_possible_body():
    wanted = np.array([3.5, -0.07, 0.0, 0.18, 0.002, -0.03, -0.1, -0.05, 0.03, -0.05])
    assert np.linalg.eigvalsh(pseudo_inertia(wanted)).min() < 0.0
    information = np.diag([1e4, *[1e4] * 3, *[1e3] * 6])

    body = most_probable_body(information, information @ wanted, PayloadSettings())

    assert np.linalg.eigvalsh(pseudo_inertia(body.parameters)).min() > 0.0
    assert abs(body.mass - 3.5) < 0.1


def test_a_stated_place_tells_mass_from_lever():
    """Only m y is visible: 2 kg at y = .15 m are as likely as 3 kg at .1 m unless the place is."""
    row = np.zeros(10)
    row[2] = 1e3
    information = np.outer(row, row)
    target = information @ from_centre_of_mass(2.0, np.array([0.3, 0.15, 0.0]), np.zeros((3, 3)))
    stated = PayloadSettings(place=(0.3, 0.15, 0.0), com_std=0.003)

    body = most_probable_body(information, target, stated)
    mass, std = mass_at_place(information, target, stated)

    assert abs(body.mass - 2.0) < 0.01 and abs(mass - 2.0) < 0.01
    np.testing.assert_allclose(body.centre, stated.place, atol=1e-3)
    # The place is known to 2 %, and with it the mass.
    assert 0.035 < np.sqrt(body.covariance[0, 0]) < 0.045 and 0.035 < std < 0.045
    elsewhere = most_probable_body(
        information, target, PayloadSettings(place=(0.3, 0.1, 0.0), com_std=0.003)
    )
    assert abs(elsewhere.mass - 3.0) < 0.05
    np.testing.assert_allclose(body.parameters[2], 0.3, atol=1e-5)


@pytest.mark.parametrize(
    "given_",
    [
        {"place": (0.0, np.nan, 0.0)},
        {"box": (1.0, -1.0, 1.0)},
        {"density": 0.0},
        {"mass_accuracy": 0.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(given_):
    with pytest.raises(TaufitError):
        PayloadSettings(**given_)


@pytest.mark.parametrize("start", [0.0, 12.3456, 1_763_290_000.0])
def test_samples_as_fast_as_the_grid_complete_one_cell_each(start):
    """Whatever the rounding of their stamps, those of the time of day included."""
    grid = TimeGrid(0.008, 1, 10.0)
    grid.push(start, np.zeros(1))
    for k in range(1, 2000):
        grid.push(start + k * 0.008, np.full(1, float(k)))
        assert grid.complete_bins == 1
        centres, cells = grid.take()
        # A straight line's mean is its middle; stamps of today are rounded to 0.2 us.
        np.testing.assert_allclose(cells[0, 0], (centres[0] - start) / 0.008, rtol=5e-5)
