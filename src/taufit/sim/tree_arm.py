"""Simulated trees: MuJoCo moves the joint of every link, the recorded joints bind them.

With q_t = C q + o of the links' joints, M = C' M_t C and bias = C' bias_t, exactly: no constraint
has to be solved. Rotors act on the recorded joints.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK, joint_name, link_name
from taufit.robot.tree import TreeRobot
from taufit.sim.mujoco_arm import (
    PAYLOAD_BODY,
    _axis,
    _check_movable,
    _quaternion,
    _set_body,
    import_mujoco,
    require_consistent_links,
)

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class TreeArm:
    """MuJoCo model and state of a tree, with the interface of `MujocoArm`.

    Attributes:
        model, data: mjModel and mjData of all links.
        state: Position, velocity, acceleration and applied torque of the recorded joints.
        joints: Number of recorded joints.
        hand, payload_body: Bodies of the tip's link and of the payload.
        rotor_matrix: Inertia of the rotors at the recorded joints [kg m^2].
    """

    def __init__(self, robot: TreeRobot, model: Any, hand: int, rotor: Float[Array, " j"]) -> None:
        mujoco = import_mujoco()
        self.model, self.data, self.joints = model, mujoco.MjData(model), robot.joints
        self.hand, self.payload_body = hand, model.body(PAYLOAD_BODY).id
        # MuJoCo orders joints depth first. Unit armature keeps its matrix regular.
        order = [int(model.joint(joint_name(b)).dofadr[0]) for b in range(robot.bodies)]
        self._binding, self._offset = np.zeros_like(robot.binding), np.zeros(robot.bodies)
        self._binding[order], self._offset[order] = robot.binding, robot.binding_offset
        model.dof_armature[:] = 1.0
        mujoco.mj_setConst(model, self.data)
        coupling = robot.drives.coupling
        self.rotor_matrix = coupling.T @ np.diag(rotor) @ coupling
        zeros = {name: np.zeros(robot.joints) for name in ("qpos", "qvel", "qfrc_applied")}
        self.state = SimpleNamespace(qacc_smooth=np.zeros(robot.joints), **zeros)
        self._calls = [
            _CALL(lambda *_, stage=stage: self.forward(stage))
            for stage in ("Position", "Velocity", "Acceleration")
        ]

    def forward(self, stage: str) -> None:
        """Compute one stage of the forward dynamics: "Position", "Velocity" or "Acceleration"."""
        mujoco, state = import_mujoco(), self.state
        if stage == "Position":
            self.data.qpos[:] = self._binding @ state.qpos + self._offset
        elif stage == "Velocity":
            self.data.qvel[:] = self._binding @ state.qvel
        getattr(mujoco, f"mj_fwd{stage}")(self.model, self.data)
        if stage == "Acceleration":
            force = state.qfrc_applied + self._binding.T @ self.data.qfrc_smooth
            try:
                state.qacc_smooth[:] = np.linalg.solve(self._mass(), force)
            except np.linalg.LinAlgError:  # the loop reports a divergence
                state.qacc_smooth[:] = np.nan

    def calls(self) -> tuple[int, int, int, int, int]:
        """Addresses for the compiled loop: model, data and the three stages."""
        stages = [ctypes.cast(call, ctypes.c_void_p).value or 0 for call in self._calls]
        return 0, 0, stages[0], stages[1], stages[2]

    def _mass(self) -> Float[Array, "j j"]:
        columns, mujoco = np.empty((self.joints, self.model.nv)), import_mujoco()
        for column, unit in zip(columns, self._binding.T.copy(), strict=True):
            mujoco.mj_mulM(self.model, self.data, column, unit)
            column -= unit
        return np.asarray(columns @ self._binding + self.rotor_matrix)

    def torque(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Joint torque M(q) a + bias(q, v), including rotor inertia and payload [N m]."""
        out = np.empty_like(np.asarray(position, float))
        for row, (q, v, a) in enumerate(zip(position, velocity, acceleration, strict=True)):
            self.state.qpos[:], self.state.qvel[:] = q, v
            self.forward("Position")
            self.forward("Velocity")
            out[row] = self._mass() @ a + self._binding.T @ self.data.qfrc_bias
        return out

    def mass_matrix(self, position: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """M(q), including rotor inertia and payload [kg m^2]."""
        matrices = []
        for q in position:
            self.state.qpos[:] = q
            self.forward("Position")
            matrices.append(self._mass())
        return np.array(matrices)


def build_tree_arm(
    robot: TreeRobot, rotor: Float[Array, " j"] | None, payload: Float[Array, " 10"] | None
) -> TreeArm:
    """Build the MuJoCo model of a tree; see `build_arm`."""
    mujoco = import_mujoco()
    require_consistent_links(robot)
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    spec.option.disableflags |= int(
        mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    )
    body = {"mass": 1.0, "inertia": [1.0, 1.0, 1.0], "explicitinertial": True}
    bodies: list[Any] = []
    for b, link in enumerate(robot.links):
        parent = spec.worldbody if robot.parents[b] < 0 else bodies[robot.parents[b]]
        quaternion = _quaternion(mujoco, link.placement[:3, :3])
        pose = {"pos": link.placement[:3, 3], "quat": quaternion}
        bodies.append(parent.add_body(name=link_name(b), **pose, **body))
        axis, anchor = _axis(link.screw, link.joint)
        kind = mujoco.mjtJoint.mjJNT_SLIDE if link.is_prismatic else mujoco.mjtJoint.mjJNT_HINGE
        bodies[-1].add_joint(name=joint_name(b), type=kind, axis=axis, pos=anchor)
    has_load = payload is not None and np.any(payload)
    tip = robot.layout.link(-1).start // PER_LINK if has_load else robot.tips[0].link
    bodies[tip].add_body(name=PAYLOAD_BODY, **body)
    model = spec.compile()
    for b, link in enumerate(robot.links):
        _set_body(model, model.body(link_name(b)).id, link.parameters)
    loaded = model.body(PAYLOAD_BODY).id
    _set_body(model, loaded, np.zeros(PER_LINK) if payload is None else payload)
    model.body_sameframe[loaded] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    rotors = robot.rotor_inertias if rotor is None else np.array(rotor, float)
    arm = TreeArm(robot, model, model.body(link_name(tip)).id, rotors)
    arm.rotor_matrix = arm.rotor_matrix + np.eye(robot.joints)
    _check_movable(robot, arm)
    arm.rotor_matrix = arm.rotor_matrix - np.eye(robot.joints)
    return arm
