"""The twin as a whole: laws of motion, energy, seeds, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taufit.core.errors import InfeasibleError, MissingExtraError, TaufitError
from taufit.dynamics import forward_kinematics, inverse_dynamics, mass_matrix
from taufit.excitation import Fourier
from taufit.model.torque_model import TorqueModel
from taufit.recording import write_recording
from taufit.robot import bundled_robots, read_robot
from taufit.sim import (
    CarriedPayload,
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
    effects_from_dict,
    effects_to_dict,
    random_fourier,
    typical_effects,
    typical_rotor,
)
from taufit.sim.batch import run_many
from taufit.terms import start_shape
from taufit.terms.friction import FRICTION_MODELS, Linear

ARM = typical_rotor(read_robot("ur10e"))
MOTION = random_fourier(ARM, seed=3, frequency_hz=0.25)
EVERYTHING = Effects(
    friction=DriveFriction(
        coefficients=np.tile([6.0, 8.0], (6, 1)),
        offset=0.3,
        load_factor=0.02,
        presliding=4e-4,
        slow=np.full((6, 1), 1.0),
        slow_widths=(0.02,),
        breakaway=0.2,
        scatter=0.05,
    ),
    thermal=Thermal(viscous_slope=-0.1, coulomb_slope=-0.02, speed_up=50.0),
    ripple=PositionRipple(0.3, (2.0, 8.0)),
    saturation=1.0,
    sensing=Sensing(white=0.3, coloured=0.2, gain_scatter=0.01, quantum=1e-3),
    encoder=Encoder(noise=1e-5, velocity_noise=1e-3),
    timing=SamplingErrors(jitter=1e-4, drop=0.02, duplicate=0.02),
    pushes=(HandPush(0.1, 0.3, (20.0, -10.0, 5.0), (1.0, 2.0, -1.0)),),
)


def _loaded(robot, body):
    parameters = robot.parameters.copy()
    parameters[-10:] += body
    return robot.with_parameters(parameters)


def _energy(robot, rotor, q, v):
    """Kinetic energy of links and rotors plus potential energy, by taufit's own kinematics."""
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", v, mass_matrix(robot, q) + np.diag(rotor), v)
    poses = forward_kinematics(robot, q)[:, :-1]
    weight = np.zeros(len(q))
    for i, link in enumerate(robot.links):
        moment = (
            poses[:, i, :3, :3] @ link.parameters[1:4] + link.parameters[0] * poses[:, i, :3, 3]
        )
        weight -= moment @ robot.gravity
    return kinetic + weight


@pytest.mark.parametrize("name", bundled_robots())
def test_without_effects_every_arm_obeys_our_inverse_dynamics(name):
    robot = typical_rotor(read_robot(name))
    motion = random_fourier(robot, seed=1, frequency_hz=0.5)
    trace = Twin(robot).run(motion, rate_hz=200).trace
    ours = inverse_dynamics(robot, trace.position, trace.velocity, trace.acceleration)
    scale = np.abs(ours).max()
    np.testing.assert_allclose(trace.link_torque, ours, rtol=0, atol=1e-11 * scale)
    with_rotor = ours + robot.rotor_inertias * trace.acceleration
    np.testing.assert_allclose(trace.motor_torque, with_rotor, rtol=0, atol=1e-11 * scale)


def test_velocity_and_acceleration_are_those_of_the_recorded_path():
    trace = Twin(ARM).run(MOTION, rate_hz=1000).trace
    step = 1e-3
    velocity = (trace.position[2:] - trace.position[:-2]) / (2 * step)
    acceleration = (trace.position[2:] - 2 * trace.position[1:-1] + trace.position[:-2]) / step**2
    # Leapfrog: the second difference is the acceleration exactly, the first to second order.
    np.testing.assert_allclose(acceleration, trace.acceleration[1:-1], atol=1e-8)
    assert np.abs(velocity - trace.velocity[1:-1]).max() < 2e-4 * np.abs(trace.velocity).max()


