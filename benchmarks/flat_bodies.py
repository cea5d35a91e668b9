"""Arms as cylinders and boxes with flat ends, posed and compared by MuJoCo: an independent judge.

Dimensions are estimates of outer dimensions in the frames of the bundled tables; nothing of the
product's capsules, kinematics of bodies or distances is used.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from benchmarks.accuracy.design_clearance import BODIES as DRAWN, Body

# Links whose distance counts lie this far apart in the chain.
_APART = {"panda": 3}


def _ur(lengths, beside, radii):
    a2, a3, d1, d4, d5, d6 = lengths
    upper, fore = beside
    column, shoulder, tube, thin, wrist = radii
    return (
        Body(-1, (0, 0, 0), (0, 0, d1), column),
        Body(0, (0, 0, -0.02), (0, 0, upper - 0.036), shoulder),
        Body(1, (a2, 0, upper), (0, 0, upper), tube),
        Body(2, (a3, 0, fore), (0.04, 0, fore), thin),
        Body(2, (0, 0, 0), (0, 0, d4), wrist),
        Body(3, (0, 0, 0), (0, 0, d5), wrist),
        Body(4, (0, 0, 0.4 * d6), (0, 0, d6), wrist),
    )


# a2, a3, d1, d4, d5, d6 of the makers' tables [m].
_LENGTHS = {
    "ur3": (0.24365, 0.21325, 0.1519, 0.11235, 0.08535, 0.0819),
    "ur3e": (0.24355, 0.2132, 0.15185, 0.13105, 0.08535, 0.0921),
    "ur5": (0.425, 0.39225, 0.089159, 0.10915, 0.09465, 0.0823),
    "ur5e": (0.425, 0.3922, 0.1625, 0.1333, 0.0997, 0.0996),
    "ur10": (0.612, 0.5723, 0.1273, 0.163941, 0.1157, 0.0922),
    "ur10e": (0.6127, 0.57155, 0.1807, 0.17415, 0.11985, 0.11655),
}
_SMALL, _MIDDLE = (0.064, 0.047, 0.043, 0.033, 0.032), (0.0745, 0.059, 0.054, 0.0375, 0.0375)
_LARGE = (0.095, 0.076, 0.072, 0.054, 0.045)
BODIES = {
    "ur3": _ur(_LENGTHS["ur3"], (0.12, 0.027), _SMALL),
    "ur3e": _ur(_LENGTHS["ur3e"], (0.12, 0.028), _SMALL),
    "ur5": DRAWN["ur5"],
    "ur5e": _ur(_LENGTHS["ur5e"], (0.138, 0.007), _MIDDLE),
    "ur10": _ur(_LENGTHS["ur10"], (0.221, 0.049), _LARGE),
    "ur10e": _ur(_LENGTHS["ur10e"], (0.176, 0.039), _LARGE),
    "kr5": DRAWN["kr5"],
    "panda": (
        Body(-1, (0, 0, 0), (0, 0, 0.2), 0.06),
        Body(0, (0, 0, -0.13), (0, 0, 0.0), 0.055),
        Body(2, (0, 0, -0.25), (0, 0, 0.0), 0.055),
        Body(3, (0, 0, -0.05), (0, 0, 0.05), 0.055),
        Body(4, (0, 0, -0.3), (0, 0, -0.05), 0.05),
        Body(5, (0, 0, -0.05), (0, 0, 0.05), 0.045),
        Body(6, (0, 0, 0.0), (0, 0, 0.107), 0.04),
    ),
}


class FlatArm:
    """One arm in MuJoCo.

    Args:
        arm: Name of a bundled arm in BODIES.
    """

    def __init__(self, arm: str) -> None:
        import mujoco

        from taufit.robot import read_robot

        self.mj, self.arm, self.bodies = mujoco, arm, BODIES[arm]
        self.robot = read_robot(arm)
        spec = mujoco.MjSpec()
        for i, body in enumerate(self.bodies):
            half = 0.5 * float(np.linalg.norm(np.subtract(body.end, body.start)))
            kind = mujoco.mjtGeom.mjGEOM_BOX if body.box else mujoco.mjtGeom.mjGEOM_CYLINDER
            size = [body.width, body.width, half] if body.box else [body.width, half, 0]
            one = spec.worldbody.add_body(name=f"b{i}", mocap=True)
            one.add_geom(type=kind, size=size, contype=0, conaffinity=0)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        least = _APART.get(arm, 2)
        self.pairs = [
            (a, b)
            for a, b in combinations(range(len(self.bodies)), 2)
            if self.bodies[b].link - self.bodies[a].link >= least
        ]

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """Least distance of bodies and of the mounting surface, pose by pose [m]."""
        return np.array([self._gap(pose) for pose in self._frames(np.atleast_2d(q))])

    def _frames(self, q: np.ndarray) -> np.ndarray:
        """Frames of the bodies' links, the base's last; of UR arms from the maker's own table."""
        if self.arm not in _LENGTHS:
            from taufit.dynamics import forward_kinematics

            poses = forward_kinematics(self.robot, q)
            poses[:, -1] = np.eye(4)
            return poses
        a2, a3, d1, d4, d5, d6 = _LENGTHS[self.arm]
        a, d = (0, -a2, -a3, 0, 0, 0), (d1, 0, 0, d4, d5, d6)
        alpha = (np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0)
        out = np.tile(np.eye(4), (len(q), 7, 1, 1))
        pose = np.tile(np.eye(4), (len(q), 1, 1))
        for i in range(6):
            c, s = np.cos(q[:, i]), np.sin(q[:, i])
            ca, sa = np.cos(alpha[i]), np.sin(alpha[i])
            step = np.zeros((len(q), 4, 4))
            step[:, 0] = np.stack([c, -s * ca, s * sa, a[i] * c], axis=1)
            step[:, 1] = np.stack([s, c * ca, -c * sa, a[i] * s], axis=1)
            step[:, 2] = [0.0, sa, ca, d[i]]
            step[:, 3, 3] = 1.0
            pose = pose @ step
            out[:, i] = pose
        return out

    def _gap(self, pose: np.ndarray) -> float:
        data, model = self.data, self.model
        quaternion = np.zeros(4)
        for i, body in enumerate(self.bodies):
            frame = pose[body.link]
            start, end = np.array(body.start, float), np.array(body.end, float)
            data.mocap_pos[i] = frame[:3, :3] @ (0.5 * (start + end)) + frame[:3, 3]
            axis = frame[:3, :3] @ ((end - start) / np.linalg.norm(end - start))
            self.mj.mju_quatZ2Vec(quaternion, axis)
            data.mocap_quat[i] = quaternion
        self.mj.mj_kinematics(model, data)
        least = min(self.mj.mj_geomDistance(model, data, a, b, 0.5, None) for a, b in self.pairs)
        for i, body in enumerate(self.bodies):
            if body.link > 0:
                size, up = model.geom_size[i], data.geom_xmat[i].reshape(3, 3)[2]
                if body.box:
                    low = float(np.abs(up) @ size)
                else:
                    low = abs(up[2]) * size[1] + size[0] * float(np.hypot(up[0], up[1]))
                least = min(least, float(data.geom_xpos[i][2] - low))
        return float(least)
