"""Gravity compensators: the force of a spring or gas, in everything that knows the torque."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.export.compiled import Compiled

import taufit
from taufit.contact.external_torque import ExternalTorque
from taufit.core.errors import RobotError, TaufitError
from taufit.export import EXPORTS, to_urdf
from taufit.fitting import automatic_model
from taufit.health.friction_index import _model_friction as health_friction
from taufit.model import friction_torque, predicted_torque, rigid_torque
from taufit.model.friction_tape import FrictionTape
from taufit.payload import PayloadFilter, stream
from taufit.regression.run_variability import _joint_friction as friction_of_joint
from taufit.report.model_view import predict_breakdown
from taufit.robot import Compensator, Robot, from_yaml, to_yaml
from taufit.sim import Twin
from taufit.sim.payload import CarriedPayload
from taufit.sim.random_motion import random_fourier
from taufit.terms import GravityCompensator, Ripple, TermInput, steady_friction_model, sum_of
from taufit.terms.friction import Linear
from taufit.terms.gravity_compensator import PARAMETERS, compensator_columns

SPRING = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)
GAS = Compensator(1, "gas", base_arm=0.45, link_arm=0.16, angle=1.9, gas_length=0.6)
PULL = Compensator(1, "gas", base_arm=0.45, link_arm=0.16, angle=1.9, gas_length=-0.9)
UNKNOWN = Compensator(1)
RATE, FORCE = 9000.0, 1500.0


def length(one, q):
    return np.sqrt(
        one.base_arm**2 + one.link_arm**2 - 2 * one.base_arm * one.link_arm * np.cos(q + one.angle)
    )


def energy(one, q):
    """Energy stored in a compensator whose coefficients are all 1."""
    rod = length(one, q)
    if one.kind == "spring":
        return np.stack([0.5 * rod**2, rod], -1)
    n, g = one.exponent, one.gas_length
    return (g / (1.0 - n) * (1.0 + (rod - one.length_at_zero) / g) ** (1.0 - n))[..., None]


@pytest.mark.parametrize("one", [SPRING, GAS, PULL])
def test_the_torque_is_the_slope_of_the_energy_stored(one):
    q = np.linspace(-3.0, 3.0, 101)
    slope = (energy(one, q + 1e-5) - energy(one, q - 1e-5)) / 2e-5
    np.testing.assert_allclose(np.stack(compensator_columns(one, q), -1), slope, atol=1e-8)


def test_joints_without_one_have_zero_columns_and_names_to_drop():
    compensators = GravityCompensator((SPRING, Compensator(2)))
    friction = sum_of(Linear(), compensators)
    q = np.linspace(-1, 1, 5)
    inputs = TermInput(q, q)
    names = [term.name for term in friction.parameters]
    assert names[2:] == ["balance_rate", "balance_force", "balance_sin", "balance_cos"]
    assert not np.any(friction.of_joint(0).columns(inputs, np.empty(0))[:, 2:])
    first = friction.of_joint(1).columns(inputs, np.empty(0))
    assert np.all(np.any(first[:, 2:4], 0)) and not np.any(first[:, 4:])
    assert "balance_rate" in friction.absent(0)
    assert [len(friction.absent(joint)) for joint in range(3)] == [4, 2, 2]
    model = taufit.TorqueModel(taufit.read_robot("ur3e"), friction)
    assert model.friction == Linear() and model.terms == (compensators,)
    assert "joint_1.balance_rate" in model.absent and len(model.absent) == 4 + 2 + 2 + 3 * 4
    with pytest.raises(TaufitError, match="of_joint"):
        friction.columns(inputs, np.empty(0))
    # Friction alone is what it was, whatever stands beside it.
    for model in (friction, sum_of(friction, Ripple())):
        alone = steady_friction_model(model).columns(TermInput(q), np.empty(0))
        np.testing.assert_array_equal(alone[:, :2], Linear().columns(TermInput(q), np.empty(0)))
        assert not np.any(alone[:, 2:])


def test_descriptions_and_files_keep_compensators(tmp_path):
    robot = replace(taufit.read_robot("kr5"), compensators=(GAS,))
    for same in (from_yaml(to_yaml(robot)), Robot.from_dict(robot.to_dict())):
        assert same.compensators == (GAS,)
    moved = robot.with_joint_zeros([0, 0.1, 0, 0, 0, 0])
    assert moved.compensators[0].angle == pytest.approx(GAS.angle + 0.1)
    model = automatic_model(robot)
    fitted = model.with_values(np.linspace(0.1, 1.0, len(model.names)))
    taufit.write_model(fitted, tmp_path / "model.json")
    again = taufit.read_model(tmp_path / "model.json")
    assert again.friction_model == fitted.friction_model and again.robot.compensators == (GAS,)


def test_wrong_descriptions_are_refused_by_their_place():
    with pytest.raises(RobotError, match="two lengths above 0"):
        Compensator(1, "spring")
    with pytest.raises(RobotError, match="no volume left"):
        replace(GAS, gas_length=0.05)
    with pytest.raises(RobotError, match="kind 'rope'"):
        Compensator(1, "rope")
    with pytest.raises(RobotError, match="unknown key 'arm'"):
        from_yaml("joints: [{d: 0.1, compensator: {kind: spring, arm: 0.1}}]")


def truth(one):
    """A KR5 in MuJoCo whose second joint has a spring: rated numbers of nobody."""
    robot = replace(taufit.read_robot("kr5"), compensators=(one,))
    model = automatic_model(robot, friction=Linear())
    values = model.nominal
    for name, value in (("coulomb", 4.0), ("viscous", 3.0)):
        values[[model.layout.index(f"joint_{k + 1}.{name}") for k in range(6)]] = value
    for term, value in zip(PARAMETERS[one.kind], (RATE, FORCE), strict=False):
        values[model.layout.index(f"joint_2.{term.name}")] = value
    return model.with_values(values)


@pytest.fixture(scope="module")
def sprung():
    model = truth(SPRING)
    twin = Twin.from_model(model)
    runs = [twin.run(random_fourier(model.robot, seed=s)).recording for s in (1, 2)]
    return model, runs


def test_a_fit_finds_the_spring_and_predicts_unseen_motion(sprung):
    model, (run, other) = sprung
    bare = replace(model.robot, compensators=())
    fits = [
        taufit.identify(robot, [run], holdout=[other], friction="linear", **how)
        for robot, how in (
            (model.robot, {}),
            (bare, {"ignore_contradictions": True}),
            (bare, {"compensator": "2"}),
        )
    ]
    known, without, guessed = (done.holdout_scores[0].nrmse[1] for done in fits)
    assert known < 0.003
    # Nothing else takes its place; a sine and a cosine come near.
    assert without > 20.0 * known
    assert guessed < 0.3 * without
    fitted = fits[0].model
    for what, true in (("rate", RATE), ("force", FORCE)):
        k = fitted.layout.index(f"joint_2.balance_{what}")
        assert fitted.values[k] == pytest.approx(true, rel=0.02)
        assert abs(fitted.values[k] - true) < 3.0 * fitted.training.std[k]


def test_friction_known_from_elsewhere_leaves_the_compensator(sprung):
    model, (run, _) = sprung
    structure = taufit.TorqueModel(replace(model.robot, compensators=()), Linear())
    values = [value for name, value in zip(model.names, model.values, strict=True)
              if "balance" not in name]  # fmt: skip
    tested = structure.with_values(np.array(values))
    std = np.full(len(values), 0.1)
    tested = tested.with_training(replace(tested.training, std=std))
    done = taufit.identify(model.robot, [run], friction=tested)
    assert done.model.friction_model == Linear()
    assert done.model.terms == (GravityCompensator((SPRING,)),)
    assert done.training_score.nrmse[1] < 0.01


def test_a_compensator_is_no_friction_where_friction_is_asked_for(sprung):
    """Friction that differs from day to day is not the spring."""
    model, (run, _) = sprung
    samples = taufit.condition(run)
    own = friction_torque(model, samples)
    assert np.abs(own[:, 1]).max() < 4.0 + 3.0 * np.abs(samples.friction_velocity[:, 1]).max() + 0.5
    spring = predicted_torque(model, samples) - rigid_torque(model, samples) - own
    angle = samples.position[samples.in_motion, 1]
    rate, force = compensator_columns(SPRING, angle)
    rotor = model.values[model.layout.index("joint_2.rotor")] * samples.acceleration[:, 1]
    left = (spring[:, 1] - rotor)[samples.in_motion] - RATE * rate - FORCE * force
    assert np.ptp(left) < 0.01 * np.ptp(RATE * rate + FORCE * force)


def test_consumers_have_the_same_torque(sprung):
    model, _ = sprung
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 30, 6))
    whole = model.torque(q, v, a)
    rate, force = compensator_columns(SPRING, q[:, 1])
    bare = replace(model.structure, terms=(), robot=replace(model.robot, compensators=()))
    values = [value for name, value in zip(model.names, model.values, strict=True)
              if "balance" not in name]  # fmt: skip
    plain = bare.with_values(np.array(values)).torque(q, v, a)
    np.testing.assert_allclose((whole - plain)[:, 1], RATE * rate + FORCE * force, rtol=1e-9)
    np.testing.assert_allclose(np.delete(whole - plain, 1, 1), 0.0, atol=1e-9)
    tape = FrictionTape(model, 0.002)
    columns = model.columns.drive_columns(TermInput(v, q, 0 * q))
    wanted = np.einsum("njk,jk->nj", columns, model.layout.split(model.values).drive)
    found = [tape(*row) for row in zip(v, q, 0 * q, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    assert tape.compiled


@pytest.mark.parametrize("compiled", [True, False])
def test_a_standing_arm_feels_no_spring(sprung, compiled):
    """The spring acts on a joint that stands, where friction may be anything."""
    model, _ = sprung
    rest = np.array([0.0, -1.0, 1.3, 0.2, 0.4, 0.0])
    step = 0.004
    angles = rest + 0.4 * np.sin(np.clip(np.arange(600) * step - 1.0, 0.0, None))[:, None] ** 3
    speeds = np.gradient(angles, step, axis=0)
    torque = model.torque(angles, speeds, np.gradient(speeds, step, axis=0))
    torque[speeds == 0.0] += 1.5
    external = ExternalTorque(model, 1.0 / step)
    external.is_compiled = external.is_compiled and compiled
    felt = external(np.arange(600) * step, np.concatenate([angles, speeds, torque], axis=1))
    assert felt.standing[:200].all()
    # At rest up to Coulomb friction is left, in motion nothing.
    assert np.abs(felt.torque[:200]).max() < 5.6
    assert np.abs(felt.torque[380:590]).max() < 0.5
    whole = felt.model_torque[380:590, 1] - 0.5 * (torque[381:591, 1] + torque[380:590, 1])
    assert np.abs(whole).max() < 0.5
    assert np.abs(felt.friction[:, 1]).max() < 4.0 + 3.0 * np.abs(speeds[:, 1]).max() + 0.1


def test_a_payload_is_weighed_beside_the_spring(sprung):
    model, (run, _) = sprung
    fitted = taufit.identify(model.robot, [run]).model
    part = CarriedPayload.lump(3.0, (0.02, 0.0, 0.05))
    work = Twin.from_model(model).run(random_fourier(model.robot, seed=5), payload=part).recording
    live = PayloadFilter(fitted)
    for time, position, velocity, torque, _ in stream(fitted, work).samples():
        live.update(time, position, velocity, torque)
    found = live.estimate()
    assert found.ready
    assert found.mass == pytest.approx(3.0, abs=0.1)


def held_poses(model, *, noise=0.05):
    """An arm that goes from pose to pose and holds each for a while, carrying nothing."""
    rng = np.random.default_rng(0)
    poses = rng.uniform(-1.2, 1.2, (11, 6))
    way = np.linspace(0.0, 1.0, 200)[:, None] ** 2 * (3.0 - 2.0 * np.linspace(0, 1, 200)[:, None])
    legs = [
        (np.repeat(here[None], 200, 0), here + (there - here) * way)
        for here, there in itertools.pairwise(poses)
    ]
    q = np.concatenate([part for leg in legs for part in leg])
    t = 0.004 * np.arange(len(q))
    v = np.gradient(q, t, axis=0)
    torque = model.torque(q, v, np.gradient(v, t, axis=0)) + rng.normal(0.0, noise, q.shape)
    names = {"joint_names": list(model.robot.joint_names)}
    return taufit.Recording(t, q, torque, velocity=v, signal_unit="N m", meta=names)


def test_an_arm_that_stands_with_its_spring_carries_nothing():
    """Static poses weigh what the spring holds up too, unless it is taken off."""
    model = truth(SPRING)
    found = taufit.identify_payload(model, held_poses(model), method="static").estimate
    assert abs(found.mass) < 0.05
    unsprung = np.where(["balance" in name for name in model.names], 0.0, model.values)
    blind = model.with_values(unsprung)
    assert abs(taufit.identify_payload(blind, held_poses(model), method="static").estimate.mass) > 1


def test_neither_health_nor_report_nor_scatter_takes_the_spring_for_friction(sprung):
    model, (run, _) = sprung
    samples = taufit.condition(run)
    most = 4.0 + 3.0 * np.abs(samples.friction_velocity[:, 1]).max() + 0.5
    rigid = rigid_torque(model, samples)
    expected = health_friction(model, samples, rigid)
    assert np.abs(expected[:, 1]).max() < most < 0.1 * np.abs(RATE)
    assert np.abs(predict_breakdown(model, samples).friction[:, 1]).max() < most
    own = friction_of_joint(model.values, model.layout, 1)
    kept = {name for name, value in zip(model.names, own, strict=True) if value != 0.0}
    assert kept == {"joint_2.coulomb", "joint_2.viscous"}


def test_a_covariance_is_symmetric_to_the_last_bit(sprung, tmp_path):
    """Rounding of a badly scaled one is else beyond what a model file may have."""
    model, (run, _) = sprung
    fitted = taufit.identify(model.robot, [run], friction="linear").model
    covariance = fitted.training.base.covariance
    assert np.array_equal(covariance, covariance.T)
    taufit.write_model(fitted, tmp_path / "m.json")
    again = taufit.read_model(tmp_path / "m.json").training.base.covariance
    assert np.array_equal(again, covariance)


@pytest.mark.parametrize("one", [SPRING, GAS, UNKNOWN], ids=lambda one: one.kind)
def test_c_has_the_compensator_and_the_zeros(one, tmp_path):
    """Compiled, with friction that remembers its path, at positions as they are recorded."""
    zeros = np.radians([0.0, 2.0, -1.0, 0.5, 0.0, 0.0])
    robot = replace(taufit.read_robot("kr5"), compensators=(one,)).with_joint_zeros(zeros)
    structure = automatic_model(robot)
    rng = np.random.default_rng(0)
    values = structure.nominal
    values[structure.layout.drive] = rng.uniform(0.0, 3.0, 6 * len(structure.layout.drive_names))
    model = structure.with_values(values)
    phase = np.linspace(0.0, 6.0, 200)[:, None] + np.arange(6)
    q, v, a = np.sin(phase), 3.0 * np.cos(phase), -9.0 * np.sin(phase)
    samples = taufit.Samples.from_arrays(q, v, a, 0.0 * q, rate_hz=100.0)
    from taufit.model.predict import rigid_torque

    columns = model.columns
    rigid = rigid_torque(model, samples)
    motor = columns.drive_columns(TermInput(v, q, rigid, step=0.01))
    wanted = rigid + columns.term_torque(model.values, a, motor)
    found = Compiled(tmp_path, model).run(q, v, a, 0.01)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_urdf_says_that_it_has_no_compensator(sprung):
    model, _ = sprung
    assert any("conservative term 'balance_rate'" in text for text in to_urdf(model)[1])
    assert {"c", "urdf", "mjcf", "fmu"} <= set(EXPORTS)


def test_without_geometry_gravity_takes_the_sine_and_cosine():
    """sin q and cos q of a joint with a horizontal axis are columns of its link's own weight."""
    from taufit.dynamics import base_parameters

    robot = taufit.read_robot("ur10e")
    links = base_parameters(taufit.TorqueModel(robot, Linear()))
    held = sum_of(Linear(), GravityCompensator((UNKNOWN,)))
    with_unknown = base_parameters(taufit.TorqueModel(robot, held))
    sprung = sum_of(Linear(), GravityCompensator((SPRING,)))
    with_spring = base_parameters(taufit.TorqueModel(robot, sprung))
    assert len(with_unknown.columns) == len(links.columns)
    assert len(with_spring.columns) == len(links.columns) + 1