@pytest.mark.parametrize("friction", [False, True])
def test_energy_balance_closes(friction):
    rubs = DriveFriction(coefficients=np.tile([6.0, 8.0], (6, 1)), presliding=5e-4)
    twin = Twin(ARM, Effects(friction=rubs if friction else None))
    trace = twin.run(MOTION, rate_hz=1000).trace
    gained = _energy(ARM, ARM.rotor_inertias, trace.position[[0, -1]], trace.velocity[[0, -1]])
    between = _energy(ARM, ARM.rotor_inertias, trace.position[::50], trace.velocity[::50])

    def work(torque):
        power = (torque * trace.velocity).sum(1)
        return np.concatenate([[0.0], np.cumsum(0.5e-3 * (power[1:] + power[:-1]))])

    net = work(trace.motor_torque) - work(trace.friction)
    # Trapezoids over 1 ms; the energies themselves move by hundreds of joules. Seen: 2e-5.
    moved = np.ptp(between)
    np.testing.assert_allclose(net[::50], between - between[0], atol=1e-4 * moved)
    assert abs(net[-1] - (gained[1] - gained[0])) < 1e-4 * moved
    if friction:
        assert work(trace.friction)[-1] > 50.0


def test_tracking_error_is_that_of_a_real_controller():
    run = Twin(ARM, typical_effects(ARM)).run(MOTION, seed=1)
    error = np.array(run.truth["tracking_error_rms"])
    assert np.all(error > 2e-5) and np.all(error < 3e-3)
    # The reference is the command 12 ms ago.
    trace = run.trace
    late = [np.abs(MOTION.at(trace.time - 0.5 - d)[0] - trace.position).max() for d in (0.0, 0.012)]
    assert late[1] < 0.25 * late[0]


@pytest.mark.parametrize("rate_hz", [125.0, 500.0, 1000.0])
def test_rows_are_as_many_as_the_rate_says(rate_hz):
    recording = Twin(ARM).run(MOTION, rate_hz=rate_hz).recording
    assert len(recording) == round((MOTION.duration + 1.0) * rate_hz) + 1
    np.testing.assert_allclose(np.diff(recording.time), 1 / rate_hz, atol=1e-12)
    assert recording.meta["robot"] == "ur10e"


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("model", ["linear", "stribeck_load", "presliding"])
@pytest.mark.unchecked
def test_compiled_loop_is_the_python_loop(model, elastic):
    pytest.importorskip("taufit._kernel")
    chosen = FRICTION_MODELS[model]()
    friction = replace(
        EVERYTHING.friction,
        model=chosen,
        coefficients=np.tile(np.linspace(1.0, 0.01, len(chosen.parameters)), (6, 1)),
        shape=np.tile(start_shape(chosen), (6, 1)),
    )
    effects = replace(EVERYTHING, friction=friction, elasticity=Elasticity() if elastic else None)
    twin = Twin(ARM, effects)
    # Elastic joints take ten times as many steps.
    motion = random_fourier(ARM, seed=3, frequency_hz=6.0 if elastic else 2.5)
    load = CarriedPayload.lump(2.0, (0, 0, 0.1), pick=0.08, drop=0.16 if elastic else 0.3)
    fast, slow = (
        twin.run(motion, seed=2, payload=load, rest=(0.05, 0.05), compiled=c).trace
        for c in (True, False)
    )
    for name in ("position", "velocity", "motor_torque", "link_torque", "friction", "temperature"):
        mine, other = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-7 * np.abs(other).max())


def test_coupled_drives_rub_and_turn_at_the_motors():
    coupling = np.eye(6)
    coupling[5, 4] = 1.0
    robot = replace(ARM, drives=replace(ARM.drives, coupling=coupling))
    coefficients = np.tile([0.0, 5.0], (6, 1))
    model = TorqueModel(robot, Linear(), offset=False)
    values = np.concatenate([robot.parameters, robot.rotor_inertias, coefficients.ravel()])
    twin = Twin(robot, Effects(friction=DriveFriction(coefficients=coefficients)))
    for compiled in (True, False):
        run = twin.run(random_fourier(robot, frequency_hz=1.0), compiled=compiled)
        trace = run.trace
        moving = np.abs(trace.velocity @ coupling.T).min(1) > 0.1
        expected = model.with_values(values).torque(
            trace.position[moving], trace.velocity[moving], trace.acceleration[moving]
        )
        # The friction table is linear between 600 speeds, exact for viscous friction.
        np.testing.assert_allclose(trace.motor_torque[moving], expected, atol=1e-6)
        motors = run.recording.signal @ coupling
        np.testing.assert_allclose(motors * run.recording.gain, trace.motor_torque, atol=1e-9)


