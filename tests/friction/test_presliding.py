"""Dahl elements: what friction with a memory of its path must do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taufit.terms import TermInput, term_from_dict, term_to_dict
from taufit.terms.friction import Presliding
from taufit.terms.friction.presliding import dahl_state, split_at_reversal

quiet = settings(deadline=None, derandomize=True, database=None, max_examples=50)
steps = st.lists(st.floats(-0.02, 0.02), min_size=1, max_size=200)


@quiet
@given(steps, st.floats(1e-5, 0.3))
def test_state_stays_between_minus_one_and_one(travel, width):
    z = dahl_state(np.array(travel), width)
    assert np.all(np.abs(z) <= 1.0 + 1e-12)


@quiet
@given(steps, st.floats(1e-4, 0.3), st.integers(2, 5))
def test_state_does_not_depend_on_how_finely_straight_velocities_are_cut(travel, width, parts):
    travel = np.array(travel)
    at = np.arange(len(travel), dtype=float)
    fine = np.interp(np.arange(parts * (len(travel) - 1) + 1) / parts, at, travel) / parts
    # Both start the same way: after a step at the first velocity.
    first = np.full(parts - 1, fine[0])
    z = dahl_state(np.concatenate([first, fine]), width)[parts - 1 :: parts]
    # Rounding of |d|/w, up to 1e3 in the exponent of the finest step.
    np.testing.assert_allclose(z, dahl_state(travel, width), atol=1e-10)


@quiet
@given(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02))
def test_legs_add_up_to_the_displacement(before, after):
    there, back, turns = split_at_reversal(np.array([before]), np.array([after]))
    total, way = there.sum() + back.sum(), np.abs(there).sum() + np.abs(back).sum()
    np.testing.assert_allclose(total, 0.5 * (before + after), atol=1e-17)
    assert len(turns[0]) == (before * after < 0.0)
    # |v| integrated over the step, in small steps.
    middle = (np.arange(2000) + 0.5) / 2000
    np.testing.assert_allclose(
        way, np.abs(before + (after - before) * middle).mean(), atol=1e-8 + 1e-3 * abs(total)
    )


def test_a_reversal_between_two_samples_is_seen_where_it_happens():
    # A joint swings; friction of a narrow element, sampled coarsely, is that of the fine path.
    width, rate = 2e-4, 125.0
    time = np.arange(0.0, 4.0, 1.0 / (64 * rate))
    velocity = 0.4 * np.cos(2.0 * np.pi * 0.7 * time + 0.3)
    fine = dahl_state(velocity / (64 * rate), width)[::64]
    coarse = velocity[::64]
    z = dahl_state(coarse / rate, width)
    # Velocity bends by 1e-4 of itself within a step; the first samples forget the start.
    np.testing.assert_allclose(z[5:], fine[5:], atol=2e-3)
    # A step of the velocity at its end, by contrast, sees reversals half a step early.
    early = dahl_state(np.repeat(coarse / rate / 64, 64), width)[63::64]
    assert np.abs(early - fine)[5:].max() > 0.2


@quiet
@given(steps, st.floats(1e-4, 0.3))
def test_the_mirrored_path_gives_the_mirrored_state(travel, width):
    travel = np.array(travel)
    np.testing.assert_allclose(dahl_state(-travel, width), -dahl_state(travel, width), atol=1e-15)


def test_state_follows_its_differential_equation():
    # dz/dx = (1 - z sign(dx)) / w along a path that turns back, against small Euler steps.
    width, n = 0.01, 40_000
    x = 0.05 * np.sin(np.linspace(0.0, 9.0, n))
    travel = np.diff(x, prepend=0.0)
    z, slow = 0.0, []
    for d in travel:
        z += d / width * (1.0 - z * np.sign(d))
        slow.append(z)
    np.testing.assert_allclose(dahl_state(travel, width), slow, atol=1e-3)


def test_steady_motion_is_coulomb_friction():
    model = Presliding()
    v = np.full(400, 0.5)
    travel = np.full(400, 0.02)
    load = np.full(400, -7.0)
    inputs = TermInput(v, load=load, travel=travel)
    with_path = model.columns(inputs, np.empty(0))[-1]
    without = model.steady_state().columns(inputs, np.empty(0))[-1]
    # The widest element is 27 widths into its way.
    np.testing.assert_allclose(with_path, without, atol=1e-10)
    assert model.parameters[0].name == "coulomb"
    np.testing.assert_allclose(without, [1, 0, 0, 0, 0, 0.5, 0.25 / 1.5, 7.0], rtol=1e-15)


def test_drag_bends_at_low_speed_and_is_straight_beyond():
    drag = Presliding((1e-3,), load=False, bend=0.8).steady_state()
    v = np.array([1e-4, 40.0, 41.0, 42.0])
    column = drag.columns(TermInput(v), np.empty(0))[:, -1]
    assert column[0] == pytest.approx(1e-8, rel=1e-3)
    assert np.diff(column[1:]) == pytest.approx(0.8, rel=1e-3)
    np.testing.assert_allclose(-column, drag.columns(TermInput(-v), np.empty(0))[:, -1])


def test_a_model_written_before_drag_bent_keeps_its_square():
    old = {"name": "presliding", "widths": [1e-3], "load": False, "quadratic": True}
    model = term_from_dict(old)
    assert model.bend == 0.0
    assert term_from_dict(term_to_dict(model)) == model
    assert term_from_dict(term_to_dict(Presliding())) == Presliding()
    column = model.steady_state().columns(TermInput(np.array([3.0])), np.empty(0))[:, -1]
    np.testing.assert_array_equal(column, 9.0)
    with pytest.raises(ValueError, match="bend"):
        Presliding(bend=-1.0)


def test_standing_still_keeps_the_state():
    travel = np.array([0.01, 0.0, 0.0, -1e-5, 0.0, 0.0])
    z = dahl_state(travel, 1e-3)
    assert z[0] < z[1] == z[2] > z[3] > z[4] == z[5]
    assert len(dahl_state(np.empty(0), 1e-3)) == 0


def test_widths_must_rise():
    for widths in ((), (0.0, 1.0), (1.0, 0.5)):
        with pytest.raises(ValueError, match="positive and rise"):
            Presliding(widths)
