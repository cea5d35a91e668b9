"""Arms nobody has tuned anything to: drawn at random, or built from data sheets' geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from taufit.robot import Robot


def unseen_arms(seed: int) -> list[Robot]:
    """Random standard tables with a1 != 0 (20), SCARA, gantry with 4R, UR20 on a track, random 5R.

    Nothing but geometry and plausible masses is given for the random ones: limits are the defaults.
    """
    from taufit.robot.from_dh import from_dh
    from taufit.robot.robot import JointLimits

    rng = np.random.default_rng(seed)
    half = np.pi / 2
    arms = []
    for k in range(20):
        turn = rng.choice([-1.0, 1.0], 4) * half
        rows = [
            [0.0, rng.uniform(0.2, 0.45), rng.uniform(0.05, 0.2), turn[0]],
            [0.0, 0.0, rng.uniform(0.25, 0.5), 0.0],
            [0.0, 0.0, rng.uniform(0.0, 0.1), turn[1]],
            [0.0, rng.uniform(0.25, 0.5), 0.0, turn[2]],
            [0.0, 0.0, 0.0, turn[3]],
            [0.0, rng.uniform(0.08, 0.12), 0.0, 0.0],
        ]
        arms.append(from_dh(np.array(rows), name=f"random 6R {k}", parameters=_bodies(6, rng)))
    for k in range(3):
        turn = rng.choice([-1.0, 1.0], 3) * half
        rows = [
            [0.0, 0.4, 0.1, turn[0]],
            [0.0, 0.0, rng.uniform(0.25, 0.5), 0.0],
            [0.0, 0.0, rng.uniform(0.2, 0.4), 0.0],
            [0.0, 0.0, 0.0, turn[1]],
            [0.0, 0.15, 0.0, 0.0],
        ]
        arms.append(from_dh(np.array(rows), name=f"random 5R {k}", parameters=_bodies(5, rng)))
    # SCARA with the data sheet's ranges of a 0.6 m arm.
    table = [[0, 0.4, 0.325, 0], [0, 0, 0.275, np.pi], [0, 0.0, 0, 0], [0, 0.05, 0, 0]]
    ranges = JointLimits(
        np.array([-2.3, -2.5, 0.0, -6.28]),
        np.array([2.3, 2.5, 0.21, 6.28]),
        np.array([6.6, 11.5, 1.1, 26.0]),
        np.array([40.0, 60.0, 12.0, 100.0]),
        np.full(4, np.inf),
    )
    slides = (False, False, True, False)
    arms.append(
        from_dh(
            np.array(table),
            name="scara",
            prismatic=slides,
            limits=ranges,
            parameters=_bodies(4, rng),
        )
    )
    # Three rails and four turning joints hanging from the last.
    rails = [[0, 1.0, 0, half], [half, 1.0, 0, half], [0, 0.5, 0, np.pi]]
    wrist = [[0, 0.2, 0, half], [0, 0, 0.4, 0], [0, 0, 0.3, half], [0, 0.1, 0, 0]]
    slides = (True, True, True, False, False, False, False)
    arms.append(
        from_dh(
            np.array(rails + wrist), name="gantry 4R", prismatic=slides, parameters=_bodies(7, rng)
        )
    )
    # A UR20 upright on a track along the base's y axis, modified table.
    table = [
        [0, 0, 0, half],
        [0, 0.2363, 0, -half],
        [0, 0, 0, half],
        [0, 0, -0.862, 0],
        [0, 0.201, -0.7287, 0],
        [0, 0.1593, 0, half],
        [0, 0.1543, 0, -half],
    ]
    arms.append(
        from_dh(
            np.array(table),
            convention="modified",
            name="track UR20",
            prismatic=(True, *(False,) * 6),
            parameters=_bodies(7, rng),
        )
    )
    return arms


def _bodies(joints: int, rng: np.random.Generator) -> np.ndarray:
    """Plausible link parameters: 20 kg down to 1 kg, centres within 0.1 m, rods of 0.2 m."""
    out = np.zeros((joints, 10))
    for i in range(joints):
        mass = 20.0 * 0.5**i + 1.0
        c = rng.uniform(-0.1, 0.1, 3)
        inertia = mass * 0.01 * np.eye(3) + mass * (c @ c * np.eye(3) - np.outer(c, c))
        out[i] = [mass, *(mass * c), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
    return out
