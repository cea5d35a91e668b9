"""Bounds that hold at every moment: of derivatives, limits, distances and the speed of the tip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taufit.clearance.curve import PolynomialCurve, exact_curve, hermite, intervals, straight_line
from taufit.clearance.proof import prove_clear, prove_limits, prove_tip_speed, speed_bounds
from taufit.clearance.space import CollisionSpace
from taufit.dynamics import jacobian
from taufit.excitation import (
    Fourier,
    SampledMotion,
    Spline,
    Strokes,
    default_limits,
    mounting_plane,
    scene_for,
)
from taufit.robot import JointLimits, read_robot

JOINTS = 3


def motions(seed):
    rng = np.random.default_rng(seed)
    knots = np.concatenate([np.zeros(6), np.sort(rng.uniform(0.2, 3.8, 7)), np.full(6, 4.0)])
    moves = [
        (int(rng.integers(JOINTS)), float(rng.normal()), float(rng.uniform(0.05, 2.0)), 6.0)
        for _ in range(8)
    ]
    return (
        Fourier(rng.normal(size=3), rng.normal(size=(3, 6)), rng.normal(size=(3, 6)), 0.3),
        Spline(knots, rng.normal(size=(13, JOINTS))),
        SampledMotion(
            np.sort(rng.uniform(0, 3, 12)) + np.arange(12), rng.normal(size=(12, JOINTS))
        ),
        Strokes.of(rng.normal(size=JOINTS), moves),
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_curves_are_their_motions_and_bounds_hold_everywhere(seed):
    for motion in motions(seed):
        curve = exact_curve(motion)
        now = intervals(curve, 0.05)
        inside = now.start + 0.37 * now.length
        time = curve.begin[now.piece] + inside
        for order, exact in enumerate(motion.at(time)):
            found = curve.value(order, now.piece, inside)
            # Splines of unequal knots are steep; the rest is rounding.
            np.testing.assert_allclose(found, exact, atol=1e-9 * (1.0 + np.abs(exact).max()))
        for order in range(5):
            values = np.abs(curve.value(order, now.piece, inside))
            assert np.all(values <= curve.bound(order, now.piece) * (1 + 1e-9) + 1e-9)
        # A derivative is the slope of the one before.
        h = 1e-6
        for order in range(4):
            ends = [curve.value(order, now.piece, inside + s * h) for s in (-1, 1)]
            slope = (ends[1] - ends[0]) / (2 * h)
            size = 1.0 + np.abs(curve.bound(order + 1, now.piece))
            bend = h * (1.0 + curve.bound(order + 2, now.piece))
            next_one = curve.value(order + 1, now.piece, inside)
            assert np.all(np.abs(slope - next_one) < 1e-4 * size + bend)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_speed_between_the_ends_of_an_interval_stays_below_its_bound(seed):
    for motion in motions(seed):
        curve = exact_curve(motion)
        now = intervals(curve, 0.1)
        top = speed_bounds(curve, now)
        for share in (0.0, 0.2, 0.5, 0.9, 1.0):
            v = np.abs(curve.value(1, now.piece, now.start + share * now.length))
            assert np.all(v <= top + 1e-9 * (1.0 + top))


def test_cubics_and_quintics_pass_their_points():
    rng = np.random.default_rng(1)
    time = np.cumsum(rng.uniform(0.1, 0.5, 8))
    q, v, a = (rng.normal(size=(8, 2)) for _ in range(3))
    for curve in (hermite(time, q, v), hermite(time, q, v, a)):
        pieces = np.arange(7)
        for at, k in ((0.0 * curve.length, slice(0, 7)), (curve.length, slice(1, 8))):
            np.testing.assert_allclose(curve.value(0, pieces, at), q[k], atol=1e-12)
            np.testing.assert_allclose(curve.value(1, pieces, at), v[k], atol=1e-11)
        if len(curve.coefficients) == 6:
            np.testing.assert_allclose(curve.value(2, pieces, curve.length), a[1:], atol=1e-9)


def limits(velocity=2.0, acceleration=10.0, far=1e9):
    one = np.ones(JOINTS)
    return JointLimits(-far * one, far * one, velocity * one, acceleration * one, np.inf * one)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0.7, 1.3))
def test_limits_are_proved_exactly_where_dense_samples_keep_them(seed, share):
    for motion in motions(seed):
        curve = exact_curve(motion)
        seconds = getattr(motion, "period", motion.duration)
        _, v, a = motion.at(np.linspace(0.0, seconds, 20_001))
        top = np.abs(v).max(), np.abs(a).max()
        kept = limits(share * top[0], 2.0 * top[1])
        found = prove_limits(curve, kept, ("a", "b", "c"))
        if share > 1.0005:
            assert not found
        if share < 0.998:
            assert [one.kind for one in found] == ["speed"] and found[0].is_shown


@pytest.mark.parametrize("hz", [50.0, 125.0, 199.9, 200.0, 500.0, 1000.0])
def test_what_hides_between_samples_is_found(hz):
    hidden = Fourier(
        np.zeros(3), np.tile([[0.4, -0.2]], (3, 1)), np.zeros((3, 2)), hz, "amplitude", 4 * hz
    )
    # On a grid of whole periods it stands still.
    grid = np.arange(0.0, 1.0, 5.0 / round(hz)) if hz != 199.9 else np.arange(0, 200) / 199.9
    assert np.abs(np.diff(hidden.at(grid)[0], axis=0)).max() < 1e-6
    found = prove_limits(exact_curve(hidden), limits(), ("a", "b", "c"))
    assert {one.kind for one in found} == {"speed", "acceleration"}


@pytest.fixture(scope="module")
def space():
    robot = read_robot("ur5e")
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02, tip_speed=1.0)
    return CollisionSpace(robot, scene, default_limits(robot))


def test_levers_are_never_exceeded(space):
    rng = np.random.default_rng(3)
    q = rng.uniform(-np.pi, np.pi, (300, 6))
    step = 1e-6
    largest = 0.0
    for joint in range(6):
        moved = q.copy()
        moved[:, joint] += step
        rate = np.abs(space.distances(moved) - space.distances(q)) / step
        assert np.all(rate <= space.levers[:, joint] + 1e-5)
        moved_by = space.levers[:, joint] > 0
        if moved_by.any():
            share = rate[:, moved_by] / space.levers[moved_by, joint]
            largest = max(largest, float(share.max()))
    # And they are no larger than they must be.
    assert largest > 0.95


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_proved_leg_is_clear_wherever_one_looks(space, seed):
    rng = np.random.default_rng(seed)
    start, stop = rng.uniform(-2.5, 2.5, (2, 6))
    leg = straight_line(start, stop)
    found = prove_clear(leg, space, slack=0.002, step=0.05)
    dense = start + np.linspace(0, 1, 3000)[:, None] * (stop - start)
    short = -space.distances(dense) - space.slack(0.002)
    if found is None:
        assert short.max() <= 1e-9
    elif found.is_shown:
        assert short.max() > -1e-4 and found.name in space.names


def test_the_speed_of_the_tip_is_bounded_between_samples(space):
    rng = np.random.default_rng(5)
    for size in (0.05, 0.2, 0.6):
        motion = Fourier(np.zeros(6), size * rng.normal(size=(6, 4)), np.zeros((6, 4)), 0.3)
        q, v, _ = motion.at(np.linspace(0.0, motion.period, 5000))
        top = np.linalg.norm(np.einsum("nij,nj->ni", jacobian(space.robot, q)[:, 3:], v), axis=1)
        found = prove_tip_speed(exact_curve(motion), space)
        assert (found is None) == (top.max() <= 1.001)


def test_a_curve_that_steps_in_acceleration_is_seen_from_both_sides():
    # Two parabolas: 9 rad/s^2, then -11.
    powers = np.array([[[0.0], [4.5]], [[0.0], [9.0]], [[4.5], [-5.5]]])
    curve = PolynomialCurve(np.array([0.0, 1.0]), np.ones(2), powers)
    one = np.ones(1)
    kept = JointLimits(-99 * one, 99 * one, 99 * one, 10 * one, np.inf * one)
    assert [x.kind for x in prove_limits(curve, kept, ("a",))] == ["acceleration"]