def test_payload_is_felt_from_pick_to_drop():
    load = CarriedPayload.lump(4.0, (0.01, 0.02, 0.1), pick=1.5, drop=3.0)
    run = Twin(ARM).run(MOTION, payload=load, rate_hz=500)
    trace = run.trace
    inside = (trace.time >= 1.5 - 1e-9) & (trace.time < 3.0 - 1e-9)
    for robot, rows in ((ARM, ~inside), (_loaded(ARM, load.parameters), inside)):
        ours = inverse_dynamics(
            robot, trace.position[rows], trace.velocity[rows], trace.acceleration[rows]
        )
        np.testing.assert_allclose(trace.link_torque[rows], ours, atol=1e-9)
    assert run.recording.payload is None
    assert [item["parameters"][0] for item in run.truth["payload"]] == [0.0, 4.0, 0.0]


def test_motion_met_in_flight_starts_moving():
    motion = random_fourier(ARM, seed=2, at_rest=False, harmonics=3, frequency_hz=0.25)
    run = Twin(ARM).run(motion)
    assert run.recording.time[0] == 0.0
    np.testing.assert_allclose(run.trace.position[0], motion.at(np.zeros(1))[0][0], atol=1e-12)
    assert np.array(run.truth["tracking_error_rms"]).max() < 1e-4


def test_fitted_model_is_the_truth():
    model = TorqueModel(read_robot("ur5e"), Linear())
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            model.robot.parameters,
            rng.uniform(0.2, 0.5, 6),
            rng.uniform(1, 3, 12),
            rng.normal(size=6),
        ]
    )
    fitted = model.with_values(values)
    trace = Twin.from_model(fitted).run(random_fourier(model.robot, frequency_hz=0.5)).trace
    moving = np.abs(trace.velocity).min(1) > 0.1
    expected = fitted.torque(
        trace.position[moving], trace.velocity[moving], trace.acceleration[moving]
    )
    assert moving.sum() > 50
    np.testing.assert_allclose(trace.motor_torque[moving], expected, atol=1e-3)


def test_same_seed_gives_the_same_file_and_another_seed_another(tmp_path):
    twin = Twin(ARM, EVERYTHING)
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_recording(twin.run(MOTION, seed=seed).recording, tmp_path / f"{name}.parquet")
    first, again, other = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert first == again
    assert first != other


def test_one_effect_does_not_move_the_random_numbers_of_another():
    quiet = Twin(ARM, Effects(sensing=Sensing(white=0.5)))
    both = Twin(ARM, Effects(sensing=Sensing(white=0.5, coloured=0.1), encoder=Encoder(noise=1e-4)))
    only = Twin(ARM, Effects(sensing=Sensing(coloured=0.1)))
    signals = [twin.run(MOTION, seed=4).recording.signal for twin in (quiet, both, only, Twin(ARM))]
    np.testing.assert_allclose(signals[1] - signals[2], signals[0] - signals[3], atol=1e-12)


def test_batch_is_the_runs_one_by_one():
    twin = Twin(ARM, EVERYTHING)
    together = list(run_many(twin, MOTION, range(3), workers=2))
    for seed, run in enumerate(together):
        alone = twin.run(MOTION, seed=seed).recording
        np.testing.assert_array_equal(run.recording.signal, alone.signal)


def test_long_run_is_cut_in_chunks_without_a_seam():
    # 45 s pass two seams of 20 s; the motion repeats, and without effects so does the torque.
    motion = replace(random_fourier(ARM, seed=1, frequency_hz=0.2), periods=9)
    trace = Twin(ARM, controller=Controller(integral_hz=0.0)).run(motion, rest=(0, 0)).trace
    period = round(5.0 * 500)
    first = trace.motor_torque[period : 2 * period]
    for k in range(2, 9):
        later = trace.motor_torque[k * period : (k + 1) * period]
        np.testing.assert_allclose(later, first, atol=1e-6 * np.abs(first).max())


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"payload": CarriedPayload.lump(80.0)}, "no such arm"),
        ({"payload": CarriedPayload.lump(40.0, (0, 0, 0.5))}, "to hold the arm and its payload"),
        (
            {"payload": CarriedPayload(np.array([1.0, 0, 0, 0, 1, 0, 0.1, 0, 0, 0.1]))},
            "not physically",
        ),
        ({"payload": CarriedPayload.lump(1.0, pick=3.0, drop=2.0)}, "dropped after"),
        ({"rate_hz": 2000.0}, "1000 Hz"),
        ({"rest": (-1.0, 0.0)}, "not negative"),
        ({"motion": random_fourier(read_robot("panda"))}, "7 joints"),
        (
            {"motion": Fourier(np.zeros(6), np.full((6, 1), 9.0), np.zeros((6, 1)), 1.0)},
            "leaves the limits of shoulder_pan_joint: velocity",
        ),
        (
            {"motion": Fourier(np.full(6, 7.0), np.zeros((6, 1)), np.zeros((6, 1)), 1.0)},
            r"leaves the limits .* position",
        ),
        ({"controller": Controller(bandwidth_hz=500.0)}, "unstable"),
        (
            {"effects": Effects(friction=DriveFriction(coefficients=np.ones((6, 3))))},
            "coulomb, viscous",
        ),
        ({"effects": Effects(sensing=Sensing(white=np.ones(5)))}, "white has 5 numbers"),
        ({"effects": Effects(sensing=Sensing(side="top"))}, "motor or the link side"),
        ({"effects": Effects(elasticity=Elasticity(stiffness=1e9))}, "too fast to simulate"),
        ({"effects": Effects(elasticity=Elasticity(stiffness=1e308))}, "too fast to simulate"),
    ],
)
def test_impossible_input_is_refused_with_the_reason(change, word):
    twin = Twin(ARM)
    arguments = {"motion": MOTION}
    for name, value in change.items():
        if name in ("controller", "effects"):
            twin = replace(twin, **{name: value})
        else:
            arguments[name] = value
    motion = arguments.pop("motion")
    with pytest.raises(TaufitError, match=word):
        twin.run(motion, **arguments)


