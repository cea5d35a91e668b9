"""Designed motions keep every limit, start and end at rest, and show what they are for."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from taufit.core.errors import InfeasibleError, TaufitError
from taufit.excitation import (
    CRITERIA,
    Fourier,
    FourierBasis,
    Plane,
    SplineBasis,
    default_limits,
    design,
    friction_strokes,
    limits_of_motion,
    mounting_plane,
    read_motion,
    scene_for,
    to_csv,
    to_joint_trajectory,
    to_urscript,
    warm_up,
    write_motion,
)
from taufit.excitation.scene import closest_parameters
from taufit.robot import JointLimits, read_robot

ARMS = ("ur3", "ur5", "ur10", "kr5", "panda")


def _within(motion, limits, points=5000):
    time = np.linspace(0.0, motion.duration, points)
    q, v, a = motion.at(time)
    assert np.all(q >= limits.lower - 1e-9) and np.all(q <= limits.upper + 1e-9)
    assert np.all(np.abs(v) <= limits.velocity + 1e-9)
    assert np.all(np.abs(a) <= limits.acceleration + 1e-9)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("seed", range(2))
def test_every_seed_is_feasible(arm, seed):
    robot = read_robot(arm)
    scene = scene_for(robot, planes=(mounting_plane(robot),))
    result = design(robot, scene=scene, seconds=0.2, seed=seed)
    assert result.feasible
    _within(result.motion, default_limits(robot))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_gives_a_motion(criterion):
    result = design(read_robot("ur5"), criterion=criterion, seconds=0.3)
    assert result.feasible and np.isfinite(result.condition_number)
    assert result.condition_number < 5000


@pytest.mark.parametrize("basis", [FourierBasis(5, 0.1), SplineBasis(14, 8.0)])
def test_motions_start_and_end_at_rest_at_the_wanted_pose(basis):
    pose = np.array([0.1, -1.2, 0.4, -1.0, 0.3, 0.2])
    result = design(read_robot("ur10"), basis=basis, start=pose, seconds=0.3)
    q, v, a = result.motion.at(np.array([0.0, result.motion.duration]))
    # Rounding of the null space, in rad, rad/s, rad/s^2.
    np.testing.assert_allclose(q[0], pose, atol=1e-9)
    np.testing.assert_allclose(v, 0.0, atol=1e-8)
    np.testing.assert_allclose(a, 0.0, atol=1e-7)


def test_the_condition_number_beats_the_printed_motion_in_its_own_envelope(reference_dir):
    import json

    printed = json.loads((reference_dir / "ur10_online_payload.json").read_text())["trajectory"]
    motion = Fourier(
        np.array([0, -np.pi / 2, 0, -np.pi / 2, 0, 0]),
        np.array(printed["a"]),
        np.array(printed["b"]),
        0.1,
    )
    limits = limits_of_motion(motion)
    result = design(read_robot("ur10"), criterion="cond", limits=limits, seconds=6.0, target=73.0)
    # In this metric the printed motion has 121; the search may stop as soon as it is below 73.
    assert result.condition_number < 74.0
    _within(result.motion, limits)


def _mujoco_contacts(robot, scene, motion, points):
    import mujoco

    from taufit.dynamics import forward_kinematics

    spec = mujoco.MjSpec()
    for i, capsule in enumerate(scene.capsules):
        body = spec.worldbody.add_body(name=f"b{i}", mocap=True)
        length = np.linalg.norm(capsule.end - capsule.start)
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=[0, 0, 0, 0, 0, length],
            size=[capsule.radius, 0, 0],
            contype=0,
            conaffinity=0,
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    q, _, _ = motion.at(np.linspace(0.0, motion.duration, points))
    poses = forward_kinematics(robot, q)
    poses[:, -1] = np.eye(4)
    worst = np.inf
    for pose in poses:
        for i, capsule in enumerate(scene.capsules):
            frame = pose[capsule.link]
            start = frame[:3, :3] @ capsule.start + frame[:3, 3]
            axis = frame[:3, :3] @ (capsule.end - capsule.start)
            axis = axis / np.linalg.norm(axis)
            data.mocap_pos[i] = start
            quat = np.zeros(4)
            mujoco.mju_quatZ2Vec(quat, axis)
            data.mocap_quat[i] = quat
        mujoco.mj_kinematics(model, data)
        kept = scene.pair_clearance or (scene.clearance,) * len(scene.pairs)
        for (a, b), clearance in zip(scene.pairs, kept, strict=True):
            # What is short of the pair's own clearance is short of the scene's.
            gap = mujoco.mj_geomDistance(model, data, a, b, 1.0, None)
            worst = min(worst, gap - clearance + scene.clearance)
        for plane in scene.planes:
            for i, capsule in enumerate(scene.capsules):
                if capsule.link > 0:
                    centre, half = data.geom_xpos[i], 0.5 * model.geom_size[i][1] * 2
                    axis = data.geom_xmat[i].reshape(3, 3)[:, 2]
                    low = plane.normal @ centre - abs(plane.normal @ axis) * half
                    worst = min(worst, low - capsule.radius - plane.offset)
    return worst


def test_a_cell_with_table_and_wall_is_never_touched():
    robot = read_robot("ur5")
    planes = (mounting_plane(robot), Plane("wall", np.array([1.0, 0.0, 0.0]), -0.5))
    scene = scene_for(robot, planes=planes, clearance=0.02)
    for seed in range(2):
        result = design(robot, scene=scene, seconds=0.4, seed=seed)
        # The independent engine sees at least the clearance that was asked for, less what can
        # happen between 5000 checked moments.
        assert _mujoco_contacts(robot, scene, result.motion, 400) > 0.019


def test_tip_speed_and_torque_limits_hold():
    from taufit.dynamics import inverse_dynamics, jacobian

    robot = read_robot("ur5e")
    limits = default_limits(robot)
    limits = replace(limits, torque=np.array([60.0, 60.0, 40.0, 10.0, 10.0, 10.0]))
    scene = scene_for(robot, planes=(mounting_plane(robot),), tip_speed=0.5)
    result = design(robot, scene=scene, limits=limits, seconds=1.0)
    q, v, a = result.motion.at(np.linspace(0, result.motion.duration, 3000))
    speed = np.linalg.norm(np.einsum("nij,nj->ni", jacobian(robot, q)[:, 3:], v), axis=1)
    assert speed.max() <= 0.5 + 1e-6
    assert np.all(np.abs(inverse_dynamics(robot, q, v, a)) <= limits.torque + 1e-6)


def test_a_second_motion_shows_what_the_first_did_not():
    from taufit.excitation.motion_kinds import prior_information
    from taufit.model.torque_model import TorqueModel
    from taufit.terms.friction import Linear

    robot = read_robot("ur5")
    model = TorqueModel(robot, Linear(), rotor_inertia=False)
    limits = default_limits(robot)
    # A first motion that hardly moves the wrist.
    still = np.array([1.0, 1.0, 1.0, 0.02, 0.02, 0.02])
    slow = replace(limits, velocity=limits.velocity * still)
    first = design(robot, seconds=0.3, limits=slow, condition_limit=np.inf)
    prior = prior_information(model, [first.motion])
    blind = design(robot, seconds=1.5, seed=1)
    aware = design(robot, seconds=1.5, seed=1, prior=prior)
    assert np.median(aware.standard_deviation) < np.median(first.standard_deviation)
    assert np.median(aware.standard_deviation) <= np.median(blind.standard_deviation) * 1.05


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"basis": (1, 0.1)}, "harmonics"),
        ({"basis": (5, -1.0)}, "frequency"),
        ({"start": np.full(6, 7.0)}, "start pose"),
        ({"start": np.zeros(5)}, "6 finite"),
        ({"criterion": "nonsense"}, "nonsense"),
        ({"velocity": 0.0}, "velocity limit"),
        ({"swap": True}, "not below"),
        ({"torque": 0.1}, "torque limit"),
        ({"tip_speed": 0.0}, "tip speed"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings, words):
    robot = read_robot("ur10")
    limits = default_limits(robot)
    if "velocity" in settings:
        limits = replace(limits, velocity=np.full(6, settings.pop("velocity")))
    if settings.pop("swap", False):
        limits = replace(limits, lower=limits.upper, upper=limits.lower)
    if "torque" in settings:
        limits = replace(limits, torque=np.full(6, settings.pop("torque")))
    scene = None
    if "tip_speed" in settings:
        scene = scene_for(robot, tip_speed=settings.pop("tip_speed"))
    with pytest.raises(InfeasibleError, match=words):
        basis = FourierBasis(*settings.pop("basis")) if "basis" in settings else None
        design(robot, limits=limits, scene=scene, basis=basis, seconds=0.1, **settings)


def test_a_start_pose_in_the_table_is_refused():
    robot = read_robot("ur5")
    scene = scene_for(robot, planes=(mounting_plane(robot),))
    with pytest.raises(InfeasibleError, match="start pose"):
        design(robot, scene=scene, start=np.array([0, 0.8, 0, 0, 0, 0.0]), seconds=0.1)


def test_closest_points_of_segments_beat_a_dense_search():
    rng = np.random.default_rng(0)
    p, u, r, v = rng.normal(size=(4, 200, 3))
    v[:20] = u[:20] * rng.normal(size=(20, 1))
    s, t = closest_parameters(p, u, r, v)
    exact = np.linalg.norm(p + s[:, None] * u - r - t[:, None] * v, axis=1)
    grid = np.linspace(0, 1, 101)
    a = p[:, None] + grid[None, :, None] * u[:, None]
    b = r[:, None] + grid[None, :, None] * v[:, None]
    dense = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=-1).min((1, 2))
    # The dense grid can only be worse, and by no more than its spacing.
    assert np.all(exact <= dense + 1e-9)
    assert np.all(exact >= dense - 0.05)


def test_motion_files_read_back_to_the_same_motion(tmp_path):
    robot = read_robot("ur5")
    for basis in (FourierBasis(4, 0.2), SplineBasis(10, 5.0)):
        motion = design(robot, basis=basis, seconds=0.2).motion
        write_motion(motion, tmp_path / "m.json", robot="ur5")
        back = read_motion(tmp_path / "m.json")
        time = np.linspace(0, motion.duration, 50)
        for one, other in zip(motion.at(time), back.at(time), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_urscript_program_evaluates_to_the_motion():
    motion = design(read_robot("ur10e"), seconds=0.3).motion
    text = to_urscript(motion)
    names = {"sin": np.sin, "cos": np.cos}
    for name, value in re.findall(r"local (\w+) = ([^\n]+)", text):
        if name not in ("q", "t"):
            names[name] = eval(value, {}, {})
    rows = re.findall(r"q\[(\d)\] = ([^\n]+)", text)
    for t in (0.0, 1.234, 7.7):
        want = motion.at(np.array([t]))[0][0]
        got = [eval(expression, {}, {**names, "t": t}) for _, expression in rows]
        # Nine printed digits.
        np.testing.assert_allclose(got, want, atol=1e-6)
    assert text.count("while") == 1 and text.rstrip().endswith("taufit_excitation()")


def test_tables_and_trajectories_hold_the_motion():
    robot = read_robot("panda")
    motion = design(robot, seconds=0.2).motion
    table = np.loadtxt(to_csv(motion).splitlines(), delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 1:8], motion.at(table[:, 0])[0], atol=1e-7)
    points = yaml.safe_load(to_joint_trajectory(motion, robot.joint_names))["points"]
    assert points[0]["time_from_start"]["sec"] == 5
    np.testing.assert_allclose(points[-1]["velocities"], 0.0, atol=1e-7)
    with pytest.raises(TaufitError, match="six joints"):
        to_urscript(motion)


def test_friction_strokes_pass_each_speed_both_ways():
    robot = read_robot("ur5")
    speeds = np.radians([5.0, 20.0, 60.0])
    pose = np.array([0.0, -1.5, 0.5, -1.0, 0.2, 0.0])
    motion = friction_strokes(robot, 2, speeds, pose=pose)
    time = np.arange(0, motion.duration, 0.01)
    _, v, _ = motion.at(time)
    assert np.all(np.abs(np.delete(v, 2, axis=1)) < 1e-9)
    for speed in speeds:
        for direction in (1, -1):
            steady = np.abs(v[:, 2] - direction * speed) < 0.01 * speed
            assert steady.sum() * 0.01 > 0.15
    with pytest.raises(InfeasibleError, match="faster"):
        friction_strokes(robot, 2, np.array([50.0]), pose=pose)


def test_warm_up_keeps_the_limits():
    robot = read_robot("ur5")
    limits = default_limits(robot)
    motion = warm_up(robot, limits, centre=np.zeros(6), minutes=1.0)
    _within(motion, limits)
    _, v, a = motion.at(np.zeros(1))
    np.testing.assert_allclose(v, 0, atol=1e-12)
    np.testing.assert_allclose(a, 0, atol=1e-12)


def test_limits_without_position_get_half_a_turn():
    robot = replace(read_robot("ur5"), limits=JointLimits.unlimited(6))
    result = design(robot, seconds=0.2)
    _within(result.motion, default_limits(robot))


def test_joints_use_only_the_harmonics_they_may():
    basis = FourierBasis(6, 0.2, joint_harmonics=(2, 2, 2, 6, 6, 6))
    motion = design(read_robot("ur5"), basis=basis, seconds=0.4).motion
    sine, cosine = motion.amplitudes()
    assert np.abs(sine[:3, 2:]).max() < 1e-9 and np.abs(cosine[:3, 2:]).max() < 1e-9
    assert np.abs(sine[3:, 2:]).max() > 1e-3
    with pytest.raises(InfeasibleError, match="harmonics"):
        FourierBasis(5, 0.1, joint_harmonics=(1,) * 6)


def test_several_processes_give_the_best_of_their_motions():
    from taufit.excitation.design import design_in_parallel

    robot = read_robot("ur3")
    alone = design(robot, criterion="cond", seconds=0.3, seed=3)
    both = design_in_parallel(robot, workers=2, criterion="cond", seconds=0.3, seed=3)
    assert both.starts >= 2 and both.feasible
    assert both.condition_number < alone.condition_number * 1.5


def test_searches_on_an_engine_start_elsewhere_and_the_best_is_taken():
    from taufit.core.compute.engines import Processes
    from taufit.excitation.design import design_in_parallel

    class Noted(Processes):
        found = ()

        def map(self, function, things):
            self.found = tuple(super().map(function, things))
            return iter(self.found)

    engine = Noted()
    best = design_in_parallel(
        read_robot("ur3"), workers=2, engine=engine, criterion="cond", seconds=0.3, seed=3
    )
    one, other = engine.found
    assert best.figure == min(one.figure, other.figure) and one.figure != other.figure
    assert best.starts == one.starts + other.starts


def test_a_recording_stands_for_the_motion_it_shows():
    from taufit.excitation.motion_kinds import motion_from_recording
    from taufit.signals import Samples

    motion = Fourier(np.zeros(6), np.full((6, 3), 0.1), np.full((6, 3), 0.05), 0.2)
    q, v, a = motion.at(np.arange(0, 5, 0.005))
    back = motion_from_recording(Samples.from_arrays(q, v, a, 0 * q, rate_hz=200.0))
    time = np.linspace(0.5, 4.0, 40)
    # A quintic through samples 10 ms apart.
    np.testing.assert_allclose(back.at(time)[1], motion.at(time)[1], atol=1e-6)


def test_a_urdf_brings_its_own_collision_shapes(tmp_path):
    from taufit.excitation.scene import fit_capsules
    from taufit.excitation.scene.urdf_capsules import capsules_from_urdf
    from taufit.export import to_urdf
    from taufit.model.torque_model import TorqueModel
    from taufit.terms.friction import Linear

    robot = read_robot("ur5")
    model = TorqueModel(robot, Linear(), rotor_inertia=False, offset=False)
    text, _ = to_urdf(model.with_values(np.r_[robot.parameters, np.zeros(12)]))
    shape = """<collision><origin xyz="0.1 0 0" rpy="0 1.5707963267948966 0"/>
      <geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>"""
    name = robot.link_names[2]
    start = text.index(f'<link name="{name}"')
    end = text.index("</link>", start)
    path = tmp_path / "arm.urdf"
    path.write_text(text[:end] + shape + text[end + len("</link>") :])
    arm = read_robot(path)
    (capsule,) = capsules_from_urdf(arm)
    assert capsule.link == 2 and capsule.radius == 0.05
    np.testing.assert_allclose(sorted([capsule.start[0], capsule.end[0]]), [-0.1, 0.3], atol=1e-12)
    scene = scene_for(arm)
    assert any(np.array_equal(c.start, capsule.start) for c in scene.capsules if c.link == 2)
    assert len(scene.capsules) >= len([c for c in fit_capsules(arm) if c.link != 2])
    assert design(arm, scene=scene, seconds=0.3).feasible


def test_one_seed_gives_one_motion_bit_for_bit():
    robot = read_robot("ur5")
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    first, second = (design(robot, scene=scene, iterations=20, seed=8) for _ in range(2))
    assert first.iterations == second.iterations
    for name in ("offset", "sine", "cosine"):
        np.testing.assert_array_equal(getattr(first.motion, name), getattr(second.motion, name))


@pytest.mark.parametrize(("arm", "seed"), [("ur5e", 7)])  # benchmarks design_grid: 631 designs
def test_default_motions_show_every_parameter(arm, seed):
    robot = read_robot(arm)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    result = design(robot, scene=scene, seed=seed)
    assert result.condition_number_scaled < 30.0
    assert result.shrunk_to >= 0.9 and not result.warnings


def test_a_cell_without_room_is_refused_by_name():
    robot = read_robot("ur5")
    # Walls 0.26 m around the base leave no room for arm movements of any size.
    walls = tuple(
        Plane(f"wall {i}", np.array(n, float), -0.26)
        for i, n in enumerate([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)])
    )
    scene = scene_for(robot, planes=(mounting_plane(robot), *walls), clearance=0.02)
    with pytest.raises(InfeasibleError, match=r"wall|keeps its clearance"):
        design(robot, scene=scene, iterations=5)


def test_the_column_of_a_standard_table_stands_on_the_first_axis():
    from taufit.excitation.scene import fit_capsules

    column = next(c for c in fit_capsules(read_robot("kr5")) if c.link == -1)
    # a1 = 75 mm turns with joint 1 and is not part of the column.
    np.testing.assert_allclose(column.end, [0.0, 0.0, 0.132], atol=1e-12)


def test_crossing_links_have_a_slope_that_parts_them():
    from taufit.excitation.scene import Clearances

    robot = read_robot("kr5")
    clearances = Clearances(robot, scene_for(robot, clearance=0.02))
    rng = np.random.default_rng(3)
    limits = default_limits(robot)
    q = rng.uniform(limits.lower, limits.upper, size=(400, 6))
    broken = q[clearances.values(q).min(axis=1) < -0.02]
    assert len(broken) > 20
    slopes = [np.linalg.norm(clearances.penalty(pose[None], 0.01)[1]) for pose in broken]
    assert min(slopes) > 1e-3
    direction = rng.normal(size=broken.shape)
    step = 1e-6
    ahead, behind = (clearances.penalty(broken + s * direction, 0.01)[0] for s in (step, -step))
    slope = np.sum(clearances.penalty(broken, 0.01)[1] * direction)
    # Central differences of a function with kinks.
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-4)
