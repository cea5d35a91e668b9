"""Each effect alone, and its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.dynamics import inverse_dynamics, jacobian
from taufit.excitation import Fourier
from taufit.robot import read_robot
from taufit.sim import (
    Controller,
    DriveFriction,
    Effects,
    Elasticity,
    Encoder,
    HandPush,
    PositionRipple,
    SamplingErrors,
    Sensing,
    Thermal,
    Twin,
    random_fourier,
    typical_rotor,
)
from taufit.terms import TermInput, start_shape
from taufit.terms.friction import FRICTION_MODELS, Linear, Presliding

ARM = typical_rotor(read_robot("ur10e"))
MOTION = random_fourier(ARM, seed=3, frequency_hz=0.25)
STILL = Fourier(np.array([0.3, -1.2, 0.8, -1.0, 0.5, 0.2]), np.zeros((6, 1)), np.zeros((6, 1)), 0.2)
CLEAN = Twin(ARM).run(MOTION)


def _run(motion=MOTION, seed=0, rate_hz=None, twin=None, **effects):
    twin = twin or Twin(ARM)
    return replace(twin, effects=Effects(**effects)).run(motion, seed=seed, rate_hz=rate_hz)


def _beyond_rigid(trace, robot=ARM):
    """Motor torque that links and rotors do not explain."""
    rigid = inverse_dynamics(robot, trace.position, trace.velocity, trace.acceleration)
    return trace.motor_torque - rigid - robot.rotor_inertias * trace.acceleration


def _steady(trace, speed=0.1):
    return np.abs(trace.velocity) > speed


@pytest.mark.parametrize("name", [name for name in FRICTION_MODELS if name != "none"])
def test_friction_of_any_model_is_what_the_model_says(name):
    model = FRICTION_MODELS[name]()
    shape = np.tile(start_shape(model), (6, 1))
    coefficients = np.tile(np.linspace(2.0, 0.5, len(model.parameters)), (6, 1))
    for i, term in enumerate(model.parameters):
        if "load" in term.name:
            coefficients[:, i] = 0.03
        if "presliding" in term.name:
            coefficients[:, i] = 0.0
    run = _run(friction=DriveFriction(model, coefficients, shape))
    trace = run.trace
    extra = _beyond_rigid(trace)
    np.testing.assert_allclose(extra, trace.friction, atol=1e-9)
    for i in range(6):
        rows = _steady(trace)[:, i]
        inputs = TermInput(
            trace.velocity[rows, i],
            load=trace.link_torque[rows, i],
            temperature=trace.temperature[rows, i],
            position=trace.position[rows, i],
        )
        columns = model.steady_state().columns(inputs, shape[i])
        # Waves average to nothing in steady motion; at an angle they are what they are.
        waves = [k for k, term in enumerate(model.parameters) if term.name.startswith("ripple_")]
        if waves:
            columns[:, waves] = model.columns(inputs, shape[i])[:, waves]
        expected = columns @ coefficients[i]
        # The table is linear between 600 speeds and 33 loads, and load is felt a step later.
        np.testing.assert_allclose(extra[rows, i], expected, atol=0.01 * np.abs(expected).max())


def test_load_dependence_of_friction():
    slope = 0.05
    trace = _run(friction=DriveFriction(Linear(), np.zeros((6, 2)), load_factor=slope)).trace
    rows = _steady(trace)
    expected = slope * np.abs(trace.link_torque) * np.sign(trace.velocity)
    np.testing.assert_allclose(
        _beyond_rigid(trace)[rows], expected[rows], atol=0.01 * np.abs(expected).max()
    )


def test_friction_offset_and_scatter():
    flat = np.tile([5.0, 0.0], (6, 1))
    runs = [_run(seed=s, friction=DriveFriction(Linear(), flat, scatter=0.1)) for s in range(12)]
    scales = np.array([run.truth["friction_scale"] for run in runs])
    assert 0.06 < scales.std() < 0.14
    rows = _steady(runs[0].trace)[:, 0]
    np.testing.assert_allclose(
        np.abs(_beyond_rigid(runs[0].trace)[rows, 0]), 5.0 * scales[0, 0], rtol=1e-3
    )
    offset = _beyond_rigid(_run(friction=DriveFriction(Linear(), 0 * flat, offset=0.7)).trace)
    np.testing.assert_allclose(offset, 0.7, atol=1e-9)


def _along(path, width):
    """Steps of a path and Dahl's state after each: z -> s + (z - s) exp(-|d|/w), s = sign(d)."""
    travel = np.diff(path, prepend=path[0])
    z, out = 0.0, []
    for d in travel:
        z = np.sign(d) + (z - np.sign(d)) * np.exp(-abs(d) / width) if d else z
        out.append(z)
    return travel, np.array(out)


