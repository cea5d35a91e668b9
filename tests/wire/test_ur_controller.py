"""The virtual controller without sockets: programs move the target, the servo moves the arm."""

from __future__ import annotations

import numpy as np
import pytest
from tests.wire.conftest import path, ticks

from taufit.dynamics import coriolis_torque, forward_kinematics, mass_matrix
from taufit.excitation import SampledMotion
from taufit.excitation.robot_programs import to_urscript
from taufit.robot import bundled_robots, read_robot
from taufit.robot.pose import rotation_about_axis
from taufit.sim import Effects, random_fourier
from taufit.virtual.controllers import UrController
from taufit.virtual.controllers.dh_table import dh_table
from taufit.virtual.controllers.kinematics import (
    Kinematics,
    from_pose,
    rotation_matrix,
    rotation_vector,
    to_pose,
)
from taufit.virtual.controllers.ur_controller import NORMAL, PLAYING, PROTECTIVE_STOP, STOPPED
from taufit.virtual.urscript import ScriptError


def played(controller, program, longest=60.0):
    """Targets and samples of every step while a program runs."""
    controller.play(program)
    targets, samples = [], []
    while controller.runtime_state == PLAYING:
        samples.append(controller.tick())
        targets.append(controller.target.copy())
        assert len(samples) * controller.step < longest
    return np.stack(targets), samples


def excitation(robot, periods=1.0):
    centre = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])
    return random_fourier(
        robot, seed=4, frequency_hz=0.2, centre=centre, reach=0.6, periods=periods
    )


@pytest.mark.parametrize("version", [(3, 15, 0, 0), (5, 23, 0, 0)])
def test_the_exported_program_plays_the_designed_motion(offline, version):
    controller = offline(version)
    motion = excitation(controller.twin.robot)
    step = controller.step
    targets, samples = played(controller, to_urscript(motion, step_s=step))
    count = round(motion.duration / step)
    design = motion.at(np.arange(count) * step)[0]
    # movej, a second of rest, the series, and a stop of a few steps: where the series begins is
    # the only place where it fits.
    starts = range(len(targets) - count - 10, len(targets) - count + 1)
    errors = [np.abs(targets[k : k + count] - design).max() for k in starts]
    start = starts[int(np.argmin(errors))]
    assert min(errors) < 1e-6 and sorted(errors)[1] > 1e-4
    # The arm lags by the servo's lookahead, the controller's own delay and its step.
    lag = 0.03 + controller.twin.controller.delay + step
    actual = path(samples)[start : start + count]
    late = motion.at(np.arange(count) * step - lag)[0]
    speed = np.abs(motion.at(np.arange(count) * step)[1]).max()
    assert np.abs(actual - late).max() < 0.02 * speed
    assert np.abs(actual - design).max() > 0.5 * lag * speed


def test_any_other_motion_is_played_through_its_knots(offline):
    controller = offline((3, 15, 0, 0))
    series = excitation(controller.twin.robot)
    knots = np.linspace(0.0, series.duration, 61)
    motion = SampledMotion(knots, series.at(knots)[0])
    step = controller.step
    targets, _ = played(controller, to_urscript(motion, step_s=step, slow=0.5, phases=True))
    count = round(motion.duration / step)
    design = motion.at(np.arange(count) * step)[0]
    starts = range(len(targets) - count - round(0.5 / step) - 20, len(targets) - count + 1)
    errors = [np.abs(targets[k : k + count] - design).max() for k in starts]
    # Cubic curves between knots every 0.1 s. Seen: 2e-5 rad.
    assert min(errors) < 1e-4


def test_a_protective_stop_on_the_way_ends_the_program_and_the_motion(offline):
    controller = offline()
    controller.play(to_urscript(excitation(controller.twin.robot)))
    ticks(controller, 5.0)
    assert controller.runtime_state == PLAYING
    controller.protective_stop("somebody pressed a button")
    ticks(controller, 1.0)
    assert (controller.safety_mode, controller.runtime_state) == (PROTECTIVE_STOP, STOPPED)
    still = path(ticks(controller, 0.5))
    assert np.ptp(still, axis=0).max() < 1e-4
    with pytest.raises(ScriptError, match="not ready"):
        controller.play("movej([0,0,0,0,0,0])")
    controller.unlock_protective_stop()
    controller.play("sleep(0.01)")
    assert controller.safety_mode == NORMAL


def test_a_target_beyond_the_limits_is_never_followed(offline):
    controller = offline()
    before = controller.sample.position
    controller.play("servoj([9.0, -1.5, 1.5, -1.5, -1.5, 0.0])")
    positions = path(ticks(controller, 0.5))
    assert controller.safety_mode == PROTECTIVE_STOP
    assert np.abs(positions - before).max() < 1e-3
    assert any("beyond its limit" in text for text, _ in controller.messages)


def test_movej_ends_where_it_should_within_speed_and_acceleration(offline):
    controller = offline()
    goal = [0.3, -1.2, 1.0, -1.4, -1.6, 0.5]
    targets, _ = played(controller, f"movej({goal}, a=1.0, v=0.5)")
    np.testing.assert_allclose(targets[-1], goal, atol=1e-9)
    speed = np.diff(targets, axis=0) / controller.step
    assert np.abs(speed).max() <= 0.5 + 1e-9
    assert np.abs(np.diff(speed, axis=0)).max() / controller.step <= 1.0 + 1e-6
    # There already: one step, no division by zero.
    again, _ = played(controller, f"movej({goal})")
    assert len(again) == 2