@pytest.mark.parametrize("compiled", [True, False])
def test_divergence_is_detected_and_said(compiled):
    # Friction that drives the joint: the linear check of gains cannot see it.
    push = DriveFriction(coefficients=np.tile([0.0, 1.0], (6, 1)), offset=1e9)
    with pytest.raises(InfeasibleError, match=r"ran away .* nothing was written"):
        Twin(ARM, Effects(friction=push)).run(MOTION, compiled=compiled)


def test_effects_survive_as_plain_data():
    effects = effects_from_dict(effects_to_dict(EVERYTHING))
    mine = Twin(ARM, EVERYTHING).run(MOTION, seed=1).recording
    other = Twin(ARM, effects).run(MOTION, seed=1).recording
    np.testing.assert_array_equal(mine.signal, other.signal)
    np.testing.assert_array_equal(mine.time, other.time)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"frication": {}}, "frication"),
        ({"friction": {"colour": 1}}, "no setting 'colour'"),
        ({"friction": {"model": "magic"}}, "magic"),
        ({"sensing": {"white": ["a"]}}, "needs numbers"),
        ({"sensing": 3}, "expected settings"),
        ({"sensing": {"white": "loud"}}, "needs numbers"),
        ({"sensing": {"absolute": "maybe"}}, "true or false"),
        ({"sensing": {"side": 3}}, "a word"),
        ({"timing": {"intervals": 3}}, "needs a list"),
        ({"timing": {"intervals": [[]]}}, "pairs of seconds and probability"),
        ({"timing": {"intervals": [[1, 2, 3]]}}, "pairs"),
        ({"pushes": 3}, "is a list"),
        ({"pushes": [{"start": "a"}]}, "needs numbers"),
        ({"pushes": [{"start": 1, "force": [1, 2]}]}, "three numbers"),
        ({"saturation": "abc"}, "needs numbers"),
        ({"friction": {"coefficients": [[1, 2], [3]]}}, "needs numbers"),
        ({"friction": {"model": {"name": "linear", "wide": 1}}}, "wide"),
        ([1, 2], "expected names"),
    ],
)
def test_wrong_effects_name_what_is_wrong(data, word):
    with pytest.raises(TaufitError, match=word):
        effects_from_dict(data, "effects.yaml")


def test_missing_mujoco_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r"taufit\[sim\]"):
        Twin(ARM).run(MOTION)


@pytest.mark.parametrize("name", bundled_robots())
def test_typical_effects_suit_every_bundled_arm(name):
    robot = typical_rotor(read_robot(name))
    motion = random_fourier(robot, seed=1, frequency_hz=0.25)
    run = Twin(robot, typical_effects(robot)).run(motion, seed=1)
    assert max(run.truth["tracking_error_rms"]) < 5e-3
    share = np.abs(run.trace.friction).mean(0) / np.abs(run.trace.motor_torque).max(0)
    assert np.all(share > 0.01)