def test_presliding_is_dahl_friction_along_the_path():
    width = 3e-3
    flat = np.tile([5.0, 0.0], (6, 1))
    trace = _run(friction=DriveFriction(Linear(), flat, presliding=width), rate_hz=1000.0).trace
    # The run settles before it is recorded; from the first reversal on the state is known.
    for i in range(6):
        travel, state = _along(trace.position[:, i], width)
        late = np.abs(travel).cumsum() > 0.2
        np.testing.assert_allclose(trace.friction[late, i], 5.0 * state[late], atol=1e-3)
    assert np.abs(trace.friction).max() <= 5.0 + 1e-9


def test_slow_presliding_builds_up_over_its_width():
    slow = DriveFriction(
        Linear(), np.tile([5.0, 0.0], (6, 1)), slow=np.full((6, 1), 2.0), slow_widths=(0.1,)
    )
    trace = _run(friction=slow, rate_hz=1000.0).trace
    travel, state = _along(trace.position[:, 0], 0.1)
    late = np.abs(travel).cumsum() > 1.0
    moving = late & (np.abs(trace.velocity[:, 0]) > 0.05)
    expected = 5.0 * np.sign(travel) + 2.0 * (state - np.sign(travel))
    np.testing.assert_allclose(trace.friction[moving, 0], expected[moving], atol=5e-3)


def test_presliding_model_brings_its_own_slow_parts():
    model = Presliding(widths=(1e-4, 0.05), load=False, quadratic=False)
    coefficients = np.tile([5.0, 2.0, 0.0], (6, 1))
    trace = _run(friction=DriveFriction(model, coefficients), rate_hz=1000.0).trace
    travel, first = _along(trace.position[:, 1], 1e-4)
    slow = _along(trace.position[:, 1], 0.05)[1]
    late = np.abs(travel).cumsum() > 0.6
    expected = 5.0 * first + 2.0 * (slow - first)
    np.testing.assert_allclose(trace.friction[late, 1], expected[late], atol=5e-3)
    # The model itself, from velocities alone, knows the reversals to a part of a step.
    columns = model.columns(TermInput(trace.velocity[:, 1], step=1e-3), np.empty(0))
    np.testing.assert_allclose((columns @ coefficients[1])[late], expected[late], atol=0.05)


def test_breakaway_is_higher_after_a_rest_and_fades():
    base = DriveFriction(Linear(), np.tile([5.0, 0.0], (6, 1)), presliding=1e-4)
    sticky = replace(base, breakaway=0.4, dwell=0.2, distance=0.05)
    motion = random_fourier(ARM, seed=1, frequency_hz=0.1)
    stuck = _run(motion, friction=sticky).trace
    ratio = np.abs(stuck.friction) / 5.0
    moved = np.abs(np.diff(stuck.position, axis=0, prepend=stuck.position[:1])).cumsum(0)
    started = (moved > 1e-3) & (moved < 4e-3)
    # 1 + 0.4 exp(-x/0.05) at x = 1 to 4 mm, the first millimetre of travel at hand.
    assert 1.3 < np.median(ratio[started]) < 1.4
    fast = np.abs(stuck.velocity) > 1.0
    # b = distance / (dwell |v|) in steady motion: at most 0.25 here, so 10 %.
    assert 1.0 < np.median(ratio[fast]) < 1.12


def test_thermal_states_reach_their_steady_state():
    # At rest only the copper heats: T = ambient + P (1/G + 1/G_a).
    thermal = Thermal(
        capacity=10.0,
        housing=20.0,
        conductance=2.0,
        ambient_conductance=1.0,
        copper=0.01,
        ambient=20.0,
        speed_up=200.0,
    )
    run = _run(STILL, thermal=thermal)
    power = 0.01 * run.trace.motor_torque[-1] ** 2
    np.testing.assert_allclose(run.trace.temperature[-1], 20.0 + power * 1.5, atol=1e-3)
    assert power.max() > 5.0


