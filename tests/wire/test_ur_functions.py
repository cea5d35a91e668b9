"""Functions of URScript on the virtual controller: against SciPy's rotations and Pinocchio."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.dynamics.random_arms import pinocchio_model

from taufit.virtual.controllers.ur_functions import controller_functions
from taufit.virtual.urscript import ScriptError
from taufit.virtual.urscript.values import UrList


@pytest.fixture
def call(offline):
    """Calls a function by its name, on one controller."""
    controller = offline()
    known = controller_functions(controller)

    def run(name, *given, **named):
        return known[name].run(*given, **named)

    run.controller = controller
    return run


def random_pose(rng):
    return UrList([*rng.uniform(-1, 1, 3), *rng.uniform(-1.5, 1.5, 3)])


def matrix(pose):
    out = np.eye(4)
    out[:3, :3] = Rotation.from_rotvec(pose[3:]).as_matrix()
    out[:3, 3] = pose[:3]
    return out


@pytest.mark.parametrize("seed", range(5))
def test_poses_add_subtract_and_lie_between(call, seed):
    rng = np.random.default_rng(seed)
    a, b = random_pose(rng), random_pose(rng)
    A, B = matrix(a), matrix(b)

    np.testing.assert_allclose(matrix(call("pose_trans", a, b)), A @ B, atol=1e-12)
    np.testing.assert_allclose(matrix(call("pose_inv", a)), np.linalg.inv(A), atol=1e-12)
    added = matrix(call("pose_add", a, b))
    np.testing.assert_allclose(added[:3, 3], A[:3, 3] + B[:3, 3], atol=1e-12)
    np.testing.assert_allclose(added[:3, :3], A[:3, :3] @ B[:3, :3], atol=1e-12)
    apart = np.array(call("pose_sub", a, b))
    np.testing.assert_allclose(apart[:3], A[:3, 3] - B[:3, 3], atol=1e-12)
    turn = Rotation.from_matrix(A[:3, :3] @ B[:3, :3].T).as_rotvec()
    np.testing.assert_allclose(apart[3:], turn, atol=1e-9)
    assert call("pose_dist", a, b) == pytest.approx(np.linalg.norm(apart[:3]))

    share = float(rng.uniform())
    between = matrix(call("interpolate_pose", a, b, share))
    there = Rotation.from_matrix(B[:3, :3] @ A[:3, :3].T).as_rotvec()
    expected = Rotation.from_rotvec(share * there).as_matrix() @ A[:3, :3]
    np.testing.assert_allclose(between[:3, :3], expected, atol=1e-9)
    np.testing.assert_allclose(
        between[:3, 3], (1 - share) * A[:3, 3] + share * B[:3, 3], atol=1e-12
    )
    for end, at in ((a, 0.0), (b, 1.0)):
        np.testing.assert_allclose(
            matrix(call("interpolate_pose", a, b, at)), matrix(end), atol=1e-9
        )


def test_mathematics_is_pythons(call):
    assert call("atan2", 1, 2) == math.atan2(1, 2)
    assert call("pow", 2, 10) == 1024.0
    assert call("log", 2, 8) == pytest.approx(3.0)
    assert call("d2r", 180) == pytest.approx(math.pi)
    assert call("norm", UrList([3, 4])) == 5.0 and call("norm", -2) == 2.0
    assert call("length", "word") == 4 == call("get_list_length", UrList([1, 2, 3, 4]))
    assert call("str_cat", "x", 1) == "x1"


@pytest.mark.parametrize(
    "name, given, says",
    [
        ("sqrt", (-1,), "not defined for -1"),
        ("exp", (1e6,), "not defined"),
        ("log", (1, 8), "not defined for 1 and 8"),
        ("pow", (0, -1), "not defined"),
        ("length", (3,), "has no length"),
        ("read_input_integer_register", (48,), "there are 0 to 47"),
        ("write_output_integer_register", (0, 2**31), "does not fit"),
        ("set_payload", (-1,), "a payload of -1 kg"),
        ("get_joint_temp", (6,), "there are 0 to 5"),
        ("get_actual_joint_positions_history", (10**6,), "are not kept"),
        ("get_inverse_kin", (UrList([9, 9, 9, 0, 0, 0]),), "does not reach"),
    ],
)
def test_what_has_no_answer_stops_the_program_in_words(call, name, given, says):
    with pytest.raises(ScriptError, match=says):
        call(name, *given)


def test_what_a_program_sets_it_reads_back(call):
    controller = call.controller
    call("write_output_integer_register", 3, -7)
    call("write_output_float_register", 4, 2.5)
    assert controller.integers[3] == -7 and controller.doubles[4] == 2.5
    controller.inputs["input_int_register_5"] = 11
    controller.inputs["input_double_register_6"] = 0.25
    assert call("read_input_integer_register", 5) == 11
    assert call("read_input_float_register", 6) == 0.25

    call("set_target_payload", 2.5, UrList([0.1, 0, 0.2]), UrList([1, 2, 3, 0, 0, 0]))
    assert call("get_target_payload") == 2.5
    assert call("get_target_payload_cog") == [0.1, 0, 0.2]
    assert call("get_target_payload_inertia") == [1, 2, 3, 0, 0, 0]
    call("set_payload_cog", UrList([0, 0, 0.3]))
    assert call("get_target_payload_cog") == [0, 0, 0.3]

    tool = UrList([0.1, 0.2, 0.3, 0.4, -0.2, 0.1])
    call("set_tcp", tool)
    np.testing.assert_allclose(call("get_tcp_offset"), tool, atol=1e-12)
    flange = matrix(call("get_actual_tool_flange_pose"))
    np.testing.assert_allclose(
        matrix(call("get_actual_tcp_pose")), flange @ matrix(tool), atol=1e-12
    )
    assert call("get_inverse_kin_has_solution", call("get_target_tcp_pose")) is True
    assert call("get_inverse_kin_has_solution", UrList([9, 9, 9, 0, 0, 0])) is False
    assert call("get_actual_joint_positions_history", 0) == call("get_actual_joint_positions")
    call("textmsg", "mass ", 2.5)
    assert any("mass 2.5" in text for text, _ in controller.messages)


def test_dynamics_and_the_jacobians_derivative_are_pinocchios(call):
    import pinocchio

    arm = call.controller.twin.robot
    model = pinocchio_model(arm)
    data = model.createData()
    rng = np.random.default_rng(3)
    q, v = rng.uniform(-1.5, 1.5, (2, 6))
    mass = pinocchio.crba(model, data, q)
    mass = np.triu(mass) + np.triu(mass, 1).T
    np.testing.assert_allclose(call("get_mass_matrix", UrList(q)), mass, atol=1e-9)
    rotors = call("get_mass_matrix", UrList(q), True)
    np.testing.assert_allclose(np.array(rotors) - mass, np.diag(arm.rotor_inertias), atol=1e-9)
    bias = pinocchio.rnea(model, data, q, v, np.zeros(6)) - pinocchio.rnea(
        model, data, q, np.zeros(6), np.zeros(6)
    )
    got = call("get_coriolis_and_centrifugal_torques", UrList(q), UrList(v))
    np.testing.assert_allclose(got, bias, atol=1e-9)

    # Pinocchio's joint frames sit on the axes; the flange is placed where it is at q = 0.
    zero = np.zeros(6)
    pinocchio.forwardKinematics(model, data, zero)
    flange = matrix(call("get_forward_kin", UrList(zero)))
    placed = data.oMi[6].inverse() * pinocchio.SE3(flange)
    frame = model.addFrame(pinocchio.Frame("tip", 6, placed, pinocchio.FrameType.OP_FRAME))
    data = model.createData()
    world = pinocchio.LOCAL_WORLD_ALIGNED
    pinocchio.computeJointJacobiansTimeVariation(model, data, q, v)
    pinocchio.updateFramePlacements(model, data)
    slope = pinocchio.getFrameJacobianTimeVariation(model, data, frame, world)
    told = call("get_jacobian_time_derivative", UrList(q), UrList(v))
    np.testing.assert_allclose(told, slope, atol=1e-6)