@pytest.mark.parametrize(
    ("effects", "word"),
    [
        (Effects(sensing=Sensing(white=-1.0)), "white must be at least 0"),
        (Effects(thermal=Thermal(capacity=0.0)), "capacity must be above 0"),
        (Effects(thermal=Thermal(capacity=1e-3)), "too fast to follow"),
        (Effects(timing=SamplingErrors(drop=1.5)), "probabilities"),
        (Effects(timing=SamplingErrors(intervals=((0.0, 1.0),))), "1 ms to 60 s"),
        (Effects(pushes=(HandPush(1.0, -1.0),)), "above 0 s"),
        (Effects(ripple=PositionRipple(np.ones((1, 2)), (1.0, 2.0, 3.0))), "6 rows of 3"),
        (
            Effects(friction=DriveFriction(coefficients=np.tile([-1.0, 5.0], (6, 1)))),
            "friction of joint 1 would drive it",
        ),
    ],
)
def test_meaningless_effects_are_refused_by_name(effects, word):
    with pytest.raises(TaufitError, match=word):
        Twin(ARM, effects).run(MOTION)


@pytest.mark.unchecked
def test_an_effect_that_is_no_number_is_refused_by_name():
    with pytest.raises(TaufitError, match="noise needs a number"):
        Twin(ARM, Effects(encoder=Encoder(noise="a lot"))).run(MOTION)


@settings(deadline=None, derandomize=True, database=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_mixture_of_effects_gives_finite_rows_in_order(seed):
    rng = np.random.default_rng(seed)
    names = ("friction", "thermal", "ripple", "saturation", "sensing", "encoder", "timing")
    off = [name for name in (*names, "pushes") if rng.random() < 0.5]
    effects = EVERYTHING.without(*off)
    if rng.random() < 0.3:
        effects = replace(effects, elasticity=Elasticity(stiffness=5e3))
    motion = random_fourier(ARM, seed=seed, frequency_hz=2.0, at_rest=bool(rng.random() < 0.5))
    body = CarriedPayload.lump(
        rng.uniform(0.1, 4.0), 0.1 * rng.normal(size=3), pick=rng.uniform(0, 0.3)
    )
    rate = float(rng.choice([50.0, 125.0, 333.0, 1000.0]))
    recording = Twin(ARM, effects).run(motion, seed=seed, payload=body, rate_hz=rate).recording
    for name in ("time", "position", "velocity", "signal"):
        assert np.all(np.isfinite(getattr(recording, name)))
    assert np.all(np.diff(recording.time) >= 0.0) and len(recording) > 20


def test_file_says_the_payload_only_where_the_controller_was_told():
    load = CarriedPayload.lump(2.0, (0, 0, 0.1))
    told = replace(Twin(ARM), controller=Controller(knows_payload=True))
    motion = random_fourier(ARM, frequency_hz=1.0)
    assert Twin(ARM).run(motion).recording.payload == 0.0
    assert Twin(ARM).run(motion, payload=load).recording.payload is None
    assert told.run(motion, payload=load).recording.payload == 2.0
    blind, knowing = (t.run(motion, payload=load).truth for t in (Twin(ARM), told))
    assert max(knowing["tracking_error_rms"]) < 0.1 * max(blind["tracking_error_rms"])


def test_model_without_friction_can_be_the_truth():
    model = TorqueModel(read_robot("ur5e"), None, rotor_inertia=False, offset=False)
    motion = random_fourier(model.robot, frequency_hz=1.0)
    trace = Twin.from_model(model.with_values(model.robot.parameters)).run(motion).trace
    assert not trace.friction.any()


_JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers(-3, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
_KEYS = {
    "friction": ("model", "coefficients", "shape", "slow", "slow_widths", "presliding"),
    "thermal": ("capacity", "initial", "speed_up"),
    "ripple": ("amplitude", "cycles"),
    "elasticity": ("stiffness", "encoder"),
    "sensing": ("side", "white", "absolute"),
    "encoder": ("noise", "velocity"),
    "timing": ("intervals", "drop", "jitter"),
    "saturation": (),
    "pushes": (),
}


@settings(deadline=None, derandomize=True, database=None, max_examples=150)
@given(data=st.data())
def test_junk_effects_are_refused_and_never_crash(data):
    part = data.draw(st.sampled_from(sorted(_KEYS)))
    junk = data.draw(_JUNK)
    if _KEYS[part] and data.draw(st.booleans()):
        junk = {data.draw(st.sampled_from(_KEYS[part])): junk}
    motion = random_fourier(ARM, frequency_hz=8.0)
    try:
        effects = effects_from_dict({part: junk})
        Twin(ARM, effects).run(motion, rest=(0.0, 0.0))
    except TaufitError as error:
        assert str(error)
