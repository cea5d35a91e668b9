"""Roll-outs of servo arms: the kernel's equations, its stick and its slopes."""

import numpy as np
import pytest
from tests.servo.servo_arms import commands, truth

import taufit
from taufit.dynamics import forward_kinematics, inverse_dynamics, mass_matrix
from taufit.servo import CommandedMotion, Floor
from taufit.servo.joint_axes import JointAxes
from taufit.servo.parameters import JOINT_FIELDS
from taufit.servo.rollout import replay, replay_slopes


def motion_of(seed=0, joints=5, start=None, **settings):
    time, command = commands(seed, joints, **settings)
    position = np.zeros_like(command)
    position[0] = command[0] if start is None else start
    return CommandedMotion.from_arrays(time, command, position)


def reference_rollout(robot, servo, motion, h):
    """The step of kernel/servo.cpp in NumPy, without acceleration limit and floor."""
    q, v, out = motion.position[0].copy(), np.zeros(robot.joints), []
    grid = np.arange(len(motion.integral)) * motion.grid_step - 0.3
    substeps = round(motion.step / h)
    for k in range(len(motion.position) * substeps):
        if k % substeps == 0:
            out.append(q.copy())
        if k % 2 == 0:
            mass = mass_matrix(robot, q[None])[0]
            bias = inverse_dynamics(robot, q[None], v[None], 0 * q[None])[0]
        t = (k - 0.5) * h - servo.delay
        u = [
            (np.interp(s + h, grid, c) - np.interp(s, grid, c)) / h
            for s, c in zip(t, motion.integral.T, strict=True)
        ]
        inertia = mass + np.diag(servo.armature)
        half = 0.5 * h * np.diag(servo.damping)
        b = (inertia - half) @ v + h * (servo.kp * (np.array(u) + servo.offset - q) - bias)
        stiff = h**2 * servo.kp * (h**2 * servo.kp > np.diag(inertia))
        a = inertia + half + np.diag(stiff)
        for _ in range(60):
            for j in range(robot.joints):
                s = b[j] - a[j] @ v + a[j, j] * v[j]
                v[j] = np.sign(s) * max(abs(s) - h * servo.coulomb[j], 0.0) / a[j, j]
        q = q + h * v
    return np.array(out)


@pytest.mark.parametrize("name", ["so101", "ur5e"])
def test_kernel_equals_numpy(name):
    robot = taufit.read_robot(name)
    scale = robot.parameters.reshape(robot.joints, -1)[:, 0].sum() / 0.5
    servo = truth(robot.joints)
    servo = servo.replace(
        kp=scale * servo.kp, damping=scale * servo.damping, coulomb=scale * servo.coulomb
    )
    motion = motion_of(joints=robot.joints, seconds=1.0)
    expected = reference_rollout(robot, servo, motion, motion.step / 4)
    # Coordinate descent of the kernel stops at 1e-8 rad/s.
    np.testing.assert_allclose(
        replay(JointAxes.of_robot(robot), servo, motion), expected, atol=1e-7
    )


def test_joint_axes_keep_the_tip():
    for name in ("so101", "ur10e", "panda"):
        robot = taufit.read_robot(name)
        q = np.random.default_rng(1).uniform(-1, 1, (20, robot.joints))
        tip = forward_kinematics(robot, q)[:, -1, 2, 3]
        np.testing.assert_allclose(JointAxes.of_robot(robot).heights(q), tip, atol=1e-12)


@pytest.mark.parametrize(
    "field, step", list(zip(JOINT_FIELDS, (0.05, 5e-3, 2e-3, 2e-4, 5e-4, 2e-3), strict=True))
)
def test_slopes_are_differences(field, step):
    axes, servo = JointAxes.of_robot(taufit.read_robot("so101")), truth()
    motion = motion_of(seconds=12.0)
    _, slopes = replay_slopes(axes, servo, motion)
    for joint in (0, 2):
        shift = step * np.eye(5)[joint]
        high, low = (
            replay(axes, servo.replace(**{field: getattr(servo, field) + s * shift}), motion)
            for s in (1, -1)
        )
        difference = (high - low) / (2 * step)
        slope = slopes[:, :, 6 * joint + JOINT_FIELDS.index(field)]
        error = np.sqrt(((slope - difference) ** 2).mean() / (difference**2).mean())
        # Standing joints change at other steps; worst of five seeds 0.03.
        assert error < 0.06
        turned = np.sqrt(((slope + difference) ** 2).mean() / (difference**2).mean())
        assert turned > 1.5


def test_a_joint_below_its_friction_stands_exactly():
    axes, servo = JointAxes.of_robot(taufit.read_robot("so101")), truth()
    time = np.arange(0.0, 5.0, 0.02)
    command = np.zeros((len(time), 5))
    command[:, 0] = 0.8 * servo.coulomb[0] / servo.kp[0]
    motion = CommandedMotion.from_arrays(time, command, np.zeros_like(command))
    assert np.ptp(replay(axes, servo, motion)[:, 0]) == 0.0
    loose = servo.replace(coulomb=0.5 * servo.coulomb)
    assert np.ptp(replay(axes, loose, motion)[:, 0]) > 1e-3


def test_floor_holds_the_tip():
    axes, servo = JointAxes.of_robot(taufit.read_robot("so101")), truth()
    motion = motion_of(seed=3, seconds=20.0)
    lowest = axes.heights(replay(axes, servo, motion)).min()
    floor = Floor(lowest + 0.03)
    assert axes.heights(replay(axes, servo, motion, floor)).min() > floor.height - 0.008


def test_acceleration_limit_bounds_the_reference():
    axes, servo = JointAxes.of_robot(taufit.read_robot("so101")), truth()
    time = np.arange(0.0, 2.0, 0.02)
    command = np.where(time[:, None] > 0.5, 0.5, 0.0) * np.eye(5)[0]
    motion = CommandedMotion.from_arrays(time, command, np.zeros_like(command))
    free = replay(axes, servo, motion)[:, 0]
    slow = replay(axes, servo.replace(acceleration_limit=5.0), motion)[:, 0]
    # A step of 0.5 rad at 5 rad/s^2 lasts 2 sqrt(0.5/5) = 0.63 s.
    arrival = [time[np.argmax(q > 0.4)] for q in (free, slow)]
    assert arrival[1] - arrival[0] > 0.2
    assert slow[-1] == pytest.approx(free[-1], abs=0.02)