def test_friction_heats_and_warmth_thins_the_grease():
    friction = DriveFriction(Linear(), np.tile([2.0, 10.0], (6, 1)))
    thermal = Thermal(
        capacity=50.0,
        copper=0.0,
        conductance=0.0,
        ambient=30.0,
        reference=30.0,
        viscous_slope=-0.2,
        coulomb_slope=-0.02,
        speed_up=5.0,
    )
    trace = _run(friction=friction, thermal=thermal, rate_hz=1000.0).trace
    heat = np.abs(trace.friction * trace.velocity).sum(0) * 1e-3
    np.testing.assert_allclose(trace.temperature[-1], 30.0 + 5.0 * heat / 50.0, rtol=2e-3)
    rows = _steady(trace)
    above = trace.temperature - 30.0
    expected = 2.0 - 0.02 * above + (10.0 - 0.2 * above) * np.abs(trace.velocity)
    np.testing.assert_allclose(np.abs(trace.friction)[rows], expected[rows], rtol=1e-3)
    recorded = _run(thermal=replace(thermal, resolution=0.5)).recording.temperature
    np.testing.assert_allclose(recorded % 0.5, 0.0, atol=1e-12)


def test_ripple_follows_position():
    amplitude = np.outer([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1.0, 0.5])
    run = _run(ripple=PositionRipple(amplitude, (2.0, 10.0)))
    extra, q = _beyond_rigid(run.trace), run.trace.position
    for i in range(6):
        waves = np.concatenate(
            [f(np.outer(q[:, i], [2.0, 10.0])) for f in (np.sin, np.cos)], axis=1
        )
        found = np.linalg.lstsq(waves, extra[:, i], rcond=None)[0]
        np.testing.assert_allclose(np.hypot(found[:2], found[2:]), amplitude[i], rtol=1e-6)
        np.testing.assert_allclose(waves @ found, extra[:, i], atol=1e-8)


def test_elasticity_bends_by_the_torque_it_carries():
    spring = Elasticity(stiffness=8000.0, damping=2.0)
    trace = _run(elasticity=spring).trace
    bend = trace.drive_position - trace.position
    rate = trace.drive_velocity - trace.velocity
    np.testing.assert_allclose(8000.0 * bend + 2.0 * rate, trace.link_torque, atol=1e-8)
    ours = inverse_dynamics(ARM, trace.position, trace.velocity, trace.acceleration)
    np.testing.assert_allclose(trace.link_torque, ours, atol=1e-9)
    # The upper arm hangs with more than 50 N m on 8000 N m/rad.
    assert np.abs(bend).max() > 5e-3
    sides = [
        _run(elasticity=replace(spring, encoder=side)).recording.position
        for side in ("motor", "link")
    ]
    np.testing.assert_allclose(sides[0] - sides[1], bend, atol=1e-12)


@pytest.mark.parametrize("elastic", [False, True])
def test_link_side_sensor_sees_neither_rotor_nor_gear_friction(elastic):
    friction = DriveFriction(Linear(), np.tile([5.0, 5.0], (6, 1)))
    spring = Elasticity() if elastic else None
    link = _run(friction=friction, elasticity=spring, sensing=Sensing(side="link"))
    trace = link.trace
    ours = inverse_dynamics(ARM, trace.position, trace.velocity, trace.acceleration)
    np.testing.assert_allclose(link.recording.signal, ours, atol=1e-8)
    assert link.recording.torque_source == "joint_torque_sensor"
    some = _run(
        friction=friction, elasticity=spring, sensing=Sensing(side="link", friction_share=0.25)
    )
    np.testing.assert_allclose(some.recording.signal - ours, 0.25 * some.trace.friction, atol=1e-8)


