"""Rigid-body dynamics by MuJoCo: model of a `Robot`, and its torques.

Link frames, joint axes and inertial parameters are passed on unchanged; taufit's dynamics is not
used, so the two can be compared.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, RobotError
from taufit.core.extras import missing_extra
from taufit.core.parameters import joint_name, link_name
from taufit.robot import Robot, pseudo_inertia
from taufit.robot.inertia import to_centre_of_mass
from taufit.robot.tree import TreeRobot

if TYPE_CHECKING:
    from taufit.sim.tree_arm import TreeArm

PAYLOAD_BODY = "payload"


def import_mujoco() -> Any:
    """Import MuJoCo; error naming the extra to install otherwise."""
    try:
        import mujoco
    except ImportError:
        raise missing_extra("sim", "the simulated arm") from None
    return mujoco


@cache
def function_addresses() -> dict[str, int]:
    """Addresses of MuJoCo's functions; empty if its library is not found."""
    mujoco = import_mujoco()
    folder = Path(mujoco.__file__).parent
    pattern = {"win32": "mujoco*.dll", "darwin": "libmujoco*.dylib"}.get(
        sys.platform, "libmujoco.so*"
    )
    names = ("mj_fwdPosition", "mj_fwdVelocity", "mj_fwdAcceleration", "mj_mulM")
    for file in sorted(folder.glob(pattern)):
        try:
            # Same file as loaded by Python's MuJoCo, so this is a second handle, not a copy.
            library = ctypes.CDLL(str(file))
            return {
                name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                for name in names
            }
        except (OSError, AttributeError):
            continue
    return {}


def compiled_kernel() -> Any | None:
    """Compiled loop, or None if not installed."""
    try:
        from taufit import _kernel
    except ImportError:
        return None
    reachable = hasattr(import_mujoco().MjModel, "_address") and function_addresses()
    return _kernel if hasattr(_kernel, "twin_run") and reachable else None