def test_the_speed_slider_intervals_a_move(offline):
    slow, fast = offline(), offline()
    slow.inputs.update(speed_slider_mask=1, speed_slider_fraction=0.5)
    program = "movej([0.4, -1.57, 1.57, -1.57, -1.57, 0.0], a=2.0, v=0.5)"
    long, _ = played(slow, program)
    short, _ = played(fast, program)
    assert len(long) == pytest.approx(2 * len(short), abs=3)
    np.testing.assert_allclose(long[-1], short[-1], atol=1e-9)
    assert slow.output_value("speed_scaling") == 0.5


def test_speedj_and_stopj(offline):
    controller = offline()
    program = "speedj([0.2, 0, 0, 0, 0, -0.1], a=0.5, t=1.0)\nstopj(0.5)"
    targets, _ = played(controller, program)
    moved = targets[-1] - targets[0]
    # Up to 0.2 rad/s in 0.4 s, 0.6 s at speed, down in 0.4 s: 0.2 rad.
    assert moved[0] == pytest.approx(0.2, abs=2e-3)
    np.testing.assert_allclose(controller.target_speed, 0.0, atol=1e-12)


def test_a_runtime_error_stops_the_program_and_is_reported(offline):
    controller = offline()
    controller.play("x = [1, 2]\nsync()\nmovej(x)")
    ticks(controller, 0.1)
    assert controller.runtime_state == STOPPED
    said = [text for text, level in controller.messages if level == 0]
    assert "line 3: movej(): a list of 6 numbers" in said[0]


def test_a_program_that_does_not_compile_leaves_the_running_one_alone(offline):
    controller = offline()
    controller.play("while True:\n sync()\nend")
    ticks(controller, 0.02)
    with pytest.raises(ScriptError, match=r"line 1: fly\(\) is not a function"):
        controller.play("fly(1)")
    ticks(controller, 0.02)
    assert controller.runtime_state == PLAYING


def test_what_is_not_simulated_says_so(offline):
    controller = offline()
    controller.play("movel(p[0.5, 0.2, 0.3, 0, 3, 0])")
    ticks(controller, 0.02)
    assert any("movel is not simulated" in text for text, _ in controller.messages)


def test_dynamics_functions_are_those_that_fit_the_arm(offline):
    controller = offline()
    robot = controller.twin.robot
    q, v = [0.1, -1.2, 0.8, -0.5, 0.4, 1.0], [0.5, -0.4, 0.3, 0.2, -0.6, 0.7]
    controller.play(
        f"""
m = get_mass_matrix({q})
c = get_coriolis_and_centrifugal_torques({q}, {v})
j = get_jacobian({q})
x = get_forward_kin({q})
back = get_inverse_kin(x, {[a + 0.1 for a in q]})
z = pose_sub(pose_trans(x, pose_inv(x)), p[0, 0, 0, 0, 0, 0])
while True:
  sync()
end
"""
    )
    ticks(controller, 0.02)
    got = controller.program.variables
    np.testing.assert_allclose(got["m"], mass_matrix(robot, np.array([q]))[0], atol=1e-12)
    expected = coriolis_torque(robot, np.array([q]), np.array([v]))[0]
    np.testing.assert_allclose(got["c"], expected, atol=1e-12)
    np.testing.assert_allclose(got["back"], q, atol=1e-7)
    np.testing.assert_allclose(got["z"], np.zeros(6), atol=1e-12)
    tip = forward_kinematics(robot, np.array([q]))[0, -1]
    np.testing.assert_allclose(to_pose(np.array(got["x"])), tip, atol=1e-12)
    small = 1e-6
    for i in range(6):
        ahead, behind = np.array(q), np.array(q)
        ahead[i] += small
        behind[i] -= small
        change = (
            forward_kinematics(robot, ahead[None])[0, -1]
            - forward_kinematics(robot, behind[None])[0, -1]
        )
        column = np.array(got["j"])[:3, i]
        np.testing.assert_allclose(column, change[:3, 3] / (2 * small), atol=1e-8)


def test_rotation_vectors_and_matrices_are_each_others_inverse():
    rng = np.random.default_rng(0)
    for size in [0.0, 1e-13, 1e-8, 1.0, 3.0, np.pi - 1e-9, np.pi]:
        axis = rng.normal(size=3)
        vector = size * axis / np.linalg.norm(axis)
        back = rotation_vector(rotation_matrix(vector))
        # At half a turn an axis and its opposite are the same rotation.
        error = min(np.abs(back - vector).max(), np.abs(back + vector).max() if size > 3 else 1)
        assert error < 2e-6, size
    np.testing.assert_allclose(from_pose(to_pose(np.arange(6) / 10)), np.arange(6) / 10)


@pytest.mark.parametrize("name", bundled_robots())
def test_the_dh_table_gives_the_flange(name):
    robot = read_robot(name)
    theta, a, d, alpha = dh_table(robot)
    rng = np.random.default_rng(1)
    poses = rng.uniform(-2, 2, (5, robot.joints))
    relative = []
    for q in poses:
        chain = np.eye(4)
        for i in range(robot.joints):
            slide = np.eye(4)
            slide[:3, 3] = a[i], 0.0, d[i]
            chain = (
                chain
                @ rotation_about_axis(2, q[i] + theta[i])
                @ slide
                @ rotation_about_axis(0, alpha[i])
            )
        relative.append((chain, Kinematics(robot).flange(q)))
    # Both differ by one fixed frame at the base and one at the flange: distances agree.
    points = np.array([[one[:3, 3], two[:3, 3]] for one, two in relative])
    for i in range(5):
        for k in range(i):
            one, two = (np.linalg.norm(points[i, w] - points[k, w]) for w in (0, 1))
            assert one == pytest.approx(two, abs=1e-6)


def test_seven_joints_are_refused():
    from taufit.core.errors import TaufitError
    from taufit.sim import Twin, typical_rotor

    with pytest.raises(TaufitError, match="7 joints"):
        UrController(Twin(typical_rotor(read_robot("panda")), Effects()))