def test_gain_error_scales_the_signal():
    robot = read_robot("ur10")
    twin = Twin(typical_rotor(robot))
    motion = random_fourier(robot, frequency_hz=0.5)
    plain = _run(motion, twin=twin).recording
    wrong = _run(motion, twin=twin, sensing=Sensing(gain_error=0.05)).recording
    np.testing.assert_allclose(wrong.signal * 1.05, plain.signal, atol=1e-12)
    np.testing.assert_array_equal(wrong.gain, robot.drives.gain)
    assert plain.signal_unit == "A" and plain.torque_source == "motor_current"
    drawn = [_run(motion, twin=twin, seed=s, sensing=Sensing(gain_scatter=0.02)) for s in range(8)]
    ratios = np.array([run.truth["gain_ratio"] for run in drawn])
    assert 0.013 < ratios.std() < 0.027
    np.testing.assert_allclose(
        drawn[0].recording.signal * ratios[0] * robot.drives.gain, drawn[0].trace.motor_torque
    )


def test_white_and_coloured_noise_have_their_size_and_colour():
    motion = replace(MOTION, periods=10)
    clean = _run(motion).recording.signal
    white = _run(motion, sensing=Sensing(white=0.5)).recording.signal - clean
    np.testing.assert_allclose(white.std(0), 0.5, rtol=0.03)
    assert np.abs([np.corrcoef(x[1:], x[:-1])[0, 1] for x in white.T]).max() < 0.03
    relative = _run(motion, sensing=Sensing(relative=0.1)).recording.signal - clean
    np.testing.assert_allclose(relative.std(0), 0.1 * np.sqrt((clean**2).mean(0)), rtol=0.03)
    coloured = _run(motion, sensing=Sensing(coloured=0.5, corner_hz=5.0)).recording.signal - clean
    np.testing.assert_allclose(coloured.std(0), 0.5, rtol=0.1)
    # First-order noise forgets by exp(-2 pi f t): after 10 ms, 0.730.
    remembered = [np.corrcoef(x[5:], x[:-5])[0, 1] for x in coloured.T]
    np.testing.assert_allclose(remembered, np.exp(-2 * np.pi * 5.0 * 0.01), atol=0.06)


def test_coloured_noise_is_the_same_process_at_uneven_rows():
    timing = SamplingErrors(intervals=((0.010, 0.6), (0.012, 0.3), (0.030, 0.1)))
    motion = replace(MOTION, periods=40)
    plain = _run(motion, timing=timing).recording
    noisy = _run(motion, timing=timing, sensing=Sensing(coloured=0.5, corner_hz=2.0)).recording
    noise, steps = noisy.signal - plain.signal, np.diff(plain.time)
    for step in (0.010, 0.030):
        rows = np.abs(steps - step) < 1e-6
        found = (noise[1:][rows] * noise[:-1][rows]).mean() / (noise**2).mean()
        assert abs(found - np.exp(-2 * np.pi * 2.0 * step)) < 0.05


def test_quantum_absolute_value_and_saturation():
    stepped = _run(sensing=Sensing(quantum=0.5)).recording.signal
    np.testing.assert_allclose(stepped / 0.5, np.round(stepped / 0.5), atol=1e-12)
    assert np.abs(stepped - CLEAN.recording.signal).max() <= 0.25 + 1e-12
    magnitude = _run(sensing=Sensing(absolute=True)).recording
    np.testing.assert_array_equal(magnitude.signal, np.abs(CLEAN.recording.signal))
    assert not magnitude.signed.any() and CLEAN.recording.signed.all()
    limited = _run(saturation=0.5)
    limit = 0.5 * ARM.limits.torque
    assert np.all(np.abs(limited.trace.motor_torque) <= limit)
    assert np.any(np.abs(CLEAN.trace.motor_torque) > limit) and np.any(
        np.abs(limited.trace.motor_torque) == limit
    )


def test_encoder_noise_steps_and_dead_zone():
    encoder = Encoder(
        noise=1e-4, quantum=1e-5, velocity_noise=2e-3, velocity_quantum=1e-3, velocity_dead=1e-2
    )
    noisy = _run(encoder=encoder).recording
    clean = CLEAN.recording
    np.testing.assert_allclose((noisy.position - clean.position).std(0), 1e-4, rtol=0.1)
    np.testing.assert_allclose(noisy.position / 1e-5, np.round(noisy.position / 1e-5), atol=1e-6)
    slow = np.abs(clean.velocity) < 1e-2
    assert slow.any() and not noisy.velocity[slow].any()
    np.testing.assert_allclose((noisy.velocity - clean.velocity)[~slow].std(), 2e-3, rtol=0.1)
    bare = _run(encoder=Encoder(velocity=False, acceleration=True)).recording
    assert bare.velocity is None
    np.testing.assert_array_equal(bare.acceleration, CLEAN.trace.acceleration)


