"""Scores of the tasks, from predictions alone; none of the tools has a part in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.run import Run
from benchmarks.pinocchio_arm import pinocchio_model

# Shorter levers count as none where a force is estimated [m].
LEVER = 0.1


def joint_nrmse(runs: list[Run], predicted: list[np.ndarray]) -> np.ndarray:
    """RMSE over standard deviation of the measured torque, per joint, mean over runs.

    Samples in motion count. A joint whose torque does not vary at all is nan.
    """
    out = []
    for run, torque in zip(runs, predicted, strict=True):
        measured = measured_torque(run)[run.moving]
        error = measured - torque[run.moving]
        spread = np.where(measured.std(0) > 1e-9, measured.std(0), np.nan)
        out.append(np.sqrt(np.mean(error**2, 0)) / spread)
    return np.asarray(np.mean(out, 0))


def phantom_force(arm: Any, runs: list[Run], predicted: list[np.ndarray]) -> float:
    """Contact force at the flange that the residual of a contact-free motion pretends [N].

    95 % quantile over samples in motion of |f|, where f minimises |r - J' f|^2 + (LEVER |f|)^2.
    """
    jacobian = flange_jacobian(arm)
    forces = []
    for run, torque in zip(runs, predicted, strict=True):
        residual = measured_torque(run) - torque
        for i in np.flatnonzero(run.moving):
            j = jacobian(run.q[i])
            f = np.linalg.solve(j @ j.T + LEVER**2 * np.eye(3), j @ residual[i])
            forces.append(float(np.linalg.norm(f)))
    return float(np.quantile(forces, 0.95))


def flange_jacobian(arm: Any) -> Any:
    """Function from a position (j) to the Jacobian (3, j) of the last joint frame's origin."""
    import pinocchio as pin

    model = pinocchio_model(arm)
    memory = model.createData()

    def jacobian(q: np.ndarray) -> np.ndarray:
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.computeJointJacobians(model, memory, q)
        return np.asarray(pin.getJointJacobian(model, memory, model.nv, frame)[:3])

    return jacobian


def mass_error(masses: list[float], true: list[float]) -> float:
    """Mean deviation of the payloads' masses [%]."""
    return float(np.mean([100.0 * abs(m / t - 1.0) for m, t in zip(masses, true, strict=True)]))


def replay_error(runs: list[Run], positions: list[np.ndarray]) -> np.ndarray:
    """Root mean square over runs, per joint [mrad], of the joints that a tool has."""
    square = [
        np.mean((run.recorded_position[:, : p.shape[1]] - p) ** 2, 0)
        for run, p in zip(runs, positions, strict=True)
    ]
    return np.asarray(1e3 * np.sqrt(np.mean(square, 0)))


def exported_torque(file: Path, runs: list[Run]) -> list[np.ndarray]:
    """Inverse dynamics of an MJCF file in MuJoCo, with what its actuators add by themselves."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(file))
    memory = mujoco.MjData(model)
    out = []
    for run in runs:
        torque = np.empty_like(run.q)
        for k, (q, v, a) in enumerate(zip(run.q, run.v, run.a, strict=True)):
            memory.qpos[:], memory.qvel[:], memory.qacc[:] = q, v, a
            mujoco.mj_inverse(model, memory)
            torque[k] = memory.qfrc_inverse
        if model.nu == model.nv:
            torque = torque - model.actuator_biasprm[:, 0]
        out.append(torque)
    return out


def measured_torque(run: Run) -> np.ndarray:
    """Low-passed torque of a run that has one."""
    assert run.torque is not None
    return run.torque