@dataclass(frozen=True, slots=True)
class MujocoArm:
    """MuJoCo model and state of a robot.

    Attributes:
        model: mjModel; body i + 1 is link i, the last body is the payload.
        data: mjData.
        joints: Number of joints.
    """

    model: Any
    data: Any
    joints: int

    @property
    def state(self) -> Any:
        """Arrays of position, velocity, acceleration and applied torque."""
        return self.data

    @property
    def hand(self) -> int:
        """Body of the last link; the payload is the next."""
        return self.joints

    @property
    def payload_body(self) -> int:
        return self.joints + 1

    def forward(self, stage: str) -> None:
        """Compute one stage of the forward dynamics: "Position", "Velocity" or "Acceleration"."""
        getattr(import_mujoco(), f"mj_fwd{stage}")(self.model, self.data)

    def calls(self) -> tuple[int, int, int, int, int]:
        """Addresses for the compiled loop: model, data and the three stages."""
        stages = [function_addresses()[f"mj_fwd{x}"] for x in ("Position", "Velocity")]
        last = function_addresses()["mj_fwdAcceleration"]
        return self.model._address, self.data._address, *stages, last  # type: ignore[return-value]

    def torque(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Joint torque M(q) a + bias(q, v), including rotor inertia and payload [N m]."""
        q, v, a = (np.ascontiguousarray(x, float) for x in (position, velocity, acceleration))
        torque = np.empty_like(q)
        compiled, model, data = compiled_kernel(), self.model, self.data
        if compiled is not None:
            addresses = function_addresses()
            compiled.twin_inverse(
                model._address,
                data._address,
                addresses["mj_fwdPosition"],
                addresses["mj_fwdVelocity"],
                addresses["mj_mulM"],
                {
                    "qpos": data.qpos,
                    "qvel": data.qvel,
                    "qfrc_bias": data.qfrc_bias,
                    "position": q,
                    "velocity": v,
                    "acceleration": a,
                    "torque": torque,
                },
                len(q),
                self.joints,
            )
            return torque
        mujoco = import_mujoco()
        for row in range(len(q)):
            data.qpos[:], data.qvel[:] = q[row], v[row]
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_mulM(model, data, torque[row], a[row])
            torque[row] += data.qfrc_bias
        return torque

    def mass_matrix(self, position: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """M(q), including rotor inertia and payload [kg m^2]."""
        mujoco = import_mujoco()
        matrices = np.empty((len(position), self.joints, self.joints))
        for row, q in enumerate(position):
            self.data.qpos[:] = q
            mujoco.mj_fwdPosition(self.model, self.data)
            for column, unit in enumerate(np.eye(self.joints)):
                mujoco.mj_mulM(self.model, self.data, matrices[row, column], unit)
        return matrices


def build_arm(
    robot: Robot,
    *,
    rotor: Float[Array, " j"] | None = None,
    payload: Float[Array, " 10"] | None = None,
) -> MujocoArm | TreeArm:
    """Build the MuJoCo model of a robot.

    Args:
        robot: Kinematics, mounting, inertial parameters.
        rotor: Reflected rotor inertias [kg m^2]; None: those of the robot.
        payload: Ten parameters in the frame of the last link, rigidly attached to it.
    """
    if isinstance(robot, TreeRobot):
        from taufit.sim.tree_arm import build_tree_arm

        return build_tree_arm(robot, rotor, payload)
    mujoco = import_mujoco()
    require_consistent_links(robot)
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    spec.option.disableflags |= int(
        mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    )
    body = spec.worldbody
    for i, link in enumerate(robot.links):
        body = body.add_body(
            name=link_name(i),
            pos=link.placement[:3, 3],
            quat=_quaternion(mujoco, link.placement[:3, :3]),
            mass=1.0,
            inertia=[1.0, 1.0, 1.0],
            explicitinertial=True,
        )
        axis, anchor = _axis(link.screw, link.joint)
        kind = mujoco.mjtJoint.mjJNT_SLIDE if link.is_prismatic else mujoco.mjtJoint.mjJNT_HINGE
        body.add_joint(name=joint_name(i), type=kind, axis=axis, pos=anchor)
    inertias = robot.rotor_inertias if rotor is None else rotor
    is_coupled = not np.array_equal(robot.drives.coupling, np.eye(robot.joints))
    if is_coupled:
        # A motor that drives several joints is a tendon with armature: C' diag(rotor) C.
        for i, row in enumerate(robot.drives.coupling):
            tendon = spec.add_tendon(name=f"motor_{i + 1}", armature=float(inertias[i]))
            for k, ratio in enumerate(row):
                if ratio != 0.0:
                    tendon.wrap_joint(joint_name(k), float(ratio))
    body.add_body(name=PAYLOAD_BODY, mass=1.0, inertia=[1.0, 1.0, 1.0], explicitinertial=True)
    model = spec.compile()
    # The compiler would reject or round inertias of thin bodies; the values are checked above and
    # set here unchanged.
    for i, link in enumerate(robot.links):
        _set_body(model, i + 1, link.parameters)
    _set_body(model, robot.joints + 1, np.zeros(10) if payload is None else payload)
    armature = np.zeros(robot.joints) if is_coupled else np.array(inertias, float)
    data = mujoco.MjData(model)
    # One unit of armature is added so that nothing is singular and MuJoCo does not warn.
    model.dof_armature[:] = armature + 1.0
    mujoco.mj_setConst(model, data)
    _check_movable(robot, MujocoArm(model, data, robot.joints))
    model.dof_armature[:] = armature
    # MuJoCo skips shift and rotation of a body whose centre is at its origin; the payload may
    # change, so this must be off.
    model.body_sameframe[robot.joints + 1] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    return MujocoArm(model, data, robot.joints)


def _check_movable(robot: Robot, heavier: MujocoArm | TreeArm) -> None:
    """InfeasibleError for a joint without inertia; `heavier` has unit armature added."""
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (4, robot.joints))
    for matrix in heavier.mass_matrix(poses) - np.eye(robot.joints):
        values, vectors = np.linalg.eigh(matrix)
        if values[0] < 1e-10 * max(values[-1], 1e-3):
            joint = robot.joint_names[int(np.abs(vectors[:, 0]).argmax())]
            raise InfeasibleError(
                f"{joint} has no inertia to move: its links are too thin about the axis and it has "
                "no rotor inertia. Give it a rotor inertia, or links with an extent."
            )


def require_consistent_links(robot: Robot) -> None:
    """InfeasibleError for links that are not physically consistent."""
    for link in robot.links:
        if not np.all(np.isfinite(link.parameters)):
            raise InfeasibleError(f"{link.name} has an inertial parameter that is not finite.")
        if not np.isfinite(link.rotor_inertia) or link.rotor_inertia < 0.0:
            raise InfeasibleError(
                f"{link.joint} has rotor inertia {link.rotor_inertia:.4g}; it must not be negative."
            )
        smallest = negative_eigenvalue(link.parameters)
        if smallest is not None:
            raise InfeasibleError(
                f"{link.name} is not physically possible: its pseudo-inertia has the eigenvalue "
                f"{smallest:.3g}, which must not be negative (mass {link.parameters[0]:.4g} kg). "
                "Simulate a physically consistent model, for example one fitted with "
                "--estimator consistent_sdp."
            )
    if not np.any(robot.parameters[robot.layout.masses] > 0.0):
        raise InfeasibleError(
            f"{robot.name} has no masses: a simulation needs inertial parameters. Use a robot that "
            "has them, or a fitted model with --model."
        )


def negative_eigenvalue(parameters: Float[Array, " 10"]) -> float | None:
    """Negative eigenvalue of the pseudo-inertia; None for a consistent body.

    Tolerance: 1e-6 of the largest eigenvalue, for rounding in printed tables.
    """
    values = np.linalg.eigvalsh(pseudo_inertia(parameters))
    return float(values[0]) if values[0] < -1e-6 * max(values[-1], 1e-12) else None


def principal_inertia(
    parameters: Float[Array, " 10"],
) -> tuple[float, Float[Array, " 3"], Float[Array, " 4"], Float[Array, " 3"]]:
    """Mass, centre, orientation of the principal axes (quaternion) and principal moments."""
    mujoco = import_mujoco()
    mass, centre, tensor = to_centre_of_mass(parameters)
    moments, axes = np.linalg.eigh(tensor)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return mass, centre, _quaternion(mujoco, axes), moments


def _set_body(model: Any, body: int, parameters: Float[Array, " 10"]) -> None:
    mass, centre, quaternion, moments = principal_inertia(parameters)
    model.body_mass[body], model.body_ipos[body] = mass, centre
    model.body_iquat[body], model.body_inertia[body] = quaternion, moments


def _quaternion(mujoco: Any, rotation: Float[Array, "3 3"]) -> Float[Array, " 4"]:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation, float).ravel())
    return quaternion


def _axis(screw: Float[Array, " 6"], name: str) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Joint axis and a point on it, in the link frame."""
    w, u = screw[:3], screw[3:]
    if not np.any(w):
        return u, np.zeros(3)
    if abs(w @ u) > 1e-9 * max(1.0, float(np.linalg.norm(u))):
        raise RobotError(f"{name} is a helical joint; MuJoCo has only hinges and slides.")
    return w, np.cross(w, u)