def test_jitter_moves_stamps_and_not_samples():
    jittered = _run(timing=SamplingErrors(jitter=2e-4)).recording
    np.testing.assert_array_equal(jittered.position, CLEAN.recording.position)
    moved = jittered.time - CLEAN.recording.time
    assert 1.5e-4 < moved.std() < 2.5e-4 and np.all(np.diff(jittered.time) >= 0.0)


def test_uneven_rows_are_true_samples():
    intervals = ((0.010, 0.7), (0.012, 0.3))
    run = _run(timing=SamplingErrors(intervals=intervals))
    steps = np.diff(run.recording.time)
    assert set(np.round(steps, 6)) == {0.010, 0.012}
    assert 0.2 < np.mean(steps > 0.011) < 0.4
    at = np.searchsorted(CLEAN.recording.time, run.recording.time - 1e-9)
    np.testing.assert_allclose(run.recording.position, CLEAN.recording.position[at], atol=1e-12)


def test_the_rate_asked_for_keeps_the_unevenness():
    run = _run(timing=SamplingErrors(intervals=((0.001, 0.75), (0.002, 0.25))), rate_hz=100.0)
    steps = np.diff(run.recording.time)
    assert set(np.round(steps, 6)) == {0.008, 0.016}
    assert 90.0 < 1.0 / steps.mean() < 110.0


def test_dropped_and_duplicated_rows():
    motion = replace(MOTION, periods=4)
    whole = len(_run(motion).recording)
    lost = _run(motion, timing=SamplingErrors(drop=0.1, burst=5.0)).recording
    assert 0.05 < 1.0 - len(lost) / whole < 0.15
    gaps = np.round(np.diff(lost.time) / 0.002)
    assert gaps.max() >= 5
    twice = _run(motion, timing=SamplingErrors(duplicate=0.1)).recording
    assert 0.07 < len(twice) / whole - 1.0 < 0.13
    assert np.sum(np.diff(twice.time) == 0.0) == len(twice) - whole


def test_hand_pushes_with_its_force_at_the_flange():
    push = HandPush(1.0, 1.0, (15.0, -25.0, 10.0), (1.0, 0.5, -2.0))
    trace = _run(pushes=(push,)).trace
    shape = np.where(
        (trace.time > 1.0) & (trace.time < 2.0), np.sin(np.pi * (trace.time - 1.0)), 0.0
    )
    wrench = np.concatenate([push.moment, push.force])
    expected = np.einsum("nkj,k->nj", jacobian(ARM, trace.position), wrench) * shape[:, None]
    ours = inverse_dynamics(ARM, trace.position, trace.velocity, trace.acceleration)
    np.testing.assert_allclose(ours - trace.link_torque, expected, atol=1e-8)
    assert np.abs(expected).max() > 10.0


def test_controller_with_another_model_and_no_payload_sags():
    heavier = ARM.with_parameters(1.1 * ARM.parameters)
    exact = Twin(ARM).run(STILL).truth["tracking_error_rms"]
    wrong = Twin(ARM, controller=Controller(model=heavier, integral_hz=0.0)).run(STILL)
    assert max(exact) < 1e-9
    torque = inverse_dynamics(heavier, STILL.offset[None], np.zeros((1, 6)), np.zeros((1, 6)))[0]
    stiffness = np.array(wrong.truth["controller"]["stiffness"])
    np.testing.assert_allclose(
        wrong.trace.position[-1] - STILL.offset, (torque - torque / 1.1) / stiffness, atol=2e-6
    )
    np.testing.assert_allclose(wrong.recording.target_torque[-1], torque, atol=1e-9)


def test_every_seed_is_the_same_arm():
    """Ripple belongs to the arm: a model of one run must hold for the next."""
    first, second = (_run(ripple=PositionRipple(0.5, (2.0,)), seed=seed).trace for seed in (3, 4))
    other = _run(ripple=PositionRipple(0.5, (2.0,), arm=2.0), seed=3).trace
    assert np.abs(first.friction - second.friction).max() < 1e-9
    assert np.abs(first.friction - other.friction).max() > 0.1
