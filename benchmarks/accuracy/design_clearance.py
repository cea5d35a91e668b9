"""Do designed motions touch the real arm? Boxes and cylinders of about its size, in MuJoCo.

The search keeps capsules apart. Here the bodies of UR5 and KR5 are cylinders and boxes with
estimated outer dimensions, posed by the arm's kinematics and compared by
MuJoCo's own distances; nothing of the search's geometry is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import Row

MOMENTS = 400


@dataclass(frozen=True, slots=True)
class Body:
    """A box or cylinder on a link.

    Attributes:
        link: Index, -1 for the base.
        start, end: Of its axis in the link's frame [m].
        width: Radius of a cylinder, or half width of a square box.
        box: Whether it is a box.
    """

    link: int
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    width: float
    box: bool = False


# Frames are those of the standard tables; axes of bodies as drawn.
BODIES = {
    "ur5": (
        Body(-1, (0, 0, 0.0), (0, 0, 0.089), 0.0745),
        Body(0, (0, 0, -0.02), (0, 0, 0.10), 0.059),
        Body(1, (0.425, 0, 0.136), (0.0, 0, 0.136), 0.054),
        Body(2, (0.392, 0, 0.016), (0.04, 0, 0.016), 0.0375),
        Body(2, (0, 0, 0.0), (0, 0, 0.109), 0.0375),
        Body(3, (0, 0, 0.0), (0, 0, 0.0946), 0.0375),
        Body(4, (0, 0, 0.04), (0, 0, 0.0823), 0.0375),
    ),
    # KR5 sixx R650: the data sheet has the second axis 335 mm above the floor and 75 mm beside the
    # first; the table of the bundled arm counts 132 mm, from the seam where the turret leaves the
    # fixed foot.
    "kr5": (
        Body(-1, (0, 0, -0.203), (0, 0, 0), 0.09, box=True),
        Body(0, (-0.075, 0.13, 0), (-0.075, -0.03, 0), 0.085),
        # The second axis with its motor, across the turret.
        Body(0, (0, 0, -0.08), (0, 0, 0.08), 0.06),
        Body(1, (-0.27, 0, 0), (0, 0, 0), 0.045, box=True),
        Body(2, (-0.09, 0, 0), (0, 0, 0), 0.05, box=True),
        # The forearm ends where the in-line wrist begins, 80 mm before the wrist's centre; what is
        # between belongs to the fourth link and turns in the forearm's own axis.
        Body(2, (0, 0, 0.05), (0, 0, -0.215), 0.045, box=True),
        Body(3, (0, -0.08, 0), (0, 0, 0), 0.04),
        Body(4, (0, 0, 0), (0, 0, -0.08), 0.04),
    ),
}


def nearest(arm: str, motion) -> tuple[float, str]:
    """Least distance of bodies that are not neighbours, over the motion, and which they are."""
    import mujoco

    from taufit.dynamics import forward_kinematics
    from taufit.robot import read_robot

    robot, bodies = read_robot(arm), BODIES[arm]
    spec = mujoco.MjSpec()
    for i, body in enumerate(bodies):
        half = 0.5 * float(np.linalg.norm(np.subtract(body.end, body.start)))
        kind = mujoco.mjtGeom.mjGEOM_BOX if body.box else mujoco.mjtGeom.mjGEOM_CYLINDER
        size = [body.width, body.width, half] if body.box else [body.width, half, 0]
        one = spec.worldbody.add_body(name=f"b{i}", mocap=True)
        one.add_geom(type=kind, size=size, contype=0, conaffinity=0)
    model = spec.compile()
    data = mujoco.MjData(model)
    q, _, _ = motion.at(np.linspace(0.0, motion.duration, MOMENTS))
    poses = forward_kinematics(robot, q)
    poses[:, -1] = np.eye(4)
    pairs = [
        (a, b)
        for a in range(len(bodies))
        for b in range(a + 1, len(bodies))
        if bodies[b].link - bodies[a].link > 1
    ]
    worst, who = np.inf, ""
    for pose in poses:
        for i, body in enumerate(bodies):
            frame = pose[body.link]
            start, end = np.array(body.start, float), np.array(body.end, float)
            data.mocap_pos[i] = frame[:3, :3] @ (0.5 * (start + end)) + frame[:3, 3]
            axis = frame[:3, :3] @ ((end - start) / np.linalg.norm(end - start))
            quat = np.zeros(4)
            mujoco.mju_quatZ2Vec(quat, axis)
            data.mocap_quat[i] = quat
        mujoco.mj_kinematics(model, data)
        for a, b in pairs:
            gap = mujoco.mj_geomDistance(model, data, a, b, 0.5, None)
            if gap < worst:
                worst, who = gap, f"{bodies[a].link + 1}-{bodies[b].link + 1}"
        # The table: lowest point of every body beyond the first link.
        for i, body in enumerate(bodies):
            if body.link > 0:
                half = model.geom_size[i]
                axes = data.geom_xmat[i].reshape(3, 3)[2]
                if body.box:
                    reach = float(np.abs(axes) @ half)
                else:
                    reach = abs(axes[2]) * half[1] + half[0] * float(np.hypot(axes[0], axes[1]))
                if data.geom_xpos[i][2] - reach < worst:
                    worst, who = float(data.geom_xpos[i][2] - reach), f"table-{body.link + 1}"
    return float(worst), who


def clearances(seeds: range) -> Iterator[tuple[str, int, float, str]]:
    """Least distance of every design with the default budget [m]; NaN where it was refused."""
    from taufit.core.errors import InfeasibleError
    from taufit.excitation import SearchEffort, plan
    from taufit.robot import read_robot

    for arm in BODIES:
        robot = read_robot(arm)
        for seed in seeds:
            try:
                motion = plan("identification", robot, effort=SearchEffort(seed=seed)).motion
            except InfeasibleError as error:
                yield arm, seed, np.nan, str(error)
                continue
            yield arm, seed, *nearest(arm, motion)


def rows() -> Iterator[Row]:
    found = list(clearances(range(25)))
    for arm in BODIES:
        own = [(gap, who) for one, _, gap, who in found if one == arm]
        least, who = min(own)
        note = f"25 designs; bodies {who} come nearest"
        touching = sum(not gap > 0 for gap, _ in own)
        yield Row(f"{arm}: designs that touch or are refused", touching, "", "== 0", note)
        yield Row(f"{arm}: least distance of real bodies", 1000.0 * least, "mm", "> 0", note)


if __name__ == "__main__":
    first, _, count = (sys.argv[1:] or ["0+25"])[0].partition("+")
    for line in clearances(range(int(first), int(first) + int(count or 1))):
        print(*line, flush=True)
